#include "thalweg/ops/common/reduce.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/box_walker.h"
#include "thalweg/ops/common/ordered_reduce.h"

namespace thalweg {
namespace {

// Outputs computed together: their accumulators stay in the first-level cache.
constexpr int64_t kTileOutputs = 512;
constexpr int64_t kMaxAccumulatorBytes = 16;
// Elements converted at a time.
constexpr int64_t kTileElements = 1024;
constexpr int64_t kMaxComputingBytes = 4;
// Rows shorter than this are folded across outputs rather than one by one.
constexpr int64_t kShortRow = 16;
// Few outputs of many elements are folded in chunks of at least this many elements, whatever the number of threads, and
// of at least so many consecutive ones.
constexpr int64_t kChunkElements = 32768;
constexpr int64_t kMinChunkRow = 4096;
constexpr int64_t kMaxChunks = 32;
constexpr int64_t kMaxChunkedOutputs = 1024;
// Below this many nanoseconds of work the session is not asked for help.
constexpr double kMinSplitNanos = 10000;

template <typename T>
void AppendAxes(const Tensor& tensor, Axes* axes) {
  for (T axis : tensor.flat<T>()) axes->push_back(axis);
}

// Which dimensions are reduced. InvalidArgument for an axis out of range or given twice.
absl::StatusOr<absl::InlinedVector<bool, 8>> MarkAxes(int rank, absl::Span<const int64_t> axes) {
  absl::InlinedVector<bool, 8> reduced(rank, false);
  for (int64_t axis : axes) {
    THALWEG_ASSIGN_OR_RETURN(const int d, NormalizeAxis(axis, rank, "reduction axis"));
    if (reduced[d]) return absl::InvalidArgumentError(absl::StrCat("reduction axis ", axis, " names dimension ", d, " twice"));
    reduced[d] = true;
  }
  return reduced;
}

}  // namespace

absl::StatusOr<Axes> ReadAxes(const KernelContext& ctx, int i) {
  const Tensor& tensor = ctx.input(i);
  Axes axes;  // in any shape: only shapes known at load must be scalars or vectors
  if (tensor.dtype() == DType::kInt32) AppendAxes<int32_t>(tensor, &axes);
  else AppendAxes<int64_t>(tensor, &axes);
  return axes;
}

absl::StatusOr<ReductionPlan> ReductionPlan::Make(const Shape& input, absl::Span<const int64_t> axes, bool keep_dims) {
  THALWEG_ASSIGN_OR_RETURN(const auto is_reduced, MarkAxes(input.rank(), axes));
  ReductionPlan plan;
  Dims out;
  for (int d = 0; d < input.rank(); ++d) {
    if (!is_reduced[d]) out.push_back(input.dim(d));
    else if (keep_dims) out.push_back(1);
    if (is_reduced[d]) plan.reduced_count_ *= input.dim(d);
  }
  THALWEG_ASSIGN_OR_RETURN(plan.output_, Shape::Make(out));
  // From the innermost dimension outwards, then reversed.
  int64_t stride = 1;
  int last_kind = -1;
  for (int d = input.rank() - 1; d >= 0; --d) {
    const int64_t size = input.dim(d);
    if (size == 1) continue;
    Dimensions& dims = is_reduced[d] ? plan.reduced_ : plan.kept_;
    if (last_kind == static_cast<int>(is_reduced[d])) dims.back().size *= size;
    else dims.push_back({size, stride});
    last_kind = is_reduced[d];
    stride *= size;
  }
  std::reverse(plan.kept_.begin(), plan.kept_.end());
  std::reverse(plan.reduced_.begin(), plan.reduced_.end());
  return plan;
}

// One execution. There is at least one reduced dimension and one output.
struct ReduceKernel::Job {
  const ReductionPlan& plan;
  const char* in;
  char* out;
  int64_t num_outputs;

  // Size of a run of outputs along the innermost kept dimension.
  int64_t run() const { return plan.kept().empty() ? 1 : plan.kept().back().size; }
  int64_t outermost() const { return plan.reduced().front().size; }
  bool rows_are_reduced() const { return plan.reduced().back().stride == 1; }

  // In how many chunks to fold; fewer than two: not in chunks.
  int64_t Chunks(int64_t total) const {
    if (num_outputs > kMaxChunkedOutputs) return 1;
    const bool cuts_rows = rows_are_reduced() && plan.reduced().size() == 1;
    return std::min({kMaxChunks, total / kChunkElements, cuts_rows ? outermost() / kMinChunkRow : outermost()});
  }

