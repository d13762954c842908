// Sum, Mean, Prod, EuclideanNorm; BiasAddGrad and L2Loss, which are sums with axes of their own.
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/reduce_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Integers add up modulo a power of two, so any unsigned type at least as wide will do; floats are carried as double.
template <typename T> struct SumOf { using type = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>; };
template <> struct SumOf<float> { using type = double; };
template <> struct SumOf<double> { using type = double; };
template <typename T> struct SumOf<std::complex<T>> { using type = std::complex<double>; };

// What a mean divides must not have wrapped around (L17), except at 64 bits.
template <typename T> struct MeanOf { using type = uint64_t; };
template <> struct MeanOf<float> { using type = double; };
template <> struct MeanOf<double> { using type = double; };
template <typename T> struct MeanOf<std::complex<T>> { using type = std::complex<double>; };

struct Addition {
  template <typename A> THALWEG_INLINE static A Identity() { return A(0); }
  template <typename A> THALWEG_INLINE static A Fold(A sum, A x) { return sum + x; }
};

struct OrderedSum : Addition {
  template <typename T> using Accumulator = T;
  template <typename T> static T Finish(T sum, int64_t) { return sum; }
};
struct OrderedMean : OrderedSum {
  template <typename T> static T Finish(T sum, int64_t n) { return sum / static_cast<T>(n); }
};
struct OrderedNorm : OrderedSum {
  template <typename A> THALWEG_INLINE static A Map(A x) { return x * x; }
  template <typename T> static T Finish(T sum, int64_t) { return std::sqrt(sum); }
};
struct OrderedL2Loss : OrderedSum {
  template <typename A> THALWEG_INLINE static A Map(A x) { return x * x * 0.5f; }
};

struct SumOp : Addition {
  using InOrder = OrderedSum;
  template <typename T> using Accumulator = typename SumOf<T>::type;
  template <typename T, typename A> static T Finish(A sum, int64_t) { return static_cast<T>(sum); }
};

struct MeanOp : Addition {
  using InOrder = OrderedMean;
  template <typename T> using Accumulator = typename MeanOf<T>::type;
  template <typename T, typename A> static T Finish(A sum, int64_t n) {
    // As TensorFlow has it, the mean of nothing is NaN for real numbers and 0 for all others.
    if (!std::is_floating_point_v<T> && n == 0) return T(0);
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>(static_cast<Wide>(sum) / static_cast<Wide>(n));
    } else {
      return static_cast<T>(sum / static_cast<double>(n));
    }
  }
};

// Products overflow where the type does: floats are carried as they are.
template <typename T> struct ProductOf { using type = std::conditional_t<std::is_integral_v<T>, typename SumOf<T>::type, T>; };

struct OrderedProduct {
  static constexpr bool kInOnePiece = true;
  template <typename T> using Accumulator = T;
  template <typename A> THALWEG_INLINE static A Identity() { return A(1); }
  template <typename A> THALWEG_INLINE static A Fold(A product, A x) { return product * x; }
  template <typename T> static T Finish(T product, int64_t) { return product; }
};

struct ProdOp {
  using InOrder = OrderedProduct;
  template <typename T> using Accumulator = typename ProductOf<T>::type;
  template <typename A> THALWEG_INLINE static A Identity() { return A(1); }
  template <typename A> THALWEG_INLINE static A Fold(A product, A x) { return product * x; }
  template <typename T, typename A> static T Finish(A product, int64_t) { return static_cast<T>(product); }
};

// The root of the sum of squares. Integers keep what fits, as sums do, and round towards zero.
struct EuclideanNormOp : Addition {
  using InOrder = OrderedNorm;
  template <typename T> using Accumulator = typename SumOf<T>::type;
  template <typename A> THALWEG_INLINE static A Map(A x) {
    if constexpr (std::is_same_v<A, std::complex<double>>) return x * std::conj(x);
    else return x * x;
  }
  template <typename T, typename A> static T Finish(A sum, int64_t) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(std::sqrt(static_cast<double>(static_cast<T>(sum))));
    else return static_cast<T>(std::sqrt(sum));
  }
};

