// Conv2D, Conv3D, DepthwiseConv2dNative, Conv2DBackpropInput and the fused forms against their definitions.
#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "thalweg/ops/common/elementwise.h"
#include "thalweg/ops/nn/conv_geometry.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg::testing {
namespace {

struct ConvCase {
  int64_t batch, height, width, in_channels;
  int64_t kernel_h, kernel_w, filter_in, out_channels;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  const char* padding = "SAME";
  std::vector<int64_t> explicit_paddings;
};

std::vector<int64_t> PerDim(int64_t h, int64_t w, bool channels_first) {
  return channels_first ? std::vector<int64_t>{1, 1, h, w} : std::vector<int64_t>{1, h, w, 1};
}

// The definition, on channels-last data, in double.
std::vector<float> Convolve(const ConvCase& c, const std::vector<float>& in, const std::vector<float>& filter) {
  WindowAttrs window;
  window.dims.resize(2);
  window.padding = std::string(c.padding) == "SAME"    ? Padding::kSame
                   : std::string(c.padding) == "VALID" ? Padding::kValid
                                                       : Padding::kExplicit;
  window.dims[0] = {.stride = c.stride_h, .dilation = c.dilation_h};
  window.dims[1] = {.stride = c.stride_w, .dilation = c.dilation_w};
  if (!c.explicit_paddings.empty()) {
    for (int i = 0; i < 2; ++i) {
      window.dims[i].explicit_before = c.explicit_paddings[2 * (i + 1)];
      window.dims[i].explicit_after = c.explicit_paddings[2 * (i + 1) + 1];
    }
  }
  const WindowFit y = *FitWindow(c.height, c.kernel_h, window.dims[0], window.padding);
  const WindowFit x = *FitWindow(c.width, c.kernel_w, window.dims[1], window.padding);
  const int64_t per_group = c.out_channels / (c.in_channels / c.filter_in);
  std::vector<float> out;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t oy = 0; oy < y.out; ++oy)
      for (int64_t ox = 0; ox < x.out; ++ox)
        for (int64_t oc = 0; oc < c.out_channels; ++oc) {
          double sum = 0;
          for (int64_t ky = 0; ky < c.kernel_h; ++ky)
            for (int64_t kx = 0; kx < c.kernel_w; ++kx)
              for (int64_t ic = 0; ic < c.filter_in; ++ic) {
                const int64_t iy = oy * c.stride_h + ky * c.dilation_h - y.pad_before,
                              ix = ox * c.stride_w + kx * c.dilation_w - x.pad_before;
                if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width) continue;
                const int64_t channel = oc / per_group * c.filter_in + ic;
                sum += in[((n * c.height + iy) * c.width + ix) * c.in_channels + channel] *
                       filter[((ky * c.kernel_w + kx) * c.filter_in + ic) * c.out_channels + oc];
              }
          out.push_back(static_cast<float>(sum));
        }
  return out;
}

// [N, H, W, C] -> [N, C, H, W].
std::vector<float> ChannelsFirst(const std::vector<float>& in, int64_t n, int64_t pixels, int64_t channels) {
  std::vector<float> out(in.size());
  for (int64_t b = 0; b < n; ++b)
    for (int64_t p = 0; p < pixels; ++p)
      for (int64_t c = 0; c < channels; ++c) out[(b * channels + c) * pixels + p] = in[(b * pixels + p) * channels + c];
  return out;
}

