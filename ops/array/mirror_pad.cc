// MirrorPad: a border that shows the tensor as in a mirror, with its edge (SYMMETRIC) or without (REFLECT). MirrorPadGrad
// adds what the border shows to what is shown.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/borders.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// How far from the edge the first mirrored element is: 0 is the edge itself.
int64_t EdgeDistance(const NodeAttrs& attrs) { return attrs.GetOr<std::string>("mode", "REFLECT") == "SYMMETRIC" ? 0 : 1; }

// `size` is that of the dimension without its border.
absl::Status CheckMirror(const Border& border, int64_t size, int64_t distance, int dim) {
  const int64_t most = size - distance;
  if (border.before <= most && border.after <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("paddings[", dim, "] is [", border.before, ",", border.after,
                                                 "]; in this mode at most ", most, " fit a dimension of ", size));
}

class MirrorPadKernel : public Kernel {
 public:
  explicit MirrorPadKernel(const KernelInit& init) : distance_(EdgeDistance(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Borders borders, ReadBorders(ctx.input(1), in.shape()));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in.shape(), borders));
    for (int d = 0; d < in.rank(); ++d) THALWEG_RETURN_IF_ERROR(CheckMirror(borders[d], in.dim(d), distance_, d));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (in.num_elements() == 0) return absl::OkStatus();  // then so is the output: an empty dimension takes no border
    const Dims from = RowMajorStrides(in.shape()), to = RowMajorStrides(shape);
    CopyDims dims;
    int64_t center = 0;
    for (int d = 0; d < in.rank(); ++d) {
      dims.push_back({in.dim(d), from[d], to[d]});
      center += borders[d].before * to[d];
    }
    StridedCopy(ctx, in.dtype(), std::move(dims), in.raw(), MutableElementAt(*out, center));
    // From the innermost dimension outwards, so that each border mirrors whole rows of those inside it.
    for (int d = in.rank() - 1; d >= 0; --d) {
      center -= borders[d].before * to[d];
      Mirror(ctx, in.shape(), borders, d, center, out);
    }
    return absl::OkStatus();
  }

 private:
  // Fills both borders of dimension d. `start` is the place of index 0 of dimensions from d on, past the borders of earlier
  // ones.
  void Mirror(KernelContext& ctx, const Shape& in, const Borders& borders, int d, int64_t start, Tensor* out) const {
    const Dims strides = RowMajorStrides(out->shape());
    CopyDims dims;
    for (int i = 0; i < in.rank(); ++i) dims.push_back({i < d ? in.dim(i) : out->dim(i), strides[i], strides[i]});
    const int64_t first = borders[d].before, last = first + in.dim(d) - 1;
    const auto copy = [&](int64_t count, int64_t source, int64_t target, int64_t step) {
      if (count == 0) return;
      CopyDims slab = dims;
      slab[d] = {count, -step * strides[d], step * strides[d]};
      StridedCopy(ctx, out->dtype(), std::move(slab), ElementAt(*out, start + source * strides[d]),
                  MutableElementAt(*out, start + target * strides[d]));
    };
    copy(borders[d].before, first + distance_, first - 1, -1);
    copy(borders[d].after, last - distance_, last + 1, 1);
  }

  const int64_t distance_;
};

class MirrorPadGradKernel : public Kernel {
 public:
  explicit MirrorPadGradKernel(const KernelInit& init) : distance_(EdgeDistance(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Borders borders, ReadBorders(ctx.input(1), in.shape()));
    Dims dims(in.shape().dims().begin(), in.shape().dims().end());
    for (int d = 0; d < in.rank(); ++d) {
      const Border& b = borders[d];
      if (b.before > dims[d] || b.after > dims[d] - b.before) {
        return absl::InvalidArgumentError(
            absl::StrCat("paddings[", d, "] is [", b.before, ",", b.after, "], more than dimension ", d, " has, ", dims[d]));
      }
      dims[d] -= b.before + b.after;
      THALWEG_RETURN_IF_ERROR(CheckMirror(b, dims[d], distance_, d));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor folded, ctx.AllocateTemp(in.dtype(), in.shape()));
    std::memcpy(folded.mutable_raw(), in.raw(), static_cast<size_t>(in.num_elements()) * DTypeSize(in.dtype()));
    for (int d = 0; d < in.rank(); ++d) THALWEG_RETURN_IF_ERROR(Fold(shape, borders, d, &folded));
    const Dims from = RowMajorStrides(in.shape()), to = RowMajorStrides(shape);
    CopyDims center;
    int64_t start = 0;
    for (int d = 0; d < in.rank(); ++d) {
      center.push_back({shape.dim(d), from[d], to[d]});
      start += borders[d].before * from[d];
    }
    StridedCopy(ctx, in.dtype(), std::move(center), ElementAt(folded, start), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  // Adds the borders of dimension d to what they mirror, for all indices of earlier dimensions: whole rows of later ones.
  absl::Status Fold(const Shape& inner, const Borders& borders, int d, Tensor* t) const {
    const CombineLoop add = FindCombineLoop(CombineOp::kAdd, t->dtype());
    const int64_t outer = t->shape().NumElements(0, d), row = t->shape().NumElements(d + 1, t->rank()), size = t->dim(d);
    const int64_t first = borders[d].before, last = first + inner.dim(d) - 1;
    const auto add_row = [&](int64_t o, int64_t to, int64_t from) {
      void* target = MutableElementAt(*t, (o * size + to) * row);
      return add(target, ElementAt(*t, (o * size + from) * row), 1, target, row);
    };
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < borders[d].before; ++k) THALWEG_RETURN_IF_ERROR(add_row(o, first + distance_ + k, first - 1 - k));
      for (int64_t k = 0; k < borders[d].after; ++k) THALWEG_RETURN_IF_ERROR(add_row(o, last - distance_ - k, last + 1 + k));
    }
    return absl::OkStatus();
  }

  const int64_t distance_;
};

absl::Status MirrorPadGradShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(1), PartialShape::OfDims({c.input(0).rank(), 2})).status());
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  const std::optional<std::vector<int64_t>> values = c.input_ints(1);
  Dims dims(in.rank(), kUnknownDim);
  for (int i = 0; i < in.rank() && values; ++i) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t both, ShapeContext::AddDims((*values)[2 * i], (*values)[2 * i + 1]));
    THALWEG_ASSIGN_OR_RETURN(dims[i], ShapeContext::SubDims(in.dim(i), both));
  }
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterMirrorPadOps(OpLibrary& lib) {
  constexpr char kAttrs[] = "T: type; Tpaddings: {int32, int64} = int32; mode: {\"REFLECT\", \"SYMMETRIC\"}";
  lib.schemas.Add("MirrorPad(input: T, paddings: Tpaddings) -> output: T", kAttrs).Shape(PaddedShapeFn).Cost(CopyCost);
  lib.kernels.Add("MirrorPad", "cpu", MakeKernel<MirrorPadKernel>).HostMemory("paddings");
  lib.schemas.Add("MirrorPadGrad(input: T, paddings: Tpaddings) -> output: T", kAttrs).Shape(MirrorPadGradShape).Cost(CopyCost);
  const absl::Span<const DType> types = CombinableTypes();
  lib.kernels.Add("MirrorPadGrad", "cpu", MakeKernel<MirrorPadGradKernel>)
      .Type("T", std::vector<DType>(types.begin(), types.end()))
      .HostMemory("paddings");
}

}  // namespace thalweg
