// What fused convolutions and matrix products do with each output element while it is still in cache: bias or batch
// normalisation, a second input added, an activation.
//
// The arithmetic is that of the separate ops (BiasAdd, FusedBatchNormV3, AddV2, Relu, ...), so fusing changes no bit of
// a float or double result, and spares half and bfloat16 the roundings in between. Channels are the innermost
// dimension.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

enum class Activation : uint8_t { kNone, kRelu, kRelu6, kElu, kLeakyRelu, kSigmoid, kTanh, kSwish };

// The list attribute fused_ops of a fused node, understood: BiasAdd or FusedBatchNorm, then Add, then an activation,
// each optional.
struct FusedOps {
  bool bias = false;
  bool batch_norm = false;
  bool add = false;
  Activation activation = Activation::kNone;
  float leaky_alpha = 0.2f;
  float epsilon = 0;

  // Inputs beyond the first two: bias, or scale, offset, mean, variance; then the second input of Add.
  int num_args() const { return (bias ? 1 : 0) + (batch_norm ? 4 : 0) + (add ? 1 : 0); }
  bool empty() const { return !bias && !batch_norm && !add && activation == Activation::kNone; }
};

// Reads fused_ops, leakyrelu_alpha and epsilon. InvalidArgument for an unknown or misplaced entry.
absl::StatusOr<FusedOps> ParseFusedOps(const NodeAttrs& attrs);

// The per-channel factor of batch normalisation: scale / sqrt(variance + epsilon).
template <typename T>
void BatchNormFactors(absl::Span<const T> scale, absl::Span<const T> variance, float epsilon, T* factors);

// Pointers are null for what is not done; the others hold one element per channel, `add` one per element of the output.
template <typename T>
struct Epilogue {
  const T* bias = nullptr;
  const T* mean = nullptr;  // with factor and offset: (x - mean) * factor + offset
  const T* factor = nullptr;
  const T* offset = nullptr;
  const T* add = nullptr;
  Activation activation = Activation::kNone;
  float leaky_alpha = 0.2f;

  bool empty() const { return bias == nullptr && mean == nullptr && add == nullptr && activation == Activation::kNone; }
};

// Applies it in place to rows [begin, end) of `channels` elements each; `out` and `add` point at row 0. T is float or
// double.
template <typename T>
void ApplyEpilogue(const Epilogue<T>& epilogue, int64_t begin, int64_t end, int64_t channels, T* out);

// Batch normalisation of rows that may lie elsewhere: out = (in - mean) * factor + offset.
template <typename T>
void NormalizeRows(const T* in, int64_t rows, int64_t channels, const T* mean, const T* factor, const T* offset,
                   T* out);

// The arguments of an epilogue, taken from a node's inputs and converted to the computing type T (float or double).
template <typename T>
class EpilogueArgs {
 public:
  // The per-channel arguments are the inputs of ctx from index `first` on, in the order of FusedOps. The second input
  // of Add, which has the output's shape and layout, is the caller's to check and to give to set_add.
  absl::Status Read(KernelContext& ctx, const FusedOps& ops, int first, int64_t channels);
  void set_add(Tensor add) {
    add_ = std::move(add);
    epilogue_.add = static_cast<const T*>(add_.raw());
  }
  const Epilogue<T>& epilogue() const { return epilogue_; }

 private:
  absl::Status ReadVector(KernelContext& ctx, int input, int64_t channels, const char* what, const T** data);

  Epilogue<T> epilogue_;
  std::vector<Tensor> owned_;  // arguments, converted where they need it
  std::vector<T> factors_;
  Tensor add_;
};

}  // namespace thalweg
