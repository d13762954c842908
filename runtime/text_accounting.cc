#include "thalweg/runtime/text_accounting.h"

#include <algorithm>
#include <utility>

#include "thalweg/devices/text_memory.h"

namespace thalweg {
namespace {

class TextAccountingKernel final : public Kernel {
 public:
  explicit TextAccountingKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_RETURN_IF_ERROR(kernel_->Compute(ctx));
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const Tensor& out = ctx.output_value(i).tensor;
      if (out.dtype() != DType::kString) continue;
      THALWEG_RETURN_IF_ERROR(ChargeText(out, ctx.host_allocator(), ctx.node().id));
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Kernel> WithTextAccounting(std::unique_ptr<Kernel> kernel, const KernelNode& node) {
  const std::vector<DType>& types = node.output_types();
  if (kernel->is_async() || std::find(types.begin(), types.end(), DType::kString) == types.end()) return kernel;
  return std::make_unique<TextAccountingKernel>(std::move(kernel));
}

}  // namespace thalweg
