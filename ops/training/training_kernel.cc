#include "thalweg/ops/training/training_kernel.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/variable.h"

namespace thalweg {
namespace {

constexpr const char* kStepCount = "global_step";  // the one hyperparameter that is an int64

// Where the arguments of a node are. Variables come first.
struct TrainingArguments {
  int num_variables = 0;
  int gradient = -1;
  int indices = -1;  // -1: dense
  absl::InlinedVector<int, 8> scalars;
};

TrainingArguments FindArguments(const OpSchema& schema) {
  TrainingArguments out;
  for (int i = 0; i < static_cast<int>(schema.inputs.size()); ++i) {
    const ArgDecl& arg = schema.inputs[i];
    if (arg.is_ref || arg.type == DType::kResource) ++out.num_variables;
    else if (arg.name == "grad" || arg.name == "delta") out.gradient = i;
    else if (arg.name == "indices") out.indices = i;
    else out.scalars.push_back(i);
  }
  return out;
}

// The attribute that the rule looks at: the one bool that is not use_locking.
bool RuleFlag(const NodeAttrs& attrs) {
  for (const AttrDecl& attr : attrs.schema()->attrs) {
    if (attr.kind == AttrKind::kBool && attr.name != "use_locking") return attrs.GetOr<bool>(attr.name, false);
  }
  return false;
}

constexpr size_t kMaxScalars = 8;
constexpr size_t kMaxScalarBytes = 16;

void StoreStepCount(int64_t count, DType dtype, char* to) {
  const auto store = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  switch (dtype) {
    case DType::kFloat16: return store(half(static_cast<float>(count)));
    case DType::kBFloat16: return store(bfloat16(static_cast<float>(count)));
    case DType::kFloat64: return store(static_cast<double>(count));
    default: return store(static_cast<float>(count));
  }
}

class TrainingKernel : public Kernel {
 public:
  TrainingKernel(const KernelNode& node, TrainingLoop loop)
      : schema_(*node.schema),
        arguments_(FindArguments(schema_)),
        dtype_(node.input_types()[arguments_.gradient]),
        flag_(RuleFlag(node.node_attrs())),
        loop_(loop) {}

  absl::Status Compute(KernelContext& ctx) override {
    absl::InlinedVector<VariableInput, 4> variables;
    for (int i = 0; i < arguments_.num_variables; ++i) {
      absl::StatusOr<VariableInput> variable = FindVariableInput(ctx, i);
      // TensorFlow's code for a variable that a training op does not find.
      if (absl::IsNotFound(variable.status())) return absl::InternalError(variable.status().message());
      THALWEG_RETURN_IF_ERROR(variable.status());
      THALWEG_RETURN_IF_ERROR(CheckVariableDType(*variable->storage, dtype_));
      variables.push_back(*std::move(variable));
    }
    alignas(kMaxScalarBytes) std::array<char, kMaxScalars * kMaxScalarBytes> scalars;
    THALWEG_RETURN_IF_ERROR(ReadScalars(ctx, scalars.data()));
    {
      const VariableLocks locks(variables);
      THALWEG_RETURN_IF_ERROR(Update(ctx, variables, scalars.data()));
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadScalars(KernelContext& ctx, char* out) const {
    const size_t bytes = DTypeSize(dtype_);
    for (const int i : arguments_.scalars) {
      const Tensor& scalar = ctx.input(i);
      if (scalar.rank() != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(schema_.inputs[i].name, " must be a scalar, not ", scalar.shape().ToString()));
      }
      if (scalar.dtype() == dtype_) std::memcpy(out, scalar.raw(), bytes);
      else StoreStepCount(scalar.flat<int64_t>()[0], dtype_, out);
      out += bytes;
    }
    return absl::OkStatus();
  }

  absl::Status Update(KernelContext& ctx, absl::Span<const VariableInput> variables, const char* scalars) const {
    absl::InlinedVector<void*, 4> elements;
    const Tensor* first = nullptr;
    // All are made writable before any address is taken: one variable may be given twice.
    for (const VariableInput& variable : variables) THALWEG_RETURN_IF_ERROR(WritableValue(ctx, variable).status());
    for (size_t i = 0; i < variables.size(); ++i) {
      Tensor& value = variables[i].storage->tensor;
      if (first == nullptr) first = &value;
      if (value.shape() != first->shape()) {
        return absl::InvalidArgumentError(absl::StrCat("variables '", variables[0].storage->name, "' of shape ",
                                                       first->shape().ToString(), " and '", variables[i].storage->name,
                                                       "' of shape ", value.shape().ToString(), " must have one shape"));
      }
      elements.push_back(value.mutable_raw());
    }
    if (arguments_.indices >= 0) return UpdateRows(ctx, *first, elements, scalars);
    const Tensor& gradient = ctx.input(arguments_.gradient);
    if (gradient.shape() != first->shape()) {
      return absl::InvalidArgumentError(absl::StrCat("variable '", variables[0].storage->name, "' has shape ",
                                                     first->shape().ToString(), ", but ",
                                                     schema_.inputs[arguments_.gradient].name, " has shape ",
                                                     gradient.shape().ToString()));
    }
    loop_(scalars, flag_, elements.data(), gradient.raw(), first->num_elements());
    return absl::OkStatus();
  }

  absl::Status CheckRows(const Tensor& variable, const Tensor& gradient, const Tensor& indices) const {
    if (variable.rank() == 0) return absl::InvalidArgumentError("a scalar variable has no rows that could be trained");
    if (indices.rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("indices must be a vector, not ", indices.shape().ToString()));
    }
    const bool fits = gradient.rank() == variable.rank() && gradient.dim(0) == indices.dim(0) &&
                      gradient.shape().dims().subspan(1) == variable.shape().dims().subspan(1);
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("a gradient of shape ", gradient.shape().ToString(), " does not fit ",
                                                   indices.dim(0), " rows of a variable of shape ",
                                                   variable.shape().ToString()));
  }

