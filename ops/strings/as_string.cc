// AsString: numbers as text, in the formats of printf.
#include <cmath>
#include <complex>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

// More digits or padding than this is a mistake, or an attempt to fill memory.
constexpr int64_t kMaxWidth = 1 << 16;

// The attributes as a printf format without its conversion: "%-8.3".
absl::StatusOr<std::string> FormatPrefix(const NodeAttrs& attrs) {
  THALWEG_ASSIGN_OR_RETURN(const std::string fill, attrs.Get<std::string>("fill"));
  THALWEG_ASSIGN_OR_RETURN(const int64_t width, attrs.Get<int64_t>("width"));
  THALWEG_ASSIGN_OR_RETURN(const int64_t precision, attrs.Get<int64_t>("precision"));
  if (fill.size() > 1 || (fill.size() == 1 && std::string(" +-0#").find(fill[0]) == std::string::npos)) {
    return absl::InvalidArgumentError(absl::StrCat("fill is '", fill, "'; it must be empty or one of ' ', '+', '-', '0', '#'"));
  }
  if (width > kMaxWidth || precision > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("width is ", width, " and precision ", precision, "; they must not exceed ", kMaxWidth));
  }
  std::string format = absl::StrCat("%", fill);
  if (width > -1) absl::StrAppend(&format, width);
  if (precision > -1) absl::StrAppend(&format, ".", precision);
  return format;
}

// 'f', 'e' or 'g'.
absl::StatusOr<char> FloatConversion(const NodeAttrs& attrs) {
  const bool scientific = attrs.GetOr<bool>("scientific", false), shortest = attrs.GetOr<bool>("shortest", false);
  if (scientific && shortest) return absl::InvalidArgumentError("scientific and shortest cannot both be asked for");
  return scientific ? 'e' : shortest ? 'g' : 'f';
}

// What makes no sense for a type that is not a float.
absl::Status RefuseFloatAttrs(const NodeAttrs& attrs, DType type, bool precision_too) {
  if (attrs.GetOr<bool>("scientific", false) || attrs.GetOr<bool>("shortest", false)) {
    return absl::InvalidArgumentError(absl::StrCat("scientific and shortest are for floats, not for ", DTypeName(type)));
  }
  if (precision_too && attrs.GetOr<int64_t>("precision", -1) >= 0) {
    return absl::InvalidArgumentError(absl::StrCat("precision is for floats, not for ", DTypeName(type)));
  }
  return absl::OkStatus();
}

template <typename V>
std::string Print(const std::string& format, V value) {
  char small[128];
  const int length = std::snprintf(small, sizeof(small), format.c_str(), value);
  if (length < static_cast<int>(sizeof(small))) return std::string(small, length);
  std::string text(length, '\0');
  std::snprintf(text.data(), length + 1, format.c_str(), value);
  return text;
}

// How an element type is printed: its conversion, and the type that printf takes.
template <typename T>
struct Printer {
  static constexpr bool kFloat = !std::is_integral_v<T>;
  std::string format;

  std::string operator()(T v) const {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) return Print(format, static_cast<long long>(v));
    else if constexpr (std::is_integral_v<T>) return Print(format, static_cast<unsigned long long>(v));
    else return Print(format, static_cast<double>(static_cast<ComputingT<T>>(v)));
  }
};
template <typename T>
struct Printer<std::complex<T>> {
  static constexpr bool kFloat = true;
  std::string format;

  std::string operator()(std::complex<T> v) const {
    return absl::StrCat("(", Print(format, static_cast<double>(v.real())), ",", Print(format, static_cast<double>(v.imag())), ")");
  }
};
template <>
struct Printer<bool> {
  static constexpr bool kFloat = false;
  std::string format;

  // Neither width nor fill matter.
  std::string operator()(bool v) const { return v ? "true" : "false"; }
};
template <>
struct Printer<std::string> {
  static constexpr bool kFloat = false;
  std::string format;

  std::string operator()(const std::string& v) const { return Print(format, v.c_str()); }
};

template <typename T>
std::string IntegerConversion() {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) return "s";
  else return std::is_signed_v<T> ? "lld" : "llu";
}

template <typename T>
class AsStringKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    auto kernel = std::make_unique<AsStringKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->print_.format, FormatPrefix(attrs));
    if constexpr (Printer<T>::kFloat) {
      THALWEG_ASSIGN_OR_RETURN(const char conversion, FloatConversion(attrs));
      kernel->print_.format += conversion;
    } else {
      THALWEG_RETURN_IF_ERROR(RefuseFloatAttrs(attrs, DTypeOf<T>::value, true));
      kernel->print_.format += IntegerConversion<T>();
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    const T* in = ctx.input(0).flat<T>().data();
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    std::string* out = tensor->mutable_flat<std::string>().data();
    ctx.ParallelFor(shape.num_elements(), 200.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = print_(in[i]);
    });
    return absl::OkStatus();
  }

 private:
  Printer<T> print_;
};

template <typename... Ts>
void AddKernels(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("AsString", "cpu", &MakeFallibleKernel<AsStringKernel<Ts>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterAsString(OpLibrary& lib) {
  lib.schemas.Add("AsString(input: T) -> output: string",
                  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
                  "complex128, bool, variant, string}; precision: int = -1; scientific: bool = false; shortest: bool = false; "
                  "width: int = -1; fill: string = \"\"")
      .Shape(UnchangedShape).Cost(StringCost);
  AddKernels(lib, FloatTypes());
  AddKernels(lib, SignedTypes());
  AddKernels(lib, UnsignedTypes());
  AddKernels(lib, ComplexTypes());
  AddKernels(lib, TypeList<bool, std::string>());
}

}  // namespace thalweg::strings
