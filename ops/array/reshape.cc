// Reshape, Squeeze and ExpandDims: the same buffer under another shape.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

absl::Status PassReshaped(KernelContext& ctx, Shape shape) {
  const DType dtype = ctx.input_dtype(0);
  ctx.SetOutput(0, ctx.TakeInput(0).AliasedAs(dtype, std::move(shape)));
  return absl::OkStatus();
}

// ---- Reshape

// Where a requested shape leaves a dimension open, and the product of its other dimensions (zeros left out, so that the
// open one can be found even then).
struct Request {
  int open = -1;
  int64_t product = 1;
  bool has_zero = false;
};

absl::StatusOr<Request> ReadRequest(absl::Span<const int64_t> dims) {
  Request request;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (request.open >= 0) {
        return absl::InvalidArgumentError(absl::StrCat("shape [", absl::StrJoin(dims, ","), "] has -1 at ",
                                                       request.open, " and ", i,
                                                       "; only one dimension can be left open"));
      }
      request.open = static_cast<int>(i);
    } else if (dims[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(dims, ","), "] has the negative dimension ", dims[i]));
    } else if (dims[i] == 0) {
      request.has_zero = true;
    } else if (!CheckedMul(request.product, dims[i], &request.product)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(dims, ","), "] has more than 2^63-1 elements"));
    }
  }
  return request;
}

// What the open dimension has to hold. If the request has a zero elsewhere, the input's zeros are taken for that one
// and its other dimensions need not divide evenly, so that [0] reshaped to [0,-1] gives [0,1] (L21).
struct OpenDimElements {
  int64_t count = 1;
  bool must_divide = true;
};

OpenDimElements ElementsForOpenDim(const Shape& input, bool request_has_zero) {
  OpenDimElements elements;
  for (const int64_t d : input.dims()) {
    if (d > 0 || !request_has_zero) elements.count *= d;
    else elements.must_divide = false;
  }
  return elements;
}

absl::StatusOr<Shape> ReshapedShape(const Shape& input, Dims dims) {
  THALWEG_ASSIGN_OR_RETURN(const Request request, ReadRequest(dims));
  const std::string requested = absl::StrCat("[", absl::StrJoin(dims, ","), "]");
  if (request.open >= 0) {
    const OpenDimElements elements = ElementsForOpenDim(input, request.has_zero);
    dims[request.open] = elements.count / request.product;
    if (elements.must_divide && elements.count % request.product != 0) {
      return absl::InvalidArgumentError(absl::StrCat("cannot reshape ", input.ToString(), " with ",
                                                     input.num_elements(), " elements to ", requested,
                                                     ": the number must be a multiple of ", request.product));
    }
  }
  THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  if (shape.num_elements() == input.num_elements()) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot reshape ", input.ToString(), " with ", input.num_elements(), " elements to ", requested,
                   request.open >= 0 ? "" : absl::StrCat(" with ", shape.num_elements())));
}

class ReshapeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& shape_arg = ctx.input(1);
    if (shape_arg.rank() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape must be a vector, but its shape is ", shape_arg.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Dims dims, IntElementsArg(shape_arg, "shape"));
    THALWEG_ASSIGN_OR_RETURN(Shape shape, ReshapedShape(ctx.input(0).shape(), std::move(dims)));
    return PassReshaped(ctx, std::move(shape));
  }
};

// A partly known product: known * (symbols and unknowns).
struct SymbolicProduct {
  int64_t known = 1;
  Dims open;  // its dimensions that are not known, in order
};

std::optional<SymbolicProduct> ProductOf(const PartialShape& shape) {
  SymbolicProduct product;
  for (const int64_t d : shape.dims()) {
    if (!IsKnownDim(d)) product.open.push_back(d);
    else if (!CheckedMul(product.known, d, &product.known)) return std::nullopt;
  }
  return product;
}

// Removes from both lists symbols that stand in both: they cancel.
void CancelSymbols(Dims* a, Dims* b) {
  for (auto it = a->begin(); it != a->end();) {
    const auto twin = IsSymbol(*it) ? std::find(b->begin(), b->end(), *it) : b->end();
    if (twin == b->end()) {
      ++it;
      continue;
    }
    b->erase(twin);
    it = a->erase(it);
  }
}

// Fills in the one open dimension of `out`, where the element counts determine it.
absl::Status InferOpenDim(const PartialShape& in, PartialShape* out) {
  std::optional<SymbolicProduct> have = ProductOf(in);
  std::optional<SymbolicProduct> want = ProductOf(*out);
  if (!have || !want) return absl::OkStatus();
  CancelSymbols(&have->open, &want->open);
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", in.ToString(), " to ", out->ToString(), ": element counts differ"));
  };
  if (have->open.empty() && want->open.empty()) return have->known == want->known ? absl::OkStatus() : mismatch();
  if (want->open.empty() && have->open.size() == 1 && have->known != 0 && want->known % have->known != 0) {
    return mismatch();
  }
  if (have->open.empty() && have->known != 0 && want->known == 0) return mismatch();
  if (want->open.size() != 1 || want->known == 0) return absl::OkStatus();
  const auto position = std::find(out->dims().begin(), out->dims().end(), want->open[0]);
  const int open = static_cast<int>(position - out->dims().begin());
  if (have->known == 0) {
    out->set_dim(open, 0);
  } else if (have->open.empty()) {
    if (have->known % want->known != 0) return mismatch();
    out->set_dim(open, have->known / want->known);
  } else if (have->open.size() == 1 && have->known == want->known) {
    out->set_dim(open, have->open[0]);
  }
  return absl::OkStatus();
}

