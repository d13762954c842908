// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits: loss and its gradient, row by row.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/nn/softmax_row.h"

namespace thalweg {
namespace {

constexpr double kNanosPerElement = 3.0;

// ---- labels as class numbers

absl::Status CheckSparse(const Shape& logits, const Shape& labels) {
  if (logits.rank() != 2 || labels.rank() != 1 || logits.dim(0) != labels.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("logits must be a matrix and labels a vector with an element for each of its "
                                                   "rows, but their shapes are ",
                                                   logits.ToString(), " and ", labels.ToString()));
  }
  if (logits.dim(1) > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there must be at least one class, but logits has shape ", logits.ToString()));
}

// T is the computing type.
template <typename T>
class SparseCrossEntropyKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& labels = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(CheckSparse(ctx.input(0).shape(), labels.shape()));
    THALWEG_ASSIGN_OR_RETURN(const Tensor logits, ToComputing(ctx, ctx.input(0)));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput loss, ComputedOutput::Allocate(ctx, 0, labels.shape()));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput gradient, ComputedOutput::Allocate(ctx, 1, logits.shape()));
    const int64_t classes = logits.dim(1);
    FirstError error;
    THALWEG_RETURN_IF_ERROR(WithIndices(labels, [&](auto values) {
      ctx.ParallelFor(logits.dim(0), kNanosPerElement * static_cast<double>(classes), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t label = static_cast<int64_t>(values[row]);
          if (!IndexInRange(label, classes)) {
            return error.Update(absl::InvalidArgumentError(
                absl::StrCat("labels[", row, "] is ", label, "; it must be in [0,", classes, ")")));
          }
          const T* in = static_cast<const T*>(logits.raw()) + row * classes;
          T* out = static_cast<T*>(gradient.data()) + row * classes;
          const RowSoftmax<T> softmax = SoftmaxOfRow(in, classes, out);
          static_cast<T*>(loss.data())[row] = softmax.log_sum - (in[label] - softmax.largest);
          out[label] -= T(1);
        }
      });
      return error.status();
    }));
    loss.Finish(ctx);
    gradient.Finish(ctx);
    return absl::OkStatus();
  }
};

absl::Status SparseCrossEntropyShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const int64_t rows = c.input(0).has_rank() ? c.input(0).dim(0) : kUnknownDim,
                labels = c.input(1).has_rank() ? c.input(1).dim(0) : kUnknownDim;
  THALWEG_ASSIGN_OR_RETURN(const int64_t batch, ShapeContext::MergeDim(rows, labels));
  c.set_output(0, PartialShape::OfDims({batch}));
  c.set_output(1, PartialShape::OfDims({batch, c.input(0).has_rank() ? c.input(0).dim(1) : kUnknownDim}));
  return absl::OkStatus();
}

// ---- labels as distributions

// The operand as a dense tensor of `shape`, broadcast if it is smaller. In its computing type.
absl::StatusOr<Tensor> BroadcastTo(KernelContext& ctx, const Tensor& t, const Shape& shape) {
  THALWEG_ASSIGN_OR_RETURN(const Tensor computing, ToComputing(ctx, t));
  if (t.shape() == shape) return computing;
  THALWEG_ASSIGN_OR_RETURN(Tensor broadcast, ctx.AllocateTemp(computing.dtype(), shape));
  const Dims from = RowMajorStrides(t.shape()), to = RowMajorStrides(shape);
  const int missing = shape.rank() - t.rank();
  CopyDims dims;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool repeats = d < missing || t.dim(d - missing) == 1;
    dims.push_back({shape.dim(d), repeats ? 0 : from[d - missing], to[d]});
  }
  if (shape.num_elements() > 0) StridedCopy(ctx, computing.dtype(), std::move(dims), computing.raw(), broadcast.mutable_raw());
  return broadcast;
}

template <typename T>
class CrossEntropyKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(ctx.input(0).shape(), ctx.input(1).shape()));
    if (shape.rank() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("features and labels must be (or broadcast to) matrices, but their shapes are ",
                                                     ctx.input(0).shape().ToString(), " and ", ctx.input(1).shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Tensor logits, BroadcastTo(ctx, ctx.input(0), shape));
    THALWEG_ASSIGN_OR_RETURN(const Tensor labels, BroadcastTo(ctx, ctx.input(1), shape));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput loss, ComputedOutput::Allocate(ctx, 0, Shape::Of({shape.dim(0)})));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput gradient, ComputedOutput::Allocate(ctx, 1, shape));
    const int64_t classes = shape.dim(1);
    ctx.ParallelFor(shape.dim(0), kNanosPerElement * static_cast<double>(classes + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        static_cast<T*>(loss.data())[row] =
            ComputeRow(static_cast<const T*>(logits.raw()) + row * classes, static_cast<const T*>(labels.raw()) + row * classes,
                       classes, static_cast<T*>(gradient.data()) + row * classes);
      }
    });
    loss.Finish(ctx);
    gradient.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  // Returns the loss. A class of probability 0 adds nothing to it, even where the logit is -inf.
  static T ComputeRow(const T* logits, const T* labels, int64_t classes, T* gradient) {
    if (classes == 0) return T(0);
    const RowSoftmax<T> softmax = SoftmaxOfRow(logits, classes, gradient);
    T loss(0);
    for (int64_t k = 0; k < classes; ++k) {
      if (labels[k] != T(0)) loss += labels[k] * (softmax.log_sum - (logits[k] - softmax.largest));
      gradient[k] -= labels[k];
    }
    return loss;
  }
};

absl::Status CrossEntropyShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape both, ShapeContext::Broadcast(c.input(0), c.input(1)));
  if (both.has_rank() && both.rank() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("features and labels must be (or broadcast to) matrices, but they broadcast to ", both.ToString()));
  }
  c.set_output(0, PartialShape::OfDims({both.has_rank() ? both.dim(0) : kUnknownDim}));
  c.set_output(1, both.has_rank() ? std::move(both) : PartialShape::UnknownOfRank(2));
  return absl::OkStatus();
}

}  // namespace

void RegisterCrossEntropyOps(OpLibrary& lib) {
  lib.schemas
      .Add("SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> (loss: T, backprop: T)",
           "T: {half, bfloat16, float, double}; Tlabels: {int32, int64} = int64")
      .Shape(SparseCrossEntropyShape)
      .Cost(ElementwiseCost<20>);
  constexpr char kSparse[] = "SparseSoftmaxCrossEntropyWithLogits";
  lib.kernels.Add(kSparse, "cpu", MakeKernel<SparseCrossEntropyKernel<float>>).Type<float, half, bfloat16>("T");
  lib.kernels.Add(kSparse, "cpu", MakeKernel<SparseCrossEntropyKernel<double>>).Type<double>("T");

  lib.schemas.Add("SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> (loss: T, backprop: T)", "T: {half, bfloat16, float, double}")
      .Shape(CrossEntropyShape)
      .Cost(ElementwiseCost<20>);
  constexpr char kDense[] = "SoftmaxCrossEntropyWithLogits";
  lib.kernels.Add(kDense, "cpu", MakeKernel<CrossEntropyKernel<float>>).Type<float, half, bfloat16>("T");
  lib.kernels.Add(kDense, "cpu", MakeKernel<CrossEntropyKernel<double>>).Type<double>("T");
}

}  // namespace thalweg
