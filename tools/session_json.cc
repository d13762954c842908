#include "thalweg/tools/session_json.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "thalweg/tools/memory.h"

namespace thalweg::tools {

OrderedJson SessionOptionsJson(const SessionOptions& options) {
  OrderedJson json;
  json["threads"] =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  json["devices"] = options.devices;
  json["soft_placement"] = options.soft_placement;
  json["policy"] = options.policy;
  json["pins"] = OrderedJson::array();
  for (const auto& [pattern, device] : options.pins) json["pins"].push_back(absl::StrCat(pattern, "=", device));
  json["placement"] = options.placement_file;
  json["memory_limit_bytes"] = options.memory_limit_bytes > 0 ? options.memory_limit_bytes : TotalMemoryBytes() / 5 * 4;
  json["optimize"] = options.optimizes();
  json["disabled_passes"] = options.disabled_passes;
  json["parallel_iterations"] = options.parallel_iterations;
  json["general_frames"] = options.general_frames;
  return json;
}

}  // namespace thalweg::tools
