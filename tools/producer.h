// Which release of TensorFlow wrote a graph, told from its producer version.
#pragma once

#include <string>

namespace thalweg::tools {

// "TensorFlow 2.9", "TensorFlow 1.15-2.3" between known releases, "newer than TensorFlow 2.21"; "" for 0 (not said).
std::string ReleaseOfProducer(int producer);

}  // namespace thalweg::tools
