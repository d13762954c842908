// Split, SplitV and Unpack: one tensor in several parts along an axis.
//
// Parts that are contiguous in the input share its buffer.
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// Copies the part of `in` that begins at `begin` along `axis` to output i.
absl::Status CopyPart(KernelContext& ctx, const Tensor& in, int axis, int64_t begin, const Shape& shape, int i) {
  const Shape& whole = in.shape();
  const int64_t outer = whole.NumElements(0, axis);
  const int64_t inner = whole.NumElements(axis + 1, whole.rank());
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, shape));
  const int64_t part = shape.NumElements(axis, shape.rank());
  StridedCopy(ctx, in.dtype(), {{outer, whole.dim(axis) * inner, part}, {part, 1, 1}}, ElementAt(in, begin * inner),
              out->mutable_raw());
  return absl::OkStatus();
}

// Emits consecutive parts of the given sizes, or without the axis, where all sizes are 1.
absl::Status EmitParts(KernelContext& ctx, const Tensor& in, int axis, const Dims& sizes, bool keep_axis = true) {
  const Shape& whole = in.shape();
  const bool contiguous = whole.NumElements(0, axis) == 1 && in.num_elements() > 0;
  Tensor rows = in;  // with `axis` as first dimension
  if (contiguous && axis > 0) {
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(whole.dims().subspan(axis)));
    rows = in.AliasedAs(in.dtype(), std::move(shape));
  }
  Dims dims(whole.dims().begin(), whole.dims().end());
  if (!keep_axis) dims.erase(dims.begin() + axis);
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i], ++i) {
    if (!ctx.output_required(static_cast<int>(i))) continue;
    if (contiguous && axis == 0 && keep_axis) {
      ctx.SetOutput(static_cast<int>(i), rows.Rows(begin, begin + sizes[i]));
      continue;
    }
    if (keep_axis) dims[axis] = sizes[i];
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    if (contiguous) {
      ctx.SetOutput(static_cast<int>(i), rows.Rows(begin, begin + sizes[i]).AliasedAs(in.dtype(), std::move(shape)));
    } else {
      THALWEG_RETURN_IF_ERROR(CopyPart(ctx, in, axis, begin, shape, static_cast<int>(i)));
    }
  }
  return absl::OkStatus();
}

// Every output like input `value`, with these sizes along the axis.
absl::Status SetPartShapes(ShapeContext& c, int value, int axis, const std::vector<int64_t>& sizes) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape part = c.input(value);
    part.set_dim(axis, sizes[i]);
    c.set_output(i, std::move(part));
  }
  return absl::OkStatus();
}

// Without the axis only the rank is known.
absl::Status SetPartRanks(ShapeContext& c, int value) {
  if (!c.input(value).has_rank()) return absl::OkStatus();
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::UnknownOfRank(c.input(value).rank()));
  return absl::OkStatus();
}

// ---- Split

absl::Status DoesNotDivide(int64_t dim, int axis, int num_split) {
  return absl::InvalidArgumentError(
      absl::StrCat("dimension ", axis, " is ", dim, ", which cannot be split into ", num_split, " equal parts"));
}

class SplitKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t wanted, IntScalarArg(ctx.input(0), "split_dim"));
    const Tensor& in = ctx.input(1);
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, in.rank(), "split_dim"));
    const int parts = ctx.num_outputs();
    if (parts == 0 || in.dim(axis) % parts != 0) return DoesNotDivide(in.dim(axis), axis, parts);
    return EmitParts(ctx, in, axis, Dims(parts, in.dim(axis) / parts));
  }
};

absl::Status SplitShape(ShapeContext& c) {
  if (c.num_outputs() == 0) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const std::optional<int64_t> wanted, ConstantScalar(c, 0));
  if (!wanted || !c.input(1).has_rank()) return SetPartRanks(c, 1);
  THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*wanted, c.input(1).rank(), "split_dim"));
  const int64_t dim = c.input(1).dim(axis);
  if (IsKnownDim(dim) && dim % c.num_outputs() != 0) return DoesNotDivide(dim, axis, c.num_outputs());
  THALWEG_ASSIGN_OR_RETURN(const int64_t size, ShapeContext::DivDims(dim, c.num_outputs()));
  return SetPartShapes(c, 1, axis, std::vector<int64_t>(c.num_outputs(), size));
}

// ---- SplitV

// Checks sizes against the dimension and replaces the one -1, if there is one, by what is left.
absl::Status CompleteSizes(int64_t dim, Dims* sizes) {
  int64_t sum = 0;
  int open = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const int64_t size = (*sizes)[i];
    if (size == -1 && open < 0) {
      open = static_cast<int>(i);
    } else if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("size_splits [", absl::StrJoin(*sizes, ","), "] must be >= 0, with at most one -1"));
    } else if (!CheckedAdd(sum, size, &sum)) {
      return absl::InvalidArgumentError("the sum of size_splits overflows");
    }
  }
  if (open >= 0 ? sum > dim : sum != dim) {
    return absl::InvalidArgumentError(absl::StrCat("size_splits [", absl::StrJoin(*sizes, ","), "] do not add up to ",
                                                   dim, ", the dimension that is split"));
  }
  if (open >= 0) (*sizes)[open] = dim - sum;
  return absl::OkStatus();
}

