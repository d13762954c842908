// Resource variables.
#include "thalweg/ops/common/variable.h"

#include <gtest/gtest.h>

#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

ResourceHandle HandleOf(const char* name, DType dtype = DType::kFloat32) {
  ResourceHandle handle;
  handle.name = name;
  handle.type_name = Variable::kTypeName;
  handle.dtype = dtype;
  handle.resource = std::make_shared<Variable>(name, dtype);
  return handle;
}

absl::Status Assign(const ResourceHandle& handle, Tensor value) {
  testing::OpRunner op("AssignVariableOp");
  op.Scalar(handle).Input(std::move(value));
  return op.Run().status();
}

absl::StatusOr<Tensor> Read(const ResourceHandle& handle, DType dtype = DType::kFloat32) {
  testing::OpRunner op("ReadVariableOp");
  op.Scalar(handle).With("dtype", dtype);
  return op.RunOne();
}

TEST(Variable, ReadBeforeAssignNamesIt) {
  const absl::Status status = Read(HandleOf("w")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("'w'"), absl::string_view::npos) << status;
}

TEST(Variable, RefusesAnotherDType) {
  const ResourceHandle handle = HandleOf("w");
  EXPECT_EQ(Assign(handle, *Tensor::Scalar<int32_t>(1)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Assign(handle, *Tensor::Scalar<float>(1)).ok());
  EXPECT_EQ(Read(handle, DType::kInt32).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Variable, RefusesHandlesOfOtherTypes) {
  ResourceHandle handle = HandleOf("w");
  handle.type_name = "Queue";
  EXPECT_EQ(Read(handle).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Variable, AValueOnceReadNeverChanges) {
  const ResourceHandle handle = HandleOf("w");
  ASSERT_TRUE(Assign(handle, *Tensor::Of<float>({1, 2}, Shape::Of({2}))).ok());
  const absl::StatusOr<Tensor> before = Read(handle);
  ASSERT_TRUE(before.ok()) << before.status();
  testing::OpRunner add("AssignAddVariableOp");
  add.Scalar(handle).Input<float>({10, 20}, {2});
  ASSERT_TRUE(add.Run().ok());
  const absl::StatusOr<Tensor> after = Read(handle);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(before->flat<float>()[1], 2);
  EXPECT_EQ(after->flat<float>()[1], 22);
}

TEST(Variable, UpdatesAnUnsharedBufferInPlace) {
  const ResourceHandle handle = HandleOf("w");
  ASSERT_TRUE(Assign(handle, *Tensor::Of<float>({1, 2}, Shape::Of({2}))).ok());
  const void* address = Read(handle)->raw();
  testing::OpRunner sub("AssignSubVariableOp");
  sub.Scalar(handle).Input<float>({1, 1}, {2});
  ASSERT_TRUE(sub.Run().ok());
  const absl::StatusOr<Tensor> after = Read(handle);
  EXPECT_EQ(after->raw(), address);
  EXPECT_EQ(after->flat<float>()[0], 0);
}

TEST(Variable, UpdateOfAnotherShapeLeavesTheValue) {
  const ResourceHandle handle = HandleOf("w");
  ASSERT_TRUE(Assign(handle, *Tensor::Of<float>({1, 2}, Shape::Of({2}))).ok());
  testing::OpRunner add("AssignAddVariableOp");
  add.Scalar(handle).Input<float>({1}, {1});
  EXPECT_EQ(add.Run().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read(handle)->flat<float>()[1], 2);
}

TEST(VarHandle, NamesTheVariableAfterNodeOrSharedName) {
  testing::OpRunner op("VarHandleOp");
  op.With("dtype", DType::kFloat32).With("shape", MakeShapeAttr(PartialShape())).With("shared_name", "shared");
  const absl::StatusOr<Tensor> handle = op.RunOne();
  ASSERT_TRUE(handle.ok()) << handle.status();
  EXPECT_EQ(handle->flat<ResourceHandle>()[0].name, "shared");
  EXPECT_EQ(handle->flat<ResourceHandle>()[0].container, "localhost");
}

}  // namespace
}  // namespace thalweg