const ConvCase kCases[] = {
    {1, 4, 4, 1, 2, 2, 1, 1, 1, 1, 1, 1, "VALID", {}},
    {2, 5, 7, 3, 3, 3, 3, 4, 1, 1, 1, 1, "SAME", {}},
    {2, 5, 7, 3, 3, 3, 3, 4, 2, 2, 1, 1, "SAME", {}},
    {1, 9, 8, 2, 3, 3, 2, 2, 1, 1, 2, 3, "VALID", {}},
    {1, 6, 6, 2, 3, 3, 2, 2, 1, 1, 1, 1, "EXPLICIT", {0, 0, 1, 2, 0, 3, 0, 0}},
    {1, 4, 4, 2, 2, 2, 2, 2, 2, 2, 1, 1, "EXPLICIT", {0, 0, 3, 0, 2, 1, 0, 0}},  // more padding than window
    {1, 5, 5, 3, 1, 1, 3, 5, 2, 3, 1, 1, "SAME", {}},
    {1, 8, 8, 4, 3, 3, 2, 6, 1, 1, 1, 1, "SAME", {}},   // two groups
    {1, 5, 5, 4, 3, 3, 1, 4, 1, 1, 1, 1, "VALID", {}},  // as many groups as channels
    {1, 3, 4, 1, 5, 7, 1, 2, 1, 1, 1, 1, "SAME", {}},   // the window is larger than the image
    {1, 7, 7, 1, 2, 2, 1, 2, 4, 3, 1, 1, "SAME", {}},   // the stride is larger than the window
    {3, 1, 1, 8, 1, 1, 8, 3, 1, 1, 1, 1, "VALID", {}},
    {1, 9, 9, 37, 3, 3, 37, 19, 1, 1, 1, 1, "SAME", {}},
};

OpRunner& SetAttrs(OpRunner& op, const ConvCase& c, bool channels_first) {
  op.With("strides", MakeListAttr(PerDim(c.stride_h, c.stride_w, channels_first)))
      .With("dilations", MakeListAttr(PerDim(c.dilation_h, c.dilation_w, channels_first)))
      .With("padding", c.padding)
      .With("data_format", channels_first ? "NCHW" : "NHWC");
  if (!c.explicit_paddings.empty()) {
    const std::vector<int64_t>& p = c.explicit_paddings;
    op.With("explicit_paddings",
            MakeListAttr(channels_first ? std::vector<int64_t>{0, 0, 0, 0, p[2], p[3], p[4], p[5]} : p));
  }
  return op;
}

template <typename T>
std::vector<T> As(const std::vector<float>& values) {
  std::vector<T> out;
  for (float v : values) out.push_back(T(v));
  return out;
}

template <typename T>
Tensor RunConv2D(const ConvCase& c, const std::vector<float>& in, const std::vector<float>& filter) {
  OpRunner op("Conv2D");
  SetAttrs(op, c, false).Input(MakeTensor(As<T>(in), {c.batch, c.height, c.width, c.in_channels}));
  op.Input(MakeTensor(As<T>(filter), {c.kernel_h, c.kernel_w, c.filter_in, c.out_channels}));
  const absl::StatusOr<Tensor> out = op.RunOne();
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : Tensor();
}

// The values make every sum exact, in every type.
template <typename T>
class Conv2D : public ::testing::Test {};
using ConvTypes = ::testing::Types<float, double, half, bfloat16, int32_t>;
TYPED_TEST_SUITE(Conv2D, ConvTypes);

