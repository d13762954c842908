// Makes reading a variable from another device happen when the reader would have read it.
#pragma once

#include "absl/status/status.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/partition/derived_placement.h"

namespace thalweg {

// A node reads a reference input when it starts, that is after all its other inputs (A70). Where the reference is on
// another device, an Identity beside the variable does the reading, after those other inputs (B14); its value crosses
// then. Requires devices on all nodes. InvalidArgument for an input that needs the reference itself from another device
// (C10).
absl::Status ReadReferencesAtSource(Graph& graph, DerivedPlacement& derived);

}  // namespace thalweg
