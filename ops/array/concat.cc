// Concat, ConcatV2 and Pack: several tensors side by side in one.
//
// Along an axis, the output is `outer` groups, each the blocks of all inputs in order; a block is everything from the
// axis on.
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

// Copies inputs [first, first + count) into `out`. Input i has `outer` blocks of blocks[i] elements.
void InterleaveBlocks(KernelContext& ctx, int first, int64_t outer, const std::vector<int64_t>& blocks, Tensor* out) {
  int64_t group = 0;
  for (const int64_t block : blocks) group += block;
  int64_t offset = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t block = blocks[i];
    StridedCopy(ctx, out->dtype(), {{outer, block, group}, {block, 1, 1}}, ctx.input(first + static_cast<int>(i)).raw(),
                MutableElementAt(*out, offset));
    offset += block;
  }
}

// Room for the text of inputs [first, first + count) together: the same one may stand there many times.
absl::Status RequireTextOfInputs(KernelContext& ctx, int first, int count) {
  if (ctx.output_dtype(0) != DType::kString) return absl::OkStatus();
  int64_t bytes = 0;  // each tensor is in memory, and there are few inputs: no overflow
  for (int i = first; i < first + count; ++i) bytes += TextBytes(ctx.input(i).flat<std::string>());
  return RequireTextMemory(ctx, bytes);
}

// ---- Concat, ConcatV2

absl::Status CheckFits(const Shape& first, const Shape& other, int index, int axis) {
  const bool same_rank = first.rank() == other.rank();
  for (int d = 0; same_rank && d < first.rank(); ++d) {
    if (d == axis || first.dim(d) == other.dim(d)) continue;
    return absl::InvalidArgumentError(absl::StrCat("values to be concatenated along axis ", axis,
                                                   " must agree elsewhere, but values[0] is ", first.ToString(),
                                                   " and values[", index, "] is ", other.ToString()));
  }
  if (same_rank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("values to be concatenated must have one rank, but values[0] is ",
                                                 first.ToString(), " and values[", index, "] is ", other.ToString()));
}

class ConcatKernel : public Kernel {
 public:
  ConcatKernel(int axis_input, int first_value) : axis_input_(axis_input), first_(first_value) {}

  absl::Status Compute(KernelContext& ctx) override {
    const int axis_input = axis_input_ >= 0 ? axis_input_ : ctx.num_inputs() - 1;
    const int count = ctx.num_inputs() - 1;
    THALWEG_ASSIGN_OR_RETURN(const int64_t wanted,
                             IntScalarArg(ctx.input(axis_input), "axis", ScalarRule::kScalarOrVectorOfOne));
    const Shape& first = ctx.input(first_).shape();
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, first.rank()));

    std::vector<int64_t> blocks(count);
    int64_t total = 0;
    for (int i = 0; i < count; ++i) {
      const Shape& shape = ctx.input(first_ + i).shape();
      THALWEG_RETURN_IF_ERROR(CheckFits(first, shape, i, axis));
      if (!CheckedAdd(total, shape.dim(axis), &total)) {
        return absl::InvalidArgumentError("the concatenated dimension overflows");
      }
      blocks[i] = shape.NumElements(axis, shape.rank());
    }
    Dims dims(first.dims().begin(), first.dims().end());
    dims[axis] = total;
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    THALWEG_RETURN_IF_ERROR(RequireTextOfInputs(ctx, first_, count));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() > 0) InterleaveBlocks(ctx, first_, shape.NumElements(0, axis), blocks, out);
    return absl::OkStatus();
  }

 private:
  const int axis_input_;  // -1: the last input
  const int first_;
};

class ConcatV1Kernel : public ConcatKernel {
 public:
  ConcatV1Kernel() : ConcatKernel(0, 1) {}
};
class ConcatV2Kernel : public ConcatKernel {
 public:
  ConcatV2Kernel() : ConcatKernel(-1, 0) {}
};

// All that can be said without knowing the axis: the rank.
absl::Status ConcatRankOnly(ShapeContext& c, int first, int count) {
  int rank = -1;
  for (int i = first; i < first + count; ++i) {
    const PartialShape& in = c.input(i);
    if (!in.has_rank()) continue;
    if (rank >= 0 && in.rank() != rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("values to be concatenated must have one rank, but there are ranks ", rank, " and ", in.rank()));
    }
    rank = in.rank();
  }
  if (rank == 0) return absl::InvalidArgumentError("scalars cannot be concatenated; Pack does that");
  if (rank > 0) c.set_output(0, PartialShape::UnknownOfRank(rank));
  return absl::OkStatus();
}

