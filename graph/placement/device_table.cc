#include "thalweg/graph/placement/device_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

bool IsCpu(const PlacementDevice& device) { return device.name.type == "CPU"; }

bool Preferred(const PlacementDevice& a, const PlacementDevice& b) {
  const auto key = [](const PlacementDevice& d) { return std::make_tuple(IsCpu(d), d.name.type, d.name.id); };
  if (key(a) != key(b)) return key(a) < key(b);
  return a.name.ToString() < b.name.ToString();
}

}  // namespace

absl::StatusOr<DeviceTable> DeviceTable::Make(absl::Span<const PlacementDevice> devices) {
  if (devices.empty()) return absl::FailedPreconditionError("no devices: a session needs at least one (C22)");
  if (devices.size() > kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat(devices.size(), " devices; at most ", kMaxDevices, " can be placed on"));
  }
  return DeviceTable(devices);
}

DeviceTable::DeviceTable(absl::Span<const PlacementDevice> devices) : devices_(devices), ranks_(devices.size()) {
  std::vector<int> order(devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return Preferred(devices[a], devices[b]); });
  for (size_t i = 0; i < order.size(); ++i) ranks_[order[i]] = static_cast<int>(i);

  absl::flat_hash_set<std::string> short_names;
  for (size_t d = 0; d < devices.size(); ++d) {
    all_.set(d);
    short_names.insert(devices[d].name.ToShortString());
  }
  const bool short_is_unique = short_names.size() == devices.size();
  for (const PlacementDevice& device : devices) {
    names_.push_back(short_is_unique ? device.name.ToShortString() : device.name.ToString());
  }
}

DeviceSet DeviceTable::Matching(const DeviceName& name) const {
  DeviceSet set;
  for (int d = 0; d < size(); ++d) set[d] = name.Matches(devices_[d].name);
  return set;
}

const RequestedName* DeviceTable::Request(absl::string_view text) {
  auto found = requests_.find(text);
  if (found != requests_.end()) return found->second.get();
  auto request = std::make_unique<RequestedName>();
  request->text = std::string(text);
  absl::StatusOr<DeviceName> name = DeviceName::ParseLocalOrFull(text);
  request->status = name.status();
  if (name.ok()) {
    request->name = *std::move(name);
    request->matches = Matching(request->name);
  }
  return requests_.emplace(request->text, std::move(request)).first->second.get();
}

std::string DeviceTable::Names(const DeviceSet& set) const {
  std::vector<std::string> names;
  for (int d = 0; d < size(); ++d) {
    if (set[d]) names.push_back(names_[d]);
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

}  // namespace thalweg
