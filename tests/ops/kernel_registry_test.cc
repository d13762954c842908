// Which kernel a node gets.
#include "thalweg/ops/kernel_registry.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "thalweg/graph/attrs.h"

namespace thalweg {
namespace {

// C4: two kernels that both fit are a mistake unless one has the higher priority.
TEST(KernelRegistryTest, C4TwoKernelsThatFitAreAnError) {
  OpRegistry schemas;
  schemas.Add("Op(x: T) -> y: T", "T: type");
  AttrMap attrs;
  attrs.Set("T", DType::kFloat32);
  const NodeAttrs node(&attrs, schemas.Find("Op"));
  const auto no_kernel = [](const KernelInit&) -> absl::StatusOr<std::unique_ptr<Kernel>> { return absl::UnimplementedError("a test"); };
  KernelRegistry kernels;
  kernels.Add("Op", "cpu", no_kernel).Type<float, double>("T");
  EXPECT_TRUE(kernels.Find(node, "cpu").ok());
  EXPECT_FALSE(kernels.Find(node, "sim").ok());
  kernels.Add("Op", "cpu", no_kernel).Type<float>("T");
  const absl::Status status = kernels.Find(node, "cpu").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "two kernels of equal priority match Op T=float32 on cpu")) << status;
  KernelDef& better = kernels.Add("Op", "cpu", no_kernel).Type<float>("T");
  better.priority = 1;
  const absl::StatusOr<const KernelDef*> found = kernels.Find(node, "cpu");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->priority, 1);
  attrs.Set("T", DType::kFloat64);
  EXPECT_TRUE(kernels.Find(NodeAttrs(&attrs, schemas.Find("Op")), "cpu").ok()) << "only one has doubles";
}

}  // namespace
}  // namespace thalweg
