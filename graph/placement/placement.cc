#include "thalweg/graph/placement/placement.h"

#include <utility>

#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/placement/colocation.h"
#include "thalweg/graph/placement/device_table.h"
#include "thalweg/graph/placement/kernel_support.h"
#include "thalweg/graph/placement/placer.h"
#include "thalweg/graph/placement/policy.h"
#include "thalweg/graph/placement/restrictions.h"

namespace thalweg {

const std::string* FixedDevice(const PlacementOptions& options, const Node& node) {
  if (options.fixed.empty()) return nullptr;
  auto found = options.fixed.find(node.name);
  if (found != options.fixed.end()) return &found->second;
  const Attr* copied = node.attrs.Find(kFunctionNodeAttr);
  const auto* name = copied == nullptr ? nullptr : std::get_if<std::string>(copied);
  if (name == nullptr) return nullptr;
  found = options.fixed.find(*name);
  return found == options.fixed.end() ? nullptr : &found->second;
}

absl::StatusOr<Placement> PlaceGraph(const Graph& graph, absl::Span<const PlacementDevice> device_list,
                                     const KernelCatalog& kernels, const PlacementOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(DeviceTable devices, DeviceTable::Make(device_list));
  THALWEG_ASSIGN_OR_RETURN(const PlacementPolicy policy, ParsePlacementPolicy(options.policy));
  THALWEG_ASSIGN_OR_RETURN(const Restrictions restrictions, Restrictions::Make(graph, devices, options));
  KernelSupportTable support(devices, kernels);

  // On one device colocation decides nothing: it matters only for the words of an error, which the long way then finds.
  if (devices.size() == 1) {
    absl::StatusOr<Placement> placement =
        Placer(graph, devices, support, restrictions, nullptr, options, policy).PlaceAll();
    if (placement.ok()) return placement;
  }
  ColocationGroups groups(graph, devices, support, restrictions, options.allow_soft_placement);
  THALWEG_RETURN_IF_ERROR(groups.Build(nullptr));
  return Placer(graph, devices, support, restrictions, &groups, options, policy).PlaceAll();
}

absl::StatusOr<absl::flat_hash_map<std::string, int>> PlaceState(const Graph& loaded,
                                                                 absl::Span<const PlacementDevice> device_list,
                                                                 const KernelCatalog& kernels,
                                                                 const PlacementOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(DeviceTable devices, DeviceTable::Make(device_list));
  THALWEG_ASSIGN_OR_RETURN(const PlacementPolicy policy, ParsePlacementPolicy(options.policy));
  THALWEG_ASSIGN_OR_RETURN(const Restrictions restrictions, Restrictions::Make(loaded, devices, options));
  KernelSupportTable support(devices, kernels);
  ColocationGroups groups(loaded, devices, support, restrictions, options.allow_soft_placement);
  std::vector<NodeId> failures;  // steps that reach these will say what is wrong
  THALWEG_RETURN_IF_ERROR(groups.Build(&failures));
  return Placer(loaded, devices, support, restrictions, &groups, options, policy).PlaceStateOnly();
}

}  // namespace thalweg
