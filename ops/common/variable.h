// Variable: the resource behind VarHandleOp and VariableV2. One tensor that ops read, replace and update.
//
// Threading: every function here locks, but for those that say otherwise; none blocks for longer than a copy of the value.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// What every reference edge points at (Value::ref): nothing but variables has references, so code that is given a RefStorage
// may take it for one of these. While holding the mutex nobody may wait for anything, nor split work over threads (a helping
// thread may want this very mutex).
//
// Readers share the buffer. What follows differs, as it does in TensorFlow:
//   * Ops on resources work in place only if they find the buffer owned alone: a value once read never changes.
//   * Ops on references to plain numbers write into the buffer that is there, whoever shares it, so that an Identity of a
//     reference shows updates that happen after it (H19, L9: graphs with moving averages count on that). Fetched values are
//     copied at the end of the step for this reason. A buffer that a variable did not make or take alone is never written.
struct VariableStorage : RefStorage {
  VariableStorage(std::string name, DType dtype, Shape declared)
      : name(std::move(name)), dtype(dtype), declared(std::move(declared)) {}

  const std::string name;  // of the variable, for messages
  const DType dtype;
  const Shape declared;    // what a first value that is checked must have
};

class Variable : public Resource {
 public:
  static constexpr const char* kTypeName = "Variable";

  Variable(std::string name, DType dtype, Shape declared = Shape())
      : storage_(std::move(name), dtype, std::move(declared)) {}

  const std::string& name() const { return storage_.name; }
  DType dtype() const { return storage_.dtype; }
  VariableStorage& storage() { return storage_; }
  std::string DebugString() const override;

  bool initialized() const;
  // Shares the buffer. FailedPrecondition, naming the variable, before the first assignment.
  absl::StatusOr<Tensor> Read() const;
  // InvalidArgument if the dtype differs, or if `same_shape` is asked for and the value there has another shape.
  absl::Status Assign(Tensor value, bool same_shape = false);

 private:
  mutable VariableStorage storage_;  // its tensor is guarded by its mutex
};

// The container of a variable, queue or table whose node names none.
inline constexpr const char* kDefaultContainer = "localhost";

// FailedPrecondition: the variable was never assigned to (A71).
absl::Status HasNoValue(const VariableStorage& storage);

// The handle that input i of a kernel carries. InvalidArgument unless it is a scalar handle of a variable.
absl::StatusOr<ResourceHandle> VariableHandle(const KernelContext& ctx, int i);
// The variable that `handle` means. NotFound, naming it, if it was never assigned to.
absl::StatusOr<std::shared_ptr<Variable>> FindVariable(KernelContext& ctx, const ResourceHandle& handle);
// InvalidArgument if `dtype` is not what the variable holds.
absl::Status CheckVariableDType(const VariableStorage& storage, DType dtype);

// A variable that an op is about to use, however it came to it.
struct VariableInput {
  VariableStorage* storage = nullptr;
  std::shared_ptr<Variable> keep_alive;  // of one that came by handle
  bool by_reference() const { return keep_alive == nullptr; }
};
// Input i, a reference or the handle of a resource variable. InvalidArgument for a plain value where a reference is
// declared (A69), NotFound for a handle that means nothing.
absl::StatusOr<VariableInput> FindVariableInput(KernelContext& ctx, int i);

// Locks several variables at once, in an order that is the same for everybody. One that is given twice is locked once.
class VariableLocks {
 public:
  explicit VariableLocks(absl::Span<const VariableInput> variables);

 private:
  absl::InlinedVector<std::unique_lock<std::mutex>, 4> locks_;
};

// True if the locked, initialised value of `variable` may be written in place.
bool MayWriteInPlace(const VariableInput& variable);
// The value of a locked variable, ready to be written in place: if that may not be, the variable gets a copy first.
// FailedPrecondition before the first assignment.
absl::StatusOr<Tensor*> WritableValue(KernelContext& ctx, const VariableInput& variable);

// If input i is a reference, output 0 becomes that reference: what ops on references give.
void PassReference(KernelContext& ctx, int i);

}  // namespace thalweg
