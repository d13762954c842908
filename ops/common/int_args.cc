#include "thalweg/ops/common/int_args.h"

#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

template <typename T>
void Append(const Tensor& t, Dims* out) {
  for (T v : t.flat<T>()) out->push_back(static_cast<int64_t>(v));
}

absl::Status AppendElements(const Tensor& t, absl::string_view name, Dims* out) {
  switch (t.dtype()) {
    case DType::kInt32: Append<int32_t>(t, out); break;
    case DType::kInt64: Append<int64_t>(t, out); break;
    case DType::kInt16: Append<int16_t>(t, out); break;
    case DType::kInt8: Append<int8_t>(t, out); break;
    case DType::kUInt8: Append<uint8_t>(t, out); break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(name, " must be an integer tensor, not ", DTypeName(t.dtype())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Dims> IntElementsArg(const Tensor& t, absl::string_view name, int64_t limit) {
  if (t.num_elements() > limit) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", t.num_elements(), " elements (shape ",
                                                   t.shape().ToString(), "); at most ", limit, " make sense"));
  }
  Dims out;
  THALWEG_RETURN_IF_ERROR(AppendElements(t, name, &out));
  return out;
}

absl::StatusOr<Dims> IntVectorArg(const Tensor& t, absl::string_view name, int64_t limit) {
  if (t.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be a vector, but its shape is ", t.shape().ToString()));
  }
  return IntElementsArg(t, name, limit);
}

absl::Status RequireScalar(const Tensor& t, absl::string_view name, ScalarRule rule) {
  const int most = rule == ScalarRule::kScalar ? 0 : rule == ScalarRule::kScalarOrVectorOfOne ? 1 : kMaxRank;
  if (t.num_elements() == 1 && t.rank() <= most) return absl::OkStatus();
  const char* wanted = rule == ScalarRule::kOneElement ? "have exactly one element" : "be a scalar";
  return absl::InvalidArgumentError(absl::StrCat(name, " must ", wanted, ", but its shape is ", t.shape().ToString()));
}

absl::StatusOr<int64_t> IntScalarArg(const Tensor& t, absl::string_view name, ScalarRule rule) {
  THALWEG_RETURN_IF_ERROR(RequireScalar(t, name, rule));
  Dims one;
  THALWEG_RETURN_IF_ERROR(AppendElements(t, name, &one));
  return one[0];
}

absl::StatusOr<Shape> ShapeArg(const Tensor& t, absl::string_view name, bool scalar_ok) {
  if (t.rank() != 1 && !(scalar_ok && t.rank() == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be a vector, but its shape is ", t.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(Dims dims, IntElementsArg(t, name));
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", shape.status().message()));
  return shape;
}

}  // namespace thalweg