// Half the sum of squares.
struct L2LossOp : EuclideanNormOp {
  using InOrder = OrderedL2Loss;
  template <typename T, typename A> static T Finish(A sum, int64_t) { return static_cast<T>(sum / 2); }
};

Axes AllAxes(int rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

class L2LossKernel final : public Kernel {
 public:
  L2LossKernel(const ReduceDef& def, const KernelNode& node) : reduce_(def, node) {}
  absl::Status Compute(KernelContext& ctx) override { return reduce_.ReduceOver(ctx, AllAxes(ctx.input(0).rank()), false); }

 private:
  ReduceKernel reduce_;
};

// Where the channels stand in a tensor of this rank.
int ChannelDim(const NodeAttrs& attrs, int rank) {
  return attrs.GetOr<std::string>("data_format", "NHWC") == "NCHW" ? 1 : rank - 1;
}

// The sum over everything but the channels.
class BiasAddGradKernel final : public Kernel {
 public:
  BiasAddGradKernel(const ReduceDef& def, const KernelNode& node) : reduce_(def, node) {}
  absl::Status Compute(KernelContext& ctx) override {
    const int rank = ctx.input(0).rank();
    if (rank < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("out_backprop must have at least rank 2, but its shape is ", ctx.input(0).shape().ToString()));
    }
    Axes axes = AllAxes(rank);
    axes.erase(axes.begin() + ChannelDim(ctx.node().node_attrs(), rank));
    return reduce_.ReduceOver(ctx, axes, false);
  }

 private:
  ReduceKernel reduce_;
};

template <typename K, const ReduceDef& def>
absl::StatusOr<std::unique_ptr<Kernel>> MakeReducing(const KernelInit& init) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(def, init.node()));
}

template <typename K, typename Op, typename... Ts>
void AddReducing(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeReducing<K, reduce_internal::kDef<Op, ComputingT<Ts>>>).template Type<Ts>("T"), ...);
}

absl::Status BiasAddGradShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  const PartialShape& in = c.input(0);
  c.set_output(0, PartialShape::OfDims({in.has_rank() ? in.dim(ChannelDim(c.attrs(), in.rank())) : kUnknownDim}));
  return absl::OkStatus();
}

template <typename Op>
void RegisterNumeric(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(input: T, reduction_indices: Tidx) -> output: T",
                  "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32")
      .Shape(ReductionShape).Cost(ReductionCost);
  RegisterReduction<Op>(lib, op, FloatTypes());
  RegisterReduction<Op>(lib, op, SignedTypes());
  RegisterReduction<Op>(lib, op, UnsignedTypes());
  RegisterReduction<Op>(lib, op, ComplexTypes());
}

}  // namespace

void RegisterSumOps(OpLibrary& lib) {
  RegisterNumeric<SumOp>(lib, "Sum");
  RegisterNumeric<MeanOp>(lib, "Mean");
  RegisterNumeric<ProdOp>(lib, "Prod");
  RegisterNumeric<EuclideanNormOp>(lib, "EuclideanNorm");

  lib.schemas.Add("L2Loss(t: T) -> output: T", "T: {half, bfloat16, float, double}").Shape(ScalarShape).Cost(ReductionCost);
  AddReducing<L2LossKernel, L2LossOp>(lib, "L2Loss", FloatTypes());

  lib.schemas.Add("BiasAddGrad(out_backprop: T) -> output: T", "T: numbertype; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"")
      .Shape(BiasAddGradShape).Cost(ReductionCost);
  AddReducing<BiasAddGradKernel, SumOp>(lib, "BiasAddGrad", FloatTypes());
  AddReducing<BiasAddGradKernel, SumOp>(lib, "BiasAddGrad", SignedTypes());
  AddReducing<BiasAddGradKernel, SumOp>(lib, "BiasAddGrad", UnsignedTypes());
  AddReducing<BiasAddGradKernel, SumOp>(lib, "BiasAddGrad", ComplexTypes());
}

}  // namespace thalweg::math
