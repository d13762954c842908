// Add, AddV2, Sub.
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct SubOp {
  template <typename T> static T Apply(T a, T b) { return WrappingSub(a, b); }
};

void ConcatenateStrings(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const std::string* a = static_cast<const std::string*>(in[0]);
  const std::string* b = static_cast<const std::string*>(in[1]);
  std::string* o = static_cast<std::string*>(out);
  for (int64_t k = 0; k < n; ++k) o[k] = a[k * strides[0]] + b[k * strides[1]];
}

constexpr ElementwiseDef kConcatenateStrings = {.loop = &ConcatenateStrings,
                                                .num_inputs = 2,
                                                .input_types = {DType::kString, DType::kString},
                                                .output_type = DType::kString,
                                                .nanos_per_element = 30};

}  // namespace

void RegisterAddOps(OpLibrary& lib) {
  lib.schemas.Add("Add(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<AddOp, FloatTypes, SignedTypes, TypeList<uint8_t>, ComplexTypes>(lib, "Add");
  lib.kernels.Add("Add", "cpu", &MakeElementwise<kConcatenateStrings>).Type<std::string>("T");

  lib.schemas.Add("AddV2(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
                  "complex64, complex128}")
      .Commutative().Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<AddOp, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "AddV2");

  lib.schemas.Add("Sub(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
                  "uint32, uint64}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<SubOp, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "Sub");
}

}  // namespace thalweg::math
