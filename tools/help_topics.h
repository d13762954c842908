// The texts of `thalweg help TOPIC`.
#pragma once

#include <string>
#include <vector>

namespace thalweg::tools {

struct HelpTopic {
  const char* name;
  const char* summary;
  std::string text;
};
const std::vector<HelpTopic>& HelpTopics();

}  // namespace thalweg::tools