TYPED_TEST(Conv2D, AgreesWithTheDefinition) {
  for (const ConvCase& c : kCases) {
    const std::vector<float> in = Scrambled<float>(c.batch * c.height * c.width * c.in_channels, 1);
    std::vector<float> filter = Scrambled<float>(c.kernel_h * c.kernel_w * c.filter_in * c.out_channels, 2);
    for (float& f : filter) f = f > 0 ? 1 : f < 0 ? -1 : 0;  // keeps bfloat16 exact
    const std::vector<float> expected = Convolve(c, in, filter);
    const Tensor out = RunConv2D<TypeParam>(c, in, filter);
    ASSERT_EQ(out.num_elements(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(out.flat<TypeParam>()[i], TypeParam(expected[i])) << "element " << i;
  }
}

// L25: channels-first images are supported as they are.
TEST(Conv2D, ChannelsFirstL25) {
  for (const ConvCase& c : kCases) {
    const std::vector<float> in = Scrambled<float>(c.batch * c.height * c.width * c.in_channels, 3);
    const std::vector<float> filter = Scrambled<float>(c.kernel_h * c.kernel_w * c.filter_in * c.out_channels, 4);
    const std::vector<float> expected = Convolve(c, in, filter);
    OpRunner op("Conv2D");
    SetAttrs(op, c, true)
        .Input(MakeTensor(ChannelsFirst(in, c.batch, c.height * c.width, c.in_channels),
                          {c.batch, c.in_channels, c.height, c.width}));
    op.Input(MakeTensor(filter, {c.kernel_h, c.kernel_w, c.filter_in, c.out_channels}));
    const absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values<float>(*out), ChannelsFirst(expected, c.batch, out->dim(2) * out->dim(3), c.out_channels));
  }
}

// Large enough to be cut for four threads (OpRunner compares with one thread, bit by bit): by images and by rows.
TEST(Conv2D, SplitOverThreadsChangesNoBit) {
  const ConvCase kLarge[] = {
      {1, 31, 33, 48, 3, 3, 48, 64, 1, 1, 1, 1, "SAME", {}},   {9, 17, 17, 32, 3, 3, 32, 48, 2, 2, 1, 1, "SAME", {}},
      {1, 40, 40, 64, 1, 1, 64, 128, 1, 1, 1, 1, "VALID", {}}, {1, 60, 60, 3, 7, 7, 3, 32, 2, 2, 1, 1, "SAME", {}},
      {1, 48, 48, 32, 3, 3, 32, 32, 1, 1, 2, 2, "SAME", {}},
  };
  for (const ConvCase& c : kLarge) {
    const std::vector<float> in = Inexact(c.batch * c.height * c.width * c.in_channels, 1);
    const std::vector<float> filter = Inexact(c.kernel_h * c.kernel_w * c.filter_in * c.out_channels, 2);
    ExpectNear(RunConv2D<float>(c, in, filter), Convolve(c, in, filter), 1e-5, 1e-4);
  }
}

TEST(Conv2D, EmptyImagesAndWindows) {
  const ConvCase no_images{0, 5, 5, 2, 3, 3, 2, 3};
  ExpectShape(RunConv2D<float>(no_images, {}, Scrambled<float>(54)), {0, 5, 5, 3});
  const ConvCase only_padding{1, 0, 5, 2, 3, 3, 2, 1, 1, 1, 1, 1, "EXPLICIT", {0, 0, 2, 2, 0, 0, 0, 0}};
  const Tensor zeros = RunConv2D<float>(only_padding, {}, Scrambled<float>(18));
  ExpectShape(zeros, {1, 2, 3, 1});
  EXPECT_EQ(Values<float>(zeros), std::vector<float>(6, 0.0f));
}

struct BadConv {
  std::vector<int64_t> input, filter;
  std::vector<int64_t> strides = {1, 1, 1, 1}, dilations = {1, 1, 1, 1};
  const char* word;
};

// TensorFlow's Conv3D refuses a filter without output channels, its Conv2D does not.
TEST(Convolutions, FiltersWithoutOutputs) {
  OpRunner plane("Conv2D");
  plane.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1})).With("padding", "SAME");
  plane.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of({1, 4, 3, 2}))).Input(*Tensor::Allocate(DType::kFloat32, Shape::Of({2, 1, 2, 0})));
  const absl::StatusOr<Tensor> out = plane.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape(), Shape::Of({1, 4, 3, 0}));
  OpRunner space("Conv3D");
  space.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1, 1})).With("padding", "SAME");
  space.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of({1, 4, 3, 2, 2}))).Input(*Tensor::Allocate(DType::kFloat32, Shape::Of({1, 1, 1, 2, 0})));
  EXPECT_EQ(space.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Conv2D, MalformedInputs) {
  const BadConv kBad[] = {
      {{1, 5, 5, 3}, {3, 3, 2, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}, "channels"},
      {{5, 5, 3}, {3, 3, 3, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}, "rank"},
      {{1, 5, 5, 3}, {3, 3, 3}, {1, 1, 1, 1}, {1, 1, 1, 1}, "rank"},
      {{1, 5, 5, 4}, {3, 3, 2, 3}, {1, 1, 1, 1}, {1, 1, 1, 1}, "groups"},
      {{1, 5, 5, 3}, {3, 3, 0, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}, "channels"},
      {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {1, 1, 1, 1}, "empty"},
      {{1, 5, 5, 3}, {0, 3, 3, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}, "empty"},
      {{1, 5, 5, 3}, {3, 3, 3, 4}, {1, 0, 1, 1}, {1, 1, 1, 1}, "strides"},
      {{1, 5, 5, 3}, {3, 3, 3, 4}, {2, 1, 1, 1}, {1, 1, 1, 1}, "strides"},
      {{1, 5, 5, 3}, {3, 3, 3, 4}, {1, 1, 1}, {1, 1, 1, 1}, "strides"},
      {{1, 5, 5, 3}, {3, 3, 3, 4}, {1, 1, 1, 1}, {1, -1, 1, 1}, "dilations"},
  };
  for (const BadConv& bad : kBad) {
    OpRunner op("Conv2D");
    op.With("strides", MakeListAttr(bad.strides))
        .With("dilations", MakeListAttr(bad.dilations))
        .With("padding", "SAME");
    op.Input(*Tensor::Allocate(DType::kFloat32, *Shape::Make(bad.input)))
        .Input(*Tensor::Allocate(DType::kFloat32, *Shape::Make(bad.filter)));
    const absl::Status status = op.RunOne().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(std::string(status.message()).find(bad.word), std::string::npos) << status;
  }
}

