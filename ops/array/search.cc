// LowerBound and UpperBound: where values belong in sorted rows. UnravelIndex: flat indices as coordinates. Bucketize: which of
// some intervals values lie in.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

// ---- LowerBound, UpperBound

// Compares in the computing type; all comparisons with NaN are false.
template <typename T>
struct Less {
  bool operator()(T a, T b) const { return static_cast<ComputingT<T>>(a) < static_cast<ComputingT<T>>(b); }
};

template <typename T, bool kUpper>
class BoundKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& sorted = ctx.input(0);
    const Tensor& values = ctx.input(1);
    if (sorted.rank() != 2 || values.rank() != 2 || sorted.dim(0) != values.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat("sorted_inputs and values must be matrices with equally many rows, but their "
                                                     "shapes are ",
                                                     sorted.shape().ToString(), " and ", values.shape().ToString()));
    }
    if (ctx.output_dtype(0) == DType::kInt32 && sorted.dim(1) > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("rows of ", sorted.dim(1), " elements are too long for int32; ask for out_type int64"));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, values.shape()));
    if (out->dtype() == DType::kInt32) Search(ctx, sorted, values, out->mutable_flat<int32_t>().data());
    else Search(ctx, sorted, values, out->mutable_flat<int64_t>().data());
    return absl::OkStatus();
  }

 private:
  template <typename Out>
  static void Search(KernelContext& ctx, const Tensor& sorted, const Tensor& values, Out* out) {
    const int64_t length = sorted.dim(1), per_row = values.dim(1);
    const T* rows = sorted.flat<T>().data();
    const T* wanted = values.flat<T>().data();
    ctx.ParallelFor(values.num_elements(), 40.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = rows + i / per_row * length;
        const T* at = kUpper ? std::upper_bound(row, row + length, wanted[i], Less<T>())
                             : std::lower_bound(row, row + length, wanted[i], Less<T>());
        out[i] = static_cast<Out>(at - row);
      }
    });
  }
};

absl::Status BoundShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 2));
  if (c.input(0).has_rank() && c.input(1).has_rank()) {
    THALWEG_RETURN_IF_ERROR(ShapeContext::MergeDim(c.input(0).dim(0), c.input(1).dim(0)).status());
  }
  c.set_output(0, c.input(1).has_rank() ? c.input(1) : PartialShape::UnknownOfRank(2));
  return absl::OkStatus();
}

template <bool kUpper, typename... Ts>
void AddBounds(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", MakeKernel<BoundKernel<Ts, kUpper>>).template Type<Ts>("T"), ...);
}

template <bool kUpper>
void RegisterBound(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(sorted_inputs: T, values: T) -> output: out_type"), "T: type; out_type: {int32, int64} = int32")
      .Shape(BoundShape)
      .Cost(ElementwiseCost<40>);
  AddBounds<kUpper>(lib, op, FloatTypes());
  AddBounds<kUpper>(lib, op, SignedTypes());
  AddBounds<kUpper>(lib, op, UnsignedTypes());
}

// ---- UnravelIndex

template <typename T>
class UnravelIndexKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    if (indices.rank() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("indices must be a scalar or a vector, but its shape is ", indices.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape dims, ShapeArg(ctx.input(1), "dims"));
    const int64_t count = indices.num_elements();
    if (count == 0) return absl::InvalidArgumentError("there must be at least one index");
    Dims out_dims = {dims.rank()};
    if (indices.rank() == 1) out_dims.push_back(count);
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(out_dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    T* coordinates = out->mutable_flat<T>().data();
    for (int64_t i = 0; i < count; ++i) {
      int64_t index = indices.flat<T>()[i];
      if (index < 0 || index >= dims.num_elements()) {
        return absl::InvalidArgumentError(absl::StrCat("indices[", i, "] is ", index, ", which is no element of a tensor of shape ", dims.ToString()));
      }
      for (int d = dims.rank() - 1; d >= 0; --d) {
        coordinates[d * count + i] = static_cast<T>(index % dims.dim(d));
        index /= dims.dim(d);
      }
    }
    return absl::OkStatus();
  }
};

absl::Status UnravelIndexShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  Dims dims = {c.input(1).has_rank() ? c.input(1).dim(0) : kUnknownDim};
  if (c.input(0).rank() == 1) dims.push_back(c.input(0).dim(0));
  return SetOutputDims(c, std::move(dims));
}

// ---- Bucketize

template <typename T>
class BucketizeKernel : public Kernel {
 public:
  explicit BucketizeKernel(std::vector<float> boundaries) : boundaries_(std::move(boundaries)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(std::vector<float> boundaries, init.Attr<std::vector<float>>("boundaries"));
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) return absl::InvalidArgumentError("boundaries must be sorted");
    return std::unique_ptr<Kernel>(std::make_unique<BucketizeKernel>(std::move(boundaries)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const T* values = in.flat<T>().data();
    int32_t* buckets = out->mutable_flat<int32_t>().data();
    ctx.ParallelFor(in.num_elements(), 20.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        buckets[i] = static_cast<int32_t>(std::upper_bound(boundaries_.begin(), boundaries_.end(), values[i]) - boundaries_.begin());
      }
    });
    return absl::OkStatus();
  }

 private:
  const std::vector<float> boundaries_;
};

template <typename... Ts>
void AddBucketize(OpLibrary& lib) {
  (lib.kernels.Add("Bucketize", "cpu", MakeFallibleKernel<BucketizeKernel<Ts>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterSearchOps(OpLibrary& lib) {
  RegisterBound<false>(lib, "LowerBound");
  RegisterBound<true>(lib, "UpperBound");
  lib.schemas.Add("UnravelIndex(indices: Tidx, dims: Tidx) -> output: Tidx", "Tidx: {int32, int64} = int32")
      .Shape(UnravelIndexShape)
      .Cost(ElementwiseCost<20>);
  lib.kernels.Add("UnravelIndex", "cpu", MakeKernel<UnravelIndexKernel<int32_t>>).Type<int32_t>("Tidx").HostMemory("dims");
  lib.kernels.Add("UnravelIndex", "cpu", MakeKernel<UnravelIndexKernel<int64_t>>).Type<int64_t>("Tidx").HostMemory("dims");
  lib.schemas.Add("Bucketize(input: T) -> output: int32", "T: {int32, int64, float, double}; boundaries: list(float)")
      .Shape(UnchangedShape)
      .Cost(ElementwiseCost<10>);
  AddBucketize<int32_t, int64_t, float, double>(lib);
}

}  // namespace thalweg