constexpr int64_t kMaxParts = 65536;

class SplitVKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int64_t wanted, IntScalarArg(ctx.input(2), "split_dim", ScalarRule::kOneElement));
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, in.rank(), "split_dim"));
    THALWEG_ASSIGN_OR_RETURN(Dims sizes, IntVectorArg(ctx.input(1), "size_splits", kMaxParts));
    if (static_cast<int>(sizes.size()) != ctx.num_outputs()) {
      return absl::InvalidArgumentError(
          absl::StrCat("size_splits has ", sizes.size(), " elements for ", ctx.num_outputs(), " parts"));
    }
    if (sizes.size() == 1 && sizes[0] == -1) {  // as TensorFlow has it: a single part must say its size
      return absl::InvalidArgumentError(
          absl::StrCat("size_splits is [-1]; the only part must have size ", in.dim(axis)));
    }
    THALWEG_RETURN_IF_ERROR(CompleteSizes(in.dim(axis), &sizes));
    return EmitParts(ctx, in, axis, sizes);
  }
};

absl::Status SplitVShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const std::optional<int64_t> wanted, ConstantScalar(c, 2));
  if (c.input(0).has_rank() && c.input(0).rank() == 0) return absl::InvalidArgumentError("a scalar cannot be split");
  if (!wanted || !c.input(0).has_rank()) return SetPartRanks(c, 0);
  THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(*wanted, c.input(0).rank(), "split_dim"));
  const int64_t dim = c.input(0).dim(axis);
  if (const std::optional<std::vector<int64_t>> ints = c.input_ints(1)) {
    if (static_cast<int>(ints->size()) != c.num_outputs()) {
      return absl::InvalidArgumentError(
          absl::StrCat("size_splits has ", ints->size(), " elements for ", c.num_outputs(), " parts"));
    }
    Dims sizes(ints->begin(), ints->end());
    if (IsKnownDim(dim)) THALWEG_RETURN_IF_ERROR(CompleteSizes(dim, &sizes));
    for (int64_t& size : sizes) size = std::max(size, kUnknownDim);
    return SetPartShapes(c, 0, axis, std::vector<int64_t>(sizes.begin(), sizes.end()));
  }
  return SetPartShapes(c, 0, axis, std::vector<int64_t>(c.num_outputs(), kUnknownDim));
}

// ---- Unpack

absl::Status WrongNum(int64_t dim, int axis, int num) {
  return absl::InvalidArgumentError(
      absl::StrCat("dimension ", axis, " is ", dim, ", but num asks for ", num, " parts"));
}

class UnpackKernel : public Kernel {
 public:
  explicit UnpackKernel(const KernelInit& init) : axis_(init.node().node_attrs().GetOr<int64_t>("axis", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, in.rank()));
    if (in.dim(axis) != ctx.num_outputs()) return WrongNum(in.dim(axis), axis, ctx.num_outputs());
    return EmitParts(ctx, in, axis, Dims(ctx.num_outputs(), 1), /*keep_axis=*/false);
  }

 private:
  const int64_t axis_;
};

absl::Status UnpackShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.attrs().GetOr<int64_t>("axis", 0), in.rank()));
  if (IsKnownDim(in.dim(axis)) && in.dim(axis) != c.num_outputs()) return WrongNum(in.dim(axis), axis, c.num_outputs());
  Dims dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + axis);
  const std::optional<Dims> values = in.rank() == 1 ? KnownDims(c, 0) : std::nullopt;
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, PartialShape::OfDims(dims));
    if (values && i < static_cast<int>(values->size())) c.set_output_value(i, {(*values)[i]});
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterSplitOps(OpLibrary& lib) {
  lib.schemas.Add("Split(split_dim: int32, value: T) -> output: num_split*T", "num_split: int >= 1; T: type")
      .Shape(SplitShape)
      .Cost(CopyCost);
  lib.schemas
      .Add("SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split*T",
           "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64")
      .Shape(SplitVShape)
      .Cost(CopyCost);
  lib.schemas.Add("Unpack(value: T) -> output: num*T", "num: int >= 0; T: type; axis: int = 0")
      .Shape(UnpackShape)
      .Cost(CopyCost);
  lib.kernels.Add("Split", "cpu", MakeKernel<SplitKernel>).HostMemory("split_dim");
  lib.kernels.Add("SplitV", "cpu", MakeKernel<SplitVKernel>).HostMemory("size_splits").HostMemory("split_dim");
  lib.kernels.Add("Unpack", "cpu", MakeKernel<UnpackKernel>);
}

}  // namespace thalweg
