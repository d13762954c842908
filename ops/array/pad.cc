// Pad and PadV2: a border of zeros or of a given value.
#include <complex>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/borders.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

// Fills the border with the element at `value`, each element once: for every dimension the slabs before and after the
// input, as long as the input along earlier dimensions, as long as the output along later ones.
void FillBorder(KernelContext& ctx, const Shape& in, const Borders& borders, const void* value, Tensor* out) {
  const Dims strides = RowMajorStrides(out->shape());
  int64_t corner = 0;  // of the current slab: past the borders of earlier dimensions
  for (int d = 0; d < in.rank(); ++d) {
    CopyDims slab;
    for (int i = 0; i < in.rank(); ++i) slab.push_back({i < d ? in.dim(i) : out->dim(i), 0, strides[i]});
    slab[d].extent = borders[d].before;
    StridedCopy(ctx, out->dtype(), slab, value, MutableElementAt(*out, corner));
    slab[d].extent = borders[d].after;
    StridedCopy(ctx, out->dtype(), slab, value,
                MutableElementAt(*out, corner + (borders[d].before + in.dim(d)) * strides[d]));
    corner += borders[d].before * strides[d];
  }
}

// The element that Pad adds: zero, an empty string.
const void* ZeroElement(DType dtype) {
  alignas(16) static const char zeros[16] = {};
  static const std::string empty;
  static const ResourceHandle no_resource;
  static const Variant no_variant;
  switch (dtype) {
    case DType::kString: return &empty;
    case DType::kResource: return &no_resource;
    case DType::kVariant: return &no_variant;
    default: return zeros;
  }
}

// Pad has two inputs; PadV2 brings the value as a third.
class PadKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Borders borders, ReadBorders(ctx.input(1), in.shape()));
    if (ctx.num_inputs() > 2) THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(2), "constant_values"));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in.shape(), borders));
    if (shape == in.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    if (ctx.num_inputs() > 2) {
      THALWEG_RETURN_IF_ERROR(RequireTextMemory(ctx, ctx.input(2), shape.num_elements() - in.num_elements()));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    FillBorder(ctx, in.shape(), borders, ctx.num_inputs() > 2 ? ctx.input(2).raw() : ZeroElement(in.dtype()), out);
    const Dims in_strides = RowMajorStrides(in.shape());
    const Dims out_strides = RowMajorStrides(shape);
    int64_t offset = 0;
    CopyDims dims;
    for (int i = 0; i < in.rank(); ++i) {
      offset += borders[i].before * out_strides[i];
      dims.push_back({in.dim(i), in_strides[i], out_strides[i]});
    }
    StridedCopy(ctx, in.dtype(), std::move(dims), in.raw(), MutableElementAt(*out, offset));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterPadOps(OpLibrary& lib) {
  lib.schemas.Add("Pad(input: T, paddings: Tpaddings) -> output: T", "T: type; Tpaddings: {int32, int64} = int32")
      .Shape(PaddedShapeFn)
      .Cost(CopyCost);
  lib.schemas
      .Add("PadV2(input: T, paddings: Tpaddings, constant_values: T) -> output: T",
           "T: type; Tpaddings: {int32, int64} = int32")
      .Shape(PaddedShapeFn)
      .Cost(CopyCost);
  for (const char* op : {"Pad", "PadV2"}) lib.kernels.Add(op, "cpu", MakeKernel<PadKernel>).HostMemory("paddings");
}

}  // namespace thalweg
