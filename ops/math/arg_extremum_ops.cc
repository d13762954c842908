// ArgMax, ArgMin: the index of the first greatest or lowest element along an axis.
//
// NaN is never chosen (L18): the search starts at index 0 with the lowest finite value, and only a greater element
// replaces what is there. So an axis of nothing but NaN gives 0.
#include <limits>
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/axis_layout.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

constexpr int64_t kTile = 512;

template <bool kMax, typename T>
THALWEG_INLINE bool Better(T x, T best) { return kMax ? x > best : x < best; }
template <bool kMax, typename T>
constexpr T WorstFinite() { return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max(); }

// One lane of consecutive elements: per tile the best value, and its place only if it beats the tiles before.
template <bool kMax, typename T>
THALWEG_CLONES T BestOfTile(const T* x, int64_t n) {
  constexpr int kLanes = 32;
  T lanes[kLanes];
  for (T& lane : lanes) lane = WorstFinite<kMax, T>();
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int i = 0; i < kLanes; ++i) lanes[i] = Better<kMax>(x[k + i], lanes[i]) ? x[k + i] : lanes[i];
  }
  T best = WorstFinite<kMax, T>();
  for (T lane : lanes) best = Better<kMax>(lane, best) ? lane : best;
  for (; k < n; ++k) best = Better<kMax>(x[k], best) ? x[k] : best;
  return best;
}

// `count` neighbouring lanes: element `row` of each is compared with the best so far.
template <bool kMax, typename T>
THALWEG_CLONES void UpdateLanes(const T* x, int64_t row, T* best, int64_t* index, int64_t count) {
#pragma GCC ivdep
  for (int64_t k = 0; k < count; ++k) {
    const bool better = Better<kMax>(x[k], best[k]);
    best[k] = better ? x[k] : best[k];
    index[k] = better ? row : index[k];
  }
}

template <bool kMax, typename T>
class ArgExtremumKernel final : public Kernel {
 public:
  explicit ArgExtremumKernel(const KernelInit& init)
      : load_(LoadConversion(RemoveRef(init.node().input_types()[0]), DTypeOf<C>::value)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int64_t axis, ReadAxis(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(const AxisLayout layout, LayoutAt(input.shape(), axis));
    if (layout.size == 0) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of the input of shape ", input.shape().ToString(),
                                                     " is empty: it has no greatest or lowest element"));
    }
    Dims dims(input.shape().dims().begin(), input.shape().dims().end());
    dims.erase(dims.begin() + layout.axis);
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const T* elements = static_cast<const T*>(input.raw());
    ctx.ParallelFor(layout.lanes(), 0.5 * static_cast<double>(layout.size), [&](int64_t begin, int64_t end) {
      ForEachLanePiece(layout, begin, end, kTile, [&](int64_t first, int64_t lane, int64_t count) {
        int64_t index[kTile];
        if (layout.inner == 1) index[0] = FindInRow(elements + first, layout.size);
        else FindInColumns(elements + first, layout, count, index);
        Store(index, count, lane, out);
      });
    });
    return absl::OkStatus();
  }

 private:
  using C = ComputingT<T>;

  // n <= kTile elements in the computing type.
  const C* Load(const T* x, int64_t n, C* buffer) const {
    if (load_ == nullptr) return reinterpret_cast<const C*>(x);
    load_(x, buffer, n);
    return buffer;
  }

  int64_t FindInRow(const T* row, int64_t n) const {
    alignas(64) C buffer[kTile];
    C best = WorstFinite<kMax, C>();
    int64_t index = 0;
    for (int64_t at = 0; at < n; at += kTile) {
      const int64_t count = std::min(kTile, n - at);
      const C* x = Load(row + at, count, buffer);
      const C best_here = BestOfTile<kMax, C>(x, count);
      if (!Better<kMax>(best_here, best)) continue;
      best = best_here;
      int64_t k = 0;
      while (x[k] != best) ++k;
      index = at + k;
    }
    return index;
  }

  void FindInColumns(const T* first, const AxisLayout& layout, int64_t count, int64_t* index) const {
    alignas(64) C buffer[kTile];
    alignas(64) C best[kTile];
    std::fill(best, best + count, WorstFinite<kMax, C>());
    std::fill(index, index + count, 0);
    for (int64_t row = 0; row < layout.size; ++row) {
      UpdateLanes<kMax, C>(Load(first + row * layout.inner, count, buffer), row, best, index, count);
    }
  }

  template <typename I>
  static void StoreAs(const int64_t* index, int64_t count, int64_t lane, Tensor* out) {
    I* to = static_cast<I*>(out->mutable_raw()) + lane;
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<I>(index[k]);
  }
  static void Store(const int64_t* index, int64_t count, int64_t lane, Tensor* out) {
    switch (out->dtype()) {
      case DType::kInt16: return StoreAs<int16_t>(index, count, lane, out);
      case DType::kUInt16: return StoreAs<uint16_t>(index, count, lane, out);
      case DType::kInt32: return StoreAs<int32_t>(index, count, lane, out);
      default: return StoreAs<int64_t>(index, count, lane, out);
    }
  }

  const ConvertLoop load_;
};

absl::Status ArgExtremumShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return absl::OkStatus();
  // With so few dimensions the axis does not matter to the shape; the kernel judges it.
  if (input.rank() <= 1) return ScalarShape(c);
  const std::optional<int64_t> axis = c.input_int(1);
  if (!axis) {
    c.set_output(0, PartialShape::UnknownOfRank(input.rank() - 1));
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(const int d, NormalizeAxis(*axis, input.rank()));
  Dims dims(input.dims().begin(), input.dims().end());
  dims.erase(dims.begin() + d);
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// Booleans are compared as bytes.
template <bool kMax, typename... Ts>
void RegisterTypes(OpLibrary& lib, const std::string& op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeKernel<ArgExtremumKernel<kMax, Ts>>).template Type<Ts>("T").HostMemory("dimension"), ...);
}

template <bool kMax>
void RegisterArgExtremum(OpLibrary& lib, const std::string& op, const std::string& axis_types, const std::string& output_types) {
  lib.schemas.Add(op + "(input: T, dimension: Tidx) -> output: output_type",
                  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, "
                  "qint32, qint16, quint16, bool}; Tidx: " + axis_types + " = int32; output_type: " + output_types + " = int64")
      .Shape(ArgExtremumShape).Cost(ReductionCost);
  RegisterTypes<kMax>(lib, op, FloatTypes());
  RegisterTypes<kMax>(lib, op, SignedTypes());
  RegisterTypes<kMax>(lib, op, UnsignedTypes());
  lib.kernels.Add(op, "cpu", &MakeKernel<ArgExtremumKernel<kMax, uint8_t>>).template Type<bool>("T").HostMemory("dimension");
}

}  // namespace

void RegisterArgExtremumOps(OpLibrary& lib) {
  RegisterArgExtremum<true>(lib, "ArgMax", "{int16, int32, int64}", "{int16, uint16, int32, int64}");
  RegisterArgExtremum<false>(lib, "ArgMin", "{int32, int64}", "{int32, int64}");
}

}  // namespace thalweg::math
