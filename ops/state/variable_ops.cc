// Resource variables: VarHandleOp, ReadVariableOp, AssignVariableOp and its kin.
#include <complex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/state/register.h"
#include "thalweg/ops/state/variable.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

constexpr const char* kDefaultContainer = "localhost";
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
    handle_.name = shared_name.empty() || anonymous_ ? init.node().name : shared_name;
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
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, FindVariable(ctx, handle));
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(*variable, ctx.output_dtype(0)));
    THALWEG_ASSIGN_OR_RETURN(Tensor value, variable->Read());
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

// ---- AssignAddVariableOp, AssignSubVariableOp

struct AddOp {
  template <typename T>
  static T Apply(T a, T b) {
    return a + b;
  }
};
struct SubOp {
  template <typename T>
  static T Apply(T a, T b) {
    return a - b;
  }
};

// Integers wrap, so they are computed as unsigned numbers.
template <typename Op, typename T>
T Combine(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(
        Op::Apply(static_cast<uint64_t>(static_cast<U>(a)), static_cast<uint64_t>(static_cast<U>(b))));
  } else {
    return Op::Apply(a, b);
  }
}

template <typename Op, typename T>
class AssignUpdateKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, VariableHandle(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Variable> variable, FindVariable(ctx, handle));
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(*variable, ctx.input_dtype(1)));
    const Tensor& operand = ctx.input(1);
    return variable->Update([&](Tensor& value) { return Apply(ctx, operand, *variable, value); });
  }

 private:
  static absl::Status Apply(KernelContext& ctx, const Tensor& operand, const Variable& variable, Tensor& value) {
    if (value.shape() != operand.shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", variable.name(), "' has shape ", value.shape().ToString(),
                       "; it cannot be updated with a value of shape ", operand.shape().ToString()));
    }
    // Others may still read a shared buffer: leave it alone and write elsewhere.
    Tensor result;
    const bool in_place = value.OwnsBufferAlone();
    if (!in_place) {
      THALWEG_ASSIGN_OR_RETURN(result, ctx.AllocateTemp(value.dtype(), value.shape()));
    }
    const T* a = value.flat<T>().data();
    const T* b = operand.flat<T>().data();
    T* out = in_place ? value.mutable_flat<T>().data() : result.mutable_flat<T>().data();
    for (int64_t i = 0; i < value.num_elements(); ++i) out[i] = Combine<Op>(a[i], b[i]);
    if (!in_place) value = std::move(result);
    return absl::OkStatus();
  }
};

template <typename... Ts>
void AddUpdateKernels(OpLibrary& lib) {
  (lib.kernels.Add("AssignAddVariableOp", "cpu", MakeKernel<AssignUpdateKernel<AddOp, Ts>>).template Type<Ts>("dtype"),
   ...);
  (lib.kernels.Add("AssignSubVariableOp", "cpu", MakeKernel<AssignUpdateKernel<SubOp, Ts>>).template Type<Ts>("dtype"),
   ...);
}

}  // namespace

void RegisterStateOps(OpLibrary& lib) {
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
  for (const char* op : {"AssignAddVariableOp", "AssignSubVariableOp"}) {
    lib.schemas.Add(absl::StrCat(op, "(resource: resource, value: dtype)"), "dtype: type")
        .Shape(NoOutputs)
        .Cost(CopyCost)
        .Stateful();
  }
  lib.kernels.Add("VarHandleOp", "cpu", MakeKernel<VarHandleKernel>);
  lib.kernels.Add("ReadVariableOp", "cpu", MakeKernel<ReadVariableKernel>);
  lib.kernels.Add("AssignVariableOp", "cpu", MakeKernel<AssignVariableKernel>);
  lib.kernels.Add("VarIsInitializedOp", "cpu", MakeKernel<VarIsInitializedKernel>);
  lib.kernels.Add("DestroyResourceOp", "cpu", MakeKernel<DestroyResourceKernel>);
  AddUpdateKernels<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                   uint64_t, std::complex<float>, std::complex<double>>(lib);
}

}  // namespace thalweg
