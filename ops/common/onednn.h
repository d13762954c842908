// The only door to oneDNN: single-threaded float32 primitives. No dnnl type leaves onednn.cc.
//
// Threading: every function may be called from any thread, at the same time too; none starts a thread, because oneDNN's
// OpenMP is held to one thread for the length of each call. Whoever wants more threads splits the work before it comes
// here. Empty tensors must not come here either: oneDNN does not bear them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace thalweg::onednn {

// C = op(A) * op(B), row-major; op(A) is m x k, op(B) k x n, leading dimensions in elements. Requires m, n, k >= 1.
//
// Computing disjoint blocks of C gives the same bits as computing C at once as long as every block has at least two
// rows and two columns, or C itself has only one: one row or column selects another algorithm.
absl::Status Sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                   const float* b, int64_t ldb, float* c, int64_t ldc);

// A convolution of a dense channels-last image. The filter is [spatial..., in_channels / groups, out_channels], with
// the output channels of one group next to each other; a depthwise convolution has groups == in_channels.
struct ConvProblem {
  struct Dim {
    int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, pad_before = 0, pad_after = 0;
    friend bool operator==(const Dim&, const Dim&) = default;
  };
  int spatial = 2;  // 2 or 3 dimensions used, outermost first
  int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::array<Dim, 3> dims;
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;

  int64_t Positions() const;   // output positions of one image
  int64_t FilterTaps() const;  // window positions
};

// A compiled convolution. Immutable, thread-safe, shareable.
class Convolution {
 public:
  // Unimplemented if oneDNN has only its reference implementation, which is hundreds of times too slow, or if a
  // pad_before is negative. With
  // `packed_like` the filter must be packed as for that convolution, so that both can share one packed filter.
  static absl::StatusOr<std::shared_ptr<const Convolution>> Create(const ConvProblem& problem,
                                                                   const Convolution* packed_like = nullptr);
  ~Convolution();
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  // "brgconv:avx512_core" and the like.
  const std::string& implementation() const;
  int64_t packed_bytes() const;
  int64_t scratch_bytes() const;
  // True if a filter packed for one serves the other.
  bool SamePacking(const Convolution& other) const;

  // Writes packed_bytes() bytes.
  absl::Status Pack(const float* filter, void* packed) const;
  // `scratch` has scratch_bytes() bytes of the caller's alone.
  absl::Status Run(const float* in, const void* packed, float* out, void* scratch) const;

 private:
  struct Impl;
  explicit Convolution(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg::onednn
