// Variable: the resource behind VarHandleOp. One tensor that ops read, replace and update.
//
// Threading: every method locks; none blocks for longer than a copy of the value. Readers share the buffer, so an
// update that finds the buffer shared works on a new one: a value once read never changes.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

class Variable : public Resource {
 public:
  static constexpr const char* kTypeName = "Variable";

  Variable(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  std::string DebugString() const override;

  bool initialized() const;
  // Shares the buffer. FailedPrecondition, naming the variable, before the first assignment.
  absl::StatusOr<Tensor> Read() const;
  // InvalidArgument if the dtype differs, or if `same_shape` is asked for and the value there has another shape.
  absl::Status Assign(Tensor value, bool same_shape = false);
  // Calls update(value) under the lock. `update` may write the buffer in place if it finds it owned alone, otherwise it
  // puts a new tensor in its place; if it fails, the value must be as before. It must not wait for anything, nor split
  // work over threads (a helping thread may want this very lock).
  using Updater = absl::FunctionRef<absl::Status(Tensor& value)>;
  absl::Status Update(Updater update);

 private:
  absl::Status Uninitialized() const;

  const std::string name_;
  const DType dtype_;
  mutable std::mutex mutex_;
  Tensor value_;  // guarded by mutex_
};

// The handle that input i of a kernel carries. InvalidArgument unless it is a scalar handle of a variable.
absl::StatusOr<ResourceHandle> VariableHandle(const KernelContext& ctx, int i);

// The variable that `handle` means. FailedPrecondition, naming it, if it was never assigned to.
absl::StatusOr<std::shared_ptr<Variable>> FindVariable(KernelContext& ctx, const ResourceHandle& handle);

// InvalidArgument if `dtype` is not what the variable holds.
absl::Status CheckVariableDType(const Variable& variable, DType dtype);

}  // namespace thalweg