  // Element offset of output `index`.
  int64_t OutputOffset(int64_t index) const {
    int64_t offset = 0;
    for (int d = static_cast<int>(plan.kept().size()) - 1; d >= 0; --d) {
      offset += index % plan.kept()[d].size * plan.kept()[d].stride;
      index /= plan.kept()[d].size;
    }
    return offset;
  }
};

ReduceKernel::ReduceKernel(const ReduceDef& def, const KernelNode& node)
    : def_(def),
      keep_dims_(node.node_attrs().GetOr<bool>("keep_dims", false)),
      in_bytes_(static_cast<int64_t>(DTypeSize(RemoveRef(node.input_types()[0])))),
      out_bytes_(static_cast<int64_t>(DTypeSize(RemoveRef(node.output_types()[0])))),
      load_(LoadConversion(RemoveRef(node.input_types()[0]), def.input_type)),
      store_(StoreConversion(def.output_type, RemoveRef(node.output_types()[0]))) {}

absl::Status ReduceKernel::Compute(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const Axes axes, ReadAxes(ctx, 1));
  return ReduceOver(ctx, axes, keep_dims_);
}

absl::Status ReduceKernel::ReduceOver(KernelContext& ctx, absl::Span<const int64_t> axes, bool keep_dims) const {
  THALWEG_ASSIGN_OR_RETURN(ReductionPlan plan, ReductionPlan::Make(ctx.input(0).shape(), axes, keep_dims));
  if (def_.maps_elements) plan.ReduceSingleElements();
  if (plan.reduced().empty()) {
    ctx.SetOutput(0, ctx.TakeInput(0).AliasedAs(ctx.output_dtype(0), plan.output()));
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, plan.output()));
  const Job job{plan, static_cast<const char*>(ctx.input(0).raw()), static_cast<char*>(out->mutable_raw()),
                plan.output().num_elements()};
  const int64_t total = ctx.input(0).num_elements();
  if (def_.in_order != nullptr && load_ == nullptr && total <= kMaxOrderedElements) {
    ReduceInOrder(*def_.in_order, plan, reinterpret_cast<const float*>(job.in), reinterpret_cast<float*>(job.out));
    return absl::OkStatus();
  }
  if (const int64_t chunks = job.Chunks(total); chunks > 1) return ReduceInChunks(ctx, job, chunks);
  const double nanos_per_output = def_.nanos_per_element * static_cast<double>(std::max<int64_t>(plan.reduced_count(), 1));
  if (nanos_per_output * static_cast<double>(job.num_outputs) < kMinSplitNanos) {
    ReduceOutputs(job, 0, job.num_outputs);
  } else {
    ctx.ParallelFor(job.num_outputs, nanos_per_output, [&](int64_t begin, int64_t end) { ReduceOutputs(job, begin, end); });
  }
  return absl::OkStatus();
}

void ReduceKernel::ReduceOutputs(const Job& job, int64_t begin, int64_t end) const {
  alignas(64) char accumulators[kTileOutputs * kMaxAccumulatorBytes];
  for (int64_t at = begin; at < end;) {
    const int64_t n = std::min({kTileOutputs, end - at, job.run() - at % job.run()});
    def_.init(accumulators, n);
    Fold(job, at, n, 0, job.outermost(), accumulators);
    Finish(accumulators, job.plan.reduced_count(), job.out + at * out_bytes_, n);
    at += n;
  }
}

absl::Status ReduceKernel::ReduceInChunks(KernelContext& ctx, const Job& job, int64_t chunks) const {
  const int64_t chunk_bytes = job.num_outputs * def_.accumulator_bytes;
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({chunks * chunk_bytes}));
  THALWEG_ASSIGN_OR_RETURN(Tensor scratch, ctx.AllocateTemp(DType::kUInt8, shape));
  char* accumulators = static_cast<char*>(scratch.mutable_raw());
  const double nanos = def_.nanos_per_element * static_cast<double>(job.plan.reduced_count() / chunks * job.num_outputs);
  ctx.ParallelFor(chunks, nanos, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t begin = job.outermost() * chunk / chunks, end = job.outermost() * (chunk + 1) / chunks;
      char* mine = accumulators + chunk * chunk_bytes;
      def_.init(mine, job.num_outputs);
      for (int64_t at = 0; at < job.num_outputs;) {
        const int64_t n = std::min(kTileOutputs, job.run() - at % job.run());
        Fold(job, at, n, begin, end, mine + at * def_.accumulator_bytes);
        at += n;
      }
    }
  });
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    def_.merge(accumulators + chunk * chunk_bytes, accumulators, job.num_outputs);
  }
  for (int64_t at = 0; at < job.num_outputs; at += kTileOutputs) {
    const int64_t n = std::min(kTileOutputs, job.num_outputs - at);
    Finish(accumulators + at * def_.accumulator_bytes, job.plan.reduced_count(), job.out + at * out_bytes_, n);
  }
  return absl::OkStatus();
}

