// Elementwise ops of two operands that do not broadcast: gradients of activations and the like.
#pragma once

#include "absl/status/status.h"
#include "thalweg/ops/common/elementwise_loops.h"

namespace thalweg {

// What the two operands must have in common. The output has the shape of the first.
enum class OperandRule : uint8_t { kSameShape, kSameCount };

class SameShapeElementwiseKernel final : public Kernel {
 public:
  // Both must outlive the kernel.
  SameShapeElementwiseKernel(const ElementwiseDef& def, const KernelNode& node, OperandRule rule)
      : elementwise_(def, node), rule_(rule) {}
  // InvalidArgument if the operands break the rule.
  absl::Status Compute(KernelContext& ctx) override;

 private:
  ElementwiseKernel elementwise_;
  const OperandRule rule_;
};

template <const ElementwiseDef& def, OperandRule rule>
absl::StatusOr<std::unique_ptr<Kernel>> MakeSameShapeElementwise(const KernelInit& init) {
  return std::unique_ptr<Kernel>(std::make_unique<SameShapeElementwiseKernel>(def, init.node(), rule));
}

// Adds a CPU kernel of `op` for each storage type in Ts, constrained on attribute T.
template <typename Op, OperandRule rule, typename... Ts>
void RegisterSameShapeElementwise(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeSameShapeElementwise<elementwise_internal::kDef<Op, elementwise_internal::LoopT<Op, Ts>>, rule>)
       .template Type<Ts>("T"), ...);
}

}  // namespace thalweg
