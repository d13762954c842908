#include "thalweg/ops/common/elementwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// Elements per tile: operands and result of a tile stay in the first-level cache.
constexpr int64_t kTile = 512;
constexpr int64_t kMaxElementBytes = 16;
// Rows shorter than this are expanded into tiles rather than run one loop call each.
constexpr int64_t kShortRow = 64;
// Below this many nanoseconds of work the session is not asked for help.
constexpr double kMinSplitNanos = 10000;

// Strides of `shape`, aligned at the right with an output of rank `rank`; 0 where the operand is broadcast.
Dims OperandStrides(const Shape& shape, const Dims& out) {
  const int rank = static_cast<int>(out.size());
  Dims strides(rank, 0);
  int64_t stride = 1;
  for (int i = 1; i <= shape.rank(); ++i) {
    const int64_t d = shape.dim(shape.rank() - i);
    if (d != 1) strides[rank - i] = stride;
    stride *= d;
  }
  return strides;
}

// Walks the rows of a plan: the coordinates of all dimensions but the last.
class RowWalker {
 public:
  RowWalker(const BroadcastPlan& plan, int num_operands, int64_t first_row) : plan_(plan), num_operands_(num_operands) {
    position_.assign(plan.rank() - 1, 0);
    for (int d = plan.rank() - 2; d >= 0; --d) {
      position_[d] = first_row % plan.dim(d);
      first_row /= plan.dim(d);
      for (int i = 0; i < num_operands_; ++i) offsets_[i] += position_[d] * plan.stride(i, d);
    }
  }
  // Element offset of the row's start in operand i.
  int64_t offset(int i) const { return offsets_[i]; }
  // Rows from this one to the end of the second innermost dimension.
  int64_t rows_left() const { return plan_.dim(plan_.rank() - 2) - position_.back(); }
  // Moves on by `rows` <= rows_left().
  void Advance(int64_t rows) {
    for (int d = plan_.rank() - 2; d >= 0; --d, rows = 1) {
      for (int i = 0; i < num_operands_; ++i) offsets_[i] += rows * plan_.stride(i, d);
      position_[d] += rows;
      if (position_[d] < plan_.dim(d)) return;
      position_[d] = 0;
      for (int i = 0; i < num_operands_; ++i) offsets_[i] -= plan_.dim(d) * plan_.stride(i, d);
    }
  }

 private:
  const BroadcastPlan& plan_;
  const int num_operands_;
  Dims position_;
  int64_t offsets_[kMaxElementwiseInputs] = {};
};

// Two innermost dimensions of an operand, written out in full.
struct Block {
  int64_t rows, columns;
  int64_t row_stride, column_stride;  // of the operand, in elements
};

template <typename T>
void CopyBlock(const void* from, const Block& block, void* to) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (int64_t r = 0; r < block.rows; ++r, in += block.row_stride) {
    for (int64_t c = 0; c < block.columns; ++c) *out++ = in[c * block.column_stride];
  }
}

struct Element16 {
  uint64_t words[2];
};

void CopyBlock(const void* from, const Block& block, void* to, int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return CopyBlock<uint8_t>(from, block, to);
    case 2: return CopyBlock<uint16_t>(from, block, to);
    case 4: return CopyBlock<uint32_t>(from, block, to);
    case 8: return CopyBlock<uint64_t>(from, block, to);
    default: return CopyBlock<Element16>(from, block, to);
  }
}

const char* At(const void* base, int64_t element, int64_t size) { return static_cast<const char*>(base) + element * size; }

}  // namespace

