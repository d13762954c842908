#include "thalweg/tools/session_flags.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/devices/device.h"
#include "thalweg/graph/passes/pass_list.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/graph/placement/restrictions.h"
#include "thalweg/proto/device_name.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

constexpr int64_t kMaxThreads = SessionOptions::kMaxThreads;
constexpr int64_t kMaxParallelIterations = 1'000'000;

absl::Status CheckPolicy(const std::string& policy) {
  if (policy == "default") return absl::OkStatus();
  const std::pair<std::string, std::string> parts = absl::StrSplit(policy, absl::MaxSplits('~', 1));
  uint64_t seed = 0;
  if (parts.first == "scatter" && absl::SimpleAtoi(parts.second, &seed)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--policy: '", policy, "' is no policy; there are default and scatter~SEED, as in scatter~7"));
}

// "RE=DEV", split at the last '='.
absl::Status ReadPin(const std::string& text, SessionOptions* options) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--pin: '", text, "' is not RE=DEVICE, as in 'conv.*=CPU:1'"));
  }
  const std::string pattern = text.substr(0, equals), device = text.substr(equals + 1);
  RE2::Options quiet;
  quiet.set_log_errors(false);
  if (const RE2 re(pattern, quiet); !re.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--pin: '", pattern, "' is no regular expression: ", re.error()));
  }
  THALWEG_RETURN_IF_ERROR(ForFlag("pin", DeviceName::ParseLocalOrFull(device).status()));
  options->pins.emplace_back(pattern, device);
  return absl::OkStatus();
}

bool IsThere(const std::string& device, const std::vector<DeviceRequest>& devices) {
  const absl::StatusOr<DeviceName> name = DeviceName::ParseLocalOrFull(device);
  return name.ok() &&
         std::any_of(devices.begin(), devices.end(), [&](const DeviceRequest& d) { return name->Matches(d.name); });
}

std::string DeviceListText(const std::vector<DeviceRequest>& devices) {
  return absl::StrJoin(devices, ", ",
                       [](std::string* out, const DeviceRequest& d) { absl::StrAppend(out, d.name.ToShortString()); });
}

absl::Status ReadNumbers(const Arguments& arguments, SessionOptions* options) {
  if (const auto text = arguments.Value("parallel-iterations")) {
    absl::StatusOr<int64_t> iterations = ParseInteger(*text, 1, kMaxParallelIterations);
    if (!iterations.ok()) return ForFlag("parallel-iterations", iterations.status());
    options->parallel_iterations = static_cast<int>(*iterations);
  }
  options->general_frames = arguments.Has("general-frames");
  if (const auto text = arguments.Value("memory-limit")) {
    absl::StatusOr<int64_t> bytes = ParseBytes(*text);
    if (bytes.ok() && *bytes == 0) bytes = absl::InvalidArgumentError("it must be more than 0");
    if (!bytes.ok()) return ForFlag("memory-limit", bytes.status());
    options->memory_limit_bytes = *bytes;
  }
  return absl::OkStatus();
}

absl::Status ReadPlacement(const Arguments& arguments, SessionOptions* options) {
  options->soft_placement = arguments.OnOff("soft-placement", true);
  options->policy = arguments.ValueOr("policy", "default");
  THALWEG_RETURN_IF_ERROR(CheckPolicy(options->policy));
  for (const std::string& pin : arguments.All("pin")) THALWEG_RETURN_IF_ERROR(ReadPin(pin, options));
  options->placement_file = arguments.ValueOr("placement", "");
  if (!options->placement_file.empty()) {
    THALWEG_RETURN_IF_ERROR(ForFlag("placement", ReadPlacementFile(options->placement_file).status()));
  }
  return absl::OkStatus();
}

