#include "thalweg/runtime/shape_check.h"

#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// Compares the values of one execution; a symbol must mean the same in all of them.
class Comparison {
 public:
  absl::Status Compare(absl::string_view what, int index, const PartialShape& inferred, const Value& value) {
    const Tensor& tensor = value.tensor;
    if (!tensor.initialized() || !inferred.has_rank()) return absl::OkStatus();
    bool agrees = inferred.IsCompatibleWith(tensor.shape());
    for (int d = 0; agrees && d < tensor.rank(); ++d) {
      if (!IsSymbol(inferred.dim(d))) continue;
      agrees = symbols_.emplace(inferred.dim(d), tensor.dim(d)).first->second == tensor.dim(d);
    }
    if (agrees) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("shape check: ", what, " ", index, " has shape ", tensor.shape().ToString(),
                                            ", but shape inference said ", inferred.ToString()));
  }

 private:
  absl::flat_hash_map<int64_t, int64_t> symbols_;
};

absl::Status CompareInputs(const NodeShapes& inferred, const KernelContext& ctx, Comparison* comparison) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (IsRef(ctx.node().input_types()[i])) continue;  // a variable's value may have changed its shape
    THALWEG_RETURN_IF_ERROR(comparison->Compare("input", i, inferred.inputs[i], ctx.input_value(i)));
  }
  return absl::OkStatus();
}

absl::Status CompareOutputs(const NodeShapes& inferred, KernelContext& ctx, Comparison* comparison) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    if (IsRef(ctx.node().output_types()[i])) continue;
    THALWEG_RETURN_IF_ERROR(comparison->Compare("output", i, inferred.outputs[i], ctx.output_value(i)));
  }
  return absl::OkStatus();
}

class CheckedKernel final : public Kernel {
 public:
  CheckedKernel(std::shared_ptr<Kernel> kernel, NodeShapes inferred)
      : kernel_(std::move(kernel)), inferred_(std::move(inferred)) {}

  absl::Status Compute(KernelContext& ctx) override {
    Comparison comparison;
    const absl::Status inputs = CompareInputs(inferred_, ctx, &comparison);  // before they are moved away
    THALWEG_RETURN_IF_ERROR(kernel_->Compute(ctx));
    THALWEG_RETURN_IF_ERROR(inputs);
    return CompareOutputs(inferred_, ctx, &comparison);
  }

 private:
  const std::shared_ptr<Kernel> kernel_;
  const NodeShapes inferred_;
};

class CheckedAsyncKernel final : public AsyncKernel {
 public:
  CheckedAsyncKernel(std::shared_ptr<AsyncKernel> kernel, NodeShapes inferred)
      : kernel_(std::move(kernel)), inferred_(std::move(inferred)) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    Comparison comparison;
    absl::Status inputs = CompareInputs(inferred_, ctx, &comparison);
    kernel_->ComputeAsync(ctx, [this, &ctx, comparison, inputs, done = std::move(done)](absl::Status status) mutable {
      if (status.ok()) status = inputs;
      if (status.ok()) status = CompareOutputs(inferred_, ctx, &comparison);
      done(std::move(status));
    });
  }

 private:
  const std::shared_ptr<AsyncKernel> kernel_;
  const NodeShapes inferred_;
};

}  // namespace

bool ShapeCheckWanted() {
  static const bool wanted = std::getenv("THALWEG_CHECK_SHAPES") != nullptr;
  return wanted;
}

std::shared_ptr<Kernel> WithShapeCheck(std::shared_ptr<Kernel> kernel, NodeShapes inferred) {
  if (!kernel->is_async()) return std::make_shared<CheckedKernel>(std::move(kernel), std::move(inferred));
  return std::make_shared<CheckedAsyncKernel>(std::static_pointer_cast<AsyncKernel>(std::move(kernel)), std::move(inferred));
}

}  // namespace thalweg
