// Shape, ShapeN, Size and Rank: tensors that describe tensors.
#include <limits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"

namespace thalweg {
namespace {

// Writes `value` as element `index` of an int32 or int64 output.
absl::Status PutInt(Tensor* out, int64_t index, int64_t value, const Shape& described) {
  if (out->dtype() == DType::kInt64) {
    out->mutable_flat<int64_t>()[index] = value;
    return absl::OkStatus();
  }
  if (value > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(value, " of shape ", described.ToString(),
                                                   " does not fit the int32 output; ask for out_type int64"));
  }
  out->mutable_flat<int32_t>()[index] = static_cast<int32_t>(value);
  return absl::OkStatus();
}

// Shape and ShapeN.
class ShapeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const Shape shape = ctx.input(i).shape();
      THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, Shape::Of({shape.rank()})));
      for (int d = 0; d < shape.rank(); ++d) THALWEG_RETURN_IF_ERROR(PutInt(out, d, shape.dim(d), shape));
    }
    return absl::OkStatus();
  }
};

class SizeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    return PutInt(out, 0, shape.num_elements(), shape);
  }
};

class RankKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    return PutInt(out, 0, shape.rank(), shape);
  }
};

absl::Status ShapeOfShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& in = c.input(i);
    if (!in.has_rank()) {
      c.set_output(i, PartialShape::UnknownOfRank(1));
      continue;
    }
    c.set_output(i, PartialShape::Known(Shape::Of({in.rank()})));
    c.set_output_value(i, Dims(in.dims().begin(), in.dims().end()));
  }
  return absl::OkStatus();
}

absl::Status SizeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  c.set_output(0, PartialShape::Known(Shape()));
  if (!in.has_rank()) return absl::OkStatus();
  int64_t size = 1;
  for (const int64_t d : in.dims()) {
    THALWEG_ASSIGN_OR_RETURN(size, ShapeContext::MulDims(size, d));
  }
  c.set_output_value(0, {size});
  return absl::OkStatus();
}

absl::Status RankShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Known(Shape()));
  if (c.input(0).has_rank()) c.set_output_value(0, {c.input(0).rank()});
  return absl::OkStatus();
}

}  // namespace

void RegisterShapeOps(OpLibrary& lib) {
  lib.schemas.Add("Shape(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32")
      .Shape(ShapeOfShape)
      .Cost(NoCost);
  lib.schemas.Add("ShapeN(input: N*T) -> output: N*out_type", "N: int >= 1; T: type; out_type: {int32, int64} = int32")
      .Shape(ShapeOfShape)
      .Cost(NoCost);
  lib.schemas.Add("Size(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32")
      .Shape(SizeShape)
      .Cost(NoCost);
  lib.schemas.Add("Rank(input: T) -> output: int32", "T: type").Shape(RankShape).Cost(NoCost);
  for (const char* op : {"Shape", "ShapeN"}) lib.kernels.Add(op, "cpu", MakeKernel<ShapeKernel>).HostMemory("output");
  lib.kernels.Add("Size", "cpu", MakeKernel<SizeKernel>).HostMemory("output");
  lib.kernels.Add("Rank", "cpu", MakeKernel<RankKernel>).HostMemory("output");
}

}  // namespace thalweg
