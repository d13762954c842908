#include <algorithm>
#include <utility>

#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/storage_convert.h"
#include "thalweg/ops/nn/conv_compute.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {

using onednn::Convolution;
using onednn::ConvProblem;
using ConvolutionPtr = std::shared_ptr<const Convolution>;

// Rows [first_out, first_out + rows) of one image along its outermost dimension.
struct ConvRows {
  int64_t first_out = 0, rows = 0;
  int64_t first_in = 0;
  ConvolutionPtr convolution;
};

struct ConvPlan {
  ConvProblem problem;
  int threads = 1;
  bool small_pieces = false;

  // Either tasks of `images_per_task` whole images (the last task may have fewer and then uses `last_images`) ...
  int64_t images_per_task = 1;
  ConvolutionPtr images, last_images;
  // ... or, if not empty, one task per piece of rows and image.
  std::vector<ConvRows> rows;

  Tensor packed_filter;  // if the filter is constant
  int64_t scratch_bytes = 0;
  double nanos_per_task = 0;

  int64_t num_tasks() const {
    return rows.empty() ? (problem.batch + images_per_task - 1) / images_per_task
                        : problem.batch * static_cast<int64_t>(rows.size());
  }
};

namespace {

// Input shapes change rarely (batch sizes, image sizes); more plans than this would only hold memory.
constexpr size_t kMaxPlans = 8;
// A piece of output that an epilogue finds in the second-level cache.
constexpr double kPieceBytes = 512 * 1024;
// Multiply-adds worth a task of their own (some 20 microseconds), and how many of them one nanosecond does.
constexpr double kTaskWork = 1.5e6;
constexpr double kWorkPerNano = 60;

double MultiplyAdds(const ConvProblem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.Positions()) * static_cast<double>(p.out_channels) *
         static_cast<double>(p.FilterTaps()) * static_cast<double>(p.in_channels / p.groups);
}

double OutputBytes(const ConvProblem& p) {
  return sizeof(float) * static_cast<double>(p.batch) * static_cast<double>(p.Positions()) *
         static_cast<double>(p.out_channels);
}

int64_t RowElements(const ConvProblem& p, int64_t ConvProblem::Dim::*size, int64_t channels) {
  return p.dims[1].*size * p.dims[2].*size * channels;
}
int64_t InRowElements(const ConvProblem& p) { return RowElements(p, &ConvProblem::Dim::in, p.in_channels); }
int64_t OutRowElements(const ConvProblem& p) { return RowElements(p, &ConvProblem::Dim::out, p.out_channels); }

ConvProblem WithBatch(ConvProblem p, int64_t batch) {
  p.batch = batch;
  return p;
}

// How many images a task gets, and into how many pieces each image is cut (more than one only if a task gets one
// image).
struct Split {
  int64_t images_per_task = 1;
  int64_t row_pieces = 1;
};

Split ChooseSplit(const ConvProblem& p, int threads, bool small_pieces) {
  const ConvProblem image = WithBatch(p, 1);
  Split split{p.batch, 1};
  const int64_t useful_tasks = std::clamp<int64_t>(static_cast<int64_t>(MultiplyAdds(p) / kTaskWork), 1, threads);
  split.images_per_task = (p.batch + useful_tasks - 1) / useful_tasks;
  const double pieces_by_cache = small_pieces ? OutputBytes(image) / kPieceBytes : 0;
  if (small_pieces) {
    const int64_t images_in_cache = std::max<int64_t>(static_cast<int64_t>(1 / std::max(pieces_by_cache, 1e-9)), 1);
    split.images_per_task = std::min(split.images_per_task, images_in_cache);
  }
  if (split.images_per_task > 1) return split;
  const int64_t for_threads = (useful_tasks + p.batch - 1) / p.batch;
  const int64_t for_cache = static_cast<int64_t>(pieces_by_cache) + 1;
  split.row_pieces = std::min((for_cache + for_threads - 1) / for_threads * for_threads, p.dims[0].out);
  return split;
}

// The part of `p` that computes output rows [begin, end). False if those rows see no input at all.
bool RowProblem(const ConvProblem& p, int64_t begin, int64_t end, ConvProblem* part, int64_t* first_in) {
  const ConvProblem::Dim& d = p.dims[0];
  const int64_t start = begin * d.stride - d.pad_before;
  const int64_t stop = (end - 1) * d.stride + (d.window - 1) * d.dilation + 1 - d.pad_before;
  *first_in = std::max<int64_t>(start, 0);
  const int64_t last_in = std::min(stop, d.in);
  if (*first_in >= last_in) return false;
  *part = WithBatch(p, 1);
  part->dims[0] = {last_in - *first_in, end - begin, d.window, d.stride, d.dilation, *first_in - start, stop - last_in};
  return true;
}