// A kernel that knows its filter packs it once and keeps the plans of several input shapes.
TEST(Conv2D, ConstantFilterWithChangingInputShapes) {
  const std::vector<float> filter = Inexact(3 * 3 * 8 * 16, 2);
  const Tensor filter_tensor = MakeTensor(filter, {3, 3, 8, 16});
  OpRunner op("Conv2D");
  for (int round = 0; round < 2; ++round) {
    for (int64_t size : {5, 8, 13, 21, 6, 7, 9, 10, 11, 12}) {
      const ConvCase c{2, size, size + 1, 8, 3, 3, 8, 16};
      const std::vector<float> in = Inexact(2 * size * (size + 1) * 8, static_cast<uint32_t>(size));
      op.ClearInputs();
      SetAttrs(op, c, false).Input(MakeTensor(in, {2, size, size + 1, 8})).ConstantInput(filter_tensor);
      const absl::StatusOr<Tensor> out = op.RunOne();
      ASSERT_TRUE(out.ok()) << out.status();
      ExpectNear(*out, Convolve(c, in, filter), 1e-5, 1e-4);
    }
  }
}

// What a kernel holds before any step runs: the filter packed, in the memory of its device, for an open batch and in every
// type that is computed in float.
class PreparedConv2D : public ::testing::TestWithParam<DType> {
 protected:
  // Makes the kernel in place of the last one; the bytes it holds.
  int64_t BytesHeldBy(std::unique_ptr<Kernel>* kernel, const PartialShape& images, bool constant) {
    attrs_.Set("T", GetParam());
    attrs_.Set("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1}));
    attrs_.Set("padding", std::string("SAME"));
    node_.name = "conv";
    node_.schema = BuiltinOps().schemas.Find("Conv2D");
    node_.attrs = &attrs_;
    node_.device = devices_[0].get();
    signature_ = KernelSignature::OnHost({GetParam(), GetParam()}, {GetParam()});
    node_.signature = &signature_;
    std::vector<TensorLiteralPtr> constants(2);
    const Shape filter_shape = Shape::Of({3, 3, 16, 32});
    Tensor filter = *Tensor::Allocate(GetParam(), filter_shape);
    std::memset(filter.mutable_raw(), 0, filter.num_elements() * DTypeSize(GetParam()));
    if (constant) constants[1] = *filter.ToLiteral();
    const PartialShape shapes[] = {images, PartialShape::Known(filter_shape)};
    kernel->reset();
    EXPECT_EQ(budget_->in_use(), 0);
    *kernel = *(*BuiltinOps().kernels.Find(node_.node_attrs(), "cpu"))->factory(KernelInit(node_, shapes, 1, constants));
    return budget_->in_use();
  }

  const std::shared_ptr<MemoryBudget> budget_ = std::make_shared<MemoryBudget>(int64_t{1} << 30);
  const std::vector<std::shared_ptr<Device>> devices_ = *MakeDevices(*ParseDeviceList("CPU:0"), budget_);
  AttrMap attrs_;
  KernelSignature signature_;
  KernelNode node_;
};

TEST_P(PreparedConv2D, HoldsThePackedFilter) {
  constexpr int64_t kFilterBytes = 3 * 3 * 16 * 32 * sizeof(float);
  std::unique_ptr<Kernel> kernel;
  EXPECT_GE(BytesHeldBy(&kernel, PartialShape::OfDims({2, 8, 8, 16}), true), kFilterBytes);
  EXPECT_GE(BytesHeldBy(&kernel, PartialShape::OfDims({kUnknownDim, 8, 8, 16}), true), kFilterBytes);
  // The filter may change, or nothing is known of the images.
  EXPECT_EQ(BytesHeldBy(&kernel, PartialShape::OfDims({2, 8, 8, 16}), false), 0);
  EXPECT_EQ(BytesHeldBy(&kernel, PartialShape(), true), 0);
}
INSTANTIATE_TEST_SUITE_P(Types, PreparedConv2D, ::testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) { return DTypeName(info.param); });

