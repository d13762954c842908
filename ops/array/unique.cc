// Unique and UniqueWithCounts: distinct elements of a vector in order of first occurrence.
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/gather_blocks.h"

namespace thalweg {
namespace {

// Which class each element belongs to, and where the first element of each class stands.
struct Classes {
  std::vector<int64_t> of_element;
  std::vector<int64_t> first;

  // Element i joins the class stored under `key`, or opens it.
  template <typename Map, typename Key>
  void Join(Map& map, const Key& key, int64_t i) {
    const auto [it, fresh] = map.try_emplace(key, static_cast<int64_t>(first.size()));
    if (fresh) first.push_back(i);
    of_element.push_back(it->second);
  }
  void JoinAlone(int64_t i) {
    of_element.push_back(static_cast<int64_t>(first.size()));
    first.push_back(i);
  }
};

// Floating formats as bits: exponent all ones and a mantissa is NaN; everything but the sign zero is zero.
template <typename Bits>
struct FloatFormat {
  Bits magnitude;
  Bits infinity;
  bool zeros_equal;  // TensorFlow tells the zeros of the 16-bit formats apart, those of the others not
};
constexpr FloatFormat<uint16_t> kHalfFormat{0x7fff, 0x7c00, false};
constexpr FloatFormat<uint16_t> kBFloat16Format{0x7fff, 0x7f80, false};
constexpr FloatFormat<uint32_t> kFloatFormat{0x7fffffffu, 0x7f800000u, true};
constexpr FloatFormat<uint64_t> kDoubleFormat{0x7fffffffffffffffu, 0x7ff0000000000000u, true};

template <typename Bits>
Classes ClassifyBits(const Tensor& t) {
  absl::flat_hash_map<Bits, int64_t> map;
  Classes classes;
  const Bits* values = static_cast<const Bits*>(t.raw());
  for (int64_t i = 0; i < t.num_elements(); ++i) classes.Join(map, values[i], i);
  return classes;
}

// Every NaN stands alone, and -0 equals 0 (L18) where the format says so.
template <typename Bits>
Classes ClassifyFloats(const Tensor& t, const FloatFormat<Bits>& format) {
  absl::flat_hash_map<Bits, int64_t> map;
  Classes classes;
  const Bits* values = static_cast<const Bits*>(t.raw());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const Bits magnitude = values[i] & format.magnitude;
    if (magnitude > format.infinity) classes.JoinAlone(i);
    else classes.Join(map, magnitude == 0 && format.zeros_equal ? magnitude : values[i], i);
  }
  return classes;
}

Classes ClassifyStrings(const Tensor& t) {
  absl::flat_hash_map<absl::string_view, int64_t> map;
  Classes classes;
  const absl::Span<const std::string> values = t.flat<std::string>();
  for (size_t i = 0; i < values.size(); ++i) classes.Join(map, absl::string_view(values[i]), static_cast<int64_t>(i));
  return classes;
}

Classes Classify(const Tensor& t) {
  switch (t.dtype()) {
    case DType::kString: return ClassifyStrings(t);
    case DType::kFloat16: return ClassifyFloats(t, kHalfFormat);
    case DType::kBFloat16: return ClassifyFloats(t, kBFloat16Format);
    case DType::kFloat32: return ClassifyFloats(t, kFloatFormat);
    case DType::kFloat64: return ClassifyFloats(t, kDoubleFormat);
    default: break;
  }
  switch (DTypeSize(t.dtype())) {
    case 1: return ClassifyBits<uint8_t>(t);
    case 2: return ClassifyBits<uint16_t>(t);
    case 4: return ClassifyBits<uint32_t>(t);
    default: return ClassifyBits<uint64_t>(t);
  }
}

// Emits `values` as a vector of output i's type, int32 or int64. Requires that they fit.
absl::Status EmitInts(KernelContext& ctx, int i, const std::vector<int64_t>& values) {
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, Shape::Of({static_cast<int64_t>(values.size())})));
  if (out->dtype() == DType::kInt32) std::copy(values.begin(), values.end(), out->mutable_flat<int32_t>().begin());
  else std::copy(values.begin(), values.end(), out->mutable_flat<int64_t>().begin());
  return absl::OkStatus();
}

// Two outputs (values, index of each element) or three (and the size of each class).
class UniqueKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input must be a vector, but its shape is ", in.shape().ToString()));
    }
    if (ctx.output_dtype(1) == DType::kInt32 && in.num_elements() > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(in.num_elements(), " elements are too many for int32 indices; ask for out_idx int64"));
    }
    const Classes classes = Classify(in);
    const int64_t count = static_cast<int64_t>(classes.first.size());
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Of({count})));
    BlockGather gather;
    gather.count = count;
    gather.offsets = classes.first.data();
    GatherBlocks(ctx, in.dtype(), gather, in.raw(), out->mutable_raw());
    THALWEG_RETURN_IF_ERROR(EmitInts(ctx, 1, classes.of_element));
    if (ctx.num_outputs() < 3) return absl::OkStatus();
    std::vector<int64_t> sizes(count, 0);
    for (const int64_t k : classes.of_element) ++sizes[k];
    return EmitInts(ctx, 2, sizes);
  }
};

absl::Status UniqueShape(ShapeContext& c) {
  const PartialShape classes = PartialShape::OfDims({c.NewSymbol()});
  c.set_output(0, classes);
  c.set_output(1, c.input(0));
  if (c.num_outputs() > 2) c.set_output(2, classes);
  return absl::OkStatus();
}

}  // namespace

void RegisterUniqueOps(OpLibrary& lib) {
  const char* attrs = "T: type; out_idx: {int32, int64} = int32";
  lib.schemas.Add("Unique(x: T) -> (y: T, idx: out_idx)", attrs).Shape(UniqueShape).Cost(CopyCost);
  lib.schemas.Add("UniqueWithCounts(x: T) -> (y: T, idx: out_idx, count: out_idx)", attrs)
      .Shape(UniqueShape)
      .Cost(CopyCost);
  for (const char* op : {"Unique", "UniqueWithCounts"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<UniqueKernel>)
        .Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
              bool, std::string>("T");
  }
}

}  // namespace thalweg
