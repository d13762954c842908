#include <algorithm>
#include <cstring>

#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/nn/conv_compute.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

using onednn::ConvProblem;
using Dim = ConvProblem::Dim;

// Patches of this size are built at a time, so that the product finds them in cache.
constexpr int64_t kPatchBytes = 256 * 1024;

// The problem with three spatial dimensions, the missing ones outermost and of size 1.
std::array<Dim, 3> ThreeDims(const ConvProblem& p) {
  if (p.spatial == 3) return p.dims;
  return {Dim(), p.dims[0], p.dims[1]};
}

// Where the windows of a problem find their input.
template <typename T>
class PatchReader {
 public:
  PatchReader(const ConvProblem& p, const T* image, int64_t first_channel)
      : dims_(ThreeDims(p)),
        pixel_(p.in_channels),
        channels_(p.in_channels / p.groups),
        image_(image + first_channel) {}

  // The patch of output position `position`: window positions in order, each with the channels of the group.
  T* Read(int64_t position, T* out) const {
    const int64_t x = position % dims_[2].out, y = position / dims_[2].out % dims_[1].out,
                  z = position / dims_[2].out / dims_[1].out;
    for (int64_t kz = 0; kz < dims_[0].window; ++kz) {
      const int64_t iz = At(dims_[0], z, kz);
      for (int64_t ky = 0; ky < dims_[1].window; ++ky) {
        const int64_t iy = At(dims_[1], y, ky);
        out = ReadRow(Inside(dims_[0], iz) && Inside(dims_[1], iy), (iz * dims_[1].in + iy) * dims_[2].in, x, out);
      }
    }
    return out;
  }

 private:
  static int64_t At(const Dim& d, int64_t out, int64_t tap) { return out * d.stride + tap * d.dilation - d.pad_before; }
  static bool Inside(const Dim& d, int64_t in) { return in >= 0 && in < d.in; }

  T* ReadRow(bool inside, int64_t row, int64_t x, T* out) const {
    for (int64_t kx = 0; kx < dims_[2].window; ++kx, out += channels_) {
      const int64_t ix = At(dims_[2], x, kx);
      if (inside && Inside(dims_[2], ix)) std::memcpy(out, image_ + (row + ix) * pixel_, channels_ * sizeof(T));
      else std::fill_n(out, channels_, T(0));
    }
    return out;
  }

  const std::array<Dim, 3> dims_;
  const int64_t pixel_, channels_;
  const T* const image_;
};

// True if every patch is one pixel and patches are in the order of pixels: then no copy is needed.
bool PatchesAreInput(const ConvProblem& p) {
  return std::all_of(p.dims.begin(), p.dims.end(),
                     [](const Dim& d) { return d.window == 1 && d.stride == 1 && d.pad_before == 0 && d.out == d.in; });
}

// Output positions [begin, end) of one image. `patches` has room for them.
template <typename T>
absl::Status ConvolvePositions(const ConvProblem& p, const T* image, const T* filter, int64_t begin, int64_t end,
                               T* patches, T* out) {
  const int64_t channels = p.in_channels / p.groups, out_channels = p.out_channels / p.groups;
  GemmArgs<T> gemm;
  gemm.m = end - begin;
  gemm.n = out_channels;
  gemm.k = p.FilterTaps() * channels;
  gemm.ldb = gemm.ldc = p.out_channels;
  for (int64_t g = 0; g < p.groups; ++g) {
    if (PatchesAreInput(p)) {
      gemm.a = image + begin * p.in_channels + g * channels;
      gemm.lda = p.in_channels;
    } else {
      const PatchReader<T> reader(p, image, g * channels);
      T* next = patches;
      for (int64_t position = begin; position < end; ++position) next = reader.Read(position, next);
      gemm.a = patches;
      gemm.lda = gemm.k;
    }
    gemm.b = filter + g * out_channels;
    gemm.c = out + begin * p.out_channels + g * out_channels;
    THALWEG_RETURN_IF_ERROR(Gemm(gemm));
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::Status PatchConvolution(KernelContext& ctx, const ConvProblem& p, const T* in, const T* filter,
                              const Epilogue<T>& epilogue, T* out) {
  const int64_t depth = p.FilterTaps() * (p.in_channels / p.groups);
  const int64_t in_image = p.dims[0].in * p.dims[1].in * p.dims[2].in * p.in_channels;
  const int64_t positions = p.Positions();
  const int64_t per_task =
      std::clamp<int64_t>(kPatchBytes / static_cast<int64_t>(sizeof(T)) / depth, 16, std::max<int64_t>(positions, 16));
  const int64_t tasks_per_image = (positions + per_task - 1) / per_task;
  const double nanos = GemmNanos(DTypeOf<T>::value, per_task, p.out_channels, depth);
  FirstError error;
  ctx.ParallelFor(p.batch * tasks_per_image, nanos, [&](int64_t begin, int64_t end) {
    const int64_t patch_elements = PatchesAreInput(p) ? 0 : std::min(per_task, positions) * depth;
    absl::StatusOr<Tensor> patches = ctx.AllocateTemp(DTypeOf<T>::value, Shape::Of({patch_elements}));
    if (!patches.ok()) return error.Update(patches.status());
    for (int64_t task = begin; task < end && !ctx.step().cancelled(); ++task) {
      const int64_t image = task / tasks_per_image, first = task % tasks_per_image * per_task;
      const int64_t last = std::min(first + per_task, positions);
      error.Update(ConvolvePositions(p, in + image * in_image, filter, first, last,
                                     static_cast<T*>(patches->mutable_raw()),
                                     out + image * positions * p.out_channels));
      if constexpr (!std::is_integral_v<T>) {
        ApplyEpilogue(epilogue, image * positions + first, image * positions + last, p.out_channels, out);
      }
    }
  });
  return error.status();
}

template <typename T>
void ReadPatches(const ConvProblem& p, const T* image, int64_t begin, int64_t end, T* patches) {
  const PatchReader<T> reader(p, image, 0);
  for (int64_t position = begin; position < end; ++position) patches = reader.Read(position, patches);
}

template void ReadPatches<float>(const ConvProblem&, const float*, int64_t, int64_t, float*);
template void ReadPatches<double>(const ConvProblem&, const double*, int64_t, int64_t, double*);
template absl::Status PatchConvolution<float>(KernelContext&, const ConvProblem&, const float*, const float*,
                                              const Epilogue<float>&, float*);
template absl::Status PatchConvolution<double>(KernelContext&, const ConvProblem&, const double*, const double*,
                                               const Epilogue<double>&, double*);
template absl::Status PatchConvolution<int32_t>(KernelContext&, const ConvProblem&, const int32_t*, const int32_t*,
                                                const Epilogue<int32_t>&, int32_t*);

}  // namespace thalweg
