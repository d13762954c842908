// Keeps transfers away from between a loop's Enter or NextIteration and its Merge.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/partition/derived_placement.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

// A Merge knows its loop by the Enter and NextIteration in front of it (A28, A42), so where one of them is on another
// device than a Merge that reads it, it is repeated there and its own input crosses instead. Enters are repeated for
// every reader elsewhere: a loop invariant then crosses once per loop, not once per iteration. A node that nobody reads
// any more where it was simply moves. Requires devices on all nodes. InvalidArgument if a backend lacks a kernel for
// the loop node.
absl::Status RepeatLoopNodes(Graph& graph, absl::Span<const PlacementDevice> devices, const KernelCatalog& kernels,
                             DerivedPlacement& derived);

}  // namespace thalweg
