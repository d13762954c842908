// Whether steps check at their end that every node has completed or is accounted for by deadness (I2).
#pragma once

namespace thalweg {

// True in debug builds, and where the environment has THALWEG_CHECK_COMPLETION=1 (all tests and conformance runs do); read when a plan
// is built. The check costs time per iteration of a loop.
bool ChecksCompletion();

}  // namespace thalweg