// Compiles the pieces of one image; leaves `plan->rows` empty if that does not work out.
void PlanRows(int64_t pieces, ConvPlan* plan) {
  const ConvProblem& p = plan->problem;
  const int64_t rows_per_piece = (p.dims[0].out + pieces - 1) / pieces;
  std::vector<std::pair<ConvProblem, ConvolutionPtr>> compiled;  // most pieces are alike
  std::vector<ConvRows> rows;
  for (int64_t begin = 0; begin < p.dims[0].out; begin += rows_per_piece) {
    const int64_t end = std::min(begin + rows_per_piece, p.dims[0].out);
    ConvRows piece{begin, end - begin, 0, nullptr};
    ConvProblem part;
    if (!RowProblem(p, begin, end, &part, &piece.first_in)) return;
    const auto same =
        std::find_if(compiled.begin(), compiled.end(), [&](const auto& entry) { return entry.first == part; });
    if (same != compiled.end()) {
      piece.convolution = same->second;
    } else {
      absl::StatusOr<ConvolutionPtr> made = Convolution::Create(part, plan->images.get());
      if (!made.ok()) return;
      piece.convolution = *std::move(made);
      compiled.emplace_back(part, piece.convolution);
    }
    rows.push_back(std::move(piece));
  }
  plan->rows = std::move(rows);
}

int64_t LargestScratch(const ConvPlan& plan) {
  int64_t bytes = plan.images->scratch_bytes();
  if (plan.last_images) bytes = std::max(bytes, plan.last_images->scratch_bytes());
  for (const ConvRows& piece : plan.rows) bytes = std::max(bytes, piece.convolution->scratch_bytes());
  return bytes;
}

// The constant filter of a node, packed before any step runs.
absl::StatusOr<Tensor> PackConstant(const KernelInit& init, const Convolution& convolution) {
  const KernelNode& node = init.node();
  Allocator& allocator = node.device->allocator();
  THALWEG_ASSIGN_OR_RETURN(Tensor filter, Tensor::FromLiteral(init.constant_input(1), allocator));
  if (const ConvertLoop load = LoadConversion(filter.dtype(), DType::kFloat32)) {
    THALWEG_ASSIGN_OR_RETURN(Tensor converted, Tensor::Allocate(DType::kFloat32, filter.shape(), allocator, node.id));
    load(filter.raw(), converted.mutable_raw(), filter.num_elements());
    filter = std::move(converted);
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor packed, Tensor::Allocate(DType::kUInt8, Shape::Of({convolution.packed_bytes()}),
                                                           allocator, node.id));
  THALWEG_RETURN_IF_ERROR(convolution.Pack(static_cast<const float*>(filter.raw()), packed.mutable_raw()));
  return packed;
}

}  // namespace

FloatConvolver::~FloatConvolver() = default;

FloatConvolver::PlanPtr FloatConvolver::Lookup(const ConvProblem& problem, int threads, bool small_pieces) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const PlanPtr& plan : plans_) {
    if (plan->problem == problem && plan->threads == threads && plan->small_pieces == small_pieces) return plan;
  }
  return nullptr;
}

absl::StatusOr<Tensor> FloatConvolver::PackedFilter(KernelContext& ctx, const Convolution& convolution,
                                                    const Tensor& filter) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const PlanPtr& plan : plans_) {
      if (plan->images && plan->packed_filter.initialized() && plan->images->SamePacking(convolution))
        return plan->packed_filter;
    }
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor packed, ctx.AllocateTemp(DType::kUInt8, Shape::Of({convolution.packed_bytes()})));
  THALWEG_ASSIGN_OR_RETURN(const Tensor plain, ToComputing(ctx, filter));
  THALWEG_RETURN_IF_ERROR(convolution.Pack(static_cast<const float*>(plain.raw()), packed.mutable_raw()));
  return packed;
}

absl::StatusOr<std::shared_ptr<ConvPlan>> FloatConvolver::MakePlan(const ConvProblem& problem, int threads,
                                                                  bool small_pieces) {
  auto plan = std::make_shared<ConvPlan>();
  plan->problem = problem;
  plan->threads = threads;
  plan->small_pieces = small_pieces;
  const Split split = ChooseSplit(problem, plan->threads, small_pieces);
  plan->images_per_task = split.images_per_task;
  absl::StatusOr<ConvolutionPtr> whole = Convolution::Create(WithBatch(problem, split.images_per_task));
  if (absl::IsUnimplemented(whole.status()))
    return plan;  // without `images`: remembered, so that it is not tried again
  THALWEG_RETURN_IF_ERROR(whole.status());
  plan->images = *std::move(whole);
  if (const int64_t rest = problem.batch % split.images_per_task; rest != 0) {
    THALWEG_ASSIGN_OR_RETURN(plan->last_images, Convolution::Create(WithBatch(problem, rest), plan->images.get()));
  }
  if (split.row_pieces > 1) PlanRows(split.row_pieces, plan.get());
  plan->scratch_bytes = LargestScratch(*plan);
  plan->nanos_per_task = MultiplyAdds(problem) / kWorkPerNano / static_cast<double>(plan->num_tasks());
  return plan;
}

