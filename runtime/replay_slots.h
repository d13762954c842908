// Slots of a replayed plan that several values share one after the other, so that handing a value on moves nothing.
//
// A Switch that is the last reader of its input leaves it where it is: what it chooses is a flag. A loop variable has one slot for
// what enters the loop, what each iteration has, and what it leaves to the next; its Merge then does nothing.
#pragma once

#include "absl/types/span.h"
#include "thalweg/runtime/flow_graph.h"
#include "thalweg/runtime/plan.h"

namespace thalweg {

// `order`: the id of each of the plan's nodes. Requires the plan of a replay, laid out, with last uses and releases; changes slot
// numbers, releases, and kinds of nodes.
void ShareReplaySlots(const FlowGraph& graph, absl::Span<const NodeId> order, Plan* plan);

}  // namespace thalweg
