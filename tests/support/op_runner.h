// Runs one node of the built-in op library without a session: for unit tests of kernels.
//
//   OpRunner op("Sum");
//   op.Input<float>({1, 2, 3, 4}, {2, 2}).Input<int32_t>({1}, {1}).With("keep_dims", true);
//   absl::StatusOr<std::vector<Tensor>> out = op.Run();
//
// Attributes that inputs determine (types, counts, lists of types) are inferred; With() overrides. A plain run also checks
// what every kernel owes its callers, and reports a violation as an Internal error:
//   * the shape function, run on full and on partial knowledge, agrees with the shapes that the kernel produced;
//   * results do not depend on whether inputs may be overwritten in place, nor on how work is split over threads;
//   * inputs that others hold are not changed.
// Threading: not thread-safe. The runner keeps its FakeStep, so resources last from run to run.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/ops/kernel_registry.h"
#include "thalweg/tests/support/fake_step.h"

namespace thalweg::testing {

class OpRunner {
 public:
  explicit OpRunner(std::string op, std::string backend = "cpu");

  OpRunner& Input(Tensor tensor);
  template <typename T>
  OpRunner& Input(std::vector<T> values, std::initializer_list<int64_t> dims) {
    return Input(*Tensor::Of<T>(std::move(values), Shape::Of(dims)));
  }
  template <typename T>
  OpRunner& Scalar(T value) { return Input<T>({std::move(value)}, {}); }
  // An input whose value the kernel knows when it is made, as it does for constants of a graph.
  OpRunner& ConstantInput(Tensor tensor);
  // The shape function may refuse what the kernel takes: TensorFlow's, knowing the shapes, does so too (L21).
  OpRunner& MayBeRefusedByShape() {
    may_be_refused_by_shape_ = true;
    return *this;
  }
  // Forgets the inputs, keeps attributes and resources.
  OpRunner& ClearInputs();

  OpRunner& With(absl::string_view name, thalweg::Attr value);
  // The same with the C++ type that fits the value: With("axis", 1), With("keep_dims", true), With("alpha", 0.5).
  template <typename T>
  OpRunner& With(absl::string_view name, T value) {
    if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>) return With(name, thalweg::Attr(value));
    else if constexpr (std::is_integral_v<T>) return With(name, thalweg::Attr(static_cast<int64_t>(value)));
    else if constexpr (std::is_floating_point_v<T>) return With(name, thalweg::Attr(static_cast<float>(value)));
    else return With(name, thalweg::Attr(std::string(value)));
  }

  // The outputs, one tensor each (uninitialised where the kernel left one empty). The status is the kernel's own, without
  // the node's name. NotFound if the op or a kernel for these types does not exist.
  absl::StatusOr<std::vector<Tensor>> Run();
  // Run() for ops with one output.
  absl::StatusOr<Tensor> RunOne();
  // What the shape function infers from the shapes of the inputs, and their values if `values_known`.
  absl::StatusOr<std::vector<PartialShape>> InferShapes(bool values_known = true) const;

  FakeStep& step() { return *step_; }

 private:
  struct Node;  // a KernelNode with what it points at

  absl::Status Resolve(Node* node) const;
  absl::StatusOr<std::vector<Tensor>> RunKernel(const Node& node, Kernel& kernel, bool may_overwrite, int pieces);
  absl::Status CheckShapes(const Node& node, const std::vector<Tensor>& outputs) const;
  absl::StatusOr<std::vector<PartialShape>> InferShapes(const Node& node, bool shapes_known, bool values_known) const;

  std::string op_;
  std::string backend_;
  std::vector<Tensor> inputs_;
  std::vector<bool> constant_;  // per input
  AttrMap attrs_;
  bool may_be_refused_by_shape_ = false;
  std::unique_ptr<FakeStep> step_ = std::make_unique<FakeStep>();  // apart, so that runners can be returned
};

// True if dtype, shape and every element (bit by bit; strings by content) agree.
bool SameTensor(const Tensor& a, const Tensor& b);
// A copy with its own buffer.
Tensor DeepCopy(const Tensor& tensor);

}  // namespace thalweg::testing
