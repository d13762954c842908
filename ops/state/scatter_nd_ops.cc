// ScatterNdUpdate, ScatterNdAdd and their kin: slices of a variable at places named by index tuples, for references and for
// resources.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/state/nd_offsets.h"
#include "thalweg/ops/state/state_ops.h"

namespace thalweg {
namespace {

class ScatterNdKernel : public Kernel {
 public:
  // Without `combine` slices are replaced.
  explicit ScatterNdKernel(CombineLoop combine) : combine_(combine) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, ctx.input_dtype(2)));
    {
      std::lock_guard<std::mutex> lock(storage.mutex);
      if (!storage.tensor.initialized()) return HasNoValue(storage);
      std::vector<int64_t> offsets;
      THALWEG_ASSIGN_OR_RETURN(const int depth, CheckShapes(storage.tensor, ctx.input(1), ctx.input(2)));
      const int64_t count = ctx.input(1).shape().NumElements(0, ctx.input(1).rank() - 1);
      THALWEG_RETURN_IF_ERROR(NdOffsets(ctx.input(1), count, depth, storage.tensor.shape(), &offsets));
      THALWEG_ASSIGN_OR_RETURN(Tensor * value, WritableValue(ctx, variable));
      THALWEG_RETURN_IF_ERROR(WriteSlices(offsets, value->shape().NumElements(depth, value->rank()), ctx.input(2), *value));
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  // Gives the length of the index tuples.
  static absl::StatusOr<int> CheckShapes(const Tensor& value, const Tensor& indices, const Tensor& updates) {
    const int64_t depth = indices.rank() > 0 ? indices.dim(indices.rank() - 1) : -1;
    if (depth >= 0 && depth <= value.rank()) {
      Dims wanted(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
      wanted.insert(wanted.end(), value.shape().dims().begin() + depth, value.shape().dims().end());
      if (absl::MakeConstSpan(wanted) == updates.shape().dims()) return static_cast<int>(depth);
    }
    return absl::InvalidArgumentError(absl::StrCat("updates of shape ", updates.shape().ToString(), " do not fit indices of shape ",
                                                   indices.shape().ToString(), " into a variable of shape ",
                                                   value.shape().ToString()));
  }

  absl::Status WriteSlices(const std::vector<int64_t>& offsets, int64_t slice, const Tensor& updates, Tensor& value) const {
    if (slice == 0) return absl::OkStatus();
    const int64_t bytes = ElementBytes(value.dtype());
    const char* from = static_cast<const char*>(updates.raw());
    for (const int64_t offset : offsets) {
      char* to = static_cast<char*>(value.mutable_raw()) + offset * bytes;
      if (combine_ != nullptr) {
        THALWEG_RETURN_IF_ERROR(combine_(to, from, 1, to, slice));
      } else {
        WithCell(value.dtype(), [&](auto cell) { decltype(cell)::CopyRun(to, from, slice); });
      }
      from += slice * bytes;
    }
    return absl::OkStatus();
  }

  const CombineLoop combine_;
};

class ReplaceSlicesKernel : public ScatterNdKernel {
 public:
  ReplaceSlicesKernel() : ScatterNdKernel(nullptr) {}
};

template <CombineOp op>
class CombineSlicesKernel : public ScatterNdKernel {
 public:
  explicit CombineSlicesKernel(const KernelInit& init) : ScatterNdKernel(FindCombineLoop(op, init.node().input_types()[2])) {}
};

absl::Status PassVariableShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(1, 1));
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

void RegisterForms(OpLibrary& lib, const std::string& suffix, KernelFactory factory, const std::vector<DType>& types) {
  const bool replaces = suffix == "Update";
  const std::string name = absl::StrCat("ScatterNd", suffix);
  lib.schemas
      .Add(absl::StrCat(name, "(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)"),
           absl::StrCat("T: ", replaces ? "type" : "numbertype", "; Tindices: {int32, int64}; use_locking: bool = ",
                        replaces ? "true" : "false", "; bad_indices_policy: string = \"\""))
      .Shape(PassVariableShape)
      .Cost(CopyCost);
  lib.schemas
      .Add(absl::StrCat("Resource", name, "(ref: resource, indices: Tindices, updates: T)"),
           "T: type; Tindices: {int32, int64}; use_locking: bool = true; bad_indices_policy: string = \"\"")
      .Shape(PassVariableShape)
      .Cost(CopyCost)
      .Stateful();
  lib.kernels.Add(name, "cpu", factory).Type("T", types);
  lib.kernels.Add("Resource" + name, "cpu", factory).Type("T", types);
}

}  // namespace

void RegisterScatterNdOps(OpLibrary& lib) {
  const std::vector<DType> numbers(CombinableTypes().begin(), CombinableTypes().end());
  std::vector<DType> real;
  for (const DType type : numbers) {
    if (!IsComplex(type)) real.push_back(type);
  }
  RegisterForms(lib, "Update", MakeKernel<ReplaceSlicesKernel>, PlainTypesAnd({DType::kString}));
  RegisterForms(lib, "Add", MakeKernel<CombineSlicesKernel<CombineOp::kAdd>>, numbers);
  RegisterForms(lib, "Sub", MakeKernel<CombineSlicesKernel<CombineOp::kSub>>, numbers);
  RegisterForms(lib, "Min", MakeKernel<CombineSlicesKernel<CombineOp::kMin>>, real);
  RegisterForms(lib, "Max", MakeKernel<CombineSlicesKernel<CombineOp::kMax>>, real);
}

}  // namespace thalweg