  absl::Status UpdateRows(KernelContext& ctx, const Tensor& variable, absl::Span<void* const> elements,
                          const char* scalars) const {
    const Tensor& gradient = ctx.input(arguments_.gradient);
    const Tensor& indices = ctx.input(arguments_.indices);
    THALWEG_RETURN_IF_ERROR(CheckRows(variable, gradient, indices));
    const int64_t rows = variable.dim(0);
    const int64_t row = variable.shape().NumElements(1, variable.rank());
    const int64_t row_bytes = row * static_cast<int64_t>(DTypeSize(dtype_));
    return WithIndices(indices, [&](auto index) -> absl::Status {
      for (size_t i = 0; i < index.size(); ++i) {
        if (IndexInRange(index[i], rows)) continue;
        return absl::InvalidArgumentError(absl::StrCat("indices[", i, "] = ", index[i], " is not in [0, ", rows, ")"));
      }
      if (row == 0) return absl::OkStatus();
      absl::InlinedVector<void*, 4> at(elements.size());
      for (size_t i = 0; i < index.size(); ++i) {
        for (size_t v = 0; v < elements.size(); ++v) at[v] = static_cast<char*>(elements[v]) + index[i] * row_bytes;
        loop_(scalars, flag_, at.data(), static_cast<const char*>(gradient.raw()) + static_cast<int64_t>(i) * row_bytes, row);
      }
      return absl::OkStatus();
    });
  }

  const OpSchema& schema_;
  const TrainingArguments arguments_;
  const DType dtype_;
  const bool flag_;
  const TrainingLoop loop_;
};

// ---- Registration

absl::Status PassVariableShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

std::string Signature(const std::string& op, const TrainingRule& rule, const std::vector<std::string>& arguments, bool ref) {
  std::vector<std::string> inputs;
  for (const std::string& v : rule.variables) inputs.push_back(absl::StrCat(v, ref ? ": Ref(T)" : ": resource"));
  for (const std::string& a : arguments) {
    inputs.push_back(absl::StrCat(a, a == kStepCount ? ": int64" : a == "indices" ? ": Tindices" : ": T"));
  }
  return absl::StrCat(op, "(", absl::StrJoin(inputs, ", "), ")", ref ? " -> out: Ref(T)" : "");
}

void RegisterForm(OpLibrary& lib, const TrainingRule& rule, bool sparse, bool ref) {
  const std::vector<std::string>& arguments = sparse ? rule.sparse_arguments : rule.dense_arguments;
  const std::string name = absl::StrCat(ref ? "" : "Resource", sparse ? "Sparse" : "", "Apply", rule.name);
  std::string attrs = absl::StrCat("T: numbertype; use_locking: bool = false", sparse ? "; Tindices: {int32, int64}" : "");
  if (!rule.flag.empty()) absl::StrAppend(&attrs, "; ", rule.flag, ": bool = ", rule.flag_default ? "true" : "false");
  OpSchemaBuilder schema = lib.schemas.Add(Signature(name, rule, arguments, ref), attrs);
  schema.Shape(PassVariableShape).Cost(CopyCost);
  if (!ref) schema.Stateful();
  std::vector<DType> types = rule.types;
  if (sparse) {
    for (const DType excluded : rule.no_sparse_types) types.erase(std::remove(types.begin(), types.end(), excluded), types.end());
  }
  lib.kernels.Add(name, "cpu", rule.factory).Type("T", std::move(types));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeTrainingKernel(const KernelInit& init, TrainingLoop loop) {
  return std::unique_ptr<Kernel>(std::make_unique<TrainingKernel>(init.node(), loop));
}

void RegisterTrainingForms(OpLibrary& lib, const TrainingRule& rule) {
  for (const bool ref : {true, false}) {
    if (ref && !rule.has_reference_form) continue;
    RegisterForm(lib, rule, /*sparse=*/false, ref);
    if (!rule.sparse_arguments.empty()) RegisterForm(lib, rule, /*sparse=*/true, ref);
  }
}

}  // namespace thalweg
