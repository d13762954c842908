// Transpose and ConjugateTranspose.
#include <complex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// Output dimension i is input dimension result[i]. Negative entries count from the end (L21).
absl::StatusOr<std::vector<int>> Permutation(absl::Span<const int64_t> perm, int rank) {
  if (static_cast<int>(perm.size()) != rank) {
    return absl::InvalidArgumentError(absl::StrCat("perm has ", perm.size(), " elements for an input of rank ", rank));
  }
  std::vector<int> order;
  std::vector<bool> used(rank, false);
  for (const int64_t p : perm) {
    THALWEG_ASSIGN_OR_RETURN(const int i, NormalizeAxis(p, rank, "perm"));
    if (used[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("perm [", absl::StrJoin(perm, ","), "] names dimension ", i, " twice"));
    }
    used[i] = true;
    order.push_back(i);
  }
  return order;
}

// True if the elements stay where they are: only dimensions of size 1 move.
bool KeepsOrder(const std::vector<int>& order, const Shape& in) {
  int last = -1;
  for (const int i : order) {
    if (in.dim(i) == 1) continue;
    if (i < last) return false;
    last = i;
  }
  return true;
}

template <typename T>
void ConjugateAll(KernelContext& ctx, Tensor* t) {
  T* values = t->mutable_flat<T>().data();
  ctx.ParallelFor(t->num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] = std::conj(values[i]);
  });
}

void ConjugateInPlace(KernelContext& ctx, Tensor* t) {
  if (t->dtype() == DType::kComplex64) ConjugateAll<std::complex<float>>(ctx, t);
  if (t->dtype() == DType::kComplex128) ConjugateAll<std::complex<double>>(ctx, t);
}

template <bool kConjugate>
class TransposeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Dims perm, IntVectorArg(ctx.input(1), "perm"));
    THALWEG_ASSIGN_OR_RETURN(const std::vector<int> order, Permutation(perm, in.rank()));
    Dims out_dims;
    for (const int i : order) out_dims.push_back(in.dim(i));
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(out_dims));
    const bool conjugate = kConjugate && IsComplex(in.dtype());
    if (KeepsOrder(order, in.shape()) && !conjugate) {
      const DType dtype = in.dtype();
      ctx.SetOutput(0, ctx.TakeInput(0).AliasedAs(dtype, std::move(shape)));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Dims in_strides = RowMajorStrides(in.shape());
    const Dims out_strides = RowMajorStrides(shape);
    CopyDims dims;
    for (int i = 0; i < shape.rank(); ++i) dims.push_back({shape.dim(i), in_strides[order[i]], out_strides[i]});
    StridedCopy(ctx, in.dtype(), std::move(dims), in.raw(), out->mutable_raw());
    if (conjugate) ConjugateInPlace(ctx, out);
    return absl::OkStatus();
  }
};

// The elements of perm, if all of them are known.
std::optional<std::vector<int64_t>> KnownPerm(const ShapeContext& c) {
  const std::optional<std::vector<ElementKnowledge>> elements = KnownElements(c, 1);
  if (!elements) return std::nullopt;
  std::vector<int64_t> perm;
  for (const ElementKnowledge& e : *elements) {
    if (!e.value) return std::nullopt;
    perm.push_back(*e.value);
  }
  return perm;
}

absl::Status TransposeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  // With neither rank nor length known TensorFlow does not look at perm until it runs.
  const int64_t elements = c.input(1).has_rank() ? c.input(1).NumElementsOrUnknown() : -1;
  if (in.has_rank() || elements > 1) THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const std::optional<std::vector<int64_t>> perm = KnownPerm(c);
  const int64_t rank = in.has_rank() ? in.rank() : perm ? static_cast<int64_t>(perm->size()) : elements > 1 ? elements : kUnknownDim;
  if (in.has_rank() && c.input(1).has_rank() && IsKnownDim(c.input(1).dim(0)) && c.input(1).dim(0) != in.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("perm has ", c.input(1).dim(0), " elements for an input of rank ", in.rank()));
  }
  if (!IsKnownDim(rank) || rank > kMaxRank) return absl::OkStatus();
  Dims dims(static_cast<size_t>(rank), kUnknownDim);
  if (!perm && rank <= 1 && in.has_rank()) dims.assign(in.dims().begin(), in.dims().end());
  const bool look = perm && (in.has_rank() || perm->size() > 1);
  for (size_t i = 0; look && i < perm->size(); ++i) {
    // Only what is too far out is refused at load; what repeats, or counts from the end, when it runs.
    const int64_t from = (*perm)[i];
    if (from >= rank || from < -rank) {
      return absl::InvalidArgumentError(absl::StrCat("perm[", i, "] is ", from, ", which is no dimension of an input of rank ", rank));
    }
    if (in.has_rank()) dims[i] = in.dim(static_cast<int>(from < 0 ? from + rank : from));
  }
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterTransposeOps(OpLibrary& lib) {
  for (const char* op : {"Transpose", "ConjugateTranspose"}) {
    lib.schemas.Add(absl::StrCat(op, "(x: T, perm: Tperm) -> y: T"), "T: type; Tperm: {int32, int64} = int32")
        .Shape(TransposeShape)
        .Cost(MovedBytesCost);
  }
  lib.kernels.Add("Transpose", "cpu", MakeKernel<TransposeKernel<false>>).HostMemory("perm");
  lib.kernels.Add("ConjugateTranspose", "cpu", MakeKernel<TransposeKernel<true>>).HostMemory("perm");
}

}  // namespace thalweg
