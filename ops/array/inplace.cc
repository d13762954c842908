// InplaceUpdate, InplaceAdd, InplaceSub: rows of a tensor replaced, increased or decreased. The output is the input's buffer
// where nobody else needs that, else a copy.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

enum class RowUpdate { kReplace, kAdd, kSub };

absl::Status CheckRows(const Shape& x, const Shape& i, const Shape& v) {
  const bool fits = x.rank() > 0 && i.rank() == 1 && v.rank() == x.rank() && v.dim(0) == i.dim(0) &&
                    x.dims().subspan(1) == v.dims().subspan(1);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("v must have a row for each element of the vector i, of the shape of the rows of x; "
                                                 "the shapes of x, i and v are ",
                                                 x.ToString(), ", ", i.ToString(), " and ", v.ToString()));
}

template <RowUpdate update>
class InplaceKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    const Tensor& rows = ctx.input(1);
    const Tensor& values = ctx.input(2);
    THALWEG_RETURN_IF_ERROR(CheckRows(shape, rows.shape(), values.shape()));
    CombineLoop combine = nullptr;
    if constexpr (update != RowUpdate::kReplace) {
      combine = FindCombineLoop(update == RowUpdate::kAdd ? CombineOp::kAdd : CombineOp::kSub, values.dtype());
      if (combine == nullptr) return absl::UnimplementedError(absl::StrCat(DTypeName(values.dtype()), " has no addition"));
    }
    const void* before = ctx.input(0).raw();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (out->raw() != before) StridedCopy(ctx, out->dtype(), {{shape.num_elements(), 1, 1}}, before, out->mutable_raw());
    const int64_t block = shape.NumElements(1, shape.rank());
    const absl::Span<const int32_t> indices = rows.flat<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      const int64_t row = (indices[k] % shape.dim(0) + shape.dim(0)) % shape.dim(0);  // L24
      void* target = MutableElementAt(*out, row * block);
      const void* value = ElementAt(values, static_cast<int64_t>(k) * block);
      if (combine != nullptr) THALWEG_RETURN_IF_ERROR(combine(target, value, 1, target, block));
      else StridedCopy(ctx, out->dtype(), {{block, 1, 1}}, value, target);
    }
    return absl::OkStatus();
  }
};

template <RowUpdate update>
void RegisterOne(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(x: T, i: int32, v: T) -> y: T"), "T: type").Shape(UnchangedShape).Cost(CopyCost);
  lib.kernels.Add(op, "cpu", MakeKernel<InplaceKernel<update>>);
}

}  // namespace

void RegisterInplaceOps(OpLibrary& lib) {
  RegisterOne<RowUpdate::kReplace>(lib, "InplaceUpdate");
  RegisterOne<RowUpdate::kAdd>(lib, "InplaceAdd");
  RegisterOne<RowUpdate::kSub>(lib, "InplaceSub");
}

}  // namespace thalweg
