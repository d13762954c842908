#include "thalweg/ops/common/computing_tensor.h"

#include "thalweg/ops/common/storage_convert.h"

namespace thalweg {
namespace {

constexpr double kNanosPerElement = 0.2;

void Convert(KernelContext& ctx, const Tensor& from, ConvertLoop loop, Tensor* to) {
  const char* in = static_cast<const char*>(from.raw());
  char* out = static_cast<char*>(to->mutable_raw());
  const int64_t in_size = static_cast<int64_t>(DTypeSize(from.dtype())),
                out_size = static_cast<int64_t>(DTypeSize(to->dtype()));
  ctx.ParallelFor(from.num_elements(), kNanosPerElement,
                  [&](int64_t begin, int64_t end) { loop(in + begin * in_size, out + begin * out_size, end - begin); });
}

}  // namespace

DType ComputingType(DType storage) {
  return storage == DType::kFloat16 || storage == DType::kBFloat16 ? DType::kFloat32 : storage;
}

absl::StatusOr<Tensor> ToComputing(KernelContext& ctx, const Tensor& t) {
  const DType computing = ComputingType(t.dtype());
  if (computing == t.dtype()) return t;
  THALWEG_ASSIGN_OR_RETURN(Tensor converted, ctx.AllocateTemp(computing, t.shape()));
  Convert(ctx, t, LoadConversion(t.dtype(), computing), &converted);
  return converted;
}

void ConvertFromComputing(KernelContext& ctx, const Tensor& computed, Tensor* stored) {
  Convert(ctx, computed, StoreConversion(computed.dtype(), stored->dtype()), stored);
}

absl::StatusOr<ComputedOutput> ComputedOutput::Allocate(KernelContext& ctx, int index, const Shape& shape) {
  THALWEG_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(index, shape));
  ComputedOutput result;
  result.output_ = *output;
  result.computed_ = *output;
  const DType computing = ComputingType(output->dtype());
  if (computing != output->dtype()) {
    THALWEG_ASSIGN_OR_RETURN(result.computed_, ctx.AllocateTemp(computing, shape));
  }
  return result;
}

void ComputedOutput::Finish(KernelContext& ctx) {
  if (output_.dtype() != computed_.dtype()) ConvertFromComputing(ctx, computed_, &output_);
}

}  // namespace thalweg
