// NonMaxSuppression in five versions, NonMaxSuppressionWithOverlaps: the best-scored boxes of which no two overlap too much.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/emit_ints.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/image/image_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

struct Limits {
  int64_t max_output = 0;
  float overlap = 0.5f;
  float score = std::numeric_limits<float>::lowest();
  float sigma = 0;  // above 0: overlapping boxes lose score instead of being dropped at once
};

struct Selection {
  std::vector<int64_t> indices;
  std::vector<float> scores;
};

struct Candidate {
  int64_t box;
  float score;
  size_t compared;  // with so many of the selected boxes already

  // Worse ones first; of equals, later boxes.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

// Multiplies the candidate's score by what overlaps with newly selected boxes leave of it. False if it is to be dropped.
bool Rescore(const Selection& selected, const Limits& limits, absl::FunctionRef<float(int64_t, int64_t)> overlap, Candidate* candidate) {
  const bool soft = limits.sigma > 0;
  const float scale = soft ? -0.5f / limits.sigma : 0.0f;
  for (size_t j = selected.indices.size(); j-- > candidate->compared;) {
    const float similarity = overlap(candidate->box, selected.indices[j]);
    if (!soft && similarity > limits.overlap) return false;
    candidate->score *= std::exp(scale * similarity * similarity);  // 1 unless soft
    if (candidate->score <= limits.score) break;
  }
  candidate->compared = selected.indices.size();
  return true;
}

Selection Select(absl::Span<const float> scores, const Limits& limits, const StepServices& step,
                 absl::FunctionRef<float(int64_t, int64_t)> overlap) {
  std::vector<Candidate> above;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > limits.score) above.push_back({static_cast<int64_t>(i), scores[i], 0});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(above));
  Selection selected;
  while (static_cast<int64_t>(selected.indices.size()) < limits.max_output && !queue.empty() && !step.cancelled()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    if (!Rescore(selected, limits, overlap, &next)) continue;
    if (next.score == before) {
      selected.indices.push_back(next.box);
      selected.scores.push_back(next.score);
    } else if (next.score > limits.score) {
      queue.push(next);
    }
  }
  return selected;
}

// Corners in any order; boxes without area overlap nothing.
float IntersectionOverUnion(const float* a, const float* b) {
  const auto low = [](const float* box, int d) { return std::min(box[d], box[d + 2]); };
  const auto high = [](const float* box, int d) { return std::max(box[d], box[d + 2]); };
  const auto area = [&](const float* box) { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); };
  const float area_a = area(a), area_b = area(b);
  if (area_a <= 0 || area_b <= 0) return 0.0f;
  float common = 1;
  for (int d = 0; d < 2; ++d) common *= std::max(std::min(high(a, d), high(b, d)) - std::max(low(a, d), low(b, d)), 0.0f);
  return common / (area_a + area_b - common);
}

absl::StatusOr<float> FloatScalar(KernelContext& ctx, int i, absl::string_view name) {
  THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(i), name));
  THALWEG_ASSIGN_OR_RETURN(const Tensor value, ToComputing(ctx, ctx.input(i)));
  return value.flat<float>()[0];
}

absl::Status CheckLimits(const Limits& limits) {
  if (limits.max_output < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_output_size is ", limits.max_output, "; it must not be negative"));
  }
  if (!(limits.sigma >= 0)) return absl::InvalidArgumentError(absl::StrCat("soft_nms_sigma is ", limits.sigma, "; it must not be negative"));
  return absl::OkStatus();
}

// `kOverlaps`: input 0 is the matrix of overlaps instead of boxes.
template <bool kOverlaps>
class NonMaxSuppressionKernel final : public Kernel {
 public:
  explicit NonMaxSuppressionKernel(const KernelInit& init)
      : threshold_(init.node().node_attrs().GetOr<float>("iou_threshold", 0.5f)),
        pad_(init.node().node_attrs().GetOr<bool>("pad_to_max_output_size", false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(ctx));
    const Shape& boxes_shape = ctx.input(0).shape();
    const Shape& scores_shape = ctx.input(1).shape();
    const bool fits = boxes_shape.rank() == 2 && scores_shape.rank() == 1 && boxes_shape.dim(0) == scores_shape.dim(0) &&
                      boxes_shape.dim(1) == (kOverlaps ? boxes_shape.dim(0) : 4);
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(kOverlaps ? "overlaps must have shape [n,n]" : "boxes must have shape [n,4]",
                                                     " and scores [n], but their shapes are ", boxes_shape.ToString(), " and ",
                                                     scores_shape.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Tensor boxes, ToComputing(ctx, ctx.input(0)));
    THALWEG_ASSIGN_OR_RETURN(const Tensor scores, ToComputing(ctx, ctx.input(1)));
    const float* values = boxes.flat<float>().data();
    const int64_t row = boxes.dim(1);
    Selection selected = Select(scores.flat<float>(), limits, ctx.step(), [&](int64_t a, int64_t b) {
      return kOverlaps ? values[a * row + b] : IntersectionOverUnion(values + a * row, values + b * row);
    });
    return Emit(ctx, limits, std::move(selected));
  }