void FloatConvolver::Keep(PlanPtr plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (plans_.size() == kMaxPlans) plans_.erase(plans_.begin());
  plans_.push_back(std::move(plan));
}

void FloatConvolver::Prepare(const KernelInit& init, const ConvProblem& problem, bool has_epilogue) {
  if (!constant_filter_ || init.node().device->memory() != MemoryKind::kHost) return;
  absl::StatusOr<std::shared_ptr<ConvPlan>> plan = MakePlan(problem, init.threads(), has_epilogue);
  if (!plan.ok()) return;
  if ((*plan)->images) {
    absl::StatusOr<Tensor> packed = PackConstant(init, *(*plan)->images);
    if (!packed.ok()) return;
    (*plan)->packed_filter = *std::move(packed);
  }
  Keep(*std::move(plan));
}

absl::StatusOr<FloatConvolver::PlanPtr> FloatConvolver::FindPlan(KernelContext& ctx, const ConvProblem& problem,
                                                                 bool small_pieces, const Tensor& filter) {
  if (PlanPtr plan = Lookup(problem, ctx.step().num_threads(), small_pieces)) return plan;
  // Two steps may both get here; then both make a plan, which costs time once and is otherwise harmless.
  THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<ConvPlan> plan, MakePlan(problem, ctx.step().num_threads(), small_pieces));
  if (constant_filter_ && plan->images) {
    THALWEG_ASSIGN_OR_RETURN(plan->packed_filter, PackedFilter(ctx, *plan->images, filter));
  }
  Keep(plan);
  return plan;
}

absl::Status FloatConvolver::RunPlan(KernelContext& ctx, const ConvPlan& plan, const float* in, const Tensor& filter,
                                     const Epilogue<float>& epilogue, float* out) {
  const ConvProblem& p = plan.problem;
  Tensor packed = plan.packed_filter;
  if (!packed.initialized()) {
    THALWEG_ASSIGN_OR_RETURN(packed, PackedFilter(ctx, *plan.images, filter));
  }
  const int64_t in_image = p.dims[0].in * InRowElements(p), out_image = p.dims[0].out * OutRowElements(p);
  const int64_t pixels_per_row = OutRowElements(p) / p.out_channels;
  FirstError error;
  const auto run_rows = [&](int64_t task, void* scratch) {
    const ConvRows& piece = plan.rows[task % plan.rows.size()];
    const int64_t image = task / static_cast<int64_t>(plan.rows.size());
    error.Update(piece.convolution->Run(in + image * in_image + piece.first_in * InRowElements(p), packed.raw(),
                                        out + image * out_image + piece.first_out * OutRowElements(p), scratch));
    const int64_t first_pixel = (image * p.dims[0].out + piece.first_out) * pixels_per_row;
    ApplyEpilogue(epilogue, first_pixel, first_pixel + piece.rows * pixels_per_row, p.out_channels, out);
  };
  const auto run_images = [&](int64_t task, void* scratch) {
    const int64_t first = task * plan.images_per_task, count = std::min(plan.images_per_task, p.batch - first);
    const Convolution& convolution = count == plan.images_per_task ? *plan.images : *plan.last_images;
    error.Update(convolution.Run(in + first * in_image, packed.raw(), out + first * out_image, scratch));
    ApplyEpilogue(epilogue, first * p.Positions(), (first + count) * p.Positions(), p.out_channels, out);
  };
  ctx.ParallelFor(plan.num_tasks(), plan.nanos_per_task, [&](int64_t begin, int64_t end) {
    absl::StatusOr<Tensor> scratch = ctx.AllocateTemp(DType::kUInt8, Shape::Of({plan.scratch_bytes}));
    if (!scratch.ok()) return error.Update(scratch.status());
    for (int64_t task = begin; task < end && !ctx.step().cancelled(); ++task) {
      if (plan.rows.empty()) run_images(task, scratch->mutable_raw());
      else run_rows(task, scratch->mutable_raw());
    }
  });
  return error.status();
}

absl::Status FloatConvolver::Run(KernelContext& ctx, const ConvProblem& problem, const float* in, const Tensor& filter,
                                 const Epilogue<float>& epilogue, float* out) {
  THALWEG_ASSIGN_OR_RETURN(const PlanPtr plan, FindPlan(ctx, problem, !epilogue.empty(), filter));
  if (plan->images) return RunPlan(ctx, *plan, in, filter, epilogue, out);
  THALWEG_ASSIGN_OR_RETURN(const Tensor plain, ToComputing(ctx, filter));
  const float* taps = static_cast<const float*>(plain.raw());
  if (problem.groups == problem.in_channels && problem.out_channels == problem.in_channels && problem.spatial == 2) {
    DepthwiseConvolution(ctx, problem, in, taps, epilogue, out);
    return absl::OkStatus();
  }
  return PatchConvolution(ctx, problem, in, taps, epilogue, out);
}

}  // namespace thalweg