// Depthwise filters are [height, width, channels, multiplier]; output channel c * multiplier + m comes from channel c.
TEST(DepthwiseConv2d, IsAGroupedConvolution) {
  for (int64_t multiplier : {1, 2, 3}) {
    for (const char* type : {"float", "double", "half"}) {
      ConvCase c{2, 7, 6, 5, 3, 2, 1, 5 * multiplier, 2, 2};
      const std::vector<float> in = Scrambled<float>(2 * 7 * 6 * 5, 1),
                               filter = Scrambled<float>(3 * 2 * 5 * multiplier, 2);
      OpRunner op("DepthwiseConv2dNative");
      SetAttrs(op, c, false);
      const auto run = [&](auto zero) {
        using T = decltype(zero);
        op.Input(MakeTensor(As<T>(in), {2, 7, 6, 5})).Input(MakeTensor(As<T>(filter), {3, 2, 5, multiplier}));
        const absl::StatusOr<Tensor> out = op.RunOne();
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_EQ(Values<T>(*out), As<T>(Convolve(c, in, filter)));
      };
      if (std::string(type) == "float") run(0.0f);
      else if (std::string(type) == "double") run(0.0);
      else run(half());
    }
  }
}

TEST(DepthwiseConv2d, RefusesWhatTheCpuRefuses) {
  const auto run = [](std::vector<int64_t> strides, std::vector<int64_t> dilations) {
    OpRunner op("DepthwiseConv2dNative");
    op.With("strides", MakeListAttr(std::move(strides)))
        .With("dilations", MakeListAttr(std::move(dilations)))
        .With("padding", "SAME");
    op.Input(MakeTensor(Scrambled<float>(75), {1, 5, 5, 3})).Input(MakeTensor(Scrambled<float>(54), {3, 3, 3, 2}));
    return op.RunOne().status().code();
  };
  EXPECT_EQ(run({1, 1, 2, 1}, {1, 1, 1, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({1, 1, 1, 1}, {1, 2, 2, 1}), absl::StatusCode::kUnimplemented);
}

TEST(Conv3D, SumsOverTheWholeWindow) {
  OpRunner op("Conv3D");
  op.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 2, 1, 1})).With("padding", "VALID");
  op.Input(MakeTensor(Scrambled<float>(2 * 3 * 4 * 3 * 2, 1), {2, 3, 4, 3, 2}))
      .Input(MakeTensor(Scrambled<float>(2 * 2 * 2 * 2 * 3, 2), {2, 2, 2, 2, 3}));
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectShape(*out, {2, 2, 2, 2, 3});
  const std::vector<float> in = Scrambled<float>(2 * 3 * 4 * 3 * 2, 1), filter = Scrambled<float>(2 * 2 * 2 * 2 * 3, 2);
  size_t i = 0;
  for (int n = 0; n < 2; ++n)
    for (int z = 0; z < 2; ++z)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x)
          for (int c = 0; c < 3; ++c) {
            float sum = 0;
            for (int tap = 0; tap < 8; ++tap)
              for (int ic = 0; ic < 2; ++ic) {
                const int iz = z + tap / 4, iy = 2 * y + tap / 2 % 2, ix = x + tap % 2;
                sum += in[((((n * 3 + iz) * 4) + iy) * 3 + ix) * 2 + ic] * filter[(tap * 2 + ic) * 3 + c];
              }
            EXPECT_EQ(out->flat<float>()[i++], sum);
          }
}

