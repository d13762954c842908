// Static cost of a node: floating-point operations and bytes moved, from dtypes and shapes. Feeds placement, scheduling
// (what is worth a second thread) and profiles.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

struct NodeCost {
  double flops = 0;        // additions, multiplications and the like; a transcendental function counts as 10
  double bytes_read = 0;
  double bytes_written = 0;
  bool known = false;      // false: some shape was unknown and the figures are a guess from what is known
};

class CostContext {
 public:
  CostContext(NodeAttrs attrs, absl::Span<const DType> input_types, absl::Span<const PartialShape> inputs,
              absl::Span<const DType> output_types, absl::Span<const PartialShape> outputs)
      : attrs_(attrs), input_types_(input_types), inputs_(inputs), output_types_(output_types), outputs_(outputs) {}

  const NodeAttrs& attrs() const { return attrs_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]; }
  const PartialShape& output(int i) const { return outputs_[i]; }
  DType input_type(int i) const { return input_types_[i]; }
  DType output_type(int i) const { return output_types_[i]; }
  // Element counts and bytes as doubles (no overflow); unknown dims count as 1.
  double InputElements(int i) const;
  double OutputElements(int i) const;
  double TotalInputBytes() const;
  double TotalOutputBytes() const;
  bool AllShapesKnown() const;

 private:
  NodeAttrs attrs_;
  absl::Span<const DType> input_types_;
  absl::Span<const PartialShape> inputs_;
  absl::Span<const DType> output_types_;
  absl::Span<const PartialShape> outputs_;
};

// Cost functions shared by many ops. `OpsPerElement` is per output element.
NodeCost NoCost(const CostContext& c);        // metadata only: Identity, Reshape, Shape
NodeCost CopyCost(const CostContext& c);      // reads and writes everything once, no arithmetic
template <int kFlopsPerElement>
NodeCost ElementwiseCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  cost.flops = c.num_outputs() > 0 ? kFlopsPerElement * c.OutputElements(0) : 0;
  return cost;
}
NodeCost ReductionCost(const CostContext& c);  // one operation per input element

// The estimate in nanoseconds that scheduling uses: max of compute and memory time on one thread of a current core.
double EstimatedNanos(const NodeCost& cost);

}  // namespace thalweg
