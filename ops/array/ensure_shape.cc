// EnsureShape: passes its input on if it has the shape that it should have.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"

namespace thalweg {
namespace {

class EnsureShapeKernel : public Kernel {
 public:
  explicit EnsureShapeKernel(PartialShape shape) : shape_(std::move(shape)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(PartialShape shape, init.Attr<PartialShape>("shape"));
    return std::unique_ptr<Kernel>(std::make_unique<EnsureShapeKernel>(std::move(shape)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (!shape_.IsCompatibleWith(shape)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape is ", shape.ToString(), ", which does not fit the expected ", shape_.ToString()));
    }
    ctx.SetOutput(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }

 private:
  const PartialShape shape_;
};

absl::Status EnsureShapeShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const PartialShape expected, c.attrs().Get<PartialShape>("shape"));
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ShapeContext::Merge(c.input(0), expected));
  c.set_output(0, std::move(shape));
  if (c.input_value(0)) c.set_output_value(0, *c.input_value(0));
  return absl::OkStatus();
}

}  // namespace

void RegisterEnsureShape(OpLibrary& lib) {
  lib.schemas.Add("EnsureShape(input: T) -> output: T", "shape: shape; T: type").Shape(EnsureShapeShape).Cost(NoCost);
  lib.kernels.Add("EnsureShape", "cpu", MakeFallibleKernel<EnsureShapeKernel>);
}

}  // namespace thalweg
