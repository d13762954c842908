#include "thalweg/ops/nn/window.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

std::string ListString(absl::Span<const int64_t> values) { return absl::StrCat("[", absl::StrJoin(values, ","), "]"); }

absl::Status CheckLength(absl::string_view name, absl::Span<const int64_t> values, size_t length) {
  if (values.size() == length) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must have ", length, " numbers, one per dimension, but is ", ListString(values)));
}

absl::Status OutOfRange(absl::string_view name, absl::string_view values, int64_t least) {
  return absl::InvalidArgumentError(absl::StrCat(name, " must be between ", least, " and 2^31 - 1 but is ", values));
}

// A list with one number per dimension of the image; the spatial ones are positive.
absl::Status CheckList(absl::string_view name, absl::Span<const int64_t> values, const WindowAttrs& window) {
  THALWEG_RETURN_IF_ERROR(CheckLength(name, values, window.rank()));
  for (int i = 0; i < window.spatial; ++i) {
    const int64_t v = values[window.spatial_dim(i)];
    if (v < 1 || v > kLargest) return OutOfRange(name, ListString(values), 1);
  }
  return absl::OkStatus();
}

absl::Status ParseLayout(const NodeAttrs& attrs, WindowAttrs* window) {
  const std::string format = attrs.GetOr<std::string>("data_format", window->spatial == 3 ? "NDHWC" : "NHWC");
  if (format == "NHWC" || format == "NDHWC") {
    window->channels_first = false;
  } else if (format == "NCHW" || format == "NCDHW") {
    window->channels_first = true;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("data_format ", format, " is not supported; use NHWC or NCHW"));
  }
  return absl::OkStatus();
}

absl::Status ParseExplicitPaddings(const NodeAttrs& attrs, WindowAttrs* window) {
  const std::vector<int64_t> pads = attrs.GetOr<std::vector<int64_t>>("explicit_paddings", {});
  if (window->padding != Padding::kExplicit) {
    if (pads.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("explicit_paddings ", ListString(pads), " need padding EXPLICIT"));
  }
  THALWEG_RETURN_IF_ERROR(CheckLength("explicit_paddings", pads, 2 * window->rank()));
  for (int64_t pad : pads) {
    if (pad < 0 || pad > kLargest) return OutOfRange("explicit_paddings", ListString(pads), 0);
  }
  const int channel = window->channel_dim();
  if (pads[0] != 0 || pads[1] != 0 || pads[2 * channel] != 0 || pads[2 * channel + 1] != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("explicit_paddings must be 0 along batch and channels but are ", ListString(pads)));
  }
  for (int i = 0; i < window->spatial; ++i) {
    window->dims[i].explicit_before = pads[2 * window->spatial_dim(i)];
    window->dims[i].explicit_after = pads[2 * window->spatial_dim(i) + 1];
  }
  return absl::OkStatus();
}

absl::Status ParsePadding(const NodeAttrs& attrs, WindowAttrs* window) {
  THALWEG_ASSIGN_OR_RETURN(const std::string padding, attrs.Get<std::string>("padding"));
  if (padding == "SAME") {
    window->padding = Padding::kSame;
  } else if (padding == "VALID") {
    window->padding = Padding::kValid;
  } else if (padding == "EXPLICIT") {
    window->padding = Padding::kExplicit;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("padding must be SAME, VALID or EXPLICIT but is ", padding));
  }
  return ParseExplicitPaddings(attrs, window);
}

// Layout and padding, with room for the spatial dimensions.
absl::StatusOr<WindowAttrs> ParseCommon(const NodeAttrs& attrs, int spatial) {
  WindowAttrs window;
  window.spatial = spatial;
  window.dims.resize(spatial);
  THALWEG_RETURN_IF_ERROR(ParseLayout(attrs, &window));
  THALWEG_RETURN_IF_ERROR(ParsePadding(attrs, &window));
  return window;
}

// The extent of a dilated window. Requires window >= 0; dilation is at most 2^31 - 1.
bool DilatedExtent(int64_t window, int64_t dilation, int64_t* extent) {
  return CheckedMul(window - 1, dilation, extent) && CheckedAdd(*extent, 1, extent);
}

}  // namespace

absl::StatusOr<WindowAttrs> ParseWindowAttrs(const NodeAttrs& attrs, int spatial) {
  THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParseCommon(attrs, spatial));
  THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, attrs.Get<std::vector<int64_t>>("strides"));
  THALWEG_RETURN_IF_ERROR(CheckList("strides", strides, window));
  const std::vector<int64_t> dilations =
      attrs.GetOr<std::vector<int64_t>>("dilations", std::vector<int64_t>(window.rank(), 1));
  THALWEG_RETURN_IF_ERROR(CheckList("dilations", dilations, window));
  const auto read = [&](WindowDim& dim, int d) {
    dim.stride = strides[d];
    dim.dilation = dilations[d];
  };
  read(window.batch, 0);
  read(window.channels, window.channel_dim());
  for (int i = 0; i < spatial; ++i) read(window.dims[i], window.spatial_dim(i));
  return window;
}