absl::StatusOr<BroadcastPlan> BroadcastPlan::Make(absl::Span<const Shape* const> shapes) {
  BroadcastPlan plan;
  plan.shape_ = *shapes[0];
  for (size_t i = 1; i < shapes.size(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(plan.shape_, BroadcastShapes(plan.shape_, *shapes[i]));
  }
  const Dims out(plan.shape_.dims().begin(), plan.shape_.dims().end());
  const int n = static_cast<int>(shapes.size());
  Dims strides[kMaxElementwiseInputs];
  for (int i = 0; i < n; ++i) {
    strides[i] = OperandStrides(*shapes[i], out);
    plan.full_[i] = shapes[i]->num_elements() == plan.shape_.num_elements();
  }
  // From the innermost dimension outwards: a dimension joins the one inside it if every operand steps through both as
  // through one. Built in reverse.
  for (int d = static_cast<int>(out.size()) - 1; d >= 0; --d) {
    if (out[d] == 1) continue;
    bool joins = !plan.dims_.empty();
    for (int i = 0; i < n && joins; ++i) joins = strides[i][d] == plan.strides_[i].back() * plan.dims_.back();
    if (joins) {
      plan.dims_.back() *= out[d];
      continue;
    }
    plan.dims_.push_back(out[d]);
    for (int i = 0; i < n; ++i) plan.strides_[i].push_back(strides[i][d]);
  }
  if (plan.dims_.empty()) {
    plan.dims_.push_back(1);
    for (int i = 0; i < n; ++i) plan.strides_[i].push_back(0);
  }
  for (int i = 0; i < n; ++i) {
    int64_t inside = 1;
    plan.periods_[i] = 1;
    for (size_t d = 0; d < plan.dims_.size(); ++d) {
      inside *= plan.dims_[d];
      if (plan.strides_[i][d] != 0) plan.periods_[i] = inside;
    }
  }
  std::reverse(plan.dims_.begin(), plan.dims_.end());
  for (int i = 0; i < n; ++i) std::reverse(plan.strides_[i].begin(), plan.strides_[i].end());
  return plan;
}

struct ElementwiseKernel::Operands {
  const void* in[kMaxElementwiseInputs] = {};
  char* out = nullptr;
};

ElementwiseKernel::ElementwiseKernel(const ElementwiseDef& def, const KernelNode& node) : def_(def) {
  if (def.param_attr) param_ = node.node_attrs().GetOr<float>(def.param_attr, 0.0f);
  const DType out_type = RemoveRef(node.output_types()[0]);
  store_ = StoreConversion(def.output_type, out_type);
  converts_ = store_ != nullptr;
  plain_ = IsPlainMemory(out_type);
  out_size_ = static_cast<int64_t>(ElementBytes(out_type));
  for (int i = 0; i < def.num_inputs; ++i) {
    const DType type = RemoveRef(node.input_types()[i]);
    load_[i] = LoadConversion(type, def.input_types[i]);
    converts_ |= load_[i] != nullptr;
    plain_ &= IsPlainMemory(type);
    in_size_[i] = static_cast<int64_t>(ElementBytes(type));
    may_reuse_[i] = type == out_type;
  }
}

absl::Status ElementwiseKernel::Compute(KernelContext& ctx) {
  static constexpr int64_t kFull[kMaxElementwiseInputs] = {1, 1, 1};
  static constexpr int64_t kRightScalar[kMaxElementwiseInputs] = {1, 0, 0};
  static constexpr int64_t kLeftScalar[kMaxElementwiseInputs] = {0, 1, 0};
  const Shape& first = ctx.input(0).shape();
  if (def_.num_inputs == 1) return ComputeFlat(ctx, first, kFull);
  if (def_.num_inputs == 2) {
    const Shape& second = ctx.input(1).shape();
    if (second.rank() == 0) return ComputeFlat(ctx, first, kRightScalar);
    if (first == second) return ComputeFlat(ctx, first, kFull);
    if (first.rank() == 0) return ComputeFlat(ctx, second, kLeftScalar);
  }
  const Shape* shapes[kMaxElementwiseInputs];
  for (int i = 0; i < def_.num_inputs; ++i) shapes[i] = &ctx.input(i).shape();
  return ComputeAs(ctx, absl::MakeConstSpan(shapes, def_.num_inputs));
}

absl::Status ElementwiseKernel::Allocate(KernelContext& ctx, const Shape& shape, Operands* operands) const {
  Tensor* out = nullptr;
  if (def_.num_inputs == 1) {
    THALWEG_ASSIGN_OR_RETURN(out, may_reuse_[0] ? ctx.ForwardOrAllocateOutput({0}, 0, shape) : ctx.AllocateOutput(0, shape));
  } else if (def_.num_inputs == 2) {
    THALWEG_ASSIGN_OR_RETURN(out, may_reuse_[0] ? ctx.ForwardOrAllocateOutput({0, 1}, 0, shape) : ctx.AllocateOutput(0, shape));
  } else {
    THALWEG_ASSIGN_OR_RETURN(out, may_reuse_[1] ? ctx.ForwardOrAllocateOutput({1, 2}, 0, shape) : ctx.AllocateOutput(0, shape));
  }
  for (int i = 0; i < def_.num_inputs; ++i) operands->in[i] = ctx.input(i).raw();
  operands->out = static_cast<char*>(out->mutable_raw());
  return absl::OkStatus();
}

template <typename Body>
absl::Status ElementwiseKernel::RunSplit(KernelContext& ctx, int64_t n, Body body) const {
  const int64_t grouped = def_.rest ? n - n % kGroup : n;
  const auto run = [&](int64_t begin, int64_t end, LoopState& state) {
    if (begin < grouped) body(def_.loop, begin, std::min(end, grouped), state);
    if (end > grouped) body(def_.rest, std::max(begin, grouped), end, state);
  };
  bool refused = false;
  if (static_cast<double>(n) * def_.nanos_per_element < kMinSplitNanos) {
    LoopState state{param_};
    run(0, n, state);
    refused = state.refused;
  } else {
    std::atomic<bool> any_refused{false};
    ctx.ParallelFor(n, def_.nanos_per_element, [&](int64_t begin, int64_t end) {
      LoopState state{param_};
      run(begin, end, state);
      if (state.refused) any_refused.store(true, std::memory_order_relaxed);
    });
    refused = any_refused.load(std::memory_order_relaxed);
  }
  if (refused) return absl::InvalidArgumentError(def_.refusal);
  return absl::OkStatus();
}

// Operands that are full or scalars: no dimensions to think of.
absl::Status ElementwiseKernel::ComputeFlat(KernelContext& ctx, const Shape& shape, const int64_t* strides) const {
  Operands operands;
  const int64_t count = shape.num_elements();
  THALWEG_RETURN_IF_ERROR(Allocate(ctx, shape, &operands));
  if (count == 1 && !converts_) {
    LoopState state{param_};
    (def_.rest ? def_.rest : def_.loop)(operands.in, strides, operands.out, 1, state);
    return state.refused ? absl::InvalidArgumentError(def_.refusal) : absl::OkStatus();
  }
  return RunSplit(ctx, count, [&](InnerLoop loop, int64_t begin, int64_t end, LoopState& state) {
    const void* in[kMaxElementwiseInputs];
    for (int i = 0; i < def_.num_inputs; ++i) in[i] = At(operands.in[i], begin * strides[i], in_size_[i]);
    RunSpan(loop, in, strides, operands.out + begin * out_size_, end - begin, state);
  });
}

absl::Status ElementwiseKernel::ComputeAs(KernelContext& ctx, absl::Span<const Shape* const> shapes) const {
  THALWEG_ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make(shapes));
  Operands operands;
  THALWEG_RETURN_IF_ERROR(Allocate(ctx, plan.shape(), &operands));
  const bool expand = ShouldExpand(plan);
  return RunSplit(ctx, plan.shape().num_elements(), [&](InnerLoop loop, int64_t begin, int64_t end, LoopState& state) {
    if (expand) RunExpanded(loop, plan, operands, begin, end, state);
    else RunRows(loop, plan, operands, begin, end, state);
  });
}

