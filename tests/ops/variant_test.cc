// Tensor lists and optional values.
#include <gtest/gtest.h>

#include "thalweg/devices/device.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/fake_step.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
using V = std::vector<float>;
using Ints = std::vector<int32_t>;

Tensor Vec(V values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::Of<float>(std::move(values), Shape::Of({n}));
}
Tensor IntVec(Ints values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::Of<int32_t>(std::move(values), Shape::Of({n}));
}
V Floats(const absl::StatusOr<Tensor>& t) {
  if (!t.ok()) {
    ADD_FAILURE() << t.status();
    return {};
  }
  return V(t->flat<float>().begin(), t->flat<float>().end());
}
const Tensor kAnyShape = *Tensor::Scalar<int32_t>(-1);

absl::StatusOr<Tensor> Reserve(int32_t size, Tensor element_shape = kAnyShape) {
  OpRunner op("TensorListReserve");
  return op.Input(std::move(element_shape)).Scalar<int32_t>(size).With("element_dtype", DType::kFloat32).RunOne();
}
absl::StatusOr<Tensor> Set(const Tensor& list, int32_t index, Tensor item, bool grow = false) {
  OpRunner op("TensorListSetItem");
  return op.Input(list).Scalar<int32_t>(index).Input(std::move(item)).With("resize_if_index_out_of_bounds", grow).RunOne();
}
absl::StatusOr<Tensor> Get(const Tensor& list, int32_t index, Tensor element_shape = kAnyShape) {
  OpRunner op("TensorListGetItem");
  return op.Input(list).Scalar<int32_t>(index).Input(std::move(element_shape)).With("element_dtype", DType::kFloat32).RunOne();
}
absl::StatusOr<Tensor> Stack(const Tensor& list, Tensor element_shape = kAnyShape) {
  OpRunner op("TensorListStack");
  return op.Input(list).Input(std::move(element_shape)).With("element_dtype", DType::kFloat32).RunOne();
}
int32_t Length(const Tensor& list) {
  OpRunner op("TensorListLength");
  return op.Input(list).RunOne()->flat<int32_t>()[0];
}
absl::StatusOr<std::vector<Tensor>> Concat(const Tensor& list, Tensor element_shape, std::vector<int64_t> leading) {
  const int64_t n = static_cast<int64_t>(leading.size());
  OpRunner op("TensorListConcatV2");
  op.Input(list).Input(std::move(element_shape)).Input<int64_t>(std::move(leading), {n});
  return op.With("element_dtype", DType::kFloat32).Run();
}

TEST(TensorList, IsAValue) {
  const Tensor before = *Reserve(2);
  const Tensor after = *Set(before, 1, Vec({1, 2}));
  EXPECT_EQ(Floats(Get(after, 1)), V({1, 2}));
  EXPECT_EQ(Get(before, 1).status().code(), kInvalid) << "the old list has no element still";
}

// Runs TensorListPushBack as its list's last user or not; the variant that comes out.
const VariantValue* PushedList(bool last_user, const VariantValue** before) {
  std::vector<std::shared_ptr<Device>> devices =
      *MakeDevices(*ParseDeviceList("CPU:0"), std::make_shared<MemoryBudget>(int64_t{1} << 30));
  const OpSchema* schema = BuiltinOps().schemas.Find("TensorListPushBack");
  AttrMap attrs;
  attrs.Set("element_dtype", DType::kFloat32);
  KernelNode node;
  node.name = "push";
  node.schema = schema;
  node.attrs = &attrs;
  node.device = devices[0].get();
  const KernelSignature signature = KernelSignature::OnHost({DType::kVariant, DType::kFloat32}, {DType::kVariant});
  node.signature = &signature;
  const std::unique_ptr<Kernel> kernel = *(*BuiltinOps().kernels.Find(node.node_attrs(), "cpu"))->factory(KernelInit(node));
  std::vector<Value> values(3);
  values[0].tensor = *Reserve(2);
  values[1].tensor = Vec({1});
  *before = values[0].tensor.flat<Variant>()[0].get();
  const uint32_t inputs[] = {0, 1};
  const uint8_t last_use[] = {last_user, last_user};
  testing::FakeStep step;
  KernelContext ctx;
  ctx.Bind(&node, &step, values.data(), inputs, &values[2], last_use, nullptr);
  EXPECT_TRUE(kernel->Compute(ctx).ok());
  EXPECT_EQ(Length(values[2].tensor), 3);
  return values[2].tensor.flat<Variant>()[0].get();
}

TEST(TensorList, ASoleOwnerChangesItInPlace) {
  const VariantValue* before = nullptr;
  const VariantValue* after = PushedList(/*last_user=*/true, &before);
  EXPECT_EQ(after, before);
}

