// Cast: every pair of types that convert, and any type to itself.
#include <bit>
#include <complex>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/math/cast_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The type in which values of `storage` are converted.
DType ComputingType(DType storage) {
  switch (storage) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FN: return DType::kFloat32;
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kQInt32: return DType::kInt32;
    case DType::kQInt8: return DType::kInt8;
    case DType::kQUInt8: return DType::kUInt8;
    case DType::kQInt16: return DType::kInt16;
    case DType::kQUInt16: return DType::kUInt16;
    default: return storage;
  }
}

// Bits of mantissa that a floating type, or the parts of a complex one, keeps; 0 for other types.
int MantissaBits(DType type) {
  switch (type) {
    case DType::kComplex128:
    case DType::kFloat64: return 52;
    case DType::kComplex64:
    case DType::kFloat32: return 23;
    case DType::kFloat16: return 10;
    case DType::kBFloat16: return 7;
    case DType::kFloat8E4M3FN: return 3;
    case DType::kFloat8E5M2: return 2;
    default: return 0;
  }
}

bool IsFloat8(DType type) { return type == DType::kFloat8E5M2 || type == DType::kFloat8E4M3FN; }

// Cuts a float or double, or the real part of a complex number, to kBits bits of mantissa, towards zero. The result is
// exact in float.
template <typename From, int kBits>
void TruncateLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  using Real = decltype(std::real(From()));
  using Bits = std::conditional_t<sizeof(Real) == 8, uint64_t, uint32_t>;
  constexpr int kMantissa = sizeof(Real) == 8 ? 52 : 23;
  constexpr Bits kMask = ~((Bits{1} << (kMantissa - kBits)) - 1);
  const From* from = static_cast<const From*>(in[0]);
  float* to = static_cast<float*>(out);
  for (int64_t k = 0; k < n; ++k) {
    const Real x = std::real(from[k]);
    to[k] = static_cast<float>(x == x ? std::bit_cast<Real>(static_cast<Bits>(std::bit_cast<Bits>(x) & kMask)) : x);
  }
}

// double to float, to the neighbour with an odd mantissa if inexact: a second rounding to fewer bits then gives what one
// rounding would have given.
void RoundToOddLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  const double* from = static_cast<const double*>(in[0]);
  float* to = static_cast<float*>(out);
  for (int64_t k = 0; k < n; ++k) {
    const double x = from[k];
    const float nearest = static_cast<float>(x);
    const uint32_t bits = std::bit_cast<uint32_t>(nearest);
    const bool inexact = static_cast<double>(nearest) != x && x == x;
    const bool away = inexact && (std::bit_cast<uint64_t>(static_cast<double>(nearest)) & ~(uint64_t{1} << 63)) >
                                     (std::bit_cast<uint64_t>(x) & ~(uint64_t{1} << 63));
    to[k] = std::bit_cast<float>(inexact ? (away ? bits - 1 : bits) | 1 : bits);
  }
}

template <typename From>
constexpr ElementwiseDef FloatResult(InnerLoop loop) {
  return {.loop = loop, .num_inputs = 1, .input_types = {DTypeOf<From>::value}, .output_type = DType::kFloat32};
}
template <typename From, int kBits>
constexpr ElementwiseDef kTruncate = FloatResult<From>(&TruncateLoop<From, kBits>);
constexpr ElementwiseDef kRoundToOdd = FloatResult<double>(&RoundToOddLoop);

template <typename From>
const ElementwiseDef* TruncationTo(int bits) {
  switch (bits) {
    case 23: return &kTruncate<From, 23>;
    case 10: return &kTruncate<From, 10>;
    case 7: return &kTruncate<From, 7>;
    case 3: return &kTruncate<From, 3>;
    case 2: return &kTruncate<From, 2>;
    default: return nullptr;
  }
}

const ElementwiseDef* FindCast(DType from, DType to, bool truncate) {
  const int bits = MantissaBits(to);
  // TensorFlow cuts on the way to bfloat16 from float only, and rounds from double and half.
  const bool cuts = truncate && (to != DType::kBFloat16 || from == DType::kFloat32) && !IsComplex(to);
  if (cuts && bits > 0 && bits < MantissaBits(from)) {
    switch (from) {
      case DType::kComplex128: return TruncationTo<std::complex<double>>(bits);
      case DType::kComplex64: return TruncationTo<std::complex<float>>(bits);
      case DType::kFloat64: return TruncationTo<double>(bits);
      default: return TruncationTo<float>(bits);
    }
  }
  if (from == DType::kFloat64 && IsFloat8(to)) return &kRoundToOdd;
  const DType source = ComputingType(from), target = ComputingType(to);
  if (const ElementwiseDef* def = CastFromFloat(source, target)) return def;
  if (const ElementwiseDef* def = CastFromSigned(source, target)) return def;
  return CastFromUnsigned(source, target);
}

class PassThroughKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelInit& init) {
  const DType from = RemoveRef(init.node().input_types()[0]), to = RemoveRef(init.node().output_types()[0]);
  if (from == to) return std::unique_ptr<Kernel>(std::make_unique<PassThroughKernel>());
  THALWEG_ASSIGN_OR_RETURN(const bool truncate, init.Attr<bool>("Truncate"));
  const ElementwiseDef* def = FindCast(from, to, truncate);
  if (def == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no conversion from ", DTypeName(from), " to ", DTypeName(to)));
  }
  return std::unique_ptr<Kernel>(std::make_unique<ElementwiseKernel>(*def, init.node()));
}

void AddCast(OpLibrary& lib, std::vector<DType> from, std::vector<DType> to) {
  lib.kernels.Add("Cast", "cpu", &MakeCast).Type("SrcT", std::move(from)).Type("DstT", std::move(to));
}

std::vector<DType> Joined(std::vector<DType> a, const std::vector<DType>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

void RegisterCastOp(OpLibrary& lib) {
  lib.schemas.Add("Cast(x: SrcT) -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  const std::vector<DType> floats = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
  const std::vector<DType> integers = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,   DType::kUInt8,
                                       DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kQInt8,   DType::kQUInt8,
                                       DType::kQInt16, DType::kQUInt16, DType::kQInt32};
  const std::vector<DType> float8 = {DType::kFloat8E5M2, DType::kFloat8E4M3FN};
  const std::vector<DType> four_bit = {DType::kInt4, DType::kUInt4};
  const std::vector<DType> common =
      Joined(Joined(floats, integers), {DType::kBool, DType::kComplex64, DType::kComplex128});
  AddCast(lib, Joined(common, float8), common);
  AddCast(lib, Joined(floats, float8), float8);
  AddCast(lib, Joined(integers, four_bit), four_bit);
  AddCast(lib, four_bit, integers);
  for (DType type : {DType::kString, DType::kFloat8E4M3FNUZ, DType::kFloat8E4M3B11FNUZ, DType::kFloat8E5M2FNUZ, DType::kInt2,
                     DType::kUInt2, DType::kFloat4E2M1FN}) {
    AddCast(lib, {type}, {type});
  }
}

}  // namespace thalweg::math
