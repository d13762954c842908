// InvertPermutation and ListDiff.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/element_classes.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/emit_ints.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/index_args.h"

namespace thalweg {
namespace {

absl::Status RequireVector(const Tensor& t, absl::string_view name) {
  if (t.rank() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must be a vector, but its shape is ", t.shape().ToString()));
}

// Fills `inverse`, which has as many elements.
template <typename T>
absl::Status Invert(absl::Span<const T> permutation, absl::Span<T> inverse) {
  std::fill(inverse.begin(), inverse.end(), T(-1));
  for (size_t i = 0; i < permutation.size(); ++i) {
    const T to = permutation[i];
    if (!IndexInRange(to, static_cast<int64_t>(permutation.size()))) {
      return absl::InvalidArgumentError(absl::StrCat("x[", i, "] is ", to, "; it must be in [0,", permutation.size(), ")"));
    }
    if (inverse[to] != T(-1)) return absl::InvalidArgumentError(absl::StrCat(to, " is in x twice"));
    inverse[to] = static_cast<T>(i);
  }
  return absl::OkStatus();
}

class InvertPermutationKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_RETURN_IF_ERROR(RequireVector(in, "x"));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (in.dtype() == DType::kInt32) return Invert(in.flat<int32_t>(), out->mutable_flat<int32_t>());
    return Invert(in.flat<int64_t>(), out->mutable_flat<int64_t>());
  }
};

absl::Status InvertPermutationShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  c.set_output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::UnknownOfRank(1));
  const std::optional<std::vector<int64_t>> values = c.input_ints(0);
  if (!values || values->size() > kMaxRank) return absl::OkStatus();
  std::vector<int64_t> inverse(values->size());
  if (!Invert<int64_t>(*values, absl::MakeSpan(inverse)).ok()) return absl::OkStatus();  // the kernel's to refuse
  c.set_output_value(0, Dims(inverse.begin(), inverse.end()));
  return absl::OkStatus();
}

// The elements of x that y does not have, and where they stand in x.
class ListDiffKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Tensor& y = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(RequireVector(x, "x"));
    THALWEG_RETURN_IF_ERROR(RequireVector(y, "y"));
    const ElementClasses classes = ClassifyElements(x, &y);
    std::vector<bool> in_y(classes.first.size(), false);
    for (int64_t i = x.num_elements(); i < x.num_elements() + y.num_elements(); ++i) in_y[classes.of_element[i]] = true;
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (!in_y[classes.of_element[i]]) kept.push_back(i);
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Of({static_cast<int64_t>(kept.size())})));
    BlockGather gather;
    gather.count = static_cast<int64_t>(kept.size());
    gather.offsets = kept.data();
    GatherBlocks(ctx, x.dtype(), gather, x.raw(), out->mutable_raw());
    return EmitInts(ctx, 1, kept);
  }
};

absl::Status ListDiffShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const PartialShape kept = PartialShape::OfDims({c.NewSymbol()});
  c.set_output(0, kept);
  c.set_output(1, kept);
  return absl::OkStatus();
}

}  // namespace

void RegisterPermutationOps(OpLibrary& lib) {
  lib.schemas.Add("InvertPermutation(x: T) -> y: T", "T: {int32, int64} = int32").Shape(InvertPermutationShape).Cost(CopyCost);
  lib.kernels.Add("InvertPermutation", "cpu", MakeKernel<InvertPermutationKernel>).HostMemory("x").HostMemory("y");
  lib.schemas.Add("ListDiff(x: T, y: T) -> (out: T, idx: out_idx)", "T: type; out_idx: {int32, int64} = int32")
      .Shape(ListDiffShape)
      .Cost(CopyCost);
  lib.kernels.Add("ListDiff", "cpu", MakeKernel<ListDiffKernel>)
      .Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
            std::string>("T");
}

}  // namespace thalweg
