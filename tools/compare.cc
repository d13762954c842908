#include "thalweg/tools/compare.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/numerics_check.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

absl::StatusOr<Tolerance> ParseTolerance(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  Tolerance tolerance;
  const bool ok = ParseDouble(parts.first, &tolerance.relative) && tolerance.relative >= 0;
  tolerance.absolute = tolerance.relative / 10;
  const bool absolute_ok =
      parts.second.empty() || (ParseDouble(parts.second, &tolerance.absolute) && tolerance.absolute >= 0);
  if (ok && absolute_ok) return tolerance;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no tolerance; write f32=1e-5 or f32=1e-5:1e-7 (relative:absolute)"));
}

bool CloseReal(double a, double e, Tolerance t) {
  if (a == e || (std::isnan(a) && std::isnan(e))) return true;
  return std::isfinite(a) && std::isfinite(e) && std::fabs(a - e) <= t.absolute + t.relative * std::fabs(e);
}
bool Close(double a, double e, Tolerance t) { return CloseReal(a, e, t); }
bool Close(std::complex<double> a, std::complex<double> e, Tolerance t) {
  return CloseReal(a.real(), e.real(), t) && CloseReal(a.imag(), e.imag(), t);
}
bool Close(const std::string& a, const std::string& e, Tolerance) { return a == e; }

std::string Show(double v) { return absl::StrCat(v); }
std::string Show(std::complex<double> v) {
  return absl::StrCat("(", v.real(), v.imag() < 0 ? "" : "+", v.imag(), "j)");
}
std::string Show(const std::string& v) { return absl::StrCat("\"", v.substr(0, 60), "\""); }

// Counts what `same(i)` denies and describes the first.
template <typename Same, typename Describe>
std::string CountDifferences(const Shape& shape, absl::string_view within, Same same, Describe describe) {
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (same(i)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return absl::StrCat(wrong, " of ", shape.num_elements(), " elements differ", within, "; first at ",
                      IndexText(shape, first), ": ", describe(first));
}

template <typename T, typename Wide>
std::string DifferenceOf(const Tensor& a, const Tensor& e, Tolerance t) {
  const absl::Span<const T> got = a.flat<T>(), expected = e.flat<T>();
  const auto wide = [](const T& v) -> Wide {
    if constexpr (std::is_same_v<T, std::complex<float>>) return Wide(v.real(), v.imag());
    else if constexpr (std::is_same_v<T, Wide>) return v;
    else return static_cast<Wide>(static_cast<float>(v));
  };
  const std::string within = absl::StrCat(" by more than ", t.absolute, " + ", t.relative, " * |expected|");
  return CountDifferences(
      a.shape(), std::is_same_v<T, std::string> ? "" : within,
      [&](int64_t i) { return Close(wide(got[i]), wide(expected[i]), t); },
      [&](int64_t i) { return absl::StrCat("got ", Show(wide(got[i])), ", expected ", Show(wide(expected[i]))); });
}

// Types without a tolerance: bit for bit.
std::string DifferenceOfBits(const Tensor& a, const Tensor& e) {
  const size_t size = DTypeSize(a.dtype());
  const auto* got = static_cast<const char*>(a.raw());
  const auto* expected = static_cast<const char*>(e.raw());
  return CountDifferences(
      a.shape(), "", [&](int64_t i) { return std::memcmp(got + i * size, expected + i * size, size) == 0; },
      [&](int64_t i) {
        const auto one = [&](const Tensor& t) {
          return t.Reshaped(Shape::Of({t.num_elements()}))->Rows(i, i + 1).ToString(1);
        };
        return absl::StrCat("got ", one(a), ", expected ", one(e));
      });
}

}  // namespace

Tolerances::Tolerances() {
  Set(DType::kFloat32, {1e-5, 1e-6});
  Set(DType::kComplex64, {1e-5, 1e-6});
  Set(DType::kFloat64, {1e-9, 1e-12});
  Set(DType::kComplex128, {1e-9, 1e-12});
  Set(DType::kFloat16, {4e-3, 1e-3});
  Set(DType::kBFloat16, {2e-2, 1e-2});
}

void Tolerances::Set(DType dtype, Tolerance tolerance) {
  for (auto& [type, known] : by_type_) {
    if (type != dtype) continue;
    known = tolerance;
    return;
  }
  by_type_.emplace_back(dtype, tolerance);
}

Tolerance Tolerances::of(DType dtype) const {
  for (const auto& [type, tolerance] : by_type_) {
    if (type == dtype) return tolerance;
  }
  return {};
}

absl::Status Tolerances::Read(absl::string_view text) {
  for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const size_t equals = item.find('=');
    if (equals == absl::string_view::npos) {
      THALWEG_ASSIGN_OR_RETURN(const Tolerance tolerance, ParseTolerance(item));
      for (auto& [type, known] : by_type_) known = tolerance;
      continue;
    }
    THALWEG_ASSIGN_OR_RETURN(const DType dtype, ParseDType(item.substr(0, equals)));
    THALWEG_ASSIGN_OR_RETURN(const Tolerance tolerance, ParseTolerance(item.substr(equals + 1)));
    Set(dtype, tolerance);
  }
  return absl::OkStatus();
}

std::string Difference(const Tensor& value, const NpyArray& reference, const Tolerances& tolerances) {
  const absl::StatusOr<Tensor> expected = TensorFromNpy(reference, value.dtype());
  if (!expected.ok() || expected->shape() != value.shape()) {
    return absl::StrCat("got ", DTypeName(value.dtype()), value.shape().ToString(), ", expected ",
                        reference.ToString());
  }
  const Tolerance tolerance = tolerances.of(value.dtype());
  switch (value.dtype()) {
    case DType::kFloat32: return DifferenceOf<float, double>(value, *expected, tolerance);
    case DType::kFloat64: return DifferenceOf<double, double>(value, *expected, tolerance);
    case DType::kFloat16: return DifferenceOf<half, double>(value, *expected, tolerance);
    case DType::kBFloat16: return DifferenceOf<bfloat16, double>(value, *expected, tolerance);
    case DType::kComplex64: return DifferenceOf<std::complex<float>, std::complex<double>>(value, *expected, tolerance);
    case DType::kComplex128:
      return DifferenceOf<std::complex<double>, std::complex<double>>(value, *expected, tolerance);
    case DType::kString: return DifferenceOf<std::string, std::string>(value, *expected, tolerance);
    default: return DifferenceOfBits(value, *expected);
  }
}

std::string ReferenceKey(const TensorArchive& archive, const std::string& fetch, absl::string_view suffix) {
  const std::string other = absl::EndsWith(fetch, ":0")     ? fetch.substr(0, fetch.size() - 2)
                            : absl::StrContains(fetch, ':') ? fetch
                                                            : absl::StrCat(fetch, ":0");
  for (const std::string& name : {fetch, other}) {
    for (const std::string& key : {absl::StrCat(name, suffix), name}) {
      if (archive.Has(key)) return key;
    }
  }
  return "";
}

}  // namespace thalweg::tools
