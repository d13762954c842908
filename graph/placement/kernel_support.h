// Which devices have a kernel for a node (C3). Asked of the KernelCatalog once per op and set of types.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "thalweg/graph/placement/device_set.h"
#include "thalweg/graph/placement/device_table.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

struct KernelSupport {
  DeviceSet devices;
  std::vector<int> priorities;        // per device
  bool has_priorities = false;        // some differ from 0 (C7)
  std::vector<std::string> refusals;  // per device: why there is no kernel, "" where there is one
};

class KernelSupportTable {
 public:
  // Both must outlive the table.
  KernelSupportTable(const DeviceTable& devices, const KernelCatalog& kernels) : devices_(devices), kernels_(kernels) {}

  // The pointer stays valid as long as the table; equal for nodes whose kernels are the same.
  const KernelSupport* For(const Node& node);

 private:
  using TypeKey = std::vector<int>;
  struct OpEntry {
    std::vector<absl::string_view> type_attrs;  // of kind type or list(type): what kernels are chosen by
    std::vector<std::pair<TypeKey, std::unique_ptr<KernelSupport>>> variants;
  };

  OpEntry& EntryOf(const Node& node);
  std::unique_ptr<KernelSupport> Ask(const Node& node) const;

  const DeviceTable& devices_;
  const KernelCatalog& kernels_;
  absl::flat_hash_map<const OpSchema*, OpEntry> by_schema_;
  absl::flat_hash_map<std::string, OpEntry> by_function_;
  TypeKey key_;  // scratch of For
};

}  // namespace thalweg