// <gradient of the input, input> == <gradient of the output, output>: the gradient is the transpose of the convolution.
TEST(Conv2DBackpropInput, IsTheTransposeOfConv2D) {
  for (const ConvCase& c : kCases) {
    if (c.dilation_h != 1 || c.filter_in != c.in_channels) continue;
    for (bool channels_first : {false, true}) {
      const std::vector<float> filter = Scrambled<float>(c.kernel_h * c.kernel_w * c.filter_in * c.out_channels, 2);
      const std::vector<float> in = Scrambled<float>(c.batch * c.height * c.width * c.in_channels, 1);
      const std::vector<float> out = Convolve(c, in, filter);
      const int64_t out_pixels = static_cast<int64_t>(out.size()) / c.batch / c.out_channels;
      const Tensor shape_source = RunConv2D<float>(c, in, filter);
      const std::vector<float> gradient = Scrambled<float>(static_cast<int64_t>(out.size()), 5);
      const int64_t oh = shape_source.dim(1), ow = shape_source.dim(2);
      OpRunner op("Conv2DBackpropInput");
      SetAttrs(op, c, channels_first);
      const auto sizes = [&](int64_t h, int64_t w, int64_t channels) {
        return channels_first ? std::vector<int32_t>{int32_t(c.batch), int32_t(channels), int32_t(h), int32_t(w)}
                              : std::vector<int32_t>{int32_t(c.batch), int32_t(h), int32_t(w), int32_t(channels)};
      };
      op.Input(MakeTensor(sizes(c.height, c.width, c.in_channels), {4}));
      op.Input(MakeTensor(filter, {c.kernel_h, c.kernel_w, c.filter_in, c.out_channels}));
      op.Input(channels_first ? MakeTensor(ChannelsFirst(gradient, c.batch, out_pixels, c.out_channels),
                                           {c.batch, c.out_channels, oh, ow})
                              : MakeTensor(gradient, {c.batch, oh, ow, c.out_channels}));
      const absl::StatusOr<Tensor> result = op.RunOne();
      ASSERT_TRUE(result.ok()) << result.status();
      const std::vector<float> input =
          channels_first ? ChannelsFirst(in, c.batch, c.height * c.width, c.in_channels) : in;
      double left = 0, right = 0;
      for (size_t i = 0; i < input.size(); ++i) left += result->flat<float>()[i] * input[i];
      for (size_t i = 0; i < out.size(); ++i) right += gradient[i] * out[i];
      EXPECT_EQ(left, right);
    }
  }
}

// The sizes may leave out batch and channels.
TEST(Conv2DBackpropInput, SpatialSizesOnly) {
  OpRunner op("Conv2DBackpropInput");
  op.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1})).With("padding", "SAME");
  op.Input<int32_t>({5, 5}, {2})
      .Input(MakeTensor(std::vector<float>(18, 1.0f), {3, 3, 2, 1}))
      .Input(MakeTensor(std::vector<float>(50, 1.0f), {2, 5, 5, 1}));
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectShape(*out, {2, 5, 5, 2});
  EXPECT_EQ(out->flat<float>()[0], 4);
  EXPECT_EQ(out->flat<float>()[2], 6);
}

