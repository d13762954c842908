// Tile and BroadcastTo: repetition of whole tensors.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

// Room for the text of an output to which every element of `in` goes equally often.
absl::Status RequireTextForCopies(KernelContext& ctx, const Tensor& in, const Shape& out) {
  if (in.num_elements() == 0) return absl::OkStatus();
  return RequireTextMemory(ctx, in, out.num_elements() / in.num_elements());
}

// ---- Tile

class TileKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Dims multiples, IntVectorArg(ctx.input(1), "multiples"));
    if (static_cast<int>(multiples.size()) != in.rank()) {
      return absl::InvalidArgumentError(absl::StrCat("multiples has ", multiples.size(), " elements for input ",
                                                     in.shape().ToString(), " of rank ", in.rank()));
    }
    THALWEG_ASSIGN_OR_RETURN(Shape shape, TiledShape(in.shape(), multiples));
    if (shape == in.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    THALWEG_RETURN_IF_ERROR(RequireTextForCopies(ctx, in, shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Dims in_strides = RowMajorStrides(in.shape());
    const Dims out_strides = RowMajorStrides(shape);
    CopyDims dims;
    for (int i = 0; i < in.rank(); ++i) {
      dims.push_back({multiples[i], 0, in.dim(i) * out_strides[i]});
      dims.push_back({in.dim(i), in_strides[i], out_strides[i]});
    }
    StridedCopy(ctx, in.dtype(), std::move(dims), in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<Shape> TiledShape(const Shape& in, const Dims& multiples) {
    Dims dims(in.dims().begin(), in.dims().end());
    for (int i = 0; i < in.rank(); ++i) {
      if (multiples[i] < 0) {
        return absl::InvalidArgumentError(absl::StrCat("multiples[", i, "] is ", multiples[i], "; it must be >= 0"));
      }
      if (!CheckedMul(dims[i], multiples[i], &dims[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("dimension ", i, ", ", in.dim(i), " times ", multiples[i], ", overflows"));
      }
    }
    return Shape::Make(dims);
  }
};

absl::Status TileShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const PartialShape& in = c.input(0);
  const std::optional<std::vector<ElementKnowledge>> multiples = KnownElements(c, 1);
  if (in.has_rank() && multiples && static_cast<int>(multiples->size()) != in.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("multiples has ", multiples->size(), " elements for input ", in.ToString()));
  }
  if (!in.has_rank() && (!multiples || multiples->size() > kMaxRank)) return absl::OkStatus();
  const int rank = in.has_rank() ? in.rank() : static_cast<int>(multiples->size());
  Dims dims(rank, kUnknownDim);
  for (int i = 0; i < rank; ++i) {
    const ElementKnowledge m = multiples ? (*multiples)[i] : ElementKnowledge();
    if (m.value && *m.value < 0) {
      return absl::InvalidArgumentError(absl::StrCat("multiples[", i, "] is ", *m.value, "; it must be >= 0"));
    }
    THALWEG_ASSIGN_OR_RETURN(dims[i], ShapeContext::MulDims(in.has_rank() ? in.dim(i) : kUnknownDim, m.dim));
  }
  return SetOutputDims(c, std::move(dims));
}

// ---- BroadcastTo

absl::Status CannotBroadcast(const std::string& from, const std::string& to) {
  return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", from, " cannot be broadcast to shape ", to));
}

class BroadcastToKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(1), "shape"));
    if (shape == in.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    const int missing = shape.rank() - in.rank();
    if (missing < 0) return CannotBroadcast(in.shape().ToString(), shape.ToString());
    const Dims in_strides = RowMajorStrides(in.shape());
    const Dims out_strides = RowMajorStrides(shape);
    CopyDims dims;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t from = i < missing ? 1 : in.dim(i - missing);
      if (from != 1 && from != shape.dim(i)) return CannotBroadcast(in.shape().ToString(), shape.ToString());
      dims.push_back({shape.dim(i), from == 1 ? 0 : in_strides[i - missing], out_strides[i]});
    }
    THALWEG_RETURN_IF_ERROR(RequireTextForCopies(ctx, in, shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    StridedCopy(ctx, in.dtype(), std::move(dims), in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }
};

absl::Status BroadcastToShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_ASSIGN_OR_RETURN(PartialShape out, c.input_as_shape(1));
  const PartialShape& in = c.input(0);
  if (out.has_rank() && in.has_rank()) {
    const int missing = out.rank() - in.rank();
    if (missing < 0) return CannotBroadcast(in.ToString(), out.ToString());
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t from = in.dim(i);
      const int64_t to = out.dim(i + missing);
      if (IsKnownDim(from) && from > 1 && IsKnownDim(to) && from != to) {
        return CannotBroadcast(in.ToString(), out.ToString());
      }
      if (!IsKnownDim(to) && IsKnownDim(from) && from > 1) out.set_dim(i + missing, from);
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterTileOps(OpLibrary& lib) {
  lib.schemas.Add("Tile(input: T, multiples: Tmultiples) -> output: T", "T: type; Tmultiples: {int32, int64} = int32")
      .Shape(TileShape)
      .Cost(MovedBytesCost);
  lib.schemas.Add("BroadcastTo(input: T, shape: Tidx) -> output: T", "T: type; Tidx: {int32, int64} = int32")
      .Shape(BroadcastToShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("Tile", "cpu", MakeKernel<TileKernel>).HostMemory("multiples");
  lib.kernels.Add("BroadcastTo", "cpu", MakeKernel<BroadcastToKernel>).HostMemory("shape");
}

}  // namespace thalweg
