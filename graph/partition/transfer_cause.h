// Why a value has to cross, read from the decision records of both ends.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/partition/partition.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

// `consumer` is the first reader. Requires the devices and memory kinds of `transfer` to be set.
std::string TransferCause(const Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices,
                          const Transfer& transfer, NodeId consumer);

}  // namespace thalweg