TEST(Conv2DBackpropInput, MalformedInputs) {
  const auto run = [](std::vector<int32_t> sizes, std::initializer_list<int64_t> gradient,
                      std::vector<int64_t> dilations) {
    OpRunner op("Conv2DBackpropInput");
    op.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1}))
        .With("dilations", MakeListAttr(std::move(dilations)))
        .With("padding", "SAME");
    const int64_t n = static_cast<int64_t>(sizes.size());
    op.Input(MakeTensor(std::move(sizes), {n})).Input(MakeTensor(Scrambled<float>(72), {3, 3, 2, 4}));
    op.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(gradient)));
    return op.RunOne().status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run({1, 5, 5, 2}, {1, 4, 5, 4}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({1, 5, 5, 3}, {1, 5, 5, 4}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({1, 5, 5, 2}, {1, 5, 5, 3}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({1, 5, 5}, {1, 5, 5, 4}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({2, 5, 5, 2}, {1, 5, 5, 4}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({-1, 5, 5, 2}, {1, 5, 5, 4}, {1, 1, 1, 1}), kInvalid);
  EXPECT_EQ(run({1, 5, 5, 2}, {1, 5, 5, 4}, {1, 2, 2, 1}), kInvalid);
  EXPECT_EQ(run({1, 5, 5, 2}, {5, 5, 4}, {1, 1, 1, 1}), kInvalid);
}

// Runs Conv2D, then every fused op by itself, then the fused node: the results must agree to the bit.
Tensor RunStep(OpRunner& op) {
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : Tensor();
}

struct FusedCase {
  std::vector<std::string> ops;
};

TEST(FusedConv2D, HasTheBitsOfTheSeparateOps) {
  const FusedCase kFused[] = {{{"BiasAdd"}},        {{"BiasAdd", "Relu"}},         {{"BiasAdd", "Add", "Relu6"}},
                              {{"FusedBatchNorm"}}, {{"FusedBatchNorm", "Relu6"}}, {{"FusedBatchNorm", "Add", "Relu"}},
                              {{"BiasAdd", "Swish"}}};
  // The last case is cut into pieces for the cache.
  const ConvCase kShapes[] = {kCases[1],
                              kCases[8],
                              {2, 33, 32, 16, 3, 3, 16, 96, 1, 1, 1, 1, "SAME", {}},
                              {1, 64, 64, 8, 1, 1, 8, 64, 1, 1, 1, 1, "SAME", {}}};
  for (const ConvCase& c : kShapes) {
    const std::vector<float> in = Inexact(c.batch * c.height * c.width * c.in_channels, 1);
    const std::vector<float> filter = Inexact(c.kernel_h * c.kernel_w * c.filter_in * c.out_channels, 2);
    const Tensor convolved = RunConv2D<float>(c, in, filter);
    const auto vector = [&](uint32_t seed) { return MakeTensor(Inexact(c.out_channels, seed), {c.out_channels}); };
    std::vector<float> positive = Inexact(c.out_channels, 6);
    for (float& v : positive) v = v * v + 0.5f;
    const Tensor variance = MakeTensor(positive, {c.out_channels});
    Tensor added = DeepCopy(convolved);
    for (float& v : added.mutable_flat<float>()) v = 3 - v;
    for (const FusedCase& fused : kFused) {
      OpRunner op("_FusedConv2D");
      SetAttrs(op, c, false).With("fused_ops", MakeListAttr(fused.ops)).With("epsilon", 0.01);
      op.Input(MakeTensor(in, {c.batch, c.height, c.width, c.in_channels}))
          .Input(MakeTensor(filter, {c.kernel_h, c.kernel_w, c.filter_in, c.out_channels}));
      Tensor expected = convolved;
      int64_t num_args = 0;
      for (const std::string& name : fused.ops) {
        if (name == "BiasAdd") {
          OpRunner step("BiasAdd");
          step.Input(expected).Input(vector(3));
          expected = RunStep(step);
          op.Input(vector(3));
          num_args += 1;
        } else if (name == "FusedBatchNorm") {
          OpRunner step("FusedBatchNormV3");
          step.With("is_training", false).With("epsilon", 0.01).With("U", DType::kFloat32);
          step.Input(expected).Input(vector(3)).Input(vector(4)).Input(vector(5)).Input(variance);
          expected = RunStep(step);
          op.Input(vector(3)).Input(vector(4)).Input(vector(5)).Input(variance);
          num_args += 4;
        } else if (name == "Add") {
          Tensor sum = DeepCopy(expected);
          for (int64_t i = 0; i < sum.num_elements(); ++i) sum.mutable_flat<float>()[i] += added.flat<float>()[i];
          expected = sum;
          op.Input(added);
          num_args += 1;
        } else if (name == "Swish") {
          OpRunner sigmoid("Sigmoid"), product("Mul");
          sigmoid.Input(expected);
          product.Input(expected).Input(RunStep(sigmoid));
          expected = RunStep(product);
        } else {
          Tensor bounded = DeepCopy(expected);
          for (float& v : bounded.mutable_flat<float>()) v = v < 0 ? 0 : name == "Relu6" && v > 6 ? 6 : v;
          expected = bounded;
        }
      }
      op.With("num_args", num_args)
          .With("num_host_args", 0)
          .With("TArgs", MakeListAttr(std::vector<DType>(num_args, DType::kFloat32)));
      Tensor out = RunStep(op);
      // The separate Sigmoid computes what is left over past whole groups by the C library.
      if (fused.ops.back() == "Swish") {
        const int64_t count = out.num_elements();
        for (int64_t k = count - count % kGroup; k < count; ++k) {
          EXPECT_NEAR(out.flat<float>()[k], expected.flat<float>()[k], 1e-6f * std::fabs(expected.flat<float>()[k]));
          out.mutable_flat<float>()[k] = expected.flat<float>()[k];
        }
      }
      EXPECT_TRUE(SameTensor(out, expected)) << fused.ops.back() << " " << out.ToString() << " " << expected.ToString();
    }
  }
}

TEST(FusedConv2D, ReluKeepsNaN) {
  OpRunner op("_FusedConv2D");
  op.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1}))
      .With("padding", "SAME")
      .With("fused_ops", MakeListAttr(std::vector<std::string>{"BiasAdd", "Relu"}));
  op.With("num_args", 1).With("num_host_args", 0).With("TArgs", MakeListAttr(std::vector<DType>{DType::kFloat32}));
  op.Input<float>({NAN, -1, 2, -INFINITY}, {1, 2, 2, 1}).Input<float>({1}, {1, 1, 1, 1}).Input<float>({0.5f}, {1});
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear(*out, {NAN, 0, 2.5f, 0});
}