// --no-opt switches every pass off, --no-opt=A,B these.
absl::Status ReadPasses(const Arguments& arguments, SessionOptions* options) {
  std::vector<std::string> known;
  for (const Pass& pass : AllPasses()) known.push_back(pass.name);
  known.insert(known.end(), {SessionOptions::kForwardInputs, SessionOptions::kPackConstants});
  for (const std::string& list : arguments.All("no-opt")) {
    if (list.empty()) options->optimize = false;
    for (absl::string_view pass : absl::StrSplit(list, ',', absl::SkipEmpty())) {
      options->disabled_passes.push_back(std::string(pass));
      if (std::find(known.begin(), known.end(), pass) != known.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--no-opt: there is no pass '", pass, "'; there are ", absl::StrJoin(known, ", ")));
    }
  }
  return absl::OkStatus();
}

Failure ReadDevices(const Arguments& arguments, SessionOptions* options) {
  options->devices = arguments.ValueOr("devices", "CPU:0");
  const absl::StatusOr<std::vector<DeviceRequest>> devices = ParseDeviceList(options->devices);
  if (!devices.ok()) {
    return {ForFlag("devices", devices.status()), absl::IsNotFound(devices.status()) ? kExitDeviceMissing : kExitUsage,
            "thalweg devices"};
  }
  for (const auto& [pattern, device] : options->pins) {
    if (IsThere(device, *devices)) continue;
    return {absl::NotFoundError(absl::StrCat("--pin '", pattern, "=", device,
                                             "': there is no such device in this session; it has ",
                                             DeviceListText(*devices), " (see -d)")),
            kExitDeviceMissing, "thalweg devices"};
  }
  return {};
}

}  // namespace

std::vector<std::string> RequestsWithoutNodes(const SessionOptions& options, const Graph& graph) {
  std::vector<std::string> lines;
  if (graph.functions != nullptr) return lines;  // they may be meant for nodes that calls become
  for (const auto& [pattern, device] : options.pins) {
    if (!PinnedNodes(graph, {{pattern, device}}).empty()) continue;
    lines.push_back(
        absl::StrCat("--pin '", pattern, "=", device, "' matches no node: a pattern must match the whole name"));
  }
  if (options.placement_file.empty()) return lines;
  const auto placement = ReadPlacementFile(options.placement_file);
  if (!placement.ok()) return lines;
  std::vector<std::string> unknown;
  for (const auto& [name, device] : *placement) {
    if (graph.Find(name) == kNoNode) unknown.push_back(name);
  }
  if (unknown.empty()) return lines;
  const std::string first = *std::min_element(unknown.begin(), unknown.end());
  lines.push_back(absl::StrCat("--placement ", options.placement_file, " names ",
                               Plural(static_cast<int64_t>(unknown.size()), "node"),
                               " that the graph does not have, the first of them '", first, "'"));
  return lines;
}

void AppendPlacementFlags(std::vector<FlagSpec>* flags) {
  flags->insert(
      flags->end(),
      {
          {FlagKind::kValue, "devices", "d", "LIST", "devices to use: CPU:0,CPU:1,GPU:0=sim (default CPU:0)"},
          {FlagKind::kRepeated, "pin", "", "RE=DEVICE", "nodes whose whole name matches must run there"},
          {FlagKind::kValue, "policy", "", "NAME", "default, or scatter~SEED: every node on a random feasible device"},
          {FlagKind::kValue, "placement", "", "p.json", "a placement written by `place --out`, obeyed exactly"},
          {FlagKind::kOnOff, "soft-placement", "", "", "move nodes whose device is not there (default: on)"},
          {FlagKind::kOptionalValue, "no-opt", "", "PASS,...", "leave out these rewriting passes, or all"},
      });
}

void AppendSessionFlags(std::vector<FlagSpec>* flags) {
  AppendPlacementFlags(flags);
  flags->insert(
      flags->end(),
      {
          {FlagKind::kValue, "memory-limit", "", "2GiB", "the most that tensors may take (default: 80% of RAM)"},
          {FlagKind::kValue, "parallel-iterations", "", "N", "for every loop, whatever the graph says"},
          {FlagKind::kSwitch, "general-frames", "", "", "loops by the executor for many threads, even on one"},
      });
}

SessionFlagsResult ReadSessionFlags(const Arguments& arguments) {
  SessionFlagsResult result;
  absl::Status status = ReadNumbers(arguments, &result.options);
  if (status.ok()) status = ReadPlacement(arguments, &result.options);
  if (status.ok()) status = ReadPasses(arguments, &result.options);
  if (!status.ok()) {
    result.failure = {status, kExitUsage, absl::StrCat("thalweg help ", arguments.verb())};
    return result;
  }
  result.failure = ReadDevices(arguments, &result.options);
  return result;
}

absl::StatusOr<std::vector<int64_t>> ReadThreadCounts(const Arguments& arguments) {
  const auto text = arguments.Value("threads");
  if (!text) return std::vector<int64_t>{0};
  absl::StatusOr<std::vector<int64_t>> counts = ParseIntegerList(*text, 1, kMaxThreads);
  if (!counts.ok()) return ForFlag("threads", counts.status());
  return counts;
}

}  // namespace thalweg::tools
