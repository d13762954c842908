// Unique and UniqueWithCounts: distinct elements of a vector in order of first occurrence. Their second versions: distinct
// slices along an axis.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/element_classes.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/emit_ints.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

absl::Status NoVector(const Shape& shape) {
  return absl::InvalidArgumentError(absl::StrCat("input must be a vector, but its shape is ", shape.ToString()));
}

// A tensor seen from one of its axes: outer x size x inner elements.
struct AxisView {
  int axis = 0;
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView ViewAt(const Shape& shape, int axis) {
  return {axis, shape.NumElements(0, axis), shape.dim(axis), shape.NumElements(axis + 1, shape.rank())};
}

// Slices by class of equals. Elements are classified first, so that slices are sequences of small numbers.
ElementClasses ClassifySlices(const Tensor& t, const AxisView& view) {
  ElementClasses elements = ClassifyElements(t);
  if (view.outer == 1 && view.inner == 1) return elements;
  ElementClasses slices;
  absl::flat_hash_map<std::vector<int64_t>, int64_t> map;
  std::vector<int64_t> key(view.outer * view.inner);
  for (int64_t k = 0; k < view.size; ++k) {
    for (int64_t o = 0; o < view.outer; ++o) {
      const auto from = elements.of_element.begin() + (o * view.size + k) * view.inner;
      std::copy(from, from + view.inner, key.begin() + o * view.inner);
    }
    const auto [it, fresh] = map.try_emplace(key, static_cast<int64_t>(slices.first.size()));
    if (fresh) slices.first.push_back(k);
    slices.of_element.push_back(it->second);
  }
  return slices;
}

// Two outputs (values, class of each slice) or three (and the size of each class).
class UniqueKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    int axis = 0;
    Dims axes;
    if (ctx.num_inputs() > 1) {
      THALWEG_ASSIGN_OR_RETURN(axes, IntVectorArg(ctx.input(1), "axis", 1));
    }
    if (axes.empty()) {
      if (in.rank() != 1) return NoVector(in.shape());
    } else {
      THALWEG_ASSIGN_OR_RETURN(axis, NormalizeAxis(axes[0], in.rank()));
    }
    const AxisView view = ViewAt(in.shape(), axis);
    if (ctx.output_dtype(1) == DType::kInt32 && view.size > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(view.size, " elements are too many for int32 indices; ask for out_idx int64"));
    }
    const ElementClasses classes = ClassifySlices(in, view);
    THALWEG_RETURN_IF_ERROR(EmitSlices(ctx, in, view, classes.first));
    THALWEG_RETURN_IF_ERROR(EmitInts(ctx, 1, classes.of_element));
    if (ctx.num_outputs() < 3) return absl::OkStatus();
    std::vector<int64_t> sizes(classes.first.size(), 0);
    for (const int64_t k : classes.of_element) ++sizes[k];
    return EmitInts(ctx, 2, sizes);
  }

 private:
  static absl::Status EmitSlices(KernelContext& ctx, const Tensor& in, const AxisView& view, const std::vector<int64_t>& slices) {
    Dims dims(in.shape().dims().begin(), in.shape().dims().end());
    dims[view.axis] = static_cast<int64_t>(slices.size());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    std::vector<int64_t> offsets = slices;
    for (int64_t& offset : offsets) offset *= view.inner;
    BlockGather gather;
    gather.outer = view.outer;
    gather.count = static_cast<int64_t>(slices.size());
    gather.block = view.inner;
    gather.group = view.size * view.inner;
    gather.offsets = offsets.data();
    GatherBlocks(ctx, in.dtype(), gather, in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }
};

// Shapes if the slices of `axis` are told apart.
absl::Status SetUniqueShapes(ShapeContext& c, int axis) {
  const int64_t classes = c.NewSymbol();
  const PartialShape& in = c.input(0);
  if (in.has_rank()) {
    PartialShape out = in;
    out.set_dim(axis, classes);
    c.set_output(0, std::move(out));
  }
  c.set_output(1, PartialShape::OfDims({in.has_rank() ? in.dim(axis) : kUnknownDim}));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::OfDims({classes}));
  return absl::OkStatus();
}

absl::Status UniqueWithCountsShape(ShapeContext& c) {
  const PartialShape classes = PartialShape::OfDims({c.NewSymbol()});
  c.set_output(0, classes);
  c.set_output(1, c.input(0));
  if (c.num_outputs() > 2) c.set_output(2, classes);
  return absl::OkStatus();
}

absl::Status UniqueShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  return UniqueWithCountsShape(c);
}

absl::Status UniqueV2Shape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const std::optional<std::vector<int64_t>> axes = c.input_ints(1);
  if (axes && axes->empty()) return UniqueWithCountsShape(c);
  if (axes && c.input(0).has_rank()) {
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis((*axes)[0], c.input(0).rank()));
    return SetUniqueShapes(c, axis);
  }
  if (c.input(0).has_rank()) c.set_output(0, PartialShape::UnknownOfRank(c.input(0).rank()));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterUniqueOps(OpLibrary& lib) {
  const char* attrs = "T: type; out_idx: {int32, int64} = int32";
  lib.schemas.Add("Unique(x: T) -> (y: T, idx: out_idx)", attrs).Shape(UniqueShape).Cost(CopyCost);
  lib.schemas.Add("UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)", attrs)
      .Shape(UniqueWithCountsShape)
      .Cost(CopyCost);
  const char* attrs_v2 = "T: type; Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32";
  lib.schemas.Add("UniqueV2(x: T, axis: Taxis) -> (y: T, idx: out_idx)", attrs_v2).Shape(UniqueV2Shape).Cost(CopyCost);
  lib.schemas.Add("UniqueWithCountsV2(x: T, axis: Taxis) -> (y: T, idx: out_idx, count: out_idx)", attrs_v2)
      .Shape(UniqueV2Shape)
      .Cost(CopyCost);
  for (const char* op : {"Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<UniqueKernel>)
        .Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
              bool, std::string>("T");
  }
}

}  // namespace thalweg
