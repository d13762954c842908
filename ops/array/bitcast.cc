// Bitcast: the same bytes as elements of another type.
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"

namespace thalweg {
namespace {

// A smaller type adds a dimension, a larger one takes the last away, which must be as long as an element has parts.
absl::StatusOr<Dims> BitcastDims(absl::Span<const int64_t> in, int64_t from, int64_t to) {
  Dims dims(in.begin(), in.end());
  if (from > to) {
    dims.push_back(from / to);
  } else if (from < to) {
    if (dims.empty() || (IsKnownDim(dims.back()) && dims.back() != to / from)) {
      return absl::InvalidArgumentError(absl::StrCat("elements of ", from, " bytes become elements of ", to,
                                                     " bytes only if the last dimension is ", to / from, ", but the shape is ",
                                                     PartialShape::OfDims(dims).ToString()));
    }
    dims.pop_back();
  }
  return dims;
}

class BitcastKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const DType type = ctx.output_dtype(0);
    THALWEG_ASSIGN_OR_RETURN(const Dims dims,
                             BitcastDims(ctx.input(0).shape().dims(), static_cast<int64_t>(DTypeSize(ctx.input_dtype(0))),
                                         static_cast<int64_t>(DTypeSize(type))));
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    ctx.SetOutput(0, ctx.TakeInput(0).AliasedAs(type, std::move(shape)));
    return absl::OkStatus();
  }
};

absl::Status BitcastShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const DType type, c.attrs().Get<DType>("type"));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(Dims dims, BitcastDims(c.input(0).dims(), static_cast<int64_t>(DTypeSize(c.input_type(0))),
                                                  static_cast<int64_t>(DTypeSize(type))));
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterBitcast(OpLibrary& lib) {
  lib.schemas.Add("Bitcast(input: T) -> output: type", "T: numbertype; type: numbertype").Shape(BitcastShape).Cost(NoCost);
  lib.kernels.Add("Bitcast", "cpu", MakeKernel<BitcastKernel>);
}

}  // namespace thalweg
