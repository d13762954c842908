// Resource variables: VarHandleOp, ReadVariableOp, AssignVariableOp and what asks about them.
#include <limits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/state/state_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

// A shared_name by which graphs ask for a variable of its own, reachable through the handle only.
constexpr const char* kAnonymousName = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

// Makes the handle; the variable itself comes into being when it is first assigned to.
class VarHandleKernel : public Kernel {
 public:
  explicit VarHandleKernel(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    const std::string container = attrs.GetOr<std::string>("container", "");
    const std::string shared_name = attrs.GetOr<std::string>("shared_name", "");
    anonymous_ = shared_name == kAnonymousName;
    handle_.container = container.empty() ? kDefaultContainer : container;
    handle_.name = anonymous_ ? std::string(init.node().name) : shared_name;  // all nodes without a name share one variable
    handle_.type_name = Variable::kTypeName;
    handle_.device = init.node().device->full_name();
    handle_.dtype = attrs.GetOr<DType>("dtype", DType::kInvalid);
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    ResourceHandle handle = handle_;
    if (anonymous_) handle.resource = std::make_shared<Variable>(handle.name, handle.dtype);
    out->mutable_flat<ResourceHandle>()[0] = std::move(handle);
    return absl::OkStatus();
  }

 private:
  ResourceHandle handle_;
  bool anonymous_ = false;
};

class ReadVariableKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, VariableHandle(ctx, 0));
    const absl::StatusOr<std::shared_ptr<Variable>> variable = FindVariable(ctx, handle);
    if (absl::IsNotFound(variable.status())) return absl::FailedPreconditionError(variable.status().message());
    THALWEG_RETURN_IF_ERROR(variable.status());
    THALWEG_RETURN_IF_ERROR(CheckVariableDType((*variable)->storage(), ctx.output_dtype(0)));
    THALWEG_ASSIGN_OR_RETURN(Tensor value, (*variable)->Read());
    ctx.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
};

class AssignVariableKernel : public Kernel {
 public:
  explicit AssignVariableKernel(const KernelInit& init)
      : same_shape_(init.node().node_attrs().GetOr<bool>("validate_shape", false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, VariableHandle(ctx, 0));
    const DType dtype = ctx.input_dtype(1);
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Variable>(handle.name, dtype);
    };
    if (!handle.resource) {
      THALWEG_RETURN_IF_ERROR(ctx.step().resources().LookupOrCreate(handle.container, handle.name, make).status());
    }
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, FindVariable(ctx, handle));
    return variable->Assign(ctx.TakeInput(1), same_shape_);
  }

 private:
  const bool same_shape_;
};

class VarIsInitializedKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, ctx.input(0).scalar<ResourceHandle>());
    const absl::StatusOr<std::shared_ptr<Variable>> variable = LookupResource<Variable>(ctx.step(), handle);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<bool>()[0] = variable.ok() && (*variable)->initialized();
    return absl::OkStatus();
  }
};

// Works on handles of any type.
class DestroyResourceKernel : public Kernel {
 public:
  explicit DestroyResourceKernel(const KernelInit& init)
      : ignore_missing_(init.node().node_attrs().GetOr<bool>("ignore_lookup_error", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, ctx.input(0).scalar<ResourceHandle>());
    if (handle.resource) return absl::OkStatus();  // lives as long as its handles
    const absl::Status deleted = ctx.step().resources().Delete(handle.container, handle.name);
    return ignore_missing_ && absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
  }

 private:
  const bool ignore_missing_;
};

// The shape of a variable's value, without reading it.
class VariableShapeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, VariableHandle(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, FindVariable(ctx, handle));
    THALWEG_ASSIGN_OR_RETURN(const Tensor value, variable->Read());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({value.rank()}));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    for (int i = 0; i < value.rank(); ++i) {
      if (out->dtype() == DType::kInt64) {
        out->mutable_flat<int64_t>()[i] = value.dim(i);
      } else if (value.dim(i) > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of ", value.shape().ToString(), " is no int32"));
      } else {
        out->mutable_flat<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
      }
    }
    return absl::OkStatus();
  }
};

absl::Status AnyVector(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterResourceVariableOps(OpLibrary& lib) {
  lib.schemas
      .Add(
          "VarHandleOp() -> resource: resource",
          "container: string = \"\"; shared_name: string = \"\"; debug_name: string = \"\"; dtype: type; shape: shape; "
          "allowed_devices: list(string) = []")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("ReadVariableOp(resource: resource) -> value: dtype", "dtype: type")
      .Shape(UnknownShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("AssignVariableOp(resource: resource, value: dtype)", "dtype: type; validate_shape: bool = false")
      .Shape(NoOutputs)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("VarIsInitializedOp(resource: resource) -> is_initialized: bool")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("DestroyResourceOp(resource: resource)", "ignore_lookup_error: bool = true")
      .Shape(NoOutputs)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("VariableShape(input: resource) -> output: out_type", "out_type: {int32, int64} = int32")
      .Shape(AnyVector)
      .Cost(NoCost)
      .Stateful();
  lib.kernels.Add("VarHandleOp", "cpu", MakeKernel<VarHandleKernel>);
  lib.kernels.Add("ReadVariableOp", "cpu", MakeKernel<ReadVariableKernel>);
  lib.kernels.Add("AssignVariableOp", "cpu", MakeKernel<AssignVariableKernel>);
  lib.kernels.Add("VarIsInitializedOp", "cpu", MakeKernel<VarIsInitializedKernel>);
  lib.kernels.Add("DestroyResourceOp", "cpu", MakeKernel<DestroyResourceKernel>);
  lib.kernels.Add("VariableShape", "cpu", MakeKernel<VariableShapeKernel>).HostMemory("output");
}

}  // namespace thalweg
