// ScatterUpdate, ScatterAdd and their kin: rows of a variable changed by rows of updates, for references and for resources.
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
#include "thalweg/ops/state/state_ops.h"
#include "thalweg/ops/common/variable.h"

namespace thalweg {
namespace {

absl::Status CheckUpdatesFit(const Tensor& value, const Tensor& indices, const Tensor& updates) {
  if (value.rank() == 0) return absl::InvalidArgumentError("a scalar variable has no rows that could be changed");
  if (updates.rank() == 0) return absl::OkStatus();  // one value for every element
  Dims wanted(indices.shape().dims().begin(), indices.shape().dims().end());
  wanted.insert(wanted.end(), value.shape().dims().begin() + 1, value.shape().dims().end());
  if (absl::MakeConstSpan(wanted) == updates.shape().dims()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("updates of shape ", updates.shape().ToString(),
                                                 " do not fit indices of shape ", indices.shape().ToString(),
                                                 " into a variable of shape ", value.shape().ToString()));
}

// Writes rows of updates (or one scalar) over or into rows of a variable, in the order of the indices.
class RowWriter {
 public:
  // Without `combine` rows are replaced.
  RowWriter(CombineLoop combine, const Tensor& updates, Tensor& value)
      : combine_(combine),
        row_(value.shape().NumElements(1, value.rank())),
        bytes_(ElementBytes(value.dtype())),
        scalar_(updates.rank() == 0),
        dtype_(value.dtype()),
        from_(static_cast<const char*>(updates.raw())),
        to_(static_cast<char*>(value.mutable_raw())) {}

  absl::Status Write(int64_t update, int64_t row) const {
    if (row_ == 0) return absl::OkStatus();
    char* to = to_ + row * row_ * bytes_;
    const char* from = scalar_ ? from_ : from_ + update * row_ * bytes_;
    if (combine_ != nullptr) return combine_(to, from, scalar_ ? 0 : 1, to, row_);
    WithCell(dtype_, [&](auto cell) {
      using Cell = decltype(cell);
      if (!scalar_) return Cell::CopyRun(to, from, row_);
      for (int64_t i = 0; i < row_; ++i) Cell::Copy(to + i * bytes_, from);
    });
    return absl::OkStatus();
  }

 private:
  const CombineLoop combine_;
  const int64_t row_;    // elements of a row
  const int64_t bytes_;  // of an element
  const bool scalar_;
  const DType dtype_;
  const char* const from_;
  char* const to_;
};

class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(CombineLoop combine) : combine_(combine) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, ctx.input_dtype(2)));
    {
      std::lock_guard<std::mutex> lock(storage.mutex);
      THALWEG_ASSIGN_OR_RETURN(Tensor * value, WritableValue(ctx, variable));
      THALWEG_RETURN_IF_ERROR(Scatter(ctx.input(1), ctx.input(2), *value));
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  // As TensorFlow does, rows before a wrong index are changed although the op fails.
  absl::Status Scatter(const Tensor& indices, const Tensor& updates, Tensor& value) const {
    THALWEG_RETURN_IF_ERROR(CheckUpdatesFit(value, indices, updates));
    const int64_t rows = value.dim(0);
    const RowWriter writer(combine_, updates, value);
    return WithIndices(indices, [&](auto index) -> absl::Status {
      for (int64_t i = 0; i < static_cast<int64_t>(index.size()); ++i) {
        const int64_t row = index[i];
        if (!IndexInRange(row, rows)) {
          return absl::InvalidArgumentError(absl::StrCat("indices", CoordinateString(indices.shape(), i), " = ", row,
                                                         " is not in [0, ", rows, ")"));
        }
        THALWEG_RETURN_IF_ERROR(writer.Write(i, row));
      }
      return absl::OkStatus();
    });
  }

  const CombineLoop combine_;
};

class ReplaceRowsKernel : public ScatterKernel {
 public:
  ReplaceRowsKernel() : ScatterKernel(nullptr) {}
};

template <CombineOp op>
class CombineRowsKernel : public ScatterKernel {
 public:
  explicit CombineRowsKernel(const KernelInit& init) : ScatterKernel(FindCombineLoop(op, init.node().input_types()[2])) {}
};

absl::Status ScatterShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

struct ScatterOp {
  const char* suffix;
  KernelFactory factory;
  const char* ref_types;  // of the declaration
  std::vector<DType> types;
};

void RegisterScatter(OpLibrary& lib, const ScatterOp& op) {
  const std::string ref_name = absl::StrCat("Scatter", op.suffix);
  const bool replaces = op.suffix == absl::string_view("Update");
  lib.schemas
      .Add(absl::StrCat(ref_name, "(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)"),
           absl::StrCat("T: ", op.ref_types, "; Tindices: {int32, int64}; use_locking: bool = ", replaces ? "true" : "false"))
      .Shape(ScatterShape)
      .Cost(CopyCost);
  lib.kernels.Add(ref_name, "cpu", op.factory).Type("T", op.types);

  const std::string name = absl::StrCat("ResourceScatter", op.suffix);
  std::vector<DType> types = op.types;
  if (replaces) types = PlainTypesAnd({DType::kString, DType::kVariant});
  lib.schemas
      .Add(absl::StrCat(name, "(resource: resource, indices: Tindices, updates: dtype)"),
           absl::StrCat("dtype: ", replaces ? "type" : "numbertype", "; Tindices: {int32, int64}"))
      .Shape(NoOutputs)
      .Cost(CopyCost)
      .Stateful();
  lib.kernels.Add(name, "cpu", op.factory).Type("dtype", types);
}

}  // namespace

void RegisterScatterOps(OpLibrary& lib) {
  const std::vector<DType> numbers(CombinableTypes().begin(), CombinableTypes().end());
  std::vector<DType> real;
  for (const DType type : numbers) {
    if (!IsComplex(type)) real.push_back(type);
  }
  const char* const ordered = "{half, bfloat16, float, double, int32, int64}";
  RegisterScatter(lib, {"Update", MakeKernel<ReplaceRowsKernel>, "type", MovableTypes()});
  RegisterScatter(lib, {"Add", MakeKernel<CombineRowsKernel<CombineOp::kAdd>>, "numbertype", numbers});
  RegisterScatter(lib, {"Sub", MakeKernel<CombineRowsKernel<CombineOp::kSub>>, "numbertype", numbers});
  RegisterScatter(lib, {"Mul", MakeKernel<CombineRowsKernel<CombineOp::kMul>>, "numbertype", numbers});
  RegisterScatter(lib, {"Div", MakeKernel<CombineRowsKernel<CombineOp::kDiv>>, "numbertype", numbers});
  RegisterScatter(lib, {"Min", MakeKernel<CombineRowsKernel<CombineOp::kMin>>, ordered, real});
  RegisterScatter(lib, {"Max", MakeKernel<CombineRowsKernel<CombineOp::kMax>>, ordered, real});
}

}  // namespace thalweg
