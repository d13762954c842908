// The driver of every elementwise op: broadcasting of any rank, collapsing of dimensions, tiles for element types that are
// computed in another type, splitting over threads, and reuse of input buffers.
//
// An op brings only an inner loop per computing type (see elementwise_loops.h, which makes them from a one-line function):
// a plain function over spans whose stride is 0 or 1. The driver finds long spans; where rows are short it expands the
// broadcast operands into a tile in cache, so loops always run over many elements. Types without arithmetic of their own
// (half, bfloat16, float8, 4-bit integers) are converted tile by tile, so an op written for float has them for free.
// A fused chain is several loops over one tile: ElementwiseKernel shows its definition for that purpose.
//
// Threading: kernels are immutable. Errors: InvalidArgument if shapes do not broadcast, or from the loop's refusal.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/ops/common/storage_convert.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

inline constexpr int kMaxElementwiseInputs = 3;

// What the calls of a loop within one execution share. Each thread has its own.
struct LoopState {
  double param = 0;      // the attribute that the definition names
  bool refused = false;  // set by a loop that met an operand it cannot compute with
};

// Computes out[k] = f(in[0][k * strides[0]], ...) for k in [0, n). A stride is 0 (one value for all) or 1. `out` is
// contiguous and may be the same memory as an input of stride 1, never overlap one otherwise.
using InnerLoop = void (*)(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState& state);

// TensorFlow computes whole groups of so many floats by formulas of its own and what is left by the C library, which rounds
// differently.
inline constexpr int64_t kGroup = 8;

// One op for one computing type. Definitions are constants that live as long as the process.
struct ElementwiseDef {
  InnerLoop loop = nullptr;
  InnerLoop rest = nullptr;  // for the output's elements past the last whole group; null: `loop` serves for these, too
  int num_inputs = 0;
  DType input_types[kMaxElementwiseInputs] = {};  // the types that the loop computes with; kInvalid: as stored
  DType output_type = DType::kInvalid;
  double nanos_per_element = 0.3;
  const char* param_attr = nullptr;  // a float attribute handed to the loop as LoopState::param
  const char* refusal = nullptr;     // why a loop refuses: "division by zero"
};

// How `n` dense operands broadcast to one output: dimensions of the output, neighbours collapsed where every operand
// allows it, and the element stride of each operand in each of them (0: broadcast).
class BroadcastPlan {
 public:
  // InvalidArgument if the shapes do not broadcast.
  static absl::StatusOr<BroadcastPlan> Make(absl::Span<const Shape* const> shapes);

  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(dims_.size()); }  // after collapsing, at least 1
  int64_t dim(int d) const { return dims_[d]; }
  int64_t stride(int operand, int d) const { return strides_[operand][d]; }
  // True if element k of the operand belongs to element k of the output.
  bool is_full(int operand) const { return full_[operand]; }
  // The operand's elements repeat after this many output elements (the whole output if they never do).
  int64_t period(int operand) const { return periods_[operand]; }

 private:
  Shape shape_;
  Dims dims_;
  Dims strides_[kMaxElementwiseInputs];
  bool full_[kMaxElementwiseInputs] = {};
  int64_t periods_[kMaxElementwiseInputs] = {};
};

class ElementwiseKernel final : public Kernel {
 public:
  // Both must outlive the kernel. The node's types are storage types that the definition's types can be loaded from.
  ElementwiseKernel(const ElementwiseDef& def, const KernelNode& node);

  absl::Status Compute(KernelContext& ctx) override;
  bool suits_like_nodes() const override { return true; }
  // Computes as if input i had the shape *shapes[i], which has as many elements: for ops that line dimensions up in their
  // own way.
  absl::Status ComputeAs(KernelContext& ctx, absl::Span<const Shape* const> shapes) const;

  const ElementwiseDef& def() const { return def_; }
  double param() const { return param_; }

 private:
  struct Operands;  // one execution's pointers

  absl::Status ComputeFlat(KernelContext& ctx, const Shape& shape, const int64_t* strides) const;
  absl::Status Allocate(KernelContext& ctx, const Shape& shape, Operands* operands) const;
  template <typename Body>  // body(loop, begin, end, state) over disjoint ranges of [0, n)
  absl::Status RunSplit(KernelContext& ctx, int64_t n, Body body) const;
  void RunSpan(InnerLoop loop, const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState& state) const;
  void RunTiles(InnerLoop loop, const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState& state) const;
  void RunRows(InnerLoop loop, const BroadcastPlan& plan, const Operands& operands, int64_t begin, int64_t end,
               LoopState& state) const;
  void RunExpanded(InnerLoop loop, const BroadcastPlan& plan, const Operands& operands, int64_t begin, int64_t end,
                   LoopState& state) const;
  void ExpandRows(const BroadcastPlan& plan, const Operands& operands, int64_t first_row, int64_t rows,
                  char* const* expanded) const;
  bool ShouldExpand(const BroadcastPlan& plan) const;

  const ElementwiseDef& def_;
  double param_ = 0;
  bool converts_ = false;
  bool may_reuse_[kMaxElementwiseInputs] = {};
  ConvertLoop load_[kMaxElementwiseInputs] = {};
  ConvertLoop store_ = nullptr;
  int64_t in_size_[kMaxElementwiseInputs] = {};  // bytes of an element as stored
  int64_t out_size_ = 0;
  bool plain_ = true;                            // every operand is plain memory
};

// A kernel factory for a definition with static storage: &MakeElementwise<kMyDef>.
template <const ElementwiseDef& def>
absl::StatusOr<std::unique_ptr<Kernel>> MakeElementwise(const KernelInit& init) {
  return std::unique_ptr<Kernel>(std::make_unique<ElementwiseKernel>(def, init.node()));
}

}  // namespace thalweg
