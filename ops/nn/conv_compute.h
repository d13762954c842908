// The arithmetic of convolutions over dense channels-last images.
//
// float goes to oneDNN: the filter is packed once where it is constant, and images or rows of images are split over the
// session's threads by pointer offsets, which changes no bit. What oneDNN would do with its reference code, and all
// other types, are products of patches and filter (im2col). An epilogue is applied to each piece while it is in cache.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/ops/common/epilogue.h"
#include "thalweg/ops/common/onednn.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// How one float convolution is cut into primitives.
struct ConvPlan;

// Convolutions of one node. Thread-safe; keeps the plans of the last few input shapes and the packed filter.
class FloatConvolver {
 public:
  // `constant_filter`: every Run brings the same filter.
  explicit FloatConvolver(bool constant_filter) : constant_filter_(constant_filter) {}
  ~FloatConvolver();

  // Compiles for this problem and packs the filter, which is the constant input 1, so that the first step need not. What
  // fails here fails again in Run, which reports it. Does nothing on devices with memory of their own: only their streams
  // may touch it.
  void Prepare(const KernelInit& init, const onednn::ConvProblem& problem, bool has_epilogue);

  // `in` and `out` are channels-last. `filter` may be of a type that is computed in float.
  absl::Status Run(KernelContext& ctx, const onednn::ConvProblem& problem, const float* in, const Tensor& filter,
                   const Epilogue<float>& epilogue, float* out);

 private:
  using PlanPtr = std::shared_ptr<const ConvPlan>;
  // Null where oneDNN cannot do it.
  absl::StatusOr<PlanPtr> FindPlan(KernelContext& ctx, const onednn::ConvProblem& problem, bool small_pieces,
                                   const Tensor& filter);
  static absl::StatusOr<std::shared_ptr<ConvPlan>> MakePlan(const onednn::ConvProblem& problem, int threads,
                                                            bool small_pieces);
  void Keep(PlanPtr plan);
  PlanPtr Lookup(const onednn::ConvProblem& problem, int threads, bool small_pieces);
  // The constant filter as this plan wants it: that of another plan if they agree, else newly packed.
  absl::StatusOr<Tensor> PackedFilter(KernelContext& ctx, const onednn::Convolution& convolution, const Tensor& filter);
  absl::Status RunPlan(KernelContext& ctx, const ConvPlan& plan, const float* in, const Tensor& filter,
                       const Epilogue<float>& epilogue, float* out);

  const bool constant_filter_;
  std::mutex mutex_;
  std::vector<PlanPtr> plans_;  // most recently made last
};

// The same for float, double and int32 by patches times filter. T's Gemm must exist.
template <typename T>
absl::Status PatchConvolution(KernelContext& ctx, const onednn::ConvProblem& problem, const T* in, const T* filter,
                              const Epilogue<T>& epilogue, T* out);

// The patches of output positions [begin, end) of one channels-last image, each with FilterTaps() * in_channels elements. For
// float and double, and ungrouped problems.
template <typename T>
void ReadPatches(const onednn::ConvProblem& problem, const T* image, int64_t begin, int64_t end, T* patches);

// Depthwise convolutions with as many output as input channels, for float and double.
template <typename T>
void DepthwiseConvolution(KernelContext& ctx, const onednn::ConvProblem& problem, const T* in, const T* filter,
                          const Epilogue<T>& epilogue, T* out);

}  // namespace thalweg
