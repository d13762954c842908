// Reference variables: VariableV2 and what reads and replaces its value through references.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/state/state_ops.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

// The shape attribute of a variable as TensorFlow takes it: an unknown rank reads as a scalar, which unchecked
// assignments then replace. InvalidArgument if only some dimensions are known.
absl::StatusOr<Shape> DeclaredVariableShape(const NodeAttrs& attrs) {
  const PartialShape shape = attrs.GetOr<PartialShape>("shape", PartialShape());
  if (!shape.has_rank()) return Shape();
  if (shape.IsFullyKnown()) return shape.ToShape();
  return absl::InvalidArgumentError(absl::StrCat("the variable's shape ", shape.ToString(), " is not fully known"));
}

// Lasts as long as the session; the variable is looked up once and then kept.
class VariableKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    auto kernel = std::make_unique<VariableKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->declared_, DeclaredVariableShape(attrs));
    kernel->dtype_ = attrs.GetOr<DType>("dtype", DType::kInvalid);
    kernel->container_ = attrs.GetOr<std::string>("container", "");
    if (kernel->container_.empty()) kernel->container_ = kDefaultContainer;
    kernel->name_ = attrs.GetOr<std::string>("shared_name", "");
    if (kernel->name_.empty()) kernel->name_ = std::string(init.node().name);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (variable_ == nullptr) {
      THALWEG_ASSIGN_OR_RETURN(variable_, FindOrMake(ctx));
    }
    ctx.output_value(0).ref = &variable_->storage();
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::shared_ptr<Variable>> FindOrMake(KernelContext& ctx) const {
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> {
      return std::make_shared<Variable>(name_, dtype_, declared_);
    };
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Resource> found,
                             ctx.step().resources().LookupOrCreate(container_, name_, make));
    std::shared_ptr<Variable> variable = std::dynamic_pointer_cast<Variable>(found);
    if (variable != nullptr && variable->dtype() == dtype_) return variable;
    return absl::InternalError(absl::StrCat("'", name_, "' is shared, but elsewhere it is ", found->DebugString()));
  }

  std::string container_;
  std::string name_;
  DType dtype_ = DType::kInvalid;
  Shape declared_;
  std::mutex mutex_;
  std::shared_ptr<Variable> variable_;  // guarded by mutex_
};

class AssignKernel : public Kernel {
 public:
  explicit AssignKernel(const KernelInit& init)
      : validate_shape_(init.node().node_attrs().GetOr<bool>("validate_shape", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, ctx.input_dtype(1)));
    if (!ctx.input(1).initialized()) {
      return absl::FailedPreconditionError(absl::StrCat("what is assigned to '", storage.name, "' comes from a variable that has no value yet: run its initialiser first"));
    }
    Tensor value = ctx.TakeInput(1);  // after the lock, the old value if that was replaced
    {
      std::lock_guard<std::mutex> lock(storage.mutex);
      const Shape& shape = storage.tensor.initialized() ? storage.tensor.shape() : storage.declared;
      if (validate_shape_ && shape != value.shape()) {
        return absl::InvalidArgumentError(absl::StrCat("variable '", storage.name, "' has shape ", shape.ToString(),
                                                       "; a value of shape ", value.shape().ToString(),
                                                       " cannot be assigned to it"));
      }
      THALWEG_RETURN_IF_ERROR(Store(ctx, storage, &value));
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  // Who shares the old buffer is to see the new value; else the new buffer is taken over, or copied if others hold it.
  static absl::Status Store(KernelContext& ctx, VariableStorage& storage, Tensor* value) {
    Tensor& old = storage.tensor;
    const int64_t bytes = value->num_elements() * static_cast<int64_t>(DTypeSize(value->dtype()));
    const bool fits = old.initialized() && bytes > 0 && old.num_elements() == value->num_elements();
    if (fits && (!old.OwnsBufferAlone() || !value->OwnsBufferAlone())) {
      std::memmove(old.mutable_raw(), value->raw(), static_cast<size_t>(bytes));
      old = old.AliasedAs(value->dtype(), value->shape());
      return absl::OkStatus();
    }
    if (bytes > 0 && !value->OwnsBufferAlone()) {
      THALWEG_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(value->dtype(), value->shape()));
      std::memcpy(copy.mutable_raw(), value->raw(), static_cast<size_t>(bytes));
      *value = std::move(copy);
    }
    std::swap(old, *value);
    return absl::OkStatus();
  }

  const bool validate_shape_;
};

class IsInitializedKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    std::lock_guard<std::mutex> lock(variable.storage->mutex);
    out->mutable_flat<bool>()[0] = variable.storage->tensor.initialized();
    return absl::OkStatus();
  }
};

// ---- TemporaryVariable: a variable of one step, in loops of one iteration.

