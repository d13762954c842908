// ResizeBilinear and ResizeNearestNeighbor.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/image/image_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

// How output positions map to input positions along one dimension.
struct Sampling {
  bool align_corners = false;
  bool half_pixel_centers = false;

  float Scale(int64_t in, int64_t out) const {
    if (align_corners && out > 1) return static_cast<float>(in - 1) / static_cast<float>(out - 1);
    return static_cast<float>(in) / static_cast<float>(out);
  }
};

struct ResizeGeometry {
  int64_t batch = 0, channels = 0, in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  Shape output;
};

absl::Status CheckExtents(const Shape& images, int64_t height, int64_t width) {
  if (height <= 0 || width <= 0)
    return absl::InvalidArgumentError(absl::StrCat("size must be positive but is [", height, ",", width, "]"));
  const auto bad = [](int64_t d) { return d <= 0 || d > kLargest; };
  if (bad(images.dim(1)) || bad(images.dim(2)) || bad(images.dim(3))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "height, width and channels of the images must be between 1 and 2^31 - 1; their shape is ", images.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ResizeGeometry> FitResize(const Shape& images, const Tensor& size) {
  if (images.rank() != 4)
    return absl::InvalidArgumentError(absl::StrCat("images must have rank 4 but have shape ", images.ToString()));
  if (size.rank() != 1 || size.dim(0) != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("size must be a vector of 2 elements but has shape ", size.shape().ToString()));
  }
  const int64_t height = size.flat<int32_t>()[0], width = size.flat<int32_t>()[1];
  THALWEG_RETURN_IF_ERROR(CheckExtents(images, height, width));
  ResizeGeometry g{images.dim(0), images.dim(3), images.dim(1), images.dim(2), height, width, Shape()};
  THALWEG_ASSIGN_OR_RETURN(g.output, Shape::Make({g.batch, height, width, g.channels}));
  return g;
}

// The input positions on both sides of an output position, and how far it is from the first to the second.
struct Neighbours {
  int64_t lower = 0, upper = 0;
  float weight = 0;
};

std::vector<Neighbours> BilinearNeighbours(const Sampling& sampling, int64_t in, int64_t out) {
  const float scale = sampling.Scale(in, out);
  std::vector<Neighbours> neighbours(out);
  for (int64_t i = 0; i < out; ++i) {
    const float x =
        sampling.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
    const float floor = std::floor(x);
    Neighbours& n = neighbours[i];
    n.lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1);
    n.upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(x)), 0, in - 1);
    n.weight = x - floor;
  }
  return neighbours;
}

int64_t NearestNeighbour(const Sampling& sampling, float scale, int64_t in, int64_t out_position) {
  const float x = (static_cast<float>(out_position) + (sampling.half_pixel_centers ? 0.5f : 0.0f)) * scale;
  // A half rounds away from zero.
  const int64_t nearest = static_cast<int64_t>(sampling.align_corners ? std::round(x) : std::floor(x));
  return std::clamp<int64_t>(nearest, 0, in - 1);
}

// Interpolates one output pixel between four input pixels.
template <typename T>
THALWEG_CLONES void Interpolate(const T* top_left, const T* top_right, const T* bottom_left, const T* bottom_right,
                                float x, float y, int64_t channels, float* out) {
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c) {
    const float tl = static_cast<float>(top_left[c]), bl = static_cast<float>(bottom_left[c]);
    const float top = tl + (static_cast<float>(top_right[c]) - tl) * x;
    const float bottom = bl + (static_cast<float>(bottom_right[c]) - bl) * x;
    out[c] = top + (bottom - top) * y;
  }
}

absl::StatusOr<Sampling> ReadSampling(const KernelInit& init) {
  Sampling sampling;
  THALWEG_ASSIGN_OR_RETURN(sampling.align_corners, init.Attr<bool>("align_corners"));
  THALWEG_ASSIGN_OR_RETURN(sampling.half_pixel_centers, init.Attr<bool>("half_pixel_centers"));
  if (sampling.align_corners && sampling.half_pixel_centers) {
    return absl::InvalidArgumentError("align_corners and half_pixel_centers exclude each other");
  }
  return sampling;
}

