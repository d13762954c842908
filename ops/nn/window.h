// Windows that slide over the spatial dimensions of an image: strides, dilations, padding and layout as convolutions
// and pools declare them, and the arithmetic from input sizes to output sizes.
//
// Pure functions; errors are InvalidArgument unless stated and name the attribute or sizes at fault. All sizes are
// checked 64-bit arithmetic; attributes above 2^31 - 1 are refused.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

enum class Padding : uint8_t { kSame, kValid, kExplicit };

// One dimension as declared: what does not depend on the input.
struct WindowDim {
  int64_t size = 1;  // of the window itself; for convolutions the filter decides, and this stays 1
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t explicit_before = 0;
  int64_t explicit_after = 0;
};

// The window of a node with `spatial` spatial dimensions in an image of rank spatial + 2.
struct WindowAttrs {
  int spatial = 2;
  bool channels_first = false;
  Padding padding = Padding::kValid;
  absl::InlinedVector<WindowDim, 3> dims;  // spatial ones, outermost first
  WindowDim batch, channels;

  int rank() const { return spatial + 2; }
  int channel_dim() const { return channels_first ? 1 : spatial + 1; }
  int spatial_dim(int i) const { return channels_first ? i + 2 : i + 1; }
};

// Reads strides, padding, data_format, and where the op has them dilations and explicit_paddings. Refuses what no shape
// can be inferred with: lists of another length, spatial strides and dilations that are not positive, bad padding.
absl::StatusOr<WindowAttrs> ParseWindowAttrs(const NodeAttrs& attrs, int spatial);
// The same for pools, whose windows are attributes or (MaxPoolV2) inputs.
absl::StatusOr<WindowAttrs> ParsePoolAttrs(const NodeAttrs& attrs, absl::Span<const int64_t> ksize,
                                           absl::Span<const int64_t> strides);

// What kernels ask for besides. Graphs that miss it load and fail when the node runs, as with TensorFlow. Convolutions:
// stride and dilation 1 along batch and channels. Pools: windows and strides from 1 to 2^31 - 1, explicit paddings
// smaller than the window; Unimplemented for a window along the batch.
absl::Status CheckConvWindow(const WindowAttrs& window);
absl::Status CheckPoolWindow(const WindowAttrs& window);

// Where one dimension's windows lie.
struct WindowFit {
  int64_t out = 0;
  int64_t pad_before = 0;
  int64_t pad_after = 0;  // as far as the last window reaches; negative where it ends before the input does
};

// Requires in >= 0 and window >= 0.
absl::StatusOr<WindowFit> FitWindow(int64_t in, int64_t window, const WindowDim& dim, Padding padding);

// The output size for shape functions: any argument may be unknown or a symbol, and stays one if nothing changes it.
// Where all is known, a window that sticks out of the padded input is refused, even if FitWindow would say "no output".
absl::StatusOr<int64_t> WindowedDim(int64_t in, int64_t window, const WindowDim& dim, Padding padding);

}  // namespace thalweg
