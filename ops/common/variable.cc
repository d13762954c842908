#include "thalweg/ops/common/variable.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {

std::string Variable::DebugString() const {
  std::lock_guard<std::mutex> lock(storage_.mutex);
  return absl::StrCat("variable '", name(), "' ", DTypeName(dtype()),
                      storage_.tensor.initialized() ? storage_.tensor.shape().ToString() : " without a value");
}

absl::Status HasNoValue(const VariableStorage& storage) {
  return absl::FailedPreconditionError(
      absl::StrCat("variable '", storage.name, "' has no value yet: assign to it first (run its initializer)"));
}

bool Variable::initialized() const {
  std::lock_guard<std::mutex> lock(storage_.mutex);
  return storage_.tensor.initialized();
}

absl::StatusOr<Tensor> Variable::Read() const {
  std::lock_guard<std::mutex> lock(storage_.mutex);
  if (!storage_.tensor.initialized()) return HasNoValue(storage_);
  return storage_.tensor;
}

absl::Status Variable::Assign(Tensor value, bool same_shape) {
  THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage_, value.dtype()));
  std::lock_guard<std::mutex> lock(storage_.mutex);
  const Tensor& old = storage_.tensor;
  if (same_shape && old.initialized() && old.shape() != value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("variable '", name(), "' has shape ", old.shape().ToString(),
                                                   "; a value of shape ", value.shape().ToString(),
                                                   " cannot be assigned to it"));
  }
  std::swap(storage_.tensor, value);  // the old value is freed after the lock
  return absl::OkStatus();
}

absl::StatusOr<ResourceHandle> VariableHandle(const KernelContext& ctx, int i) {
  THALWEG_ASSIGN_OR_RETURN(ResourceHandle handle, ctx.input(i).scalar<ResourceHandle>());
  if (handle.type_name != Variable::kTypeName) {
    return absl::InvalidArgumentError(
        absl::StrCat("handle '", handle.name, "' is of type '", handle.type_name, "', not a variable"));
  }
  return handle;
}

absl::StatusOr<std::shared_ptr<Variable>> FindVariable(KernelContext& ctx, const ResourceHandle& handle) {
  absl::StatusOr<std::shared_ptr<Variable>> found = LookupResource<Variable>(ctx.step(), handle);
  if (!absl::IsNotFound(found.status())) return found;
  return absl::NotFoundError(
      absl::StrCat(handle.name.empty() ? "the variable without a shared_name" : absl::StrCat("variable '", handle.name, "'"),
                   " does not exist yet: assign to it first (run its initializer)"));
}

absl::Status CheckVariableDType(const VariableStorage& storage, DType dtype) {
  if (storage.dtype == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable '", storage.name, "' holds ", DTypeName(storage.dtype), ", not ", DTypeName(dtype)));
}

absl::StatusOr<VariableInput> FindVariableInput(KernelContext& ctx, int i) {
  if (!IsRef(ctx.node().input_types()[i])) {
    THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, VariableHandle(ctx, i));
    THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<Variable> variable, FindVariable(ctx, handle));
    VariableStorage* storage = &variable->storage();
    return VariableInput{storage, std::move(variable)};
  }
  RefStorage* storage = ctx.input_value(i).ref;
  if (storage != nullptr) return VariableInput{static_cast<VariableStorage*>(storage), nullptr};
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " must be a variable, but a plain value was given (by a feed?)"));
}

VariableLocks::VariableLocks(absl::Span<const VariableInput> variables) {
  absl::InlinedVector<VariableStorage*, 4> order;
  for (const VariableInput& variable : variables) order.push_back(variable.storage);
  std::sort(order.begin(), order.end(), std::less<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (VariableStorage* storage : order) locks_.emplace_back(storage->mutex);
}

bool MayWriteInPlace(const VariableInput& variable) {
  const Tensor& value = variable.storage->tensor;
  return value.num_elements() == 0 || value.OwnsBufferAlone() || (variable.by_reference() && IsPlainMemory(value.dtype()));
}

absl::StatusOr<Tensor*> WritableValue(KernelContext& ctx, const VariableInput& variable) {
  Tensor& value = variable.storage->tensor;
  if (!value.initialized()) return HasNoValue(*variable.storage);
  if (MayWriteInPlace(variable)) return &value;
  THALWEG_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(value.dtype(), value.shape()));
  WithCell(value.dtype(), [&](auto cell) {
    decltype(cell)::CopyRun(static_cast<char*>(copy.mutable_raw()), static_cast<const char*>(value.raw()),
                            value.num_elements());
  });
  value = std::move(copy);
  return &value;
}

void PassReference(KernelContext& ctx, int i) {
  if (ctx.input_value(i).ref != nullptr) ctx.output_value(0).ref = ctx.input_value(i).ref;
}

}  // namespace thalweg
