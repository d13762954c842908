// DecodeRaw and DecodePaddedRaw: the bytes of strings as numbers.
#include <algorithm>
#include <complex>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

// What is stored in one piece: the parts of a complex number are two.
int64_t WordBytes(DType type) {
  return static_cast<int64_t>(DTypeSize(type)) / (type == DType::kComplex64 || type == DType::kComplex128 ? 2 : 1);
}

void SwapWords(char* data, int64_t bytes, int64_t word) {
  for (int64_t at = 0; at + word <= bytes; at += word) std::reverse(data + at, data + at + word);
}

// Output 0 gets `width` numbers per string of input 0; strings are cut or filled up with zero bytes.
absl::Status Decode(KernelContext& ctx, int64_t width, bool little_endian) {
  const Shape& in_shape = ctx.input(0).shape();
  Dims dims(in_shape.dims().begin(), in_shape.dims().end());
  dims.push_back(width);
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
  const int64_t row = width * static_cast<int64_t>(DTypeSize(tensor->dtype()));
  char* out = static_cast<char*>(tensor->mutable_raw());
  for (const std::string& text : ctx.input(0).flat<std::string>()) {
    const int64_t given = std::min(row, static_cast<int64_t>(text.size()));
    std::memcpy(out, text.data(), given);
    std::memset(out + given, 0, row - given);
    if (!little_endian) SwapWords(out, row, WordBytes(tensor->dtype()));
    out += row;
  }
  // Any byte may stand for true, but only 1 may be stored.
  if (tensor->dtype() == DType::kBool) {
    uint8_t* bytes = static_cast<uint8_t*>(tensor->mutable_raw());
    for (int64_t i = 0; i < shape.num_elements(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  }
  return absl::OkStatus();
}

class DecodeRawKernel final : public Kernel {
 public:
  explicit DecodeRawKernel(const KernelInit& init) : little_endian_(init.node().node_attrs().GetOr<bool>("little_endian", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const absl::Span<const std::string> texts = ctx.input(0).flat<std::string>();
    const int64_t length = texts.empty() ? 0 : static_cast<int64_t>(texts[0].size());
    const int64_t size = static_cast<int64_t>(DTypeSize(ctx.output_dtype(0)));
    for (const std::string& text : texts) {
      if (static_cast<int64_t>(text.size()) == length) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("all strings must have one length, but there are ", length, " and ", text.size(), " bytes"));
    }
    if (length % size != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("strings of ", length, " bytes do not hold whole elements of ", size, " bytes"));
    }
    return Decode(ctx, length / size, little_endian_);
  }

 private:
  const bool little_endian_;
};

class DecodePaddedRawKernel final : public Kernel {
 public:
  explicit DecodePaddedRawKernel(const KernelInit& init)
      : little_endian_(init.node().node_attrs().GetOr<bool>("little_endian", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t length, IntScalarArg(ctx.input(1), "fixed_length"));
    const int64_t size = static_cast<int64_t>(DTypeSize(ctx.output_dtype(0)));
    if (length <= 0 || length % size != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("fixed_length is ", length, "; it must be a positive multiple of the element size, ", size));
    }
    return Decode(ctx, length / size, little_endian_);
  }

 private:
  const bool little_endian_;
};

absl::Status DecodeRawShape(ShapeContext& c) {
  if (c.num_inputs() > 1) THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  if (!c.input(0).has_rank() || c.input(0).rank() >= kMaxRank) return absl::OkStatus();
  Dims dims(c.input(0).dims().begin(), c.input(0).dims().end());
  dims.push_back(kUnknownDim);
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterDecodeRawOps(OpLibrary& lib) {
  lib.schemas.Add("DecodeRaw(bytes: string) -> output: out_type",
                  "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, bfloat16}; "
                  "little_endian: bool = true")
      .Shape(DecodeRawShape).Cost(CopyCost);
  lib.kernels.Add("DecodeRaw", "cpu", &MakeKernel<DecodeRawKernel>);
  lib.schemas.Add("DecodePaddedRaw(input_bytes: string, fixed_length: int32) -> output: out_type",
                  "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}; little_endian: bool = true")
      .Shape(DecodeRawShape).Cost(CopyCost);
  lib.kernels.Add("DecodePaddedRaw", "cpu", &MakeKernel<DecodePaddedRawKernel>).HostMemory("fixed_length");
}

}  // namespace thalweg::strings
