// The session's devices as placement looks at them: which ones a name means, and in which order they are preferred.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/graph/placement/device_set.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {

// A device name as written somewhere, with the devices that it means.
struct RequestedName {
  std::string text;
  absl::Status status;  // of parsing
  DeviceName name;
  DeviceSet matches;
};

class DeviceTable {
 public:
  // FailedPrecondition without devices (C22), InvalidArgument for more than kMaxDevices. `devices` must outlive the
  // table.
  static absl::StatusOr<DeviceTable> Make(absl::Span<const PlacementDevice> devices);

  int size() const { return static_cast<int>(devices_.size()); }
  const PlacementDevice& operator[](int device) const { return devices_[device]; }
  const DeviceSet& all() const { return all_; }

  DeviceSet Matching(const DeviceName& name) const;
  // What `text` means; parsed once per distinct text. The pointer stays valid as long as the table.
  const RequestedName* Request(absl::string_view text);
  // Position in the order of preference: accelerators before CPUs, then by id, then by full name (C14).
  int rank(int device) const { return ranks_[device]; }
  // "CPU:0, GPU:0", or full names where short ones would be ambiguous.
  std::string Names(const DeviceSet& set) const;
  std::string Name(int device) const { return names_[device]; }

 private:
  explicit DeviceTable(absl::Span<const PlacementDevice> devices);

  absl::Span<const PlacementDevice> devices_;
  DeviceSet all_;
  std::vector<int> ranks_;
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, std::unique_ptr<RequestedName>> requests_;
};

}  // namespace thalweg
