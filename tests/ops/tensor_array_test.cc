// TensorArrays and stacks.
#include <gtest/gtest.h>

#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// An array of float elements and the ops on it.
class Array {
 public:
  explicit Array(int32_t size, PartialShape element_shape = PartialShape(), bool dynamic = false, bool clear = true,
                 bool identical = false, DType dtype = DType::kFloat32) {
    OpRunner op("TensorArrayV3");
    op.Scalar<int32_t>(size).With("dtype", dtype).With("element_shape", MakeShapeAttr(std::move(element_shape)));
    op.With("dynamic_size", dynamic).With("clear_after_read", clear).With("identical_element_shapes", identical);
    absl::StatusOr<std::vector<Tensor>> made = op.Run();
    status_ = made.status();
    if (made.ok()) handle_ = (*made)[0];
  }

  const absl::Status& status() const { return status_; }
  absl::Status Write(int32_t index, Tensor value) const {
    OpRunner op = On("TensorArrayWriteV3");
    return op.Scalar<int32_t>(index).Input(std::move(value)).Scalar<float>(0).Run().status();
  }
  absl::StatusOr<Tensor> Read(int32_t index, DType dtype = DType::kFloat32) const {
    OpRunner op = On("TensorArrayReadV3");
    return op.Scalar<int32_t>(index).Scalar<float>(0).With("dtype", dtype).RunOne();
  }
  absl::StatusOr<Tensor> Gather(std::vector<int32_t> indices, PartialShape element_shape = PartialShape()) const {
    const int64_t n = static_cast<int64_t>(indices.size());
    OpRunner op = On("TensorArrayGatherV3");
    op.Input<int32_t>(std::move(indices), {n}).Scalar<float>(0).With("dtype", DType::kFloat32);
    return op.With("element_shape", MakeShapeAttr(std::move(element_shape))).RunOne();
  }
  absl::Status Scatter(std::vector<int32_t> indices, Tensor value) const {
    const int64_t n = static_cast<int64_t>(indices.size());
    OpRunner op = On("TensorArrayScatterV3");
    return op.Input<int32_t>(std::move(indices), {n}).Input(std::move(value)).Scalar<float>(0).Run().status();
  }
  absl::Status Split(Tensor value, std::vector<int64_t> lengths) const {
    const int64_t n = static_cast<int64_t>(lengths.size());
    OpRunner op = On("TensorArraySplitV3");
    return op.Input(std::move(value)).Input<int64_t>(std::move(lengths), {n}).Scalar<float>(0).Run().status();
  }
  absl::StatusOr<std::vector<Tensor>> Concat(PartialShape rest = PartialShape()) const {
    OpRunner op = On("TensorArrayConcatV3");
    op.Scalar<float>(0).With("dtype", DType::kFloat32).With("element_shape_except0", MakeShapeAttr(std::move(rest)));
    return op.Run();
  }
  absl::StatusOr<int32_t> Size() const {
    OpRunner op = On("TensorArraySizeV3");
    const absl::StatusOr<Tensor> size = op.Scalar<float>(0).RunOne();
    if (!size.ok()) return size.status();
    return size->flat<int32_t>()[0];
  }
  absl::StatusOr<Array> Gradient(const char* source = "g") const {
    OpRunner op = On("TensorArrayGradV3");
    const absl::StatusOr<std::vector<Tensor>> out = op.Scalar<float>(0).With("source", source).Run();
    if (!out.ok()) return out.status();
    return Array((*out)[0]);
  }
  absl::Status Close() const {
    OpRunner op = On("TensorArrayCloseV3");
    return op.Run().status();
  }

 private:
  explicit Array(Tensor handle) : handle_(std::move(handle)) {}
  OpRunner On(const char* name) const {
    OpRunner op(name);
    op.Input(handle_);
    return op;
  }

  absl::Status status_;
  Tensor handle_;
};

Tensor Vec(std::vector<float> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::Of<float>(std::move(values), Shape::Of({n}));
}
std::vector<float> Floats(const absl::StatusOr<Tensor>& t) {
  if (!t.ok()) {
    ADD_FAILURE() << t.status();
    return {};
  }
  return std::vector<float>(t->flat<float>().begin(), t->flat<float>().end());
}
PartialShape Known(std::initializer_list<int64_t> dims) { return PartialShape::Known(Shape::Of(dims)); }
using V = std::vector<float>;

