// Arithmetic on the whole value of a variable: AssignAdd and AssignSub, CountUpTo, each for references and for resources.
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/state/state_ops.h"
#include "thalweg/ops/common/variable.h"

namespace thalweg {
namespace {

template <CombineOp op>
class AssignUpdateKernel : public Kernel {
 public:
  explicit AssignUpdateKernel(const KernelInit& init) : combine_(FindCombineLoop(op, init.node().input_types()[1])) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, ctx.input_dtype(1)));
    Tensor result;  // after the lock, the old value if that was replaced
    {
      std::lock_guard<std::mutex> lock(storage.mutex);
      THALWEG_RETURN_IF_ERROR(Apply(ctx, variable, &result));
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  absl::Status Apply(KernelContext& ctx, const VariableInput& variable, Tensor* result) const {
    const VariableStorage& storage = *variable.storage;
    Tensor& value = variable.storage->tensor;
    const Tensor& operand = ctx.input(1);
    if (!value.initialized()) return HasNoValue(storage);
    if (value.shape() != operand.shape()) {
      return absl::InvalidArgumentError(absl::StrCat("variable '", storage.name, "' has shape ", value.shape().ToString(),
                                                     "; it cannot be updated with a value of shape ",
                                                     operand.shape().ToString()));
    }
    const int64_t n = value.num_elements();
    if (MayWriteInPlace(variable)) return combine_(value.raw(), operand.raw(), 1, value.mutable_raw(), n);
    THALWEG_ASSIGN_OR_RETURN(*result, ctx.AllocateTemp(value.dtype(), value.shape()));
    THALWEG_RETURN_IF_ERROR(combine_(value.raw(), operand.raw(), 1, result->mutable_raw(), n));
    std::swap(value, *result);
    return absl::OkStatus();
  }

  const CombineLoop combine_;
};

// Gives the value before it goes up by one; OutOfRange once it has reached the limit.
template <typename T>
class CountUpToKernel : public Kernel {
 public:
  explicit CountUpToKernel(const KernelInit& init) : limit_(init.node().node_attrs().GetOr<int64_t>("limit", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, DTypeOf<T>::value));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    std::lock_guard<std::mutex> lock(storage.mutex);
    if (!storage.tensor.initialized()) return HasNoValue(storage);
    THALWEG_ASSIGN_OR_RETURN(const T count, storage.tensor.template scalar<T>());
    if (count >= limit_ || count == std::numeric_limits<T>::max()) {
      return absl::OutOfRangeError(absl::StrCat("variable '", storage.name, "' has reached the limit ", limit_));
    }
    out->mutable_flat<T>()[0] = count;
    THALWEG_ASSIGN_OR_RETURN(Tensor * value, WritableValue(ctx, variable));
    value->mutable_flat<T>()[0] = count + 1;
    return absl::OkStatus();
  }

 private:
  const int64_t limit_;
};

}  // namespace

void RegisterUpdateOps(OpLibrary& lib) {
  const std::vector<DType> types(CombinableTypes().begin(), CombinableTypes().end());
  for (const char* op : {"AssignAdd", "AssignSub"}) {
    lib.schemas
        .Add(absl::StrCat(op, "(ref: Ref(T), value: T) -> output_ref: Ref(T)"),
             "T: numbertype; use_locking: bool = false")
        .Shape(UnchangedShape)
        .Cost(CopyCost);
    const bool add = op == absl::string_view("AssignAdd");
    lib.kernels
        .Add(op, "cpu", add ? MakeKernel<AssignUpdateKernel<CombineOp::kAdd>> : MakeKernel<AssignUpdateKernel<CombineOp::kSub>>)
        .Type("T", types);
  }
  for (const char* op : {"AssignAddVariableOp", "AssignSubVariableOp"}) {
    lib.schemas.Add(absl::StrCat(op, "(resource: resource, value: dtype)"), "dtype: type")
        .Shape(NoOutputs)
        .Cost(CopyCost)
        .Stateful();
    const bool add = op == absl::string_view("AssignAddVariableOp");
    lib.kernels
        .Add(op, "cpu", add ? MakeKernel<AssignUpdateKernel<CombineOp::kAdd>> : MakeKernel<AssignUpdateKernel<CombineOp::kSub>>)
        .Type("dtype", types);
  }
  lib.schemas.Add("CountUpTo(ref: Ref(T)) -> output: T", "limit: int; T: {int32, int64}").Shape(ScalarShape).Cost(NoCost);
  lib.schemas.Add("ResourceCountUpTo(resource: resource) -> output: T", "limit: int; T: {int32, int64}")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .Stateful();
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<CountUpToKernel<int32_t>>).Type<int32_t>("T");
    lib.kernels.Add(op, "cpu", MakeKernel<CountUpToKernel<int64_t>>).Type<int64_t>("T");
  }
}

}  // namespace thalweg
