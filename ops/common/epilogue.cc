#include "thalweg/ops/common/epilogue.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/epilogue_activations.h"
#include "thalweg/ops/common/target_clones.h"

namespace thalweg {
namespace {

enum class Affine { kNone, kBias, kNormalize };

// Relu and Relu6 are cheap enough to be done in the first pass over a row, as bounds.
struct Bounds {
  float low, high;
};

// One row of an epilogue without the activations that need a function. `kBounded` selects whether bounds apply.
template <typename T, Affine kAffine, bool kAdd, bool kBounded>
THALWEG_CLONES void AffineRow(const Epilogue<T>& e, const T* add, Bounds bounds, int64_t channels, T* row) {
  const T* bias = e.bias;
  const T* mean = e.mean;
  const T* factor = e.factor;
  const T* offset = e.offset;
  const T low = static_cast<T>(bounds.low), high = static_cast<T>(bounds.high);
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c) {
    T y = row[c];
    if constexpr (kAffine == Affine::kBias) y += bias[c];
    if constexpr (kAffine == Affine::kNormalize) y = (y - mean[c]) * factor[c] + offset[c];
    if constexpr (kAdd) y += add[c];
    if constexpr (kBounded) {  // NaN passes
      y = y < low ? low : y;
      y = y > high ? high : y;
    }
    row[c] = y;
  }
}

template <typename T>
using RowFunction = void (*)(const Epilogue<T>&, const T*, Bounds, int64_t, T*);

template <typename T, Affine kAffine>
RowFunction<T> SelectRow(bool add, bool bounded) {
  if (add) return bounded ? &AffineRow<T, kAffine, true, true> : &AffineRow<T, kAffine, true, false>;
  return bounded ? &AffineRow<T, kAffine, false, true> : &AffineRow<T, kAffine, false, false>;
}

template <typename T>
RowFunction<T> SelectRow(const Epilogue<T>& e, bool bounded) {
  const bool add = e.add != nullptr;
  if (e.mean != nullptr) return SelectRow<T, Affine::kNormalize>(add, bounded);
  if (e.bias != nullptr) return SelectRow<T, Affine::kBias>(add, bounded);
  return add || bounded ? SelectRow<T, Affine::kNone>(add, bounded) : nullptr;
}

template <typename T>
THALWEG_CLONES void NormalizeRow(const T* in, int64_t channels, const T* mean, const T* factor, const T* offset,
                                 T* out) {
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c) out[c] = (in[c] - mean[c]) * factor[c] + offset[c];
}

