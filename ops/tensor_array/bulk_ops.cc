// Many elements of a TensorArray at once: as rows of one tensor (gather, scatter), or one after the other along dimension 0
// (concat, split).
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/tensor_array/tensor_array.h"
#include "thalweg/ops/tensor_array/tensor_array_ops.h"

namespace thalweg {
namespace {

absl::Status RequireVector(const Tensor& t, const char* name) {
  if (t.rank() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must be a vector, not ", t.shape().ToString()));
}

absl::Status RequireRows(const Tensor& value, int64_t count) {
  if (value.rank() == 0) return absl::InvalidArgumentError("a scalar cannot be taken apart; the value needs a dimension");
  if (value.dim(0) == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", count, " indices for the ", value.dim(0), " rows of value ", value.shape().ToString()));
}

// TensorFlow's answer where an empty result has no shape that anybody stated.
absl::Status EmptyOfUnknownShape(const char* attr, const PartialShape& shape) {
  return absl::UnimplementedError(
      absl::StrCat("nothing is there to tell the shape of the elements: ", attr, " is ", shape.ToString(),
                   " and must be fully known where no element is taken"));
}

// ---- Gather

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelInit& init)
      : element_shape_(init.node().node_attrs().GetOr<PartialShape>("element_shape", PartialShape())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(RequireVector(indices, "indices"));
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.output_dtype(0)));
    THALWEG_RETURN_IF_ERROR(array->RefineElementShape(element_shape_));
    THALWEG_ASSIGN_OR_RETURN(const std::vector<Tensor> elements, ReadAll(ctx, *array, indices.flat<int32_t>()));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ResultShape(elements));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    CopyConsecutively(ctx, elements, out);
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<Tensor>> ReadAll(KernelContext& ctx, TensorArray& array,
                                                     absl::Span<const int32_t> indices) {
    std::vector<Tensor> elements;
    elements.reserve(indices.size());
    for (const int32_t index : indices) {
      THALWEG_ASSIGN_OR_RETURN(Tensor element, array.Read(ctx, index));
      if (!elements.empty() && elements[0].shape() != element.shape()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "elements of different shapes cannot be gathered: index ", indices[0], " has shape ",
            elements[0].shape().ToString(), ", index ", index, " has shape ", element.shape().ToString()));
      }
      elements.push_back(std::move(element));
    }
    return elements;
  }

  absl::StatusOr<Shape> ResultShape(const std::vector<Tensor>& elements) const {
    if (!elements.empty()) {
      const Shape& element = elements[0].shape();
      if (element_shape_.IsCompatibleWith(element)) return WithLeadingDim(static_cast<int64_t>(elements.size()), element);
      return absl::InvalidArgumentError(absl::StrCat("element_shape is ", element_shape_.ToString(),
                                                     ", but the elements have shape ", element.ToString()));
    }
    if (!element_shape_.IsFullyKnown()) return EmptyOfUnknownShape("element_shape", element_shape_);
    THALWEG_ASSIGN_OR_RETURN(const Shape element, element_shape_.ToShape());
    return WithLeadingDim(0, element);
  }

  const PartialShape element_shape_;
};

absl::Status GatherShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  const PartialShape element = c.attrs().GetOr<PartialShape>("element_shape", PartialShape());
  if (!element.has_rank()) return absl::OkStatus();
  Dims dims(1, c.input(1).has_rank() ? c.input(1).dim(0) : kUnknownDim);
  dims.insert(dims.end(), element.dims().begin(), element.dims().end());
  if (dims.size() <= kMaxRank) c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// ---- Scatter

class ScatterKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(1);
    const Tensor& value = ctx.input(2);
    THALWEG_RETURN_IF_ERROR(RequireVector(indices, "indices"));
    THALWEG_RETURN_IF_ERROR(RequireRows(value, indices.num_elements()));
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.input_dtype(2)));
    const Shape row = WithoutLeadingDim(value.shape());
    const absl::Span<const int32_t> to = indices.flat<int32_t>();
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      THALWEG_RETURN_IF_ERROR(array->Write(ctx, to[i], RowsAs(value, i, i + 1, row)));
    }
    ctx.SetOutput(0, ctx.TakeInput(3));
    return absl::OkStatus();
  }
};

absl::Status ScatterShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(2, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(3));
  if (c.input(1).has_rank() && c.input(2).has_rank()) {
    THALWEG_RETURN_IF_ERROR(ShapeContext::MergeDim(c.input(1).dim(0), c.input(2).dim(0)).status());
  }
  return ScalarShape(c);
}