TEST(TensorList, SharedListsAreCopied) {
  const VariantValue* before = nullptr;
  const VariantValue* after = PushedList(/*last_user=*/false, &before);
  EXPECT_NE(after, before);
}

TEST(TensorList, L8_UnsetElementsTakeTheShapeOfOthers) {
  const Tensor list = *Set(*Reserve(3), 1, Vec({1, 2}));
  EXPECT_EQ(Floats(Get(list, 0)), V({0, 0}));
  EXPECT_EQ(Floats(Stack(list)), V({0, 0, 1, 2, 0, 0}));
  EXPECT_EQ(Get(*Reserve(3), 0).status().code(), kInvalid);
  EXPECT_EQ(Stack(*Reserve(3)).status().code(), kInvalid);
  EXPECT_EQ(Floats(Get(*Reserve(3), 0, IntVec({2}))), V({0, 0}));
  EXPECT_EQ(Floats(Stack(*Reserve(2), IntVec({1}))), V({0, 0}));
}

TEST(TensorList, RefusesWhatDoesNotFit) {
  EXPECT_EQ(Reserve(-1).status().code(), kInvalid);
  EXPECT_EQ(Reserve(1, *Tensor::Scalar<int32_t>(2)).status().code(), kInvalid);
  EXPECT_EQ(Reserve(1, IntVec({-2})).status().code(), kInvalid);
  const Tensor list = *Reserve(2, IntVec({2}));
  EXPECT_EQ(Set(list, 0, Vec({1})).status().code(), kInvalid);
  EXPECT_EQ(Set(list, 2, Vec({1, 2})).status().code(), kInvalid);
  EXPECT_EQ(Set(list, -1, Vec({1, 2}), /*grow=*/true).status().code(), kInvalid);
  EXPECT_EQ(Set(list, 0, *Tensor::Scalar<int32_t>(1)).status().code(), kInvalid);
  EXPECT_EQ(Length(*Set(list, 5, Vec({1, 2}), /*grow=*/true)), 6);
  EXPECT_EQ(Get(Vec({1}), 0).status().code(), kInvalid);
  EXPECT_EQ(Stack(*Set(*Set(*Reserve(2), 0, Vec({1})), 1, Vec({1, 2}))).status().code(), kInvalid);
}

TEST(TensorList, AHugeListCostsNothing) {
  const Tensor list = *Set(*Reserve(2147483647), 2147483646, Vec({1}));
  EXPECT_EQ(Floats(Get(list, 0)), V({0}));
  EXPECT_EQ(Length(list), 2147483647);
}

TEST(TensorList, PushesAndPops) {
  OpRunner empty("EmptyTensorList");
  Tensor list = *empty.Input(kAnyShape).Scalar<int32_t>(1).With("element_dtype", DType::kFloat32).RunOne();
  OpRunner push("TensorListPushBack");
  push.Input(list).Input(Vec({1, 2}));
  const Tensor full = *push.RunOne();
  OpRunner again("TensorListPushBack");
  again.Input(full).Input(Vec({1, 2}));
  EXPECT_EQ(again.RunOne().status().code(), kInvalid) << "max_num_elements";
  OpRunner pop("TensorListPopBack");
  pop.Input(full).Input(kAnyShape).With("element_dtype", DType::kFloat32);
  const absl::StatusOr<std::vector<Tensor>> out = pop.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Floats((*out)[1]), V({1, 2}));
  EXPECT_EQ(Length((*out)[0]), 0);
  EXPECT_EQ(Length(full), 1);
  OpRunner none("TensorListPopBack");
  none.Input((*out)[0]).Input(kAnyShape).With("element_dtype", DType::kFloat32);
  EXPECT_EQ(none.Run().status().code(), kInvalid);
}

TEST(TensorList, ConcatenatesWithLengthsForUnsetElements) {
  const Tensor list = *Set(*Reserve(2), 0, Vec({1, 2}));
  EXPECT_EQ(Floats((*Concat(list, kAnyShape, {}))[0]), V({1, 2, 0, 0}));
  EXPECT_EQ(Floats((*Concat(list, kAnyShape, {5, 1}))[0]), V({1, 2, 0}));
  const Tensor differ = *Set(*Set(*Reserve(3), 0, Vec({1, 2})), 1, Vec({3}));
  EXPECT_EQ(Concat(differ, kAnyShape, {}).status().code(), kInvalid);
  EXPECT_EQ(Floats((*Concat(differ, kAnyShape, {0, 0, 1}))[0]), V({1, 2, 3, 0}));
  EXPECT_EQ(Concat(differ, IntVec({2}), {0, 0, 1}).status().code(), kInvalid);
  EXPECT_EQ(Concat(*Reserve(0), kAnyShape, {}).status().code(), kInvalid);
  EXPECT_EQ((*Concat(*Reserve(0), IntVec({-1, 2}), {}))[0].shape().ToString(), "[0,2]");
}

