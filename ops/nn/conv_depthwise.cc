#include <algorithm>

#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/conv_compute.h"

namespace thalweg {
namespace {

using onednn::ConvProblem;

// acc[c] += in[c] * taps[c].
template <typename T>
THALWEG_CLONES void MultiplyAdd(const T* in, const T* taps, int64_t channels, T* acc) {
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c) acc[c] += in[c] * taps[c];
}

// One output row of one image.
template <typename T>
void ConvolveRow(const ConvProblem& p, const T* image, const T* filter, int64_t row, T* out) {
  const ConvProblem::Dim& y = p.dims[0];
  const ConvProblem::Dim& x = p.dims[1];
  const int64_t channels = p.in_channels;
  std::fill_n(out, x.out * channels, T(0));
  for (int64_t ky = 0; ky < y.window; ++ky) {
    const int64_t iy = row * y.stride + ky * y.dilation - y.pad_before;
    if (iy < 0 || iy >= y.in) continue;
    for (int64_t ox = 0; ox < x.out; ++ox) {
      for (int64_t kx = 0; kx < x.window; ++kx) {
        const int64_t ix = ox * x.stride + kx * x.dilation - x.pad_before;
        if (ix < 0 || ix >= x.in) continue;
        MultiplyAdd(image + (iy * x.in + ix) * channels, filter + (ky * x.window + kx) * channels, channels,
                    out + ox * channels);
      }
    }
  }
}

}  // namespace

template <typename T>
void DepthwiseConvolution(KernelContext& ctx, const ConvProblem& p, const T* in, const T* filter,
                          const Epilogue<T>& epilogue, T* out) {
  const int64_t rows = p.dims[0].out, row_pixels = p.dims[1].out;
  const int64_t in_image = p.dims[0].in * p.dims[1].in * p.in_channels;
  const double nanos = 0.1 * static_cast<double>(row_pixels * p.out_channels) * static_cast<double>(p.FilterTaps());
  ctx.ParallelFor(p.batch * rows, nanos, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ConvolveRow(p, in + i / rows * in_image, filter, i % rows, out + i * row_pixels * p.out_channels);
      ApplyEpilogue(epilogue, i * row_pixels, (i + 1) * row_pixels, p.out_channels, out);
    }
  });
}

template void DepthwiseConvolution<float>(KernelContext&, const ConvProblem&, const float*, const float*,
                                          const Epilogue<float>&, float*);
template void DepthwiseConvolution<double>(KernelContext&, const ConvProblem&, const double*, const double*,
                                           const Epilogue<double>&, double*);

}  // namespace thalweg
