// The shape check sees what disagrees with inference, and nothing else.
#include "thalweg/runtime/shape_check.h"

#include <gtest/gtest.h>

#include <utility>

#include "thalweg/tests/support/fake_step.h"

namespace thalweg {
namespace {

// Passes its input on.
class PassKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, ctx.input(0));
    return absl::OkStatus();
  }
};

absl::Status RunChecked(PartialShape input, PartialShape output, Shape actual) {
  const KernelSignature signature = KernelSignature::OnHost({DType::kFloat32}, {DType::kFloat32});
  KernelNode node;
  node.signature = &signature;
  testing::FakeStep step;
  Value slots[2];
  slots[0].tensor = *Tensor::Allocate(DType::kFloat32, std::move(actual));
  const uint32_t input_slot = 0;
  const uint8_t last_use = 0;
  KernelContext context;
  context.Bind(&node, &step, slots, &input_slot, &slots[1], &last_use, nullptr);
  return WithShapeCheck(std::make_shared<PassKernel>(), {{std::move(input)}, {std::move(output)}})->Compute(context);
}

PartialShape Of(Dims dims) { return PartialShape::OfDims(std::move(dims)); }

TEST(ShapeCheck, WhatAgreesPasses) {
  EXPECT_TRUE(RunChecked(PartialShape(), PartialShape(), Shape::Of({2, 3})).ok());
  EXPECT_TRUE(RunChecked(Of({2, kUnknownDim}), Of({2, 3}), Shape::Of({2, 3})).ok());
  EXPECT_TRUE(RunChecked(Of({-2, -3}), Of({-2, -3}), Shape::Of({2, 3})).ok());
}

TEST(ShapeCheck, WhatDisagreesFails) {
  EXPECT_EQ(RunChecked(Of({2, 4}), PartialShape(), Shape::Of({2, 3})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunChecked(PartialShape(), Of({kUnknownDim}), Shape::Of({2, 3})).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunChecked(PartialShape(), Of({-2, -2}), Shape::Of({2, 3})).code(), absl::StatusCode::kInternal)
      << "one symbol, two sizes";
}

}  // namespace
}  // namespace thalweg