bool ElementwiseKernel::ShouldExpand(const BroadcastPlan& plan) const {
  return plain_ && plan.rank() > 1 && plan.dim(plan.rank() - 1) < kShortRow;
}

void ElementwiseKernel::RunSpan(InnerLoop loop, const void* const* in, const int64_t* strides, void* out, int64_t n,
                                LoopState& state) const {
  if (n <= 0) return;
  if (converts_) RunTiles(loop, in, strides, out, n, state);
  else loop(in, strides, out, n, state);
}

// Loads each tile into the computing types, computes, stores.
void ElementwiseKernel::RunTiles(InnerLoop loop, const void* const* in, const int64_t* strides, void* out, int64_t n,
                                 LoopState& state) const {
  alignas(64) char loaded[kMaxElementwiseInputs][kTile * kMaxElementBytes];
  alignas(64) char computed[kTile * kMaxElementBytes];
  const void* operands[kMaxElementwiseInputs];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t count = std::min(kTile, n - begin);
    for (int i = 0; i < def_.num_inputs; ++i) {
      const void* from = At(in[i], begin * strides[i], in_size_[i]);
      operands[i] = load_[i] ? loaded[i] : from;
      if (load_[i] && (begin == 0 || strides[i] != 0)) load_[i](from, loaded[i], strides[i] != 0 ? count : 1);
    }
    char* to = static_cast<char*>(out) + begin * out_size_;
    loop(operands, strides, store_ ? computed : to, count, state);
    if (store_) store_(computed, to, count);
  }
}