bool ParseActivation(absl::string_view name, Activation* activation) {
  static constexpr struct {
    absl::string_view name;
    Activation activation;
  } kNames[] = {{"Relu", Activation::kRelu},           {"Relu6", Activation::kRelu6},     {"Elu", Activation::kElu},
                {"LeakyRelu", Activation::kLeakyRelu}, {"Sigmoid", Activation::kSigmoid}, {"Tanh", Activation::kTanh},
                {"Swish", Activation::kSwish}};
  for (const auto& entry : kNames) {
    if (entry.name != name) continue;
    *activation = entry.activation;
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<FusedOps> ParseFusedOps(const NodeAttrs& attrs) {
  FusedOps ops;
  ops.leaky_alpha = attrs.GetOr<float>("leakyrelu_alpha", ops.leaky_alpha);
  ops.epsilon = attrs.GetOr<float>("epsilon", 0);
  const std::vector<std::string> names = attrs.GetOr<std::vector<std::string>>("fused_ops", {});
  size_t next = 0;
  if (next < names.size() && names[next] == "BiasAdd") ops.bias = true;
  if (next < names.size() && names[next] == "FusedBatchNorm") ops.batch_norm = true;
  if (ops.bias || ops.batch_norm) ++next;
  if (next < names.size() && names[next] == "Add") {
    ops.add = true;
    ++next;
  }
  if (next < names.size() && ParseActivation(names[next], &ops.activation)) ++next;
  if (next == names.size()) return ops;
  return absl::InvalidArgumentError(
      absl::StrCat("fused_ops [", absl::StrJoin(names, ", "),
                   "] is not supported; it may hold BiasAdd or FusedBatchNorm, then Add, then one of Relu, "
                   "Relu6, Elu, LeakyRelu, Sigmoid, Tanh, Swish"));
}

template <typename T>
void BatchNormFactors(absl::Span<const T> scale, absl::Span<const T> variance, float epsilon, T* factors) {
  for (size_t c = 0; c < scale.size(); ++c)
    factors[c] = scale[c] * (T(1) / std::sqrt(variance[c] + static_cast<T>(epsilon)));
}

template <typename T>
void ApplyEpilogue(const Epilogue<T>& e, int64_t begin, int64_t end, int64_t channels, T* out) {
  const bool bounded = e.activation == Activation::kRelu || e.activation == Activation::kRelu6;
  const Bounds bounds{0, e.activation == Activation::kRelu6 ? 6 : std::numeric_limits<float>::infinity()};
  const RowFunction<T> affine = SelectRow(e, bounded);
  for (int64_t r = begin; r < end; ++r) {
    T* row = out + r * channels;
    if (affine != nullptr) affine(e, e.add == nullptr ? nullptr : e.add + r * channels, bounds, channels, row);
    ActivateRow(e.activation, e.leaky_alpha, channels, row);
  }
}

template <typename T>
void NormalizeRows(const T* in, int64_t rows, int64_t channels, const T* mean, const T* factor, const T* offset,
                   T* out) {
  for (int64_t r = 0; r < rows; ++r)
    NormalizeRow(in + r * channels, channels, mean, factor, offset, out + r * channels);
}

template <typename T>
absl::Status EpilogueArgs<T>::ReadVector(KernelContext& ctx, int input, int64_t channels, const char* what,
                                         const T** data) {
  const Tensor& t = ctx.input(input);
  if (t.rank() != 1 || t.dim(0) != channels) {
    return absl::InvalidArgumentError(absl::StrCat(what, " must be a vector of ", channels,
                                                   " elements, one per output channel, but has shape ",
                                                   t.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor converted, ToComputing(ctx, t));
  if (converted.dtype() != DTypeOf<T>::value) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has the type ", DTypeName(t.dtype()), ", which does not fit the convolution"));
  }
  owned_.push_back(std::move(converted));
  *data = static_cast<const T*>(owned_.back().raw());
  return absl::OkStatus();
}

template <typename T>
absl::Status EpilogueArgs<T>::Read(KernelContext& ctx, const FusedOps& ops, int first, int64_t channels) {
  if (ctx.num_inputs() < first + ops.num_args()) {
    return absl::InvalidArgumentError(
        absl::StrCat("fused_ops needs ", ops.num_args(), " arguments but the node has ", ctx.num_inputs() - first));
  }
  epilogue_.activation = ops.activation;
  epilogue_.leaky_alpha = ops.leaky_alpha;
  if (ops.bias) THALWEG_RETURN_IF_ERROR(ReadVector(ctx, first, channels, "the bias", &epilogue_.bias));
  if (ops.batch_norm) {
    const T* scale;
    const T* variance;
    THALWEG_RETURN_IF_ERROR(ReadVector(ctx, first, channels, "the scale", &scale));
    THALWEG_RETURN_IF_ERROR(ReadVector(ctx, first + 1, channels, "the offset", &epilogue_.offset));
    THALWEG_RETURN_IF_ERROR(ReadVector(ctx, first + 2, channels, "the mean", &epilogue_.mean));
    THALWEG_RETURN_IF_ERROR(ReadVector(ctx, first + 3, channels, "the variance", &variance));
    factors_.resize(channels);
    const size_t n = static_cast<size_t>(channels);
    BatchNormFactors<T>({scale, n}, {variance, n}, ops.epsilon, factors_.data());
    epilogue_.factor = factors_.data();
  }
  return absl::OkStatus();
}

#define THALWEG_INSTANTIATE_(T)                                                                 \
  template void BatchNormFactors<T>(absl::Span<const T>, absl::Span<const T>, float, T*);       \
  template void ApplyEpilogue<T>(const Epilogue<T>&, int64_t, int64_t, int64_t, T*);            \
  template void NormalizeRows<T>(const T*, int64_t, int64_t, const T*, const T*, const T*, T*); \
  template class EpilogueArgs<T>;
THALWEG_INSTANTIATE_(float)
THALWEG_INSTANTIATE_(double)
#undef THALWEG_INSTANTIATE_

}  // namespace thalweg