 private:
  // Thresholds are inputs in all versions but the first.
  absl::StatusOr<Limits> ReadLimits(KernelContext& ctx) const {
    Limits limits;
    limits.overlap = threshold_;
    THALWEG_ASSIGN_OR_RETURN(limits.max_output, IntScalarArg(ctx.input(2), "max_output_size"));
    if (ctx.num_inputs() > 3) {
      THALWEG_ASSIGN_OR_RETURN(limits.overlap, FloatScalar(ctx, 3, kOverlaps ? "overlap_threshold" : "iou_threshold"));
    }
    if (ctx.num_inputs() > 4) {
      THALWEG_ASSIGN_OR_RETURN(limits.score, FloatScalar(ctx, 4, "score_threshold"));
    }
    if (ctx.num_inputs() > 5) {
      THALWEG_ASSIGN_OR_RETURN(limits.sigma, FloatScalar(ctx, 5, "soft_nms_sigma"));
    }
    if (!kOverlaps && !(limits.overlap >= 0 && limits.overlap <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat("iou_threshold is ", limits.overlap, "; it must be in [0,1]"));
    }
    THALWEG_RETURN_IF_ERROR(CheckLimits(limits));
    return limits;
  }

  // Outputs: indices; in V5 scores; from V4 on the number that is not padding.
  absl::Status Emit(KernelContext& ctx, const Limits& limits, Selection selected) const {
    const int64_t valid = static_cast<int64_t>(selected.indices.size());
    if (pad_) {
      THALWEG_RETURN_IF_ERROR(ctx.AllocateTemp(DType::kInt64, Shape::Of({limits.max_output})).status());  // refuses absurd sizes
      selected.indices.resize(limits.max_output, 0);
      selected.scores.resize(limits.max_output, 0.0f);
    }
    THALWEG_RETURN_IF_ERROR(EmitInts(ctx, 0, selected.indices));
    if (ctx.num_outputs() == 3) {
      THALWEG_ASSIGN_OR_RETURN(ComputedOutput scores,
                               ComputedOutput::Allocate(ctx, 1, Shape::Of({static_cast<int64_t>(selected.scores.size())})));
      std::copy(selected.scores.begin(), selected.scores.end(), static_cast<float*>(scores.data()));
      scores.Finish(ctx);
    }
    if (ctx.num_outputs() == 1) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor * count, ctx.AllocateOutput(ctx.num_outputs() - 1, Shape()));
    count->mutable_flat<int32_t>()[0] = static_cast<int32_t>(valid);
    return absl::OkStatus();
  }

  const float threshold_;
  const bool pad_;
};

absl::Status NonMaxSuppressionShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  const std::optional<int64_t> most = c.input_int(2);
  const bool padded = c.attrs().GetOr<bool>("pad_to_max_output_size", false);
  const PartialShape selected = PartialShape::OfDims({padded && most && *most >= 0 ? *most : c.NewSymbol()});
  c.set_output(0, selected);
  if (c.num_outputs() == 3) c.set_output(1, selected);
  if (c.num_outputs() > 1) c.set_output(c.num_outputs() - 1, PartialShape::Known(Shape()));
  return absl::OkStatus();
}

// Every box may meet every selected one.
NodeCost NonMaxSuppressionCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  cost.flops = 10 * c.InputElements(1) * c.OutputElements(0);
  return cost;
}

template <bool kOverlaps>
void Register(OpLibrary& lib, absl::string_view op, absl::string_view signature, absl::string_view attrs) {
  lib.schemas.Add(absl::StrCat(op, signature), attrs).Shape(NonMaxSuppressionShape).Cost(NonMaxSuppressionCost);
  lib.kernels.Add(op, "cpu", MakeKernel<NonMaxSuppressionKernel<kOverlaps>>).HostMemory("max_output_size");
}

}  // namespace

void RegisterNonMaxSuppressionOps(OpLibrary& lib) {
  constexpr char kTypes[] = "T: {half, float} = float; T_threshold: {half, float} = float";
  Register<false>(lib, "NonMaxSuppression", "(boxes: float, scores: float, max_output_size: int32) -> selected_indices: int32",
                  "iou_threshold: float = 0.5");
  Register<false>(lib, "NonMaxSuppressionV2",
                  "(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold) -> selected_indices: int32", kTypes);
  Register<false>(lib, "NonMaxSuppressionV3",
                  "(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold) -> "
                  "selected_indices: int32",
                  kTypes);
  Register<false>(lib, "NonMaxSuppressionV4",
                  "(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold) -> "
                  "(selected_indices: int32, valid_outputs: int32)",
                  absl::StrCat(kTypes, "; pad_to_max_output_size: bool = false"));
  Register<false>(lib, "NonMaxSuppressionV5",
                  "(boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T) -> "
                  "(selected_indices: int32, selected_scores: T, valid_outputs: int32)",
                  "T: {half, float} = float; pad_to_max_output_size: bool = false");
  Register<true>(lib, "NonMaxSuppressionWithOverlaps",
                 "(overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: float) -> "
                 "selected_indices: int32",
                 "");
}

}  // namespace thalweg
