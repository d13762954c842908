// StackV2 and its ops: a last-in first-out store of tensors, with which loops remember what their gradients need.
//
// swap_memory is taken as a hint that host memory has no use for.
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/step_services.h"
#include "thalweg/ops/tensor_array/tensor_array_ops.h"

namespace thalweg {
namespace {

// Belongs to the handles that mean it, as a TensorArray does (A74). Every method locks.
class Stack : public Resource {
 public:
  static constexpr const char* kTypeName = "Stack";

  // A negative `max_size` means no limit.
  Stack(std::string name, DType dtype, int64_t max_size) : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {}

  std::string DebugString() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return absl::StrCat("stack '", name_, "' of ", values_.size(), " ", DTypeName(dtype_), " tensors");
  }

  absl::Status Push(Tensor value) {
    std::lock_guard<std::mutex> lock(mutex_);
    THALWEG_RETURN_IF_ERROR(CheckOpen());
    if (value.dtype() != dtype_) {
      return absl::InvalidArgumentError(
          absl::StrCat("stack '", name_, "' holds ", DTypeName(dtype_), ", not ", DTypeName(value.dtype())));
    }
    if (max_size_ >= 0 && static_cast<int64_t>(values_.size()) >= max_size_) {
      return absl::InvalidArgumentError(absl::StrCat("stack '", name_, "' is full: its max_size is ", max_size_));
    }
    values_.push_back(std::move(value));
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Pop() {
    std::lock_guard<std::mutex> lock(mutex_);
    THALWEG_RETURN_IF_ERROR(CheckOpen());
    if (values_.empty()) return absl::InvalidArgumentError(absl::StrCat("stack '", name_, "' is empty"));
    Tensor value = std::move(values_.back());
    values_.pop_back();
    return value;
  }

  void Close() {
    std::vector<Tensor> values;  // freed after the lock is released
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    values.swap(values_);
  }

 private:
  absl::Status CheckOpen() const {
    if (!closed_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("stack '", name_, "' has been closed"));
  }

  const std::string name_;
  const DType dtype_;
  const int64_t max_size_;
  mutable std::mutex mutex_;
  std::vector<Tensor> values_;  // guarded by mutex_
  bool closed_ = false;         // guarded by mutex_
};

absl::StatusOr<std::shared_ptr<Stack>> FindStack(KernelContext& ctx) {
  const Tensor& handle = ctx.input(0);
  if (handle.num_elements() == 1) return LookupResource<Stack>(ctx.step(), handle.flat<ResourceHandle>()[0]);
  return absl::InvalidArgumentError(
      absl::StrCat("the handle of a stack must be one element, not ", handle.shape().ToString()));
}

class CreateKernel : public Kernel {
 public:
  explicit CreateKernel(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    name_ = attrs.GetOr<std::string>("stack_name", "");
    if (name_.empty()) name_ = std::string(init.node().name);
    dtype_ = attrs.GetOr<DType>("elem_type", DType::kInvalid);
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t max_size, IntScalarArg(ctx.input(0), "max_size"));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    ResourceHandle& handle = out->mutable_flat<ResourceHandle>()[0];
    handle.name = name_;
    handle.type_name = Stack::kTypeName;
    handle.dtype = dtype_;
    handle.resource = std::make_shared<Stack>(name_, dtype_, max_size);
    return absl::OkStatus();
  }

 private:
  std::string name_;
  DType dtype_ = DType::kInvalid;
};

class PushKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto stack, FindStack(ctx));
    THALWEG_RETURN_IF_ERROR(stack->Push(ctx.input(1)));
    ctx.SetOutput(0, ctx.TakeInput(1));
    return absl::OkStatus();
  }
};

class PopKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto stack, FindStack(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor value, stack->Pop());
    ctx.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
};

class CloseKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto stack, FindStack(ctx));
    stack->Close();
    return absl::OkStatus();
  }
};

absl::Status CreateShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(0));
  return ScalarShape(c);
}

absl::Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterStackOps(OpLibrary& lib) {
  lib.schemas.Add("StackV2(max_size: int32) -> handle: resource", "elem_type: type; stack_name: string = \"\"")
      .Shape(CreateShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("StackPushV2(handle: resource, elem: T) -> output: T", "T: type; swap_memory: bool = false")
      .Shape(PushShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("StackPopV2(handle: resource) -> elem: elem_type", "elem_type: type")
      .Shape(UnknownShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("StackCloseV2(handle: resource)").Shape(NoOutputs).Cost(NoCost).Stateful();
  lib.kernels.Add("StackV2", "cpu", MakeKernel<CreateKernel>);
  lib.kernels.Add("StackPushV2", "cpu", MakeKernel<PushKernel>);
  lib.kernels.Add("StackPopV2", "cpu", MakeKernel<PopKernel>);
  lib.kernels.Add("StackCloseV2", "cpu", MakeKernel<CloseKernel>);
}

}  // namespace thalweg
