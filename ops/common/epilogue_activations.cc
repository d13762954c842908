#include "thalweg/ops/common/epilogue_activations.h"

#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/common/vector_math.h"

namespace thalweg {
namespace {

template <typename T>
THALWEG_CLONES void EluRow(int64_t n, T* row) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) row[c] = row[c] < T(0) ? vector_math::Exp(row[c]) - T(1) : row[c];
}
template <typename T>
THALWEG_CLONES void LeakyReluRow(T alpha, int64_t n, T* row) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) row[c] = row[c] < T(0) ? row[c] * alpha : row[c];
}
template <typename T>
THALWEG_CLONES void SigmoidRow(int64_t n, T* row) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) row[c] = vector_math::Sigmoid(row[c]);
}
template <typename T>
THALWEG_CLONES void SwishRow(int64_t n, T* row) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) row[c] *= vector_math::Sigmoid(row[c]);
}
template <typename T>
THALWEG_CLONES void TanhRow(int64_t n, T* row) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) row[c] = vector_math::Tanh(row[c]);
}

}  // namespace

template <typename T>
void ActivateRow(Activation activation, float leaky_alpha, int64_t n, T* row) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kRelu6: return;
    case Activation::kElu: return EluRow(n, row);
    case Activation::kLeakyRelu: return LeakyReluRow(static_cast<T>(leaky_alpha), n, row);
    case Activation::kSigmoid: return SigmoidRow(n, row);
    case Activation::kTanh: return TanhRow(n, row);
    case Activation::kSwish: return SwishRow(n, row);
  }
}

template void ActivateRow<float>(Activation, float, int64_t, float*);
template void ActivateRow<double>(Activation, float, int64_t, double*);

}  // namespace thalweg
