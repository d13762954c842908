// Training ops, scatters and updates on resource variables. Reference variables: tests/runtime/reference_variables_test.cc.
#include <gtest/gtest.h>

#include <cmath>

#include "thalweg/ops/common/variable.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
using V = std::vector<float>;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Vec(V values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::Of<float>(std::move(values), Shape::Of({n}));
}

// A variable of floats with a handle.
class TrainedVariable {
 public:
  explicit TrainedVariable(Tensor value) : variable_(std::make_shared<Variable>("w", value.dtype())) {
    EXPECT_TRUE(variable_->Assign(std::move(value)).ok());
  }
  ResourceHandle handle() const {
    ResourceHandle handle;
    handle.name = "w";
    handle.type_name = Variable::kTypeName;
    handle.resource = variable_;
    return handle;
  }
  V values() const {
    const Tensor value = *variable_->Read();
    return V(value.flat<float>().begin(), value.flat<float>().end());
  }
  Variable& variable() { return *variable_; }

 private:
  std::shared_ptr<Variable> variable_;
};

TEST(Training, GradientDescent) {
  const TrainedVariable w(Vec({1, 2}));
  OpRunner op("ResourceApplyGradientDescent");
  op.Scalar(w.handle()).Scalar<float>(0.5f).Input(Vec({2, 4}));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(w.values(), V({0, 0}));
}

TEST(Training, MomentumLooksAheadIfNesterov) {
  for (const bool nesterov : {false, true}) {
    const TrainedVariable w(Vec({1})), accum(Vec({4}));
    OpRunner op("ResourceApplyMomentum");
    op.Scalar(w.handle()).Scalar(accum.handle()).Scalar<float>(0.5f).Input(Vec({1})).Scalar<float>(0.5f);
    ASSERT_TRUE(op.With("use_nesterov", nesterov).Run().ok());
    EXPECT_EQ(accum.values(), V({3}));
    EXPECT_EQ(w.values(), V({nesterov ? -0.25f : -0.5f}));  // 1 - (0.5 + 3 * 0.5 * 0.5) and 1 - 3 * 0.5
  }
}

TEST(Training, AdagradKeepsItsSlotsIfAskedTo) {
  const TrainedVariable w(Vec({1})), accum(Vec({3}));
  OpRunner op("ResourceApplyAdagrad");
  op.Scalar(w.handle()).Scalar(accum.handle()).Scalar<float>(2).Input(Vec({1}));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(accum.values(), V({4}));
  EXPECT_EQ(w.values(), V({0}));
  ASSERT_TRUE(op.With("update_slots", false).Run().ok());
  EXPECT_EQ(accum.values(), V({4}));
  EXPECT_EQ(w.values(), V({-1}));
}

TEST(Training, AdamMovesByTheLearningRateAtFirst) {
  const TrainedVariable w(Vec({1, 1})), m(Vec({0, 0})), v(Vec({0, 0}));
  OpRunner op("ResourceApplyAdam");
  op.Scalar(w.handle()).Scalar(m.handle()).Scalar(v.handle());
  op.Scalar<float>(0.9f).Scalar<float>(0.999f).Scalar<float>(0.1f).Scalar<float>(0.9f).Scalar<float>(0.999f).Scalar<float>(1e-8f);
  op.Input(Vec({3, -5}));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_NEAR(w.values()[0], 0.9, 1e-4);
  EXPECT_NEAR(w.values()[1], 1.1, 1e-4);
}

TEST(Training, OneVariableMayBeGivenTwice) {
  const TrainedVariable w(Vec({4}));
  OpRunner op("ResourceApplyMomentum");
  op.Scalar(w.handle()).Scalar(w.handle()).Scalar<float>(1).Input(Vec({1})).Scalar<float>(1);
  EXPECT_TRUE(op.Run().ok()) << "and must not lock up";
}

TEST(Training, AValueOnceReadNeverChanges) {
  TrainedVariable w(Vec({1, 2}));
  const Tensor before = *w.variable().Read();
  OpRunner op("ResourceApplyGradientDescent");
  op.Scalar(w.handle()).Scalar<float>(1).Input(Vec({1, 1}));
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(before.flat<float>()[0], 1);
  EXPECT_EQ(w.values(), V({0, 1}));
}

