// thalweg devices: what graphs can run on here.
#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/container/btree_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/devices/device.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/memory.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const auto* const spec = new CommandSpec{
      "devices",
      "Lists the kinds of devices, what they are here, and how many kernels each has.",
      "",
      0,
      0,
      {{FlagKind::kSwitch, "json", "", "", "for programs"}},
      {"thalweg devices", "thalweg devices --json", "thalweg run model.pb -f prob -d CPU:0,CPU:1,GPU:0=sim"}};
  return *spec;
}

struct DeviceKind {
  std::string backend;
  std::string example;  // what to write behind -d
  std::string what;
  int64_t memory_bytes = 0;
  int kernels = 0;
};

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "processor";
}

std::vector<DeviceKind> Kinds() {
  absl::btree_map<std::string, int> kernels;
  for (const KernelDef* def : BuiltinOps().kernels.All()) ++kernels[def->backend];
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<DeviceKind> kinds;
  kinds.push_back(
      {"cpu", "CPU:0", absl::StrCat(ProcessorName(), ", ", Plural(cores, "core")), TotalMemoryBytes(), kernels["cpu"]});
  if (ParseDeviceList("CPU:0,GPU:0=sim").ok()) {
    kinds.push_back({"sim", "GPU:0=sim", "simulated accelerator: memory and streams of its own, in this process",
                     TotalMemoryBytes(), kernels["sim"]});
  }
  return kinds;
}

int Run(const Arguments& arguments, Console& console) {
  const std::vector<DeviceKind> kinds = Kinds();
  if (arguments.Has("json")) {
    OrderedJson json;
    json["schema"] = "thalweg.devices/1";
    json["devices"] = OrderedJson::array();
    for (const DeviceKind& kind : kinds) {
      json["devices"].push_back({{"backend", kind.backend},
                                 {"example", kind.example},
                                 {"what", kind.what},
                                 {"memory_bytes", kind.memory_bytes},
                                 {"kernels", kind.kernels}});
    }
    console.Print(ToText(json));
    return kExitOk;
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  for (const DeviceKind& kind : kinds) {
    table.AddRow({kind.example, FormatBytes(static_cast<double>(kind.memory_bytes)),
                  absl::StrCat(kind.kernels, " kernels"), kind.what});
  }
  console.Print(table.ToString());
  console.Print("Any number of each: -d CPU:0,CPU:1,GPU:0=sim (thalweg help devices)\n");
  return kExitOk;
}

}  // namespace

const Verb kDevicesVerb{&Spec, &Run};

}  // namespace thalweg::tools