std::string TemporaryName(const std::string& name, const KernelContext& ctx) {
  return ctx.iteration_key() == 0 ? name : absl::StrCat(name, "/", ctx.iteration_key());
}

class TemporaryVariableKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    auto kernel = std::make_unique<TemporaryVariableKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->declared_, DeclaredVariableShape(attrs));
    kernel->dtype_ = attrs.GetOr<DType>("dtype", DType::kInvalid);
    kernel->name_ = attrs.GetOr<std::string>("var_name", "");
    if (kernel->name_.empty()) kernel->name_ = std::string(init.node().name);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    bool made = false;
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> {
      made = true;
      return std::make_shared<Variable>(name_, dtype_, declared_);
    };
    StepServices& step = ctx.step();
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Resource> resource,
                             step.resources().LookupOrCreate(step.step_container(), TemporaryName(name_, ctx), make));
    if (!made) {
      return absl::AlreadyExistsError(absl::StrCat("this step has a temporary variable '", name_, "' already"));
    }
    // Until it is destroyed the step's container keeps it.
    Variable& variable = static_cast<Variable&>(*resource);
    THALWEG_ASSIGN_OR_RETURN(Tensor value, ZeroTensor(ctx, dtype_, declared_));
    THALWEG_RETURN_IF_ERROR(variable.Assign(std::move(value)));
    ctx.output_value(0).ref = &variable.storage();
    return absl::OkStatus();
  }

 private:
  std::string name_;
  DType dtype_ = DType::kInvalid;
  Shape declared_;
};

class DestroyTemporaryVariableKernel : public Kernel {
 public:
  explicit DestroyTemporaryVariableKernel(const KernelInit& init)
      : name_(init.node().node_attrs().GetOr<std::string>("var_name", "")) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    {
      std::lock_guard<std::mutex> lock(variable.storage->mutex);
      if (!variable.storage->tensor.initialized()) return HasNoValue(*variable.storage);
      ctx.SetOutput(0, std::move(variable.storage->tensor));
      variable.storage->tensor = Tensor();
    }
    // Others may still hold the reference, so the storage stays until the step ends, under a name that nobody asks for.
    ResourceManager& resources = ctx.step().resources();
    const absl::string_view container = ctx.step().step_container();
    const std::string name = TemporaryName(name_, ctx);
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Resource> resource, resources.Lookup(container, name));
    const auto same = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> { return resource; };
    const std::string hidden = absl::StrCat(name, "/destroyed/", reinterpret_cast<uintptr_t>(resource.get()));
    THALWEG_RETURN_IF_ERROR(resources.LookupOrCreate(container, hidden, same).status());
    return resources.Delete(container, name);
  }

 private:
  const std::string name_;
};

absl::Status AssignShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterReferenceOps(OpLibrary& lib) {
  for (const char* op : {"Variable", "VariableV2"}) {
    lib.schemas
        .Add(absl::StrCat(op, "() -> ref: Ref(dtype)"),
             "shape: shape; dtype: type; container: string = \"\"; shared_name: string = \"\"")
        .Shape(UnknownShape)  // an unchecked assignment may give it any
        .Cost(NoCost)
        .Stateful();
    lib.kernels.Add(op, "cpu", MakeFallibleKernel<VariableKernel>);
  }
  lib.schemas
      .Add("Assign(ref: Ref(T), value: T) -> output_ref: Ref(T)",
           "T: type; validate_shape: bool = true; use_locking: bool = true")
      .Shape(AssignShape)
      .Cost(NoCost)
      .AllowsUninitializedInput();
  lib.schemas.Add("IsVariableInitialized(ref: Ref(dtype)) -> is_initialized: bool", "dtype: type")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .AllowsUninitializedInput();
  lib.schemas
      .Add("TemporaryVariable() -> ref: Ref(dtype)", "shape: shape; dtype: type; var_name: string = \"\"")
      .Shape(UnknownShape)  // an unchecked assignment may give it any
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("DestroyTemporaryVariable(ref: Ref(T)) -> value: T", "T: type; var_name: string")
      .Shape(UnchangedShape)
      .Cost(NoCost);
  lib.kernels.Add("Assign", "cpu", MakeKernel<AssignKernel>)
      .Type("T", PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQUInt16, DType::kQInt32,
                                DType::kResource, DType::kVariant}));
  lib.kernels.Add("IsVariableInitialized", "cpu", MakeKernel<IsInitializedKernel>);
  lib.kernels.Add("TemporaryVariable", "cpu", MakeFallibleKernel<TemporaryVariableKernel>);
  lib.kernels.Add("DestroyTemporaryVariable", "cpu", MakeKernel<DestroyTemporaryVariableKernel>);
}

}  // namespace thalweg