TEST(Training, RefusesWhatDoesNotFit) {
  const TrainedVariable w(Vec({1, 2})), short_slot(Vec({1}));
  OpRunner vector_rate("ResourceApplyGradientDescent");
  vector_rate.Scalar(w.handle()).Input(Vec({1})).Input(Vec({1, 1}));
  EXPECT_EQ(vector_rate.Run().status().code(), kInvalid);
  OpRunner gradient("ResourceApplyGradientDescent");
  gradient.Scalar(w.handle()).Scalar<float>(1).Input(Vec({1}));
  EXPECT_EQ(gradient.Run().status().code(), kInvalid);
  OpRunner slot("ResourceApplyAdagrad");
  slot.Scalar(w.handle()).Scalar(short_slot.handle()).Scalar<float>(1).Input(Vec({1, 1}));
  EXPECT_EQ(slot.Run().status().code(), kInvalid);
  EXPECT_EQ(w.values(), V({1, 2}));
}

TEST(Training, SparseFormsTouchOnlyTheRowsNamed) {
  const TrainedVariable w(*Tensor::Of<float>({1, 1, 2, 2, 3, 3}, Shape::Of({3, 2}))),
      accum(*Tensor::Of<float>(V(6, 0), Shape::Of({3, 2})));
  OpRunner op("ResourceSparseApplyAdagrad");
  op.Scalar(w.handle()).Scalar(accum.handle()).Scalar<float>(1);
  op.Input<float>({2, 2}, {1, 2}).Input<int32_t>({1}, {1});
  ASSERT_TRUE(op.Run().ok());
  EXPECT_EQ(w.values(), V({1, 1, 1, 1, 3, 3}));
  OpRunner outside("ResourceSparseApplyAdagrad");
  outside.Scalar(w.handle()).Scalar(accum.handle()).Scalar<float>(1);
  outside.Input<float>({2, 2}, {1, 2}).Input<int64_t>({3}, {1});
  EXPECT_EQ(outside.Run().status().code(), kInvalid);
}

absl::Status Scatter(const char* name, const TrainedVariable& w, std::vector<int32_t> indices, Tensor updates) {
  const int64_t n = static_cast<int64_t>(indices.size());
  OpRunner op(name);
  return op.Scalar(w.handle()).Input<int32_t>(std::move(indices), {n}).Input(std::move(updates)).Run().status();
}

TEST(Scatter, ChangesRows) {
  const TrainedVariable w(Vec({1, 2, 3}));
  ASSERT_TRUE(Scatter("ResourceScatterAdd", w, {0, 0, 2}, Vec({1, 1, 10})).ok());
  EXPECT_EQ(w.values(), V({3, 2, 13}));
  ASSERT_TRUE(Scatter("ResourceScatterUpdate", w, {1}, *Tensor::Scalar<float>(7)).ok());
  EXPECT_EQ(w.values(), V({3, 7, 13}));
  ASSERT_TRUE(Scatter("ResourceScatterMin", w, {0, 1}, Vec({5, 5})).ok());
  EXPECT_EQ(w.values(), V({3, 5, 13}));
}

TEST(Scatter, RefusesWhatDoesNotFit) {
  const TrainedVariable w(Vec({1, 2}));
  EXPECT_EQ(Scatter("ResourceScatterAdd", w, {2}, Vec({1})).code(), kInvalid);
  EXPECT_EQ(Scatter("ResourceScatterAdd", w, {-1}, Vec({1})).code(), kInvalid);
  EXPECT_EQ(Scatter("ResourceScatterAdd", w, {0}, Vec({1, 2})).code(), kInvalid);
  EXPECT_EQ(w.values(), V({1, 2}));
  TrainedVariable ints(*Tensor::Of<int32_t>({4, 5}, Shape::Of({2})));
  EXPECT_EQ(Scatter("ResourceScatterDiv", ints, {0}, *Tensor::Of<int32_t>({0}, Shape::Of({1}))).code(), kInvalid) << "L16";
}

