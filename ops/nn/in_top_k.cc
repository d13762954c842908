// InTopK, InTopKV2: is the target class of a row among its k likeliest?
//
// A target counts as in if fewer than k predictions of its row are strictly larger; so ties at the border are all in. A row
// with a prediction that is not finite, and a target that is no class, are never in.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {
namespace {

template <typename Index>
class InTopKKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<InTopKKernel>();
    if (init.node().input_types().size() == 2) {
      THALWEG_ASSIGN_OR_RETURN(kernel->k_, init.Attr<int64_t>("k"));
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& predictions = ctx.input(0);
    const Tensor& targets = ctx.input(1);
    int64_t k = k_.value_or(0);
    if (!k_) {
      THALWEG_ASSIGN_OR_RETURN(k, IntScalarArg(ctx.input(2), "k"));
    }
    if (predictions.rank() != 2 || targets.rank() != 1 || predictions.dim(0) != targets.dim(0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("predictions must be a matrix with a row per target, and targets a vector, but their shapes are ",
                       predictions.shape().ToString(), " and ", targets.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, targets.shape()));
    const int64_t classes = predictions.dim(1);
    const float* rows = predictions.flat<float>().data();
    const Index* wanted = targets.flat<Index>().data();
    bool* in = out->mutable_flat<bool>().data();
    ctx.ParallelFor(targets.dim(0), static_cast<double>(classes + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) in[row] = IsIn(rows + row * classes, classes, wanted[row], k);
    });
    return absl::OkStatus();
  }

 private:
  static bool IsIn(const float* row, int64_t classes, int64_t target, int64_t k) {
    if (target < 0 || target >= classes) return false;
    int64_t larger = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (!std::isfinite(row[c])) return false;
      larger += row[c] > row[target];
    }
    return larger < k;
  }

  std::optional<int64_t> k_;  // of InTopK; InTopKV2 has an input for it
};

absl::Status InTopKShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const int64_t rows = c.input(0).has_rank() ? c.input(0).dim(0) : kUnknownDim;
  const int64_t targets = c.input(1).has_rank() ? c.input(1).dim(0) : kUnknownDim;
  THALWEG_ASSIGN_OR_RETURN(const int64_t both, ShapeContext::MergeDim(rows, targets));
  c.set_output(0, PartialShape::OfDims({both}));
  return absl::OkStatus();
}

}  // namespace

void RegisterInTopKOps(OpLibrary& lib) {
  lib.schemas
      .Add("InTopK(predictions: float, targets: T) -> precision: bool", "k: int; T: {int32, int64} = int32")
      .Shape(InTopKShape)
      .Cost(ElementwiseCost<1>);
  lib.schemas
      .Add("InTopKV2(predictions: float, targets: T, k: T) -> precision: bool", "T: {int32, int64} = int32")
      .Shape(InTopKShape)
      .Cost(ElementwiseCost<1>);
  for (const char* op : {"InTopK", "InTopKV2"}) {
    lib.kernels.Add(op, "cpu", MakeFallibleKernel<InTopKKernel<int32_t>>).Type<int32_t>("T");
    lib.kernels.Add(op, "cpu", MakeFallibleKernel<InTopKKernel<int64_t>>).Type<int64_t>("T");
  }
}

}  // namespace thalweg
