// ToBool: whether a value of any type counts as true (E15, L7).
#include <algorithm>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/functional/functional_ops.h"

namespace thalweg {
namespace {

// Scalars: a number that is not zero (NaN is not), a text that is not empty. Other tensors: having elements.
class ToBoolKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    absl::StatusOr<Tensor*> out = ctx.AllocateOutput(0, Shape());
    if (!out.ok()) return out.status();
    THALWEG_ASSIGN_OR_RETURN((*out)->mutable_flat<bool>()[0], IsTrue(value));
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<bool> IsTrue(const Tensor& value) {
    if (value.shape().rank() > 0) return value.num_elements() > 0;
    if (value.dtype() == DType::kString) return !value.flat<std::string>()[0].empty();
    if (!IsPlainMemory(value.dtype())) {
      return absl::InvalidArgumentError(absl::StrCat("a ", DTypeName(value.dtype()), " is neither true nor false"));
    }
    return IsNonZero(value);
  }

  static bool IsNonZero(const Tensor& value) {
    const auto* bytes = static_cast<const unsigned char*>(value.raw());
    const size_t size = DTypeSize(value.dtype());
    // Little-endian floating-point zeros of both signs differ in the top bit only.
    const size_t parts = IsComplex(value.dtype()) ? 2 : 1;
    const size_t part_size = size / parts;
    for (size_t part = 0; part < parts; ++part) {
      const unsigned char* begin = bytes + part * part_size;
      const unsigned char top_mask = IsFloating(value.dtype()) || parts == 2 ? 0x7f : 0xff;
      if (std::any_of(begin, begin + part_size - 1, [](unsigned char b) { return b != 0; }) || (begin[part_size - 1] & top_mask) != 0) return true;
    }
    return false;
  }
};

}  // namespace

void RegisterToBool(OpLibrary& lib) {
  lib.schemas.Add("ToBool(input: T) -> output: bool", "T: type").Shape(ScalarShape).Cost(NoCost);
  lib.kernels.Add("ToBool", "cpu", MakeKernel<ToBoolKernel>).HostMemory("input");
}

}  // namespace thalweg