TEST(TensorList, ScattersAndGathers) {
  OpRunner scatter("TensorListScatterV2");
  scatter.Input(Vec({1, 2})).Input(IntVec({0, 4})).Input(kAnyShape).Scalar<int32_t>(-1);
  const Tensor list = *scatter.RunOne();
  EXPECT_EQ(Length(list), 5);
  OpRunner gather("TensorListGather");
  gather.Input(list).Input(IntVec({4, 1})).Input(kAnyShape).With("element_dtype", DType::kFloat32);
  EXPECT_EQ(Floats(gather.RunOne()), V({2, 0}));
  OpRunner unset("TensorListGather");
  unset.Input(list).Input(IntVec({1, 2})).Input(kAnyShape).With("element_dtype", DType::kFloat32);
  EXPECT_EQ(unset.RunOne().status().code(), kInvalid) << "only elements that are taken tell the shape";
  OpRunner into("TensorListScatterIntoExistingList");
  into.Input(list).Input(Vec({7})).Input(IntVec({6}));
  EXPECT_EQ(Floats(Stack(*into.RunOne())), V({1, 0, 0, 0, 2, 0, 7}));
  OpRunner negative("TensorListScatterIntoExistingList");
  negative.Input(list).Input(Vec({7})).Input(IntVec({-1}));
  EXPECT_EQ(negative.RunOne().status().code(), kInvalid);
  OpRunner small("TensorListScatterV2");
  small.Input(Vec({1, 2})).Input(IntVec({0, 4})).Input(kAnyShape).Scalar<int32_t>(3);
  EXPECT_EQ(small.RunOne().status().code(), kInvalid);
}

TEST(TensorList, SplitsAndJoins) {
  OpRunner split("TensorListSplit");
  split.Input(Vec({1, 2, 3})).Input(kAnyShape).Input<int64_t>({1, 2}, {2});
  const Tensor list = *split.RunOne();
  EXPECT_EQ(Floats(Get(list, 1)), V({2, 3}));
  OpRunner wrong("TensorListSplit");
  wrong.Input(Vec({1, 2, 3})).Input(kAnyShape).Input<int64_t>({1, 1}, {2});
  EXPECT_EQ(wrong.RunOne().status().code(), kInvalid);
  OpRunner join("TensorListConcatLists");
  join.Input(list).Input(list).With("element_dtype", DType::kFloat32);
  EXPECT_EQ(Length(*join.RunOne()), 4);
}

TEST(TensorList, AddsUpAndHasZeros) {
  const Tensor a = *Set(*Reserve(2), 0, Vec({1, 2}));
  const Tensor b = *Set(*Set(*Reserve(2), 0, Vec({10, 10})), 1, Vec({3, 4}));
  OpRunner add("AddN");
  add.Input(a).Input(b);
  EXPECT_EQ(Floats(Stack(*add.RunOne())), V({11, 12, 3, 4}));
  OpRunner zeros("ZerosLike");
  zeros.Input(b);
  EXPECT_EQ(Floats(Stack(*zeros.RunOne())), V({0, 0, 0, 0}));
  OpRunner other("AddN");
  other.Input(a).Input(*Reserve(3));
  EXPECT_EQ(other.RunOne().status().code(), kInvalid);
}

TEST(Optional, GivesWhatItHolds) {
  OpRunner make("OptionalFromValue");
  const Tensor some = *make.Input(Vec({1, 2})).RunOne();
  OpRunner has("OptionalHasValue");
  EXPECT_TRUE(has.Input(some).RunOne()->flat<bool>()[0]);
  const auto get = [](const Tensor& optional, DType type, PartialShape shape) {
    OpRunner op("OptionalGetValue");
    op.Input(optional).With("output_types", MakeListAttr<DType>({type}));
    op.With("output_shapes", MakeListAttr<PartialShape>({std::move(shape)}));
    return op.RunOne();
  };
  EXPECT_EQ(Floats(get(some, DType::kFloat32, PartialShape())), V({1, 2}));
  EXPECT_EQ(get(some, DType::kInt32, PartialShape()).status().code(), kInvalid);
  EXPECT_EQ(get(some, DType::kFloat32, PartialShape::Known(Shape::Of({3}))).status().code(), kInvalid);
  OpRunner none("OptionalNone");
  EXPECT_EQ(get(*none.RunOne(), DType::kFloat32, PartialShape()).status().code(), kInvalid);
}

}  // namespace
}  // namespace thalweg