// One loop call per row of the innermost dimension.
void ElementwiseKernel::RunRows(InnerLoop loop, const BroadcastPlan& plan, const Operands& operands, int64_t begin,
                                int64_t end, LoopState& state) const {
  const int last = plan.rank() - 1;
  const int64_t row_length = plan.dim(last);
  int64_t strides[kMaxElementwiseInputs];
  for (int i = 0; i < def_.num_inputs; ++i) strides[i] = plan.stride(i, last);
  const void* in[kMaxElementwiseInputs];
  if (last == 0) {
    for (int i = 0; i < def_.num_inputs; ++i) in[i] = At(operands.in[i], begin * strides[i], in_size_[i]);
    return RunSpan(loop, in, strides, operands.out + begin * out_size_, end - begin, state);
  }
  RowWalker row(plan, def_.num_inputs, begin / row_length);
  int64_t column = begin % row_length;
  for (int64_t at = begin; at < end; row.Advance(1)) {
    const int64_t count = std::min(row_length - column, end - at);
    for (int i = 0; i < def_.num_inputs; ++i) {
      in[i] = At(operands.in[i], row.offset(i) + column * strides[i], in_size_[i]);
    }
    RunSpan(loop, in, strides, operands.out + at * out_size_, count, state);
    at += count;
    column = 0;
  }
}

// Writes out what belongs to `rows` rows from `first_row` on, for the operands with a place in `expanded`.
void ElementwiseKernel::ExpandRows(const BroadcastPlan& plan, const Operands& operands, int64_t first_row, int64_t rows,
                                   char* const* expanded) const {
  const int last = plan.rank() - 1;
  RowWalker row(plan, def_.num_inputs, first_row);
  for (int64_t done = 0; done < rows;) {
    Block block{std::min(row.rows_left(), rows - done), plan.dim(last), 0, 0};
    for (int i = 0; i < def_.num_inputs; ++i) {
      if (expanded[i] == nullptr) continue;
      block.row_stride = plan.stride(i, last - 1);
      block.column_stride = plan.stride(i, last);
      CopyBlock(At(operands.in[i], row.offset(i), in_size_[i]), block,
                expanded[i] + done * block.columns * in_size_[i], in_size_[i]);
    }
    done += block.rows;
    row.Advance(block.rows);
  }
}

// Short rows: broadcast operands are written out for some whole rows of the output at a time. An operand that repeats
// after that many rows is written out once.
void ElementwiseKernel::RunExpanded(InnerLoop loop, const BroadcastPlan& plan, const Operands& operands, int64_t begin,
                                    int64_t end, LoopState& state) const {
  alignas(64) char expanded[kMaxElementwiseInputs][kTile * kMaxElementBytes];
  const int64_t row_length = plan.dim(plan.rank() - 1);
  int64_t tile = kTile / row_length * row_length;
  int64_t strides[kMaxElementwiseInputs];
  bool direct[kMaxElementwiseInputs];
  char* to_expand[kMaxElementwiseInputs] = {};
  for (int i = 0; i < def_.num_inputs; ++i) {
    strides[i] = plan.period(i) == 1 ? 0 : 1;
    direct[i] = plan.is_full(i) || strides[i] == 0;
    if (direct[i]) continue;
    to_expand[i] = expanded[i];
    // Where several operands repeat, the tile suits one; the others may have to be written again.
    if (plan.period(i) <= tile) tile = tile / plan.period(i) * plan.period(i);
  }
  // Tiles start at whole rows; what lies before `begin` is left out.
  for (int64_t at = begin / row_length * row_length; at < end; at += tile) {
    const int64_t from = std::max(at, begin), to = std::min(at + tile, end);
    ExpandRows(plan, operands, at / row_length, (to - at + row_length - 1) / row_length, to_expand);
    const void* in[kMaxElementwiseInputs];
    for (int i = 0; i < def_.num_inputs; ++i) {
      in[i] = direct[i] ? At(operands.in[i], strides[i] * from, in_size_[i]) : At(expanded[i], from - at, in_size_[i]);
      if (tile % plan.period(i) == 0) to_expand[i] = nullptr;
    }
    RunSpan(loop, in, strides, operands.out + from * out_size_, to - from, state);
  }
}

}  // namespace thalweg