absl::StatusOr<WindowAttrs> ParsePoolAttrs(const NodeAttrs& attrs, absl::Span<const int64_t> ksize,
                                           absl::Span<const int64_t> strides) {
  THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParseCommon(attrs, /*spatial=*/2));
  THALWEG_RETURN_IF_ERROR(CheckLength("ksize", ksize, window.rank()));
  THALWEG_RETURN_IF_ERROR(CheckList("strides", strides, window));
  const auto read = [&](WindowDim& dim, int d) {
    dim.size = ksize[d];
    dim.stride = strides[d];
  };
  read(window.batch, 0);
  read(window.channels, window.channel_dim());
  for (int i = 0; i < window.spatial; ++i) read(window.dims[i], window.spatial_dim(i));
  return window;
}

absl::Status CheckConvWindow(const WindowAttrs& window) {
  for (const WindowDim* dim : {&window.batch, &window.channels}) {
    if (dim->stride == 1 && dim->dilation == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("strides and dilations must be 1 along batch and channels; one stride is ", dim->stride,
                     ", its dilation ", dim->dilation));
  }
  return absl::OkStatus();
}

absl::Status CheckPoolWindow(const WindowAttrs& window) {
  const auto in_range = [](const WindowDim& d) {
    return d.size >= 1 && d.size <= kLargest && d.stride >= 1 && d.stride <= kLargest;
  };
  absl::InlinedVector<WindowDim, 5> all(window.dims.begin(), window.dims.end());
  all.push_back(window.batch);
  all.push_back(window.channels);
  for (const WindowDim& dim : all) {
    if (!in_range(dim)) return OutOfRange("a window or its stride", absl::StrCat(dim.size, ", ", dim.stride), 1);
  }
  if (window.batch.size != 1 || window.batch.stride != 1) {
    return absl::UnimplementedError(absl::StrCat("pooling over the batch is not supported; window and stride are ",
                                                 window.batch.size, " and ", window.batch.stride));
  }
  for (const WindowDim& dim : window.dims) {
    if (dim.explicit_before < dim.size && dim.explicit_after < dim.size) continue;
    return absl::InvalidArgumentError(absl::StrCat("explicit_paddings (", dim.explicit_before, ", ", dim.explicit_after,
                                                   ") must be smaller than the window, which is ", dim.size));
  }
  return absl::OkStatus();
}

absl::StatusOr<WindowFit> FitWindow(int64_t in, int64_t window, const WindowDim& dim, Padding padding) {
  int64_t extent, reach, needed;
  if (!DilatedExtent(window, dim.dilation, &extent)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", window, " with dilation ", dim.dilation, " is too large"));
  }
  WindowFit fit;
  if (padding == Padding::kSame) {
    fit.out = in / dim.stride + (in % dim.stride != 0 ? 1 : 0);
  } else {
    fit.pad_before = dim.explicit_before;
    const int64_t pads = dim.explicit_before + dim.explicit_after;  // each below 2^31
    int64_t padded;
    if (!CheckedAdd(in, pads, &padded) || !CheckedAdd(padded, dim.stride, &reach)) {
      return absl::InvalidArgumentError(absl::StrCat("an input of ", in, " with padding ", pads, " is too large"));
    }
    // Truncation towards zero: a window that sticks out by less than a stride gives no output, not an error.
    fit.out = (reach - extent) / dim.stride;
    if (fit.out < 0) {
      return absl::InvalidArgumentError(absl::StrCat("a window of ", extent, " does not fit into an input of ", padded,
                                                     " (stride ", dim.stride, ")"));
    }
  }
  if (fit.out == 0) return fit;
  if (!CheckedMul(fit.out - 1, dim.stride, &needed) || !CheckedAdd(needed, extent, &needed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("windows of ", extent, " with stride ", dim.stride, " over ", in, " reach too far"));
  }
  if (padding == Padding::kSame) fit.pad_before = needed > in ? (needed - in) / 2 : 0;
  fit.pad_after = needed - in - fit.pad_before;
  return fit;
}

absl::StatusOr<int64_t> WindowedDim(int64_t in, int64_t window, const WindowDim& dim, Padding padding) {
  const int64_t pads = padding == Padding::kSame ? 0 : dim.explicit_before + dim.explicit_after;
  if (IsKnownDim(in) && IsKnownDim(window)) {
    int64_t extent, padded;
    if (padding != Padding::kSame && DilatedExtent(window, dim.dilation, &extent) && CheckedAdd(in, pads, &padded) &&
        extent > padded) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of ", extent, " is larger than the input, which is ", padded));
    }
    THALWEG_ASSIGN_OR_RETURN(const WindowFit fit, FitWindow(in, window, dim, padding));
    return fit.out;
  }
  if (dim.stride == 1 && (padding == Padding::kSame || (window == 1 && pads == 0))) return in;
  if (padding == Padding::kSame && IsKnownDim(in)) return in / dim.stride + (in % dim.stride != 0 ? 1 : 0);
  return kUnknownDim;
}

}  // namespace thalweg