TEST(StridedSliceAssign, ReplacesTheSlice) {
  const TrainedVariable w(*Tensor::Of<float>({0, 1, 2, 3, 4, 5}, Shape::Of({2, 3})));
  const auto assign = [&](Tensor value) {
    OpRunner op("ResourceStridedSliceAssign");
    op.Scalar(w.handle()).Input<int32_t>({0, 2}, {2}).Input<int32_t>({2, -4}, {2}).Input<int32_t>({1, -2}, {2}).Input(std::move(value));
    return op.Run().status();
  };
  ASSERT_TRUE(assign(*Tensor::Of<float>({10, 11, 12, 13}, Shape::Of({2, 2}))).ok());
  EXPECT_EQ(w.values(), V({11, 1, 10, 13, 4, 12}));
  ASSERT_TRUE(assign(Vec({7, 8})).ok()) << "broadcast to the slice";
  EXPECT_EQ(w.values(), V({8, 1, 7, 8, 4, 7}));
  ASSERT_TRUE(assign(*Tensor::Scalar<float>(9)).ok());
  EXPECT_EQ(w.values(), V({9, 1, 9, 9, 4, 9}));
  EXPECT_EQ(assign(Vec({1, 2, 3})).code(), kInvalid);
  EXPECT_TRUE(assign(*Tensor::Of<float>({1, 2}, Shape::Of({1, 1, 2}))).ok()) << "more dimensions than the slice";
}

TEST(ResourceGather, TakesRowsAndPlaces) {
  const TrainedVariable w(*Tensor::Of<float>({0, 1, 2, 3, 4, 5}, Shape::Of({2, 3})));
  OpRunner rows("ResourceGather");
  rows.Scalar(w.handle()).Input<int32_t>({1, 0}, {2}).With("dtype", DType::kFloat32);
  EXPECT_EQ(rows.RunOne()->flat<float>()[0], 3);
  OpRunner places("ResourceGatherNd");
  places.Scalar(w.handle()).Input<int64_t>({1, 2, 0, 1}, {2, 2}).With("dtype", DType::kFloat32);
  EXPECT_EQ(places.RunOne()->flat<float>()[0], 5);
  OpRunner batched("ResourceGather");
  batched.Scalar(w.handle()).Input<int32_t>({2, 0}, {2}).With("dtype", DType::kFloat32).With("batch_dims", 1);
  EXPECT_EQ(batched.RunOne()->flat<float>()[1], 3);
  OpRunner outside("ResourceGather");
  outside.Scalar(w.handle()).Input<int32_t>({2}, {1}).With("dtype", DType::kFloat32);
  EXPECT_EQ(outside.Run().status().code(), kInvalid);
  OpRunner empty("ResourceGatherNd");
  empty.Scalar(w.handle()).Input<int64_t>({}, {int64_t{1} << 50, 0}).With("dtype", DType::kFloat32);
  EXPECT_FALSE(empty.Run().ok()) << "far more than memory holds";
}

TEST(ScatterNd, ChangesSlices) {
  const TrainedVariable w(*Tensor::Of<float>({0, 1, 2, 3}, Shape::Of({2, 2})));
  OpRunner add("ResourceScatterNdAdd");
  add.Scalar(w.handle()).Input<int32_t>({1, 1, 0, 0}, {2, 2}).Input(Vec({10, 20}));
  ASSERT_TRUE(add.Run().ok());
  EXPECT_EQ(w.values(), V({20, 1, 2, 13}));
  OpRunner row("ResourceScatterNdUpdate");
  row.Scalar(w.handle()).Input<int32_t>({0}, {1, 1}).Input<float>({7, 8}, {1, 2});
  ASSERT_TRUE(row.Run().ok());
  EXPECT_EQ(w.values(), V({7, 8, 2, 13}));
  OpRunner outside("ResourceScatterNdAdd");
  outside.Scalar(w.handle()).Input<int32_t>({2}, {1, 1}).Input<float>({7, 8}, {1, 2});
  EXPECT_EQ(outside.Run().status().code(), kInvalid);
}

TEST(CountUpTo, EndsAtTheLimit) {
  const TrainedVariable w(*Tensor::Scalar<int64_t>(1));
  OpRunner op("ResourceCountUpTo");
  op.Scalar(w.handle()).With("limit", 2).With("T", DType::kInt64);
  EXPECT_EQ(op.RunOne()->flat<int64_t>()[0], 1);
  EXPECT_EQ(op.RunOne().status().code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace thalweg