absl::Status ReshapeShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));  // the kernel takes a scalar too, if nobody knew that it is one (L21)
  if (const std::optional<std::vector<int64_t>> dims = c.input_ints(1)) {
    // With a zero among the dimensions the rule of the kernel needs the whole input shape. Two dimensions left open, and
    // more elements than can be, are the kernel's to refuse.
    const absl::StatusOr<Shape> input = c.input(0).ToShape();
    if (input.ok() && std::count(dims->begin(), dims->end(), -1) <= 1 && PartialShape::Make(*dims).ok()) {
      THALWEG_ASSIGN_OR_RETURN(Shape shape, ReshapedShape(*input, Dims(dims->begin(), dims->end())));
      c.set_output(0, PartialShape::Known(shape));
      return absl::OkStatus();
    }
  }
  THALWEG_ASSIGN_OR_RETURN(PartialShape out, c.input_as_shape(1));
  if (out.has_rank() && c.input(0).has_rank()) THALWEG_RETURN_IF_ERROR(InferOpenDim(c.input(0), &out));
  // A scalar made a vector of one, or the reverse, still says the same.
  if (c.input_value(0) && out.has_rank() && out.rank() <= 1) c.set_output_value(0, *c.input_value(0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- Squeeze

// Which dimensions go, by attribute squeeze_dims; repeated entries are fine (L21).
absl::StatusOr<std::vector<bool>> SqueezedDims(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> squeezed(rank, false);
  for (const int64_t axis : axes) {
    THALWEG_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank, "squeeze_dims"));
    squeezed[i] = true;
  }
  return squeezed;
}

absl::Status NotOne(int axis, int64_t dim, const std::string& shape) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot squeeze dimension ", axis, " of ", shape, ": it is ", dim, ", not 1"));
}

class SqueezeKernel : public Kernel {
 public:
  explicit SqueezeKernel(const KernelInit& init)
      : axes_(init.node().node_attrs().GetOr<std::vector<int64_t>>("squeeze_dims", {})) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& in = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(const std::vector<bool> squeezed, SqueezedDims(axes_, in.rank()));
    Dims dims;
    for (int i = 0; i < in.rank(); ++i) {
      const bool drop = axes_.empty() ? in.dim(i) == 1 : squeezed[i];
      if (!drop) dims.push_back(in.dim(i));
      else if (in.dim(i) != 1) return NotOne(i, in.dim(i), in.ToString());
    }
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    return PassReshaped(ctx, std::move(shape));
  }

 private:
  const std::vector<int64_t> axes_;
};

absl::Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  const std::vector<int64_t> axes = c.attrs().GetOr<std::vector<int64_t>>("squeeze_dims", {});
  THALWEG_ASSIGN_OR_RETURN(const std::vector<bool> squeezed, SqueezedDims(axes, in.rank()));
  Dims dims;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t dim = in.dim(i);
    if (axes.empty() && !IsKnownDim(dim)) return absl::OkStatus();  // it may or may not be 1: the rank is unknown
    const bool drop = axes.empty() ? dim == 1 : squeezed[i];
    if (!drop) dims.push_back(dim);
    else if (IsKnownDim(dim) && dim != 1) return NotOne(i, dim, in.ToString());
  }
  if (c.input_value(0)) c.set_output_value(0, *c.input_value(0));
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// ---- ExpandDims

class ExpandDimsKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape& in = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(const int64_t dim, IntScalarArg(ctx.input(1), "dim", ScalarRule::kOneElement));
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, in.rank() + 1, "dim"));
    Dims dims(in.dims().begin(), in.dims().end());
    dims.insert(dims.begin() + axis, 1);
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    return PassReshaped(ctx, std::move(shape));
  }
};

absl::Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const std::optional<std::vector<int64_t>> dim = c.input_ints(1);
  if (dim && dim->size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("dim must have exactly one element, but it has ", dim->size()));
  }
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() >= kMaxRank) return absl::InvalidArgumentError(absl::StrCat("rank ", in.rank(), " cannot be raised"));
  if (!dim) {
    c.set_output(0, PartialShape::UnknownOfRank(in.rank() + 1));
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis((*dim)[0], in.rank() + 1, "dim"));
  Dims dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.begin() + axis, 1);
  if (c.input_value(0) && in.rank() == 0) c.set_output_value(0, *c.input_value(0));
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterReshapeOps(OpLibrary& lib) {
  lib.schemas.Add("Reshape(tensor: T, shape: Tshape) -> output: T", "T: type; Tshape: {int32, int64} = int32")
      .Shape(ReshapeShape)
      .Cost(NoCost);
  lib.schemas.Add("Squeeze(input: T) -> output: T", "T: type; squeeze_dims: list(int) >= 0 = []")
      .Shape(SqueezeShape)
      .Cost(NoCost);
  lib.schemas.Add("ExpandDims(input: T, dim: Tdim) -> output: T", "T: type; Tdim: {int32, int64} = int32")
      .Shape(ExpandDimsShape)
      .Cost(NoCost);
  lib.kernels.Add("Reshape", "cpu", MakeKernel<ReshapeKernel>).HostMemory("shape");
  lib.kernels.Add("Squeeze", "cpu", MakeKernel<SqueezeKernel>);
  lib.kernels.Add("ExpandDims", "cpu", MakeKernel<ExpandDimsKernel>).HostMemory("dim");
}

}  // namespace thalweg