TEST(TensorArray, WritesOnceAndReadsOnce) {
  const Array array(2);
  ASSERT_TRUE(array.Write(1, Vec({1, 2})).ok());
  EXPECT_EQ(array.Write(1, Vec({1, 2})).code(), kInvalid);
  EXPECT_EQ(Floats(array.Read(1)), V({1, 2}));
  EXPECT_EQ(array.Read(1).status().code(), kInvalid);
  EXPECT_EQ(array.Write(1, Vec({1, 2})).code(), kInvalid);
}

TEST(TensorArray, KeepsWhatIsReadIfAskedTo) {
  const Array array(1, PartialShape(), /*dynamic=*/false, /*clear=*/false);
  ASSERT_TRUE(array.Write(0, Vec({3})).ok());
  EXPECT_EQ(Floats(array.Gather({0, 0})), V({3, 3}));
  EXPECT_EQ(Floats(array.Read(0)), V({3}));
}

TEST(TensorArray, L8_UnwrittenElementsAreZerosOfAKnownShape) {
  EXPECT_EQ(Floats(Array(1, Known({2})).Read(0)), V({0, 0}));
  EXPECT_EQ(Array(1).Read(0).status().code(), kInvalid);
  EXPECT_EQ(Array(1, Known({}), false, true, false, DType::kString).Read(0, DType::kString).status().code(), kInvalid);
  const Array identical(3, PartialShape(), false, true, /*identical=*/true);
  ASSERT_TRUE(identical.Write(2, Vec({5})).ok());
  EXPECT_EQ(Floats(identical.Gather({0, 1, 2})), V({0, 0, 5}));
  EXPECT_EQ(identical.Write(0, Vec({1, 2})).code(), kInvalid);
}

TEST(TensorArray, RefusesIndicesOutOfRange) {
  const Array array(2);
  for (const int32_t index : {-1, 2, 2147483647, -2147483647 - 1}) {
    EXPECT_EQ(array.Write(index, Vec({1})).code(), kInvalid) << index;
    EXPECT_EQ(array.Read(index).status().code(), kInvalid) << index;
  }
  EXPECT_EQ(Array(-1).status().code(), kInvalid);
}

TEST(TensorArray, GrowsIfDynamic) {
  const Array array(0, PartialShape(), /*dynamic=*/true);
  ASSERT_TRUE(array.Write(5000, Vec({7})).ok());
  EXPECT_EQ(*array.Size(), 5001);
  EXPECT_EQ(array.Write(-1, Vec({1})).code(), kInvalid);
  EXPECT_EQ(array.Write(2147483647, Vec({1})).code(), kInvalid);
  EXPECT_EQ(Floats(array.Read(5000)), V({7}));
}

TEST(TensorArray, AHugeSizeCostsNothing) {
  const Array array(2147483647, Known({}));
  EXPECT_EQ(*array.Size(), 2147483647);
  EXPECT_EQ(Floats(array.Read(2147483646)), V({0}));
}

TEST(TensorArray, ScattersRowsAndGathersThem) {
  const Array array(3);
  ASSERT_TRUE(array.Scatter({2, 0}, *Tensor::Of<float>({1, 2, 3, 4}, Shape::Of({2, 2}))).ok());
  EXPECT_EQ(array.Scatter({1}, Vec({1, 2})).code(), kInvalid);
  EXPECT_EQ(array.Scatter({-1}, Vec({1})).code(), kInvalid);
  const absl::StatusOr<Tensor> out = array.Gather({0, 2});
  EXPECT_EQ(Floats(out), V({3, 4, 1, 2}));
  EXPECT_EQ(out->shape().ToString(), "[2,2]");
}