void ReduceKernel::Fold(const Job& job, int64_t first, int64_t n, int64_t begin, int64_t end, char* accumulators) const {
  if (begin >= end) return;
  ReductionPlan::Dimensions dims = job.plan.reduced();
  const char* in = job.in + (job.OutputOffset(first) + begin * dims.front().stride) * in_bytes_;
  dims.front().size = end - begin;
  for (const ReductionPlan::Dimension& dim : dims) {
    if (dim.size == 0) return;
  }
  if (!job.rows_are_reduced()) {
    BoxWalker box(dims);
    do FoldBlock(in + box.offset() * in_bytes_, n, 1, 0, 1, accumulators);
    while (box.Next());
    return;
  }
  // The innermost dimension is a row of reduced elements. Rows of neighbouring outputs follow one another.
  const int64_t row = dims.back().size;
  const int64_t row_step = job.plan.reduced().back().size;
  dims.pop_back();
  BoxWalker box(dims);
  do {
    const char* rows = in + box.offset() * in_bytes_;
    if (row_step < kShortRow && n > 1) {
      FoldBlock(rows, n, row_step, 0, row, accumulators);
    } else {
      for (int64_t k = 0; k < n; ++k) FoldRow(rows + k * row_step * in_bytes_, row, accumulators + k * def_.accumulator_bytes);
    }
  } while (box.Next());
}

void ReduceKernel::FoldRow(const char* in, int64_t n, char* accumulator) const {
  if (load_ == nullptr) return def_.fold_row(in, n, accumulator);
  alignas(64) char loaded[kTileElements * kMaxComputingBytes];
  for (int64_t at = 0; at < n; at += kTileElements) {
    const int64_t count = std::min(kTileElements, n - at);
    load_(in + at * in_bytes_, loaded, count);
    def_.fold_row(loaded, count, accumulator);
  }
}

// n groups of `width` elements each: elements [begin, end) of group k are folded into accumulator k.
void ReduceKernel::FoldBlock(const char* in, int64_t n, int64_t width, int64_t begin, int64_t end, char* accumulators) const {
  if (load_ == nullptr) {
    for (int64_t w = begin; w < end; ++w) def_.fold_columns(in + w * in_bytes_, width, accumulators, n);
    return;
  }
  alignas(64) char loaded[kTileElements * kMaxComputingBytes];
  const int64_t tile = kTileElements / width;
  for (int64_t at = 0; at < n; at += tile) {
    const int64_t count = std::min(tile, n - at);
    // The last group may end the tensor: only what is folded is read.
    load_(in + at * width * in_bytes_, loaded, (count - 1) * width + end);
    for (int64_t w = begin; w < end; ++w) {
      def_.fold_columns(loaded + w * kMaxComputingBytes, width, accumulators + at * def_.accumulator_bytes, count);
    }
  }
}

void ReduceKernel::Finish(const char* accumulators, int64_t count, char* out, int64_t n) const {
  if (store_ == nullptr) return def_.finish(accumulators, count, out, n);
  alignas(64) char computed[kTileOutputs * kMaxComputingBytes];
  def_.finish(accumulators, count, computed, n);
  store_(computed, out, n);
}

absl::Status ReductionShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const bool keep_dims = c.attrs().GetOr<bool>("keep_dims", false);
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(1, 1));
  if (!input.has_rank()) return absl::OkStatus();
  const std::optional<std::vector<int64_t>> axes = c.input_ints(1);
  if (!axes) {
    if (keep_dims) c.set_output(0, PartialShape::UnknownOfRank(input.rank()));
    return absl::OkStatus();
  }
  absl::InlinedVector<bool, 8> reduced(input.rank(), false);
  for (int64_t axis : *axes) {
    THALWEG_ASSIGN_OR_RETURN(const int d, NormalizeAxis(axis, input.rank(), "reduction axis"));
    reduced[d] = true;
  }
  Dims out;
  for (int d = 0; d < input.rank(); ++d) {
    if (!reduced[d]) out.push_back(input.dim(d));
    else if (keep_dims) out.push_back(1);
  }
  c.set_output(0, PartialShape::OfDims(std::move(out)));
  return absl::OkStatus();
}

KernelDef& AddReduction(OpLibrary& lib, absl::string_view op, KernelFactory factory) {
  // A literal here makes GCC 12 warn of a copy out of bounds.
  static const auto& axes = *new std::string("reduction_indices");
  return lib.kernels.Add(op, "cpu", factory).HostMemory(axes);
}

}  // namespace thalweg