TEST(FusedConv2D, RefusesMisplacedOps) {
  for (const std::vector<std::string>& ops :
       std::vector<std::vector<std::string>>{{"Relu", "BiasAdd"}, {"Gelu"}, {"BiasAdd", "Relu", "Relu"}}) {
    OpRunner op("_FusedConv2D");
    op.With("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1}))
        .With("padding", "SAME")
        .With("fused_ops", MakeListAttr(ops));
    op.With("num_args", 1).With("num_host_args", 0).With("TArgs", MakeListAttr(std::vector<DType>{DType::kFloat32}));
    op.Input<float>({1}, {1, 1, 1, 1}).Input<float>({1}, {1, 1, 1, 1}).Input<float>({0.5f}, {1});
    EXPECT_EQ(op.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ConvShapes, SymbolsAndContradictions) {
  const OpSchema* schema = BuiltinOps().schemas.Find("Conv2D");
  ASSERT_NE(schema, nullptr);
  AttrMap attrs;
  attrs.Set("T", DType::kFloat32);
  attrs.Set("strides", MakeListAttr(std::vector<int64_t>{1, 2, 2, 1}));
  attrs.Set("padding", std::string("SAME"));
  const auto infer = [&](PartialShape input, PartialShape filter, PartialShape* out) {
    const DType types[] = {DType::kFloat32, DType::kFloat32};
    const PartialShape shapes[] = {std::move(input), std::move(filter)};
    const TensorLiteralPtr literals[2];
    const SymbolicValue values[2];
    int64_t next_symbol = kUnknownDim - 10;
    ShapeContext c(NodeAttrs(&attrs, schema), types, shapes, literals, values, 1, &next_symbol);
    const absl::Status status = schema->shape_fn(c);
    *out = c.output(0);
    return status;
  };
  PartialShape out;
  ASSERT_TRUE(
      infer(PartialShape::OfDims({kUnknownDim - 1, 224, kUnknownDim, 3}), PartialShape::OfDims({7, 7, 3, 64}), &out)
          .ok());
  EXPECT_EQ(out, PartialShape::OfDims({kUnknownDim - 1, 112, kUnknownDim, 64}));
  EXPECT_FALSE(infer(PartialShape::OfDims({kUnknownDim, 224, 224, 3}), PartialShape::OfDims({7, 7, 4, 64}), &out).ok());
  EXPECT_FALSE(infer(PartialShape::OfDims({kUnknownDim, 224, 3}), PartialShape(), &out).ok());
}

}  // namespace
}  // namespace thalweg::testing