TEST(TensorArray, GatherChecksShapes) {
  const Array array(3);
  ASSERT_TRUE(array.Write(0, Vec({1})).ok() && array.Write(1, Vec({1, 2})).ok() && array.Write(2, Vec({1})).ok());
  EXPECT_EQ(array.Gather({0, 1}).status().code(), kInvalid);
  EXPECT_EQ(array.Gather({2}, Known({9})).status().code(), kInvalid);
  EXPECT_EQ(array.Gather({}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Floats(Array(1).Gather({0}, Known({2}))), V({0, 0}));
  EXPECT_EQ(Array(1).Gather({}, Known({3}))->shape().ToString(), "[0,3]");
}

TEST(TensorArray, SplitsAndConcatenates) {
  const Array array(3);
  EXPECT_EQ(array.Split(Vec({1, 2, 3}), {1, 2}).code(), kInvalid);
  EXPECT_EQ(array.Split(Vec({1, 2, 3}), {1, 1, 2}).code(), kInvalid);
  EXPECT_EQ(array.Split(Vec({1, 2, 3}), {4, -1, 0}).code(), kInvalid);
  EXPECT_EQ(array.Split(Vec({1, 2, 3}), {int64_t{1} << 62, int64_t{1} << 62, int64_t{1} << 62}).code(), kInvalid);
  ASSERT_TRUE(array.Split(Vec({1, 2, 3}), {2, 0, 1}).ok());
  const absl::StatusOr<std::vector<Tensor>> out = array.Concat();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Floats((*out)[0]), V({1, 2, 3}));
  EXPECT_EQ((*out)[1].flat<int64_t>()[0], 2);
  EXPECT_EQ(Array(0).Concat().status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ((*Array(0).Concat(Known({2})))[0].shape().ToString(), "[0,2]");
}

TEST(TensorArray, GradientsAddUpAndHaveTheShapesOfTheElements) {
  const Array array(2, PartialShape(), /*dynamic=*/true);
  ASSERT_TRUE(array.Write(0, Vec({1, 2})).ok());
  const absl::StatusOr<Array> gradient = array.Gradient();
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->Write(0, Vec({1})).code(), kInvalid);
  ASSERT_TRUE(gradient->Write(0, Vec({10, 20})).ok());
  ASSERT_TRUE(array.Gradient()->Write(0, Vec({1, 1})).ok());
  EXPECT_EQ(Floats(gradient->Read(0)), V({11, 21}));
  EXPECT_EQ(Floats(array.Gradient("other")->Read(0)), V({0, 0}));
  EXPECT_EQ(gradient->Read(1).status().code(), kInvalid);
  EXPECT_EQ(gradient->Gradient().status().code(), kInvalid);
  EXPECT_EQ(array.Write(2, Vec({1})).code(), kInvalid) << "no growth once there are gradients";
}

TEST(TensorArray, ClosedOrOfAnotherTypeIsRefused) {
  const Array array(2);
  EXPECT_EQ(array.Write(0, *Tensor::Scalar<int32_t>(1)).code(), kInvalid);
  EXPECT_EQ(array.Read(0, DType::kInt32).status().code(), kInvalid);
  ASSERT_TRUE(array.Close().ok());
  EXPECT_EQ(array.Size().status().code(), kInvalid);
  EXPECT_EQ(array.Write(0, Vec({1})).code(), kInvalid);
  OpRunner stack("StackV2");
  stack.Scalar<int32_t>(1).With("elem_type", DType::kFloat32);
  OpRunner size("TensorArraySizeV3");
  size.Input(*stack.RunOne()).Scalar<float>(0);
  EXPECT_EQ(size.Run().status().code(), kInvalid);
}

class StackOps {
 public:
  explicit StackOps(int32_t max_size) {
    OpRunner op("StackV2");
    handle_ = *op.Scalar<int32_t>(max_size).With("elem_type", DType::kFloat32).RunOne();
  }
  absl::Status Push(Tensor value) const {
    OpRunner op("StackPushV2");
    return op.Input(handle_).Input(std::move(value)).RunOne().status();
  }
  absl::StatusOr<Tensor> Pop() const {
    OpRunner op("StackPopV2");
    return op.Input(handle_).With("elem_type", DType::kFloat32).RunOne();
  }
  absl::Status Close() const {
    OpRunner op("StackCloseV2");
    return op.Input(handle_).Run().status();
  }

 private:
  Tensor handle_;
};

TEST(Stack, LastInFirstOut) {
  const StackOps stack(-1);
  ASSERT_TRUE(stack.Push(Vec({1})).ok() && stack.Push(Vec({2, 3})).ok());
  EXPECT_EQ(Floats(stack.Pop()), V({2, 3}));
  EXPECT_EQ(Floats(stack.Pop()), V({1}));
  EXPECT_EQ(stack.Pop().status().code(), kInvalid);
}

TEST(Stack, RefusesWhatDoesNotFit) {
  const StackOps stack(1);
  EXPECT_EQ(stack.Push(*Tensor::Scalar<int32_t>(1)).code(), kInvalid);
  ASSERT_TRUE(stack.Push(Vec({1})).ok());
  EXPECT_EQ(stack.Push(Vec({1})).code(), kInvalid);
  ASSERT_TRUE(stack.Close().ok());
  EXPECT_EQ(stack.Pop().status().code(), kInvalid);
}

}  // namespace
}  // namespace thalweg
