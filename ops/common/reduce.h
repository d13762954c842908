// The driver of every reduction: axes, collapsing of dimensions, tiles for types computed in another type, and splitting
// over threads with results that do not depend on the number of threads.
//
// An op brings loops for one computing type (reduce_loops.h makes them from a few one-line functions): fold a row into
// one accumulator, fold a row into as many accumulators, merge, finish. Accumulators may be wider than elements (double
// for float), which keeps long sums exact to the last bits.
//
// Threading: kernels are immutable. Errors: InvalidArgument for axes out of range or given twice.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/storage_convert.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/ops/kernel_registry.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

using Axes = absl::InlinedVector<int64_t, 8>;

// The axes in input `i` of a running kernel (int32 or int64). InvalidArgument if it is neither a scalar nor a vector.
absl::StatusOr<Axes> ReadAxes(const KernelContext& ctx, int i);

// What a reduction over `axes` does to a shape. Neighbouring dimensions of one kind (reduced or kept) are collapsed and
// those of size 1 dropped, so kinds alternate. Strides are in elements.
class ReductionPlan {
 public:
  struct Dimension {
    int64_t size;
    int64_t stride;
  };
  using Dimensions = absl::InlinedVector<Dimension, 4>;

  // InvalidArgument for an axis out of range or given twice.
  static absl::StatusOr<ReductionPlan> Make(const Shape& input, absl::Span<const int64_t> axes, bool keep_dims);
  // If nothing is reduced, says instead that every output is made of one element, which loops can work on.
  void ReduceSingleElements() {
    if (reduced_.empty()) reduced_.push_back({1, 1});
  }

  const Shape& output() const { return output_; }
  const Dimensions& kept() const { return kept_; }        // outermost first
  const Dimensions& reduced() const { return reduced_; }  // outermost first
  // Elements that make one output element.
  int64_t reduced_count() const { return reduced_count_; }

 private:
  Shape output_;
  Dimensions kept_;
  Dimensions reduced_;
  int64_t reduced_count_ = 1;
};

// Loops over elements of one computing type. Accumulators are trivially copyable, `accumulator_bytes` each, at most 16.
// A reduction of one element is that element, unless `maps_elements`.
struct ReduceDef {
  DType input_type = DType::kInvalid;
  DType output_type = DType::kInvalid;
  int64_t accumulator_bytes = 0;
  double nanos_per_element = 0.3;
  bool maps_elements = false;  // what is folded is a function of each element
  void (*init)(void* accumulators, int64_t n) = nullptr;
  // Folds in[k * stride] into accumulator k, for k in [0, n).
  void (*fold_columns)(const void* in, int64_t stride, void* accumulators, int64_t n) = nullptr;
  // Folds n consecutive elements into one accumulator.
  void (*fold_row)(const void* in, int64_t n, void* accumulator) = nullptr;
  void (*merge)(const void* from, void* into, int64_t n) = nullptr;
  // Writes n results, each made of `count` elements.
  void (*finish)(const void* accumulators, int64_t count, void* out, int64_t n) = nullptr;
  // Of a reduction of floats: the same carried in float, for ReduceInOrder (ordered_reduce.h). There, fold_row starts from
  // nothing: it replaces the accumulator.
  const ReduceDef* in_order = nullptr;
};

// Input 0 reduced over the axes in input 1, with the attribute keep_dims.
class ReduceKernel final : public Kernel {
 public:
  // Both must outlive the kernel.
  ReduceKernel(const ReduceDef& def, const KernelNode& node);
  absl::Status Compute(KernelContext& ctx) override;
  // The same over other axes, for ops that say them in their own way.
  absl::Status ReduceOver(KernelContext& ctx, absl::Span<const int64_t> axes, bool keep_dims) const;

 private:
  struct Job;

  absl::Status ReduceInChunks(KernelContext& ctx, const Job& job, int64_t chunks) const;
  void ReduceOutputs(const Job& job, int64_t begin, int64_t end) const;
  // Folds into the accumulators of `n` outputs from `first` on, which lie in one run of the innermost kept dimension, what
  // has index [begin, end) in the outermost reduced dimension.
  void Fold(const Job& job, int64_t first, int64_t n, int64_t begin, int64_t end, char* accumulators) const;
  void FoldRow(const char* in, int64_t n, char* accumulator) const;
  void FoldBlock(const char* in, int64_t n, int64_t width, int64_t begin, int64_t end, char* accumulators) const;
  void Finish(const char* accumulators, int64_t count, char* out, int64_t n) const;

  const ReduceDef& def_;
  const bool keep_dims_;
  const int64_t in_bytes_;
  const int64_t out_bytes_;
  const ConvertLoop load_;
  const ConvertLoop store_;
};

template <const ReduceDef& def>
absl::StatusOr<std::unique_ptr<Kernel>> MakeReduce(const KernelInit& init) {
  return std::unique_ptr<Kernel>(std::make_unique<ReduceKernel>(def, init.node()));
}

// Shape function of reductions: input 0, axes in input 1, attribute keep_dims.
absl::Status ReductionShape(ShapeContext& c);

// Adds a CPU kernel of a reduction: its axes are read on the host.
KernelDef& AddReduction(OpLibrary& lib, absl::string_view op, KernelFactory factory);

}  // namespace thalweg
