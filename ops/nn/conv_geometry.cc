#include "thalweg/ops/nn/conv_geometry.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

struct Channels {
  int64_t out = 0;
  int64_t groups = 0;
};

// How input and filter channels fit together; `filter_shape` is for messages.
absl::StatusOr<Channels> FitChannels(ConvKind kind, int64_t in, int64_t filter_in, int64_t filter_out,
                                     const std::string& filter_shape) {
  if (kind == ConvKind::kDepthwise) {
    int64_t out;
    if (filter_in != in) {
      return absl::InvalidArgumentError(absl::StrCat("the input has ", in, " channels but the filter, of shape ",
                                                     filter_shape, ", takes ", filter_in));
    }
    if (!CheckedMul(in, filter_out, &out))
      return absl::InvalidArgumentError(absl::StrCat("a filter of shape ", filter_shape, " gives too many channels"));
    return Channels{out, in};
  }
  if (filter_in == 0 || in % filter_in != 0 || (kind == ConvKind::kUngrouped && in != filter_in)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", in, " channels, which the filter, of shape ", filter_shape,
                     ", cannot take: the last dimension but one must be ",
                     kind == ConvKind::kUngrouped ? "that number" : "a divisor of that number"));
  }
  const int64_t groups = in / filter_in;
  if (groups > 0 && filter_out % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the filter, of shape ", filter_shape, ", has ", filter_out,
                                                   " output channels, which do not divide into ", groups, " groups"));
  }
  return Channels{filter_out, groups};
}

absl::Status CheckFilterWindow(ConvKind kind, const WindowAttrs& window, const Shape& filter) {
  for (int i = 0; i < window.spatial; ++i) {
    if (filter.dim(i) == 0 && kind != ConvKind::kDepthwise) return EmptyFilter(filter);
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const WindowAttrs& window, int input_rank, int filter_rank, absl::string_view shapes) {
  if (input_rank == window.rank() && filter_rank == window.rank()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input and filter must have rank ", window.rank(), " but have the shapes ", shapes));
}

// `in` are the input's channels, of which the filter of a depthwise convolution has as many.
absl::StatusOr<int64_t> OutputChannels(ConvKind kind, int64_t in, const PartialShape& filter, int spatial) {
  if (kind != ConvKind::kDepthwise) return filter.dim(spatial + 1);
  return ShapeContext::MulDims(IsKnownDim(in) ? in : filter.dim(spatial), filter.dim(spatial + 1));
}

absl::Status ConvShape(ShapeContext& c, ConvKind kind, int spatial) {
  THALWEG_ASSIGN_OR_RETURN(const WindowAttrs window, ParseWindowAttrs(c.attrs(), spatial));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, window.rank()));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, window.rank()));
  const PartialShape input = c.input(0).has_rank() ? c.input(0) : PartialShape::UnknownOfRank(window.rank());
  const PartialShape filter = c.input(1).has_rank() ? c.input(1) : PartialShape::UnknownOfRank(window.rank());
  const int64_t in = input.dim(window.channel_dim());
  const int64_t filter_in = filter.dim(spatial), filter_out = filter.dim(spatial + 1);
  if (IsKnownDim(in) && IsKnownDim(filter_in)) {
    // An unknown number of outputs may turn out as one that fits: as none does.
    const int64_t out = IsKnownDim(filter_out) ? filter_out : 0;
    THALWEG_RETURN_IF_ERROR(FitChannels(kind, in, filter_in, out, filter.ToString()).status());
  }
  Dims dims(window.rank());
  dims[0] = input.dim(0);
  THALWEG_ASSIGN_OR_RETURN(dims[window.channel_dim()], OutputChannels(kind, in, filter, spatial));
  for (int i = 0; i < spatial; ++i) {
    const int d = window.spatial_dim(i);
    THALWEG_ASSIGN_OR_RETURN(dims[d], WindowedDim(input.dim(d), filter.dim(i), window.dims[i], window.padding));
  }
  PartialShape out = PartialShape::OfDims(std::move(dims));
  if (out.IsFullyKnown()) THALWEG_RETURN_IF_ERROR(out.ToShape().status());
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Two operations per multiply-add, of which each of `elements` takes as many as the filter's dimensions up to this one have.
NodeCost CostWithTaps(const CostContext& c, const PartialShape& filter, int last_tap_dim, double elements) {
  NodeCost cost = CopyCost(c);
  double taps = 1;
  for (int i = 0; i <= last_tap_dim && i < filter.rank(); ++i)
    taps *= IsKnownDim(filter.dim(i)) ? static_cast<double>(filter.dim(i)) : 1;
  cost.flops = 2 * taps * elements;
  return cost;
}

}  // namespace