// ---- Concat

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const KernelInit& init)
      : element_shape_(init.node().node_attrs().GetOr<PartialShape>("element_shape_except0", PartialShape())) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.output_dtype(0)));
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, array->Size());
    THALWEG_ASSIGN_OR_RETURN(const Shape lengths_shape, Shape::Make({size}));
    THALWEG_ASSIGN_OR_RETURN(Tensor * lengths, ctx.AllocateOutput(1, lengths_shape));
    std::vector<Tensor> elements;
    int64_t total = 0;
    for (int64_t i = 0; i < size; ++i) {
      THALWEG_ASSIGN_OR_RETURN(Tensor element, array->Read(ctx, i));
      THALWEG_RETURN_IF_ERROR(CheckElement(elements.empty() ? element : elements[0], element, i));
      if (!CheckedAdd(total, element.dim(0), &total)) {
        return absl::InvalidArgumentError("the concatenated dimension overflows");
      }
      lengths->mutable_flat<int64_t>()[i] = element.dim(0);
      elements.push_back(std::move(element));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ResultShape(elements, total));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    CopyConsecutively(ctx, elements, out);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckElement(const Tensor& first, const Tensor& element, int64_t index) const {
    if (element.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("scalars cannot be concatenated, and index ", index, " is one; gathering does that"));
    }
    const Shape rest = WithoutLeadingDim(element.shape());
    if (!element_shape_.IsCompatibleWith(rest)) {
      return absl::InvalidArgumentError(absl::StrCat("index ", index, " has shape ", element.shape().ToString(),
                                                     ", which does not end in element_shape_except0 ",
                                                     element_shape_.ToString()));
    }
    if (WithoutLeadingDim(first.shape()) == rest) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "elements to be concatenated must agree after dimension 0, but index 0 has shape ", first.shape().ToString(),
        " and index ", index, " has shape ", element.shape().ToString()));
  }

  absl::StatusOr<Shape> ResultShape(const std::vector<Tensor>& elements, int64_t total) const {
    if (!elements.empty()) return WithLeadingDim(total, WithoutLeadingDim(elements[0].shape()));
    if (!element_shape_.IsFullyKnown()) return EmptyOfUnknownShape("element_shape_except0", element_shape_);
    THALWEG_ASSIGN_OR_RETURN(const Shape rest, element_shape_.ToShape());
    return WithLeadingDim(0, rest);
  }

  const PartialShape element_shape_;
};

absl::Status ConcatShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  const PartialShape rest = c.attrs().GetOr<PartialShape>("element_shape_except0", PartialShape());
  if (!rest.has_rank() || rest.rank() >= kMaxRank) return absl::OkStatus();
  Dims dims(1, kUnknownDim);
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// ---- Split

// InvalidArgument unless the lengths are sizes of parts that make up `total` rows.
absl::Status CheckLengths(absl::Span<const int64_t> lengths, int64_t total) {
  int64_t sum = 0;
  for (const int64_t length : lengths) {
    if (length < 0) return absl::InvalidArgumentError(absl::StrCat("a length is negative: ", length));
    if (!CheckedAdd(sum, length, &sum)) return absl::InvalidArgumentError("the sum of the lengths overflows");
  }
  if (sum == total) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the lengths add up to ", sum, ", but the value has ", total, " rows"));
}

class SplitKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(RequireVector(ctx.input(2), "lengths"));
    if (value.rank() == 0) return absl::InvalidArgumentError("a scalar cannot be split");
    const absl::Span<const int64_t> lengths = ctx.input(2).flat<int64_t>();
    THALWEG_RETURN_IF_ERROR(CheckLengths(lengths, value.dim(0)));
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.input_dtype(1)));
    THALWEG_RETURN_IF_ERROR(array->ResizeTo(static_cast<int64_t>(lengths.size())));
    const Shape rest = WithoutLeadingDim(value.shape());
    int64_t begin = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(Shape shape, WithLeadingDim(lengths[i], rest));
      THALWEG_RETURN_IF_ERROR(array->Write(ctx, static_cast<int64_t>(i),
                                           RowsAs(value, begin, begin + lengths[i], std::move(shape))));
      begin += lengths[i];
    }
    ctx.SetOutput(0, ctx.TakeInput(3));
    return absl::OkStatus();
  }
};

absl::Status SplitShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(3));
  return ScalarShape(c);
}

}  // namespace

void RegisterBulkOps(OpLibrary& lib) {
  lib.schemas
      .Add("TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> value: dtype",
           "dtype: type; element_shape: shape = unknown")
      .Shape(GatherShape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.schemas
      .Add("TensorArrayScatterV3(handle: resource, indices: int32, value: T, flow_in: float) -> flow_out: float", "T: type")
      .Shape(ScatterShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas
      .Add("TensorArrayConcatV3(handle: resource, flow_in: float) -> (value: dtype, lengths: int64)",
           "dtype: type; element_shape_except0: shape = unknown")
      .Shape(ConcatShape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.schemas
      .Add("TensorArraySplitV3(handle: resource, value: T, lengths: int64, flow_in: float) -> flow_out: float", "T: type")
      .Shape(SplitShape)
      .Cost(NoCost)
      .Stateful();
  const std::vector<DType> concat_types =
      PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQInt32});
  lib.kernels.Add("TensorArrayGatherV3", "cpu", MakeKernel<GatherKernel>)
      .Type("dtype", PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQInt32, DType::kVariant}));
  lib.kernels.Add("TensorArrayScatterV3", "cpu", MakeKernel<ScatterKernel>).Type("T", MovableTypes());
  lib.kernels.Add("TensorArrayConcatV3", "cpu", MakeKernel<ConcatKernel>).Type("dtype", concat_types);
  lib.kernels.Add("TensorArraySplitV3", "cpu", MakeKernel<SplitKernel>).Type("T", MovableTypes());
}

}  // namespace thalweg
