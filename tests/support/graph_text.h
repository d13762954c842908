// Graphs written as text, for tests: one node per line, in the form that Graph::ToString prints.
//
//   x = Placeholder() [dtype=float32, shape=[2,?]]
//   y = Add(x, x:0, ^c) [T=float32, _class=["loc:@x"]] @/device:CPU:1
//
// Nodes may be used before their line. Attribute values: element types by name, integers, floats, true/false, "texts",
// shapes `[2,?]`, lists of texts `["a"]`, tensors `tensor<float32[2]:1,2>`. Blank lines and lines starting with # are
// skipped. A mistake in the text aborts the test program with a message.
#pragma once

#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg::testing {

// `schemas` must outlive the graph. Every node gets its own id as origin, as after loading.
Graph GraphFromText(const OpRegistry& schemas, absl::string_view text);

// Declarations of a few dozen ordinary ops, enough for tests of graph/ to stand on their own.
const OpRegistry& TestOps();

}  // namespace thalweg::testing