// T is the computing type of the images; the result is float.
template <typename T>
class ResizeBilinearKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const Sampling sampling, ReadSampling(init));
    return std::unique_ptr<Kernel>(std::make_unique<ResizeBilinearKernel>(sampling));
  }
  explicit ResizeBilinearKernel(Sampling sampling) : sampling_(sampling) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResizeGeometry g, FitResize(ctx.input(0).shape(), ctx.input(1)));
    THALWEG_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, g.output));
    if (g.output.num_elements() == 0) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(const Tensor images, ToComputing(ctx, ctx.input(0)));
    const T* in = static_cast<const T*>(images.raw());
    float* out = static_cast<float*>(output->mutable_raw());
    const std::vector<Neighbours> ys = BilinearNeighbours(sampling_, g.in_height, g.out_height);
    const std::vector<Neighbours> xs = BilinearNeighbours(sampling_, g.in_width, g.out_width);
    const int64_t row = g.out_width * g.channels;
    ctx.ParallelFor(g.batch * g.out_height, static_cast<double>(row), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && !ctx.step().cancelled(); ++i) {
        const T* image = in + i / g.out_height * g.in_height * g.in_width * g.channels;
        ResizeRow(g, image, ys[i % g.out_height], xs, out + i * row);
      }
    });
    return absl::OkStatus();
  }

 private:
  static void ResizeRow(const ResizeGeometry& g, const T* image, const Neighbours& y, const std::vector<Neighbours>& xs,
                        float* out) {
    const T* top = image + y.lower * g.in_width * g.channels;
    const T* bottom = image + y.upper * g.in_width * g.channels;
    for (const Neighbours& x : xs) {
      Interpolate(top + x.lower * g.channels, top + x.upper * g.channels, bottom + x.lower * g.channels,
                  bottom + x.upper * g.channels, x.weight, y.weight, g.channels, out);
      out += g.channels;
    }
  }

  const Sampling sampling_;
};

// Copies pixels of any element type.
class ResizeNearestKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const Sampling sampling, ReadSampling(init));
    return std::unique_ptr<Kernel>(std::make_unique<ResizeNearestKernel>(sampling));
  }
  explicit ResizeNearestKernel(Sampling sampling) : sampling_(sampling) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& images = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const ResizeGeometry g, FitResize(images.shape(), ctx.input(1)));
    THALWEG_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, g.output));
    if (g.output.num_elements() == 0) return absl::OkStatus();
    const int64_t pixel = g.channels * static_cast<int64_t>(DTypeSize(images.dtype()));
    const char* in = static_cast<const char*>(images.raw());
    char* out = static_cast<char*>(output->mutable_raw());
    const float y_scale = sampling_.Scale(g.in_height, g.out_height),
                x_scale = sampling_.Scale(g.in_width, g.out_width);
    ctx.ParallelFor(g.batch * g.out_height,
                    3.0 * static_cast<double>(g.out_width) + 0.1 * static_cast<double>(g.out_width * pixel),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end && !ctx.step().cancelled(); ++i) {
                        const int64_t y = NearestNeighbour(sampling_, y_scale, g.in_height, i % g.out_height);
                        const char* row = in + (i / g.out_height * g.in_height + y) * g.in_width * pixel;
                        for (int64_t ox = 0; ox < g.out_width; ++ox) {
                          const int64_t x = NearestNeighbour(sampling_, x_scale, g.in_width, ox);
                          std::copy_n(row + x * pixel, pixel, out + (i * g.out_width + ox) * pixel);
                        }
                      }
                    });
    return absl::OkStatus();
  }

 private:
  const Sampling sampling_;
};

absl::Status ResizeShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 4));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  if (c.input(1).has_rank() && IsKnownDim(c.input(1).dim(0)) && c.input(1).dim(0) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("size must have 2 elements but has shape ", c.input(1).ToString()));
  }
  Dims dims(4, kUnknownDim);
  if (c.input(0).has_rank()) {
    dims[0] = c.input(0).dim(0);
    dims[3] = c.input(0).dim(3);
  }
  const absl::StatusOr<PartialShape> size = c.input_as_shape(1);
  if (size.ok() && size->has_rank() && size->rank() == 2) {  // negative sizes are the kernel's to refuse
    dims[1] = size->dim(0);
    dims[2] = size->dim(1);
  }
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

template <typename T, typename... Storage>
void AddBilinear(OpLibrary& lib) {
  lib.kernels.Add("ResizeBilinear", "cpu", MakeFallibleKernel<ResizeBilinearKernel<T>>)
      .template Type<Storage...>("T")
      .HostMemory("size");
}

}  // namespace

void RegisterResizeOps(OpLibrary& lib) {
  lib.schemas
      .Add("ResizeBilinear(images: T, size: int32) -> resized_images: float",
           "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; align_corners: bool = false; "
           "half_pixel_centers: bool = false")
      .Shape(ResizeShape)
      .Cost(ElementwiseCost<6>);
  AddBilinear<float, float, half, bfloat16>(lib);
  AddBilinear<double, double>(lib);
  AddBilinear<int8_t, int8_t>(lib);
  AddBilinear<uint8_t, uint8_t>(lib);
  AddBilinear<int16_t, int16_t>(lib);
  AddBilinear<uint16_t, uint16_t>(lib);
  AddBilinear<int32_t, int32_t>(lib);
  AddBilinear<int64_t, int64_t>(lib);

  lib.schemas
      .Add("ResizeNearestNeighbor(images: T, size: int32) -> resized_images: T",
           "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; align_corners: bool = false; "
           "half_pixel_centers: bool = false")
      .Shape(ResizeShape)
      .Cost(CopyCost);
  lib.kernels.Add("ResizeNearestNeighbor", "cpu", MakeFallibleKernel<ResizeNearestKernel>)
      .Type<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, bfloat16, float, double>("T")
      .HostMemory("size");
}

}  // namespace thalweg
