// Where values enter a graph. A fed placeholder never runs.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"

namespace thalweg {
namespace {

class PlaceholderKernel : public Kernel {
 public:
  explicit PlaceholderKernel(const KernelInit& init)
      : shape_(init.node().node_attrs().GetOr<PartialShape>("shape", {})) {}

  absl::Status Compute(KernelContext& ctx) override {
    return absl::InvalidArgumentError(absl::StrCat("you must feed a value for placeholder '", ctx.node().name,
                                                   "' of dtype ", DTypeName(ctx.output_dtype(0)), " and shape ",
                                                   shape_.ToString()));
  }

 private:
  const PartialShape shape_;
};

class DefaultKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }
};

// Graphs of producers up to this one wrote an unknown shape as that of a scalar.
constexpr int kLastWithoutScalars = 21;

absl::Status PlaceholderShape(ShapeContext& c) {
  PartialShape declared = c.attrs().GetOr<PartialShape>("shape", {});
  if (declared.has_rank() && declared.rank() == 0 && c.producer() <= kLastWithoutScalars) declared = PartialShape();
  c.set_output(0, std::move(declared));
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(ShapeContext& c) {
  PartialShape declared = c.attrs().GetOr<PartialShape>("shape", {});
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(0), declared).status());
  // The declared shape, not the default's: something else may be fed.
  c.set_output(0, std::move(declared));
  return absl::OkStatus();
}

}  // namespace

void RegisterPlaceholderOps(OpLibrary& lib) {
  lib.schemas.Add("Placeholder() -> output: dtype", "dtype: type; shape: shape = unknown")
      .Shape(PlaceholderShape)
      .Cost(NoCost);
  lib.schemas.Add("PlaceholderWithDefault(input: dtype) -> output: dtype", "dtype: type; shape: shape")
      .Shape(PlaceholderWithDefaultShape)
      .Cost(NoCost);
  lib.kernels.Add("Placeholder", "cpu", MakeKernel<PlaceholderKernel>);
  lib.kernels.Add("PlaceholderWithDefault", "cpu", MakeKernel<DefaultKernel>);
}

}  // namespace thalweg
