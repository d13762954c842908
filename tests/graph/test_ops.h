// Shared by the tests of graph/: a few op declarations, and loading of graphs written in the test as text.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "thalweg/graph/loader.h"
#include "thalweg/graph/shape_context.h"

namespace thalweg {

inline absl::Status ConstTestShape(ShapeContext& c) {
  absl::StatusOr<TensorLiteralPtr> value = c.attrs().Get<TensorLiteralPtr>("value");
  if (value.ok()) c.set_output(0, PartialShape::Known((*value)->shape));
  return value.status();
}

inline absl::Status PlaceholderTestShape(ShapeContext& c) {
  c.set_output(0, c.attrs().GetOr<PartialShape>("shape", PartialShape()));
  return absl::OkStatus();
}

inline absl::Status ReshapeTestShape(ShapeContext& c) {
  absl::StatusOr<PartialShape> shape = c.input_as_shape(1);
  if (shape.ok()) c.set_output(0, *shape);
  return shape.status();
}

inline const OpRegistry& TestOps() {
  static const OpRegistry& registry = *[] {
    auto* r = new OpRegistry;
    r->Add("NoOp()");
    r->Add("Const() -> output: dtype", "value: tensor; dtype: type").Shape(ConstTestShape);
    r->Add("Placeholder() -> output: dtype", "dtype: type; shape: shape = unknown").Shape(PlaceholderTestShape);
    r->Add("RandomUniform(shape: T) -> output: dtype", "dtype: {float, double}; T: {int32, int64}").Stateful();
    r->Add("Identity(input: T) -> output: T", "T: type").Shape(UnchangedShape);
    r->Add("Neg(x: T) -> y: T", "T: {float, double, int32}").Shape(UnchangedShape);
    r->Add("Add(x: T, y: T) -> z: T", "T: numbertype").Shape(BroadcastShape);
    r->Add("AddN(inputs: N*T) -> sum: T", "N: int >= 1; T: numbertype").Shape(MergedShape);
    r->Add("Reshape(tensor: T, shape: Tshape) -> output: T", "T: type; Tshape: {int32, int64} = int32")
        .Shape(ReshapeTestShape);
    r->Add("Split(split_dim: int32, value: T) -> output: num_split*T", "num_split: int >= 1; T: type");
    r->Add("IdentityN(input: T) -> output: T", "T: list(type) >= 1");
    r->Add("Pad(x: float) -> y: float",
           "padding: {\"SAME\", \"VALID\"}; strides: list(int) >= 4; rate: float = 1.0; on: bool = false");
    r->Add("VariableV2() -> ref: Ref(dtype)",
           "shape: shape; dtype: type; container: string = \"\"; shared_name: string = \"\"")
        .Stateful();
    r->Add("Assign(ref: Ref(T), value: T) -> output_ref: Ref(T)", "T: type; use_locking: bool = true");
    r->Add("Switch(data: T, pred: bool) -> (output_false: T, output_true: T)", "T: type");
    r->Add("Merge(inputs: N*T) -> (output: T, value_index: int32)", "N: int >= 1; T: type")
        .Shape(MergedShape)
        .Role(OpRole::kMerge);
    r->Add("Enter(data: T) -> output: T",
           "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10")
        .Shape(UnchangedShape);
    r->Add("Exit(data: T) -> output: T", "T: type").Shape(UnchangedShape);
    r->Add("NextIteration(data: T) -> output: T", "T: type").Shape(UnchangedShape);
    r->Add("PartitionedCall(args: Tin) -> output: Tout", "Tin: list(type); Tout: list(type); f: func");
    r->Add("_Arg() -> output: T", "T: type; index: int >= 0").Stateful().Role(OpRole::kArg);
    r->Add("_Retval(input: T)", "T: type; index: int >= 0").Stateful().Role(OpRole::kRetval);
    r->Add("Old(x: float) -> y: float").Deprecated(9, "use Neg");
    return r;
  }();
  return registry;
}

inline absl::StatusOr<LoadResult> LoadText(const std::string& text, const Graph* base = nullptr) {
  LoadOptions options;
  options.schemas = &TestOps();
  options.base = base;
  return LoadGraphBytes(text, nullptr, "test.pbtxt", options);
}

// The graph of a text that must be right.
inline Graph LoadGood(const std::string& text) {
  absl::StatusOr<LoadResult> loaded = LoadText(text);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return Graph();
  EXPECT_TRUE(loaded->status().ok()) << loaded->status();
  return std::move(loaded->graph);
}

// "kind(node)" of all findings of one severity, in order.
inline std::vector<std::string> Kinds(const LoadResult& result,
                                      Finding::Severity severity = Finding::Severity::kError) {
  std::vector<std::string> kinds;
  for (const Finding& f : result.findings) {
    if (f.severity == severity) kinds.push_back(f.kind + "(" + f.node + ")");
  }
  return kinds;
}

// Node texts for short graphs.
inline std::string PlaceholderText(const std::string& name, const std::string& dtype = "DT_FLOAT",
                                   const std::string& dims = "") {
  return "node { name: '" + name + "' op: 'Placeholder' attr { key: 'dtype' value { type: " + dtype + " } }" +
         (dims.empty() ? "" : " attr { key: 'shape' value { shape { " + dims + " } } }") + " }\n";
}
inline std::string UnaryText(const std::string& name, const std::string& op, const std::string& input,
                             const std::string& dtype = "DT_FLOAT") {
  return "node { name: '" + name + "' op: '" + op + "' input: '" + input + "' attr { key: 'T' value { type: " + dtype +
         " } } }\n";
}

}  // namespace thalweg
