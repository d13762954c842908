#include "thalweg/ops/state/variable.h"

#include "absl/strings/str_cat.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

absl::Status NoValue(const std::string& name) {
  return absl::FailedPreconditionError(
      absl::StrCat("variable '", name, "' has no value yet: assign to it first (run its initializer)"));
}

}  // namespace

std::string Variable::DebugString() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return absl::StrCat("variable '", name_, "' ", DTypeName(dtype_),
                      value_.initialized() ? value_.shape().ToString() : " without a value");
}

absl::Status Variable::Uninitialized() const { return NoValue(name_); }

bool Variable::initialized() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return value_.initialized();
}

absl::StatusOr<Tensor> Variable::Read() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!value_.initialized()) return Uninitialized();
  return value_;
}

absl::Status Variable::Assign(Tensor value, bool same_shape) {
  THALWEG_RETURN_IF_ERROR(CheckVariableDType(*this, value.dtype()));
  std::lock_guard<std::mutex> lock(mutex_);
  if (same_shape && value_.initialized() && value_.shape() != value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("variable '", name_, "' has shape ", value_.shape().ToString(),
                                                   "; a value of shape ", value.shape().ToString(),
                                                   " cannot be assigned to it"));
  }
  std::swap(value_, value);  // the old value is freed after the lock
  return absl::OkStatus();
}

absl::Status Variable::Update(Updater update) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!value_.initialized()) return Uninitialized();
  return update(value_);
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
  if (absl::IsNotFound(found.status())) return NoValue(handle.name);
  return found;
}

absl::Status CheckVariableDType(const Variable& variable, DType dtype) {
  if (variable.dtype() == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable '", variable.name(), "' holds ", DTypeName(variable.dtype()), ", not ", DTypeName(dtype)));
}

}  // namespace thalweg
