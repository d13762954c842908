#include "thalweg/ops/variant/optional.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {
namespace {

absl::Status EmitOptional(KernelContext& ctx, OptionalValue value) {
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  out->mutable_flat<Variant>()[0] = std::make_shared<OptionalValue>(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<const OptionalValue*> OptionalInput(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Variant* value = in.num_elements() == 1 ? &in.flat<Variant>()[0] : nullptr;
  const auto* optional = value != nullptr ? dynamic_cast<const OptionalValue*>(value->get()) : nullptr;
  if (optional != nullptr) return optional;
  return absl::InvalidArgumentError(
      absl::StrCat("the input must be an optional value, not ",
                   value != nullptr && *value != nullptr ? (*value)->DebugString() : in.ToString()));
}

class FromValueKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> components;
    for (int i = 0; i < ctx.num_inputs(); ++i) components.push_back(ctx.TakeInput(i));
    return EmitOptional(ctx, OptionalValue(std::move(components)));
  }
};

class NoneKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override { return EmitOptional(ctx, OptionalValue()); }
};

class HasValueKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const OptionalValue* optional, OptionalInput(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<bool>()[0] = optional->has_value();
    return absl::OkStatus();
  }
};

class GetValueKernel : public Kernel {
 public:
  explicit GetValueKernel(const KernelInit& init)
      : shapes_(init.node().node_attrs().GetOr<std::vector<PartialShape>>("output_shapes", {})) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const OptionalValue* optional, OptionalInput(ctx));
    if (!optional->has_value()) return absl::InvalidArgumentError("the optional has no value");
    const std::vector<Tensor>& components = optional->components();
    if (static_cast<int>(components.size()) != ctx.num_outputs()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the optional has ", components.size(), " components, not ", ctx.num_outputs()));
    }
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const Tensor& component = components[i];
      const PartialShape wanted = i < static_cast<int>(shapes_.size()) ? shapes_[i] : PartialShape();
      if (component.dtype() != ctx.output_dtype(i) || !wanted.IsCompatibleWith(component.shape())) {
        return absl::InvalidArgumentError(
            absl::StrCat("component ", i, " of the optional is ", DTypeName(component.dtype()), component.shape().ToString(),
                         ", not ", DTypeName(ctx.output_dtype(i)), wanted.ToString()));
      }
    }
    for (int i = 0; i < ctx.num_outputs(); ++i) ctx.SetOutput(i, components[i]);
    return absl::OkStatus();
  }

 private:
  const std::vector<PartialShape> shapes_;
};

absl::Status GetValueShape(ShapeContext& c) {
  const auto shapes = c.attrs().GetOr<std::vector<PartialShape>>("output_shapes", {});
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(shapes.size()); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

}  // namespace

void RegisterOptionalOps(OpLibrary& lib) {
  lib.schemas.Add("OptionalFromValue(components: Toutput_types) -> optional: variant", "Toutput_types: list(type) >= 1")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas.Add("OptionalNone() -> optional: variant").Shape(ScalarShape).Cost(NoCost);
  lib.schemas.Add("OptionalHasValue(optional: variant) -> has_value: bool").Shape(ScalarShape).Cost(NoCost);
  lib.schemas
      .Add("OptionalGetValue(optional: variant) -> components: output_types",
           "output_types: list(type) >= 1; output_shapes: list(shape) >= 1")
      .Shape(GetValueShape)
      .Cost(NoCost);
  lib.kernels.Add("OptionalFromValue", "cpu", MakeKernel<FromValueKernel>);
  lib.kernels.Add("OptionalNone", "cpu", MakeKernel<NoneKernel>);
  lib.kernels.Add("OptionalHasValue", "cpu", MakeKernel<HasValueKernel>);
  lib.kernels.Add("OptionalGetValue", "cpu", MakeKernel<GetValueKernel>);
}

}  // namespace thalweg
