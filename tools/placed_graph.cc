#include "thalweg/tools/placed_graph.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "thalweg/devices/device.h"
#include "thalweg/graph/provenance.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/kernel_services.h"

namespace thalweg::tools {
namespace {

absl::StatusOr<std::vector<PlacementDevice>> Devices(const std::string& list) {
  THALWEG_ASSIGN_OR_RETURN(const std::vector<DeviceRequest> requests, ParseDeviceList(list));
  THALWEG_ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Device>> made,
                           MakeDevices(requests, std::make_shared<MemoryBudget>(0)));
  std::vector<PlacementDevice> devices;
  for (const auto& device : made)
    devices.push_back({device->name(), device->backend(), device->memory() == MemoryKind::kHost});
  return devices;
}

absl::Status AddSignature(const GraphView& view, const PlacedGraph& placed, const std::vector<std::string>& targets,
                          CompileRequest* request) {
  const Graph& graph = view.graph();
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> inputs, UnfedPlaceholders(graph, {}, placed.fetches, targets));
  for (const NodeId id : inputs) request->feeds.push_back({id, 0});
  for (const std::string& name : placed.fetches) {
    THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(name));
    request->fetches.push_back(endpoint);
  }
  for (const std::string& name : targets) {
    THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(name));
    request->targets.push_back(endpoint.node);
  }
  return absl::OkStatus();
}

absl::StatusOr<PlacementOptions> OptionsOf(const SessionOptions& session) {
  PlacementOptions options;
  options.policy = session.policy;
  options.allow_soft_placement = session.soft_placement;
  for (const auto& [pattern, device] : session.pins) options.pins.push_back({pattern, device});
  if (!session.placement_file.empty()) {
    THALWEG_ASSIGN_OR_RETURN(options.fixed, ReadPlacementFile(session.placement_file));
  }
  return options;
}

}  // namespace

absl::StatusOr<PlacedGraph> PlaceView(const GraphView& view, const SessionOptions& options,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets) {
  PlacedGraph placed;
  placed.loaded_nodes = view.graph().num_nodes();
  placed.fetches = fetches;
  THALWEG_ASSIGN_OR_RETURN(placed.devices, Devices(options.devices));
  const std::unique_ptr<KernelCatalog> kernels = MakeKernelCatalog(BuiltinOps());
  const std::unique_ptr<ConstantEvaluator> evaluator = MakeConstantEvaluator(BuiltinOps());
  CompileRequest request;
  request.devices = placed.devices;
  request.kernels = kernels.get();
  request.evaluator = evaluator.get();
  request.optimize = options.optimize;
  request.disabled_passes.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  THALWEG_RETURN_IF_ERROR(AddSignature(view, placed, targets, &request));
  THALWEG_ASSIGN_OR_RETURN(request.placement, OptionsOf(options));
  THALWEG_ASSIGN_OR_RETURN(request.placement.stateful_assignments,
                           PlaceState(view.graph(), placed.devices, *kernels, request.placement));
  THALWEG_ASSIGN_OR_RETURN(placed.compiled, CompileGraph(view.graph(), request));
  for (const Node& node : placed.compiled.graph.nodes()) placed.originals.push_back(OriginalNames(node, view.graph()));
  return placed;
}

}  // namespace thalweg::tools