// Vectors of shape dimensions concatenated are such a vector again.
void ConcatValues(ShapeContext& c, int first, int count) {
  Dims dims;
  for (int i = first; i < first + count; ++i) {
    const std::optional<std::vector<ElementKnowledge>> elements = KnownElements(c, i);
    if (!elements || dims.size() + elements->size() > kMaxRank) return;
    for (const ElementKnowledge& e : *elements) dims.push_back(e.dim);
  }
  c.set_output_value(0, std::move(dims));
}

absl::Status ConcatShapeOf(ShapeContext& c, int axis_input, int first, int count) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(axis_input));
  const std::optional<int64_t> wanted = c.input_int(axis_input);
  if (!wanted) return ConcatRankOnly(c, first, count);
  PartialShape merged;  // of everything but the axis
  int64_t total = 0;
  int axis = 0;
  for (int i = first; i < first + count; ++i) {
    const PartialShape& in = c.input(i);
    if (!in.has_rank()) {
      total = kUnknownDim;
      continue;
    }
    THALWEG_ASSIGN_OR_RETURN(axis, NormalizeAxis(*wanted, in.rank()));
    THALWEG_ASSIGN_OR_RETURN(total, total == kUnknownDim ? kUnknownDim : ShapeContext::AddDims(total, in.dim(axis)));
    PartialShape others = in;
    others.set_dim(axis, kUnknownDim);
    THALWEG_ASSIGN_OR_RETURN(merged, ShapeContext::Merge(merged, others));
  }
  if (!merged.has_rank()) return absl::OkStatus();
  merged.set_dim(axis, total);
  if (merged.rank() == 1) ConcatValues(c, first, count);
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status ConcatV1Shape(ShapeContext& c) { return ConcatShapeOf(c, 0, 1, c.num_inputs() - 1); }
absl::Status ConcatV2Shape(ShapeContext& c) { return ConcatShapeOf(c, c.num_inputs() - 1, 0, c.num_inputs() - 1); }

// ---- Pack

class PackKernel : public Kernel {
 public:
  explicit PackKernel(const KernelInit& init) : axis_(init.node().node_attrs().GetOr<int64_t>("axis", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape in = ctx.input(0).shape();
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == in) continue;
      return absl::InvalidArgumentError(absl::StrCat("values to be packed must have one shape, but values[0] is ",
                                                     in.ToString(), " and values[", i, "] is ",
                                                     ctx.input(i).shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, in.rank() + 1));
    Dims dims(in.dims().begin(), in.dims().end());
    dims.insert(dims.begin() + axis, ctx.num_inputs());
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    if (ctx.num_inputs() == 1) {
      const DType dtype = ctx.input_dtype(0);
      ctx.SetOutput(0, ctx.TakeInput(0).AliasedAs(dtype, std::move(shape)));
      return absl::OkStatus();
    }
    THALWEG_RETURN_IF_ERROR(RequireTextOfInputs(ctx, 0, ctx.num_inputs()));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const std::vector<int64_t> blocks(ctx.num_inputs(), in.NumElements(axis, in.rank()));
    InterleaveBlocks(ctx, 0, in.NumElements(0, axis), blocks, out);
    return absl::OkStatus();
  }

 private:
  const int64_t axis_;
};

absl::Status PackShape(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(merged, ShapeContext::Merge(merged, c.input(i)));
  }
  if (!merged.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.attrs().GetOr<int64_t>("axis", 0), merged.rank() + 1));
  Dims dims(merged.dims().begin(), merged.dims().end());
  dims.insert(dims.begin() + axis, c.num_inputs());
  if (merged.rank() == 0) ConcatValues(c, 0, c.num_inputs());
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterConcatOps(OpLibrary& lib) {
  lib.schemas.Add("Concat(concat_dim: int32, values: N*T) -> output: T", "N: int >= 2; T: type")
      .Shape(ConcatV1Shape)
      .Cost(CopyCost);
  lib.schemas
      .Add("ConcatV2(values: N*T, axis: Tidx) -> output: T", "N: int >= 2; T: type; Tidx: {int32, int64} = int32")
      .Shape(ConcatV2Shape)
      .Cost(CopyCost);
  lib.schemas.Add("Pack(values: N*T) -> output: T", "N: int >= 1; T: type; axis: int = 0")
      .Shape(PackShape)
      .Cost(CopyCost);
  lib.kernels.Add("Concat", "cpu", MakeKernel<ConcatV1Kernel>).HostMemory("concat_dim");
  lib.kernels.Add("ConcatV2", "cpu", MakeKernel<ConcatV2Kernel>).HostMemory("axis");
  lib.kernels.Add("Pack", "cpu", MakeKernel<PackKernel>);
}

}  // namespace thalweg
