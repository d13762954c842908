// Which backends this build has, and devices by request: the only place that knows the folders below this one.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "thalweg/devices/cpu/cpu_device.h"
#include "thalweg/devices/device.h"
#include "thalweg/devices/sim/sim_device.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

struct Backend {
  absl::string_view name;
  absl::StatusOr<std::shared_ptr<Device>> (*make)(DeviceName name, std::shared_ptr<MemoryBudget> budget);
};

constexpr Backend kBackends[] = {
    {"cpu",
     [](DeviceName name, std::shared_ptr<MemoryBudget> budget) -> absl::StatusOr<std::shared_ptr<Device>> {
       return MakeCpuDevice(std::move(name), std::move(budget));
     }},
    {"sim",
     [](DeviceName name, std::shared_ptr<MemoryBudget> budget) {
       return MakeSimDevice(std::move(name), {}, std::move(budget));
     }},
};

const Backend* FindBackend(absl::string_view name) {
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

absl::Status UnknownBackend(absl::string_view name) {
  const auto append_name = [](std::string* out, const Backend& backend) { absl::StrAppend(out, backend.name); };
  return absl::NotFoundError(
      absl::StrCat("this build has no backend '", name, "'; it has ", absl::StrJoin(kBackends, ", ", append_name)));
}

// The backend of a device that was asked for without one.
absl::StatusOr<std::string> DefaultBackend(const DeviceName& name) {
  if (*name.type == "CPU") return "cpu";
  return absl::NotFoundError(absl::StrCat("this build has no ", *name.type, " backend; write ", name.ToShortString(),
                                          "=sim for the simulated accelerator"));
}

DeviceName LocalTask() {
  DeviceName name;
  name.job = "localhost";
  name.replica = 0;
  name.task = 0;
  return name;
}

// TYPE:ID or TYPE:ID=BACKEND.
absl::StatusOr<DeviceRequest> ParseDeviceRequest(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  DeviceRequest request;
  THALWEG_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::ParseLocalOrFull(parts.first));
  if (!name.type || !name.id) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", text, "' lacks a type or a number; write for example CPU:0"));
  }
  request.name = name.CompletedFrom(LocalTask());
  const bool has_backend = parts.first.size() < text.size();
  if (!has_backend) {
    THALWEG_ASSIGN_OR_RETURN(request.backend, DefaultBackend(name));
    return request;
  }
  if (FindBackend(parts.second) == nullptr) return UnknownBackend(parts.second);
  if (*name.type == "CPU" && parts.second != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", text, "': CPU devices have the backend cpu; write for example GPU:0=", parts.second));
  }
  request.backend = std::string(parts.second);
  return request;
}

}  // namespace

absl::StatusOr<std::vector<DeviceRequest>> ParseDeviceList(absl::string_view text) {
  std::vector<DeviceRequest> requests;
  absl::flat_hash_set<std::string> seen;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    THALWEG_ASSIGN_OR_RETURN(DeviceRequest request, ParseDeviceRequest(absl::StripAsciiWhitespace(item)));
    if (!seen.insert(request.name.ToString()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", request.name.ToShortString(), " stands twice in '", text, "'"));
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(const std::vector<DeviceRequest>& requests,
                                                                 std::shared_ptr<MemoryBudget> budget) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const DeviceRequest& request : requests) {
    const Backend* backend = FindBackend(request.backend);
    if (backend == nullptr) return UnknownBackend(request.backend);
    if (!request.name.IsFull()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the device name '", request.name.ToString(), "' is not complete"));
    }
    THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, backend->make(request.name, budget));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace thalweg
