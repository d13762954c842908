// What a shape function sees of a node, and where it leaves the shapes of the outputs.
//
// Dimensions are int64_t: known (>= 0), kUnknownDim, or symbols (see proto/shape.h). A shape function is pure and must not
// loop over element counts; values of small constant inputs are available as literals, and int vectors that describe
// shapes (Shape, Pack, Concat ... of dimensions) as partly known values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/proto/shape.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

// The value of a small integer tensor (rank 0 or 1) as far as it is known before running: one dim per element.
using SymbolicValue = std::optional<Dims>;

class ShapeContext {
 public:
  ShapeContext(NodeAttrs attrs, absl::Span<const DType> input_types, absl::Span<const PartialShape> inputs,
               absl::Span<const TensorLiteralPtr> literals, absl::Span<const SymbolicValue> values, int num_outputs,
               int64_t* next_symbol);

  // The graph's producer version, for the few ops that meant something else once; the latest unless set.
  int producer() const { return producer_; }
  void set_producer(int version) { producer_ = version; }

  const NodeAttrs& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  DType input_type(int i) const { return input_types_[i]; }
  const PartialShape& input(int i) const { return inputs_[i]; }

  // The constant value of input i, or null.
  const TensorLiteral* input_literal(int i) const { return literals_[i].get(); }
  // Constant integers of input i (any integer type, any rank, flattened); nullopt if not constant.
  std::optional<std::vector<int64_t>> input_ints(int i) const;
  // Constant integer scalar (or, tolerated as in L21, one-element vector) of input i.
  std::optional<int64_t> input_int(int i) const;
  // Input i, a vector of integers, read as a shape: its elements where known (-1 elements become unknown), unknown dims for
  // a known length, unknown rank otherwise. InvalidArgument if the input cannot be a shape (rank > 1, constant < -1).
  absl::StatusOr<PartialShape> input_as_shape(int i) const;
  // The partly known value of input i (scalars: one dim), if anything is known.
  const SymbolicValue& input_value(int i) const { return values_[i]; }

  void set_output(int i, PartialShape s) { outputs_[i] = std::move(s); }
  const PartialShape& output(int i) const { return outputs_[i]; }
  // States the partly known value of output i (for ops on shape vectors).
  void set_output_value(int i, Dims dims) { output_values_[i] = std::move(dims); }
  const SymbolicValue& output_value(int i) const { return output_values_[i]; }

  // A fresh symbol: an unknown size with an identity.
  int64_t NewSymbol() { return (*next_symbol_)--; }

  // Checks; each InvalidArgument names the input and its shape.
  absl::Status RequireRank(int i, int rank) const;         // exactly
  absl::Status RequireRankAtLeast(int i, int rank) const;
  absl::Status RequireRankAtMost(int i, int rank) const;
  absl::Status RequireScalar(int i) const { return RequireRank(i, 0); }
  // Merges: the more specific of two compatible shapes or dims; InvalidArgument if incompatible.
  static absl::StatusOr<PartialShape> Merge(const PartialShape& a, const PartialShape& b);
  static absl::StatusOr<int64_t> MergeDim(int64_t a, int64_t b);
  // NumPy broadcasting of partly known shapes.
  static absl::StatusOr<PartialShape> Broadcast(const PartialShape& a, const PartialShape& b);
  // Dim arithmetic; unknown if an operand is (identities such as d+0, d*1, d-0, d/1 keep symbols). Overflow and negative
  // results are InvalidArgument; division by zero too.
  static absl::StatusOr<int64_t> AddDims(int64_t a, int64_t b);
  static absl::StatusOr<int64_t> SubDims(int64_t a, int64_t b);
  static absl::StatusOr<int64_t> MulDims(int64_t a, int64_t b);
  static absl::StatusOr<int64_t> DivDims(int64_t a, int64_t b, bool round_up = false);

 private:
  NodeAttrs attrs_;
  absl::Span<const DType> input_types_;
  absl::Span<const PartialShape> inputs_;
  absl::Span<const TensorLiteralPtr> literals_;
  absl::Span<const SymbolicValue> values_;
  std::vector<PartialShape> outputs_;
  std::vector<SymbolicValue> output_values_;
  int64_t* next_symbol_;
  int producer_ = std::numeric_limits<int>::max();
};

// Shape functions shared by many ops.
absl::Status UnknownShape(ShapeContext& c);        // every output unknown
absl::Status ScalarShape(ShapeContext& c);         // every output a scalar
absl::Status UnchangedShape(ShapeContext& c);      // output 0 as input 0 (its symbolic value too)
absl::Status MergedShape(ShapeContext& c);         // all inputs merged -> output 0
absl::Status BroadcastShape(ShapeContext& c);      // inputs 0 and 1 broadcast -> output 0
absl::Status NoOutputs(ShapeContext& c);

}  // namespace thalweg