absl::Status EmptyFilter(const Shape& filter) {
  return absl::InvalidArgumentError(absl::StrCat("the filter must not be empty but has shape ", filter.ToString()));
}

absl::StatusOr<ConvGeometry> FitConvolution(const WindowAttrs& window, ConvKind kind, const Shape& input,
                                            const Shape& filter) {
  THALWEG_RETURN_IF_ERROR(
      CheckRanks(window, input.rank(), filter.rank(), absl::StrCat(input.ToString(), " and ", filter.ToString())));
  THALWEG_RETURN_IF_ERROR(CheckFilterWindow(kind, window, filter));
  THALWEG_ASSIGN_OR_RETURN(const Channels channels,
                           FitChannels(kind, input.dim(window.channel_dim()), filter.dim(window.spatial),
                                       filter.dim(window.spatial + 1), filter.ToString()));
  ConvGeometry g;
  g.problem.spatial = window.spatial;
  g.problem.batch = input.dim(0);
  g.problem.in_channels = input.dim(window.channel_dim());
  g.problem.out_channels = channels.out;
  g.problem.groups = channels.groups;
  Dims out(window.rank());
  out[0] = input.dim(0);
  out[window.channel_dim()] = channels.out;
  for (int i = 0; i < window.spatial; ++i) {
    const int d = window.spatial_dim(i);
    THALWEG_ASSIGN_OR_RETURN(WindowFit fit, FitWindow(input.dim(d), filter.dim(i), window.dims[i], window.padding));
    if (window.spatial == 3 && window.padding == Padding::kSame) {
      // TensorFlow's Conv3D centres the windows even where they leave input over: the padding may be negative.
      const int64_t pads = fit.pad_before + fit.pad_after;
      fit.pad_before = pads / 2;
      fit.pad_after = pads - fit.pad_before;
    }
    g.problem.dims[i] = {input.dim(d),   fit.out,      filter.dim(i), window.dims[i].stride, window.dims[i].dilation,
                         fit.pad_before, fit.pad_after};
    out[d] = fit.out;
  }
  THALWEG_ASSIGN_OR_RETURN(g.output, Shape::Make(out));
  g.trivial = g.output.num_elements() == 0 || input.num_elements() == 0 || filter.num_elements() == 0;
  return g;
}

absl::Status Conv2DShape(ShapeContext& c) { return ConvShape(c, ConvKind::kPlain, 2); }
// Groups are the kernel's to refuse.
absl::Status Conv3DShape(ShapeContext& c) { return ConvShape(c, ConvKind::kPlain, 3); }
absl::Status DepthwiseConv2DShape(ShapeContext& c) { return ConvShape(c, ConvKind::kDepthwise, 2); }

NodeCost ConvCost(const CostContext& c) { return CostWithTaps(c, c.input(1), c.input(1).rank() - 2, c.OutputElements(0)); }
NodeCost DepthwiseConvCost(const CostContext& c) { return CostWithTaps(c, c.input(1), c.input(1).rank() - 3, c.OutputElements(0)); }

NodeCost ConvBackpropCost(const CostContext& c, const PartialShape& filter) {
  return CostWithTaps(c, filter, 2, c.InputElements(2));
}

}  // namespace thalweg
