#include "thalweg/graph/partition/partition.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/check.h"
#include "thalweg/tests/support/fake_kernels.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

using testing::FakeKernels;
using testing::GraphFromText;
using testing::TestDevices;
using testing::TestOps;

class PartitionTest : public ::testing::Test {
 protected:
  void Cut(const char* text) {
    graph_ = GraphFromText(TestOps(), text);
    PlacementOptions options;
    options.policy = policy_;
    options.allow_soft_placement = false;
    options.fixed = fixed_;
    absl::StatusOr<Placement> placed = PlaceGraph(graph_, devices_, kernels_, options);
    ASSERT_TRUE(placed.ok()) << placed.status();
    placement_ = *std::move(placed);
    absl::StatusOr<PartitionResult> cut = PartitionGraph(graph_, placement_, devices_, kernels_);
    status_ = cut.status();
    if (!cut.ok()) return;
    transfers_ = std::move(cut->transfers);
    ASSERT_EQ(CheckGraph(graph_), absl::OkStatus()) << graph_.ToString();
    ExpectNoEdgeCrosses();
  }

  void ExpectNoEdgeCrosses() {
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      if (node.removed) continue;
      ASSERT_EQ(node.device, placement_.records[id].device) << node.name;
      for (Endpoint input : node.inputs) {
        const Node& producer = graph_.node(input.node);
        if (node.is("_Recv") && producer.is("_Send")) continue;
        EXPECT_EQ(producer.device, node.device) << producer.name << " -> " << node.name;
      }
    }
  }

  std::string Inputs(absl::string_view node) {
    std::string out;
    for (Endpoint input : graph_.node(graph_.Find(node)).inputs)
      absl::StrAppend(&out, out.empty() ? "" : ", ", graph_.EndpointName(input));
    return out;
  }
  int Count(absl::string_view op) {
    int count = 0;
    for (const Node& node : graph_.nodes()) count += node.is(op) && !node.removed;
    return count;
  }
  std::string DeviceOf(absl::string_view node) {
    return devices_[graph_.node(graph_.Find(node)).device].name.ToShortString();
  }

  std::vector<PlacementDevice> devices_ = TestDevices({"CPU:0", "CPU:1"});
  FakeKernels kernels_;
  std::string policy_ = "default";
  absl::flat_hash_map<std::string, std::string> fixed_;
  Graph graph_;
  Placement placement_;
  std::vector<Transfer> transfers_;
  absl::Status status_;
};

TEST_F(PartitionTest, B6EdgesInsideADeviceStay) {
  Cut("x = Placeholder() [dtype=float32]\ny = Neg(x) [T=float32]");
  EXPECT_TRUE(transfers_.empty());
  EXPECT_EQ(Inputs("y"), "x:0");
}

TEST_F(PartitionTest, B6B10OnePairPerTensorAndDevice) {
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\n"
      "y = Neg(x) [T=float32] @/device:CPU:1\n"
      "z = Add(x, x) [T=float32] @/device:CPU:1\n"
      "w = Neg(x) [T=float32] @/device:CPU:0");
  ASSERT_EQ(transfers_.size(), 1u);
  EXPECT_EQ(Inputs("y"), "x/_recv:0");
  EXPECT_EQ(Inputs("z"), "x/_recv:0, x/_recv:0");
  EXPECT_EQ(Inputs("w"), "x:0");
  EXPECT_EQ(Inputs("x/_send"), "x:0");
  EXPECT_EQ(Inputs("x/_recv"), "^x/_send");
  const Transfer& transfer = transfers_[0];
  EXPECT_EQ(transfer.pair, 0);
  EXPECT_EQ(transfer.consumers, (std::vector<NodeId>{graph_.Find("y"), graph_.Find("z")}));
  EXPECT_EQ(transfer.dtype, DType::kFloat32);
  EXPECT_EQ(transfer.cause, "requested device of y");
}

TEST_F(PartitionTest, B5NamesOfNewNodesAreNew) {
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\n"
      "x/_send = Neg(x) [T=float32] @/device:CPU:1\n"
      "x/_recv = NoOp(^x) @/device:CPU:1\n"
      "x/_control = NoOp() @/device:CPU:0");
  absl::flat_hash_set<absl::string_view> names;
  for (const Node& node : graph_.nodes()) {
    EXPECT_TRUE(node.removed || names.insert(node.name).second) << node.name;
  }
  EXPECT_EQ(transfers_.size(), 2u);
}

// Constants are transferred to where they are read, not made twice.
TEST_F(PartitionTest, B34ConstantsAreTransferred) {
  Cut("c = Const() [dtype=float32, value=tensor<float32[2]:1,2>] @/device:CPU:0\n"
      "y = Neg(c) [T=float32] @/device:CPU:0\n"
      "z = Neg(c) [T=float32] @/device:CPU:1");
  EXPECT_EQ(Count("Const"), 1);
  ASSERT_EQ(transfers_.size(), 1u);
  EXPECT_EQ(transfers_[0].source.node, graph_.Find("c"));
}

TEST_F(PartitionTest, B8BothEndsNameTheirPair) {
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\ny = Neg(x) [T=float32] @/device:CPU:1");
  for (const char* end : {"x/_send", "x/_recv"}) {
    EXPECT_EQ(*graph_.node(graph_.Find(end)).node_attrs().Get<int64_t>("pair"), 0);
  }
  ASSERT_EQ(transfers_.size(), 1u);
  EXPECT_EQ(graph_.EndpointName(transfers_[0].source), "x:0");
  EXPECT_EQ(transfers_[0].source_device, 0);
  EXPECT_EQ(transfers_[0].destination_device, 1);
}

TEST_F(PartitionTest, B10DifferentOutputsAreDifferentPairs) {
  Cut("x = Placeholder() [dtype=float32]\naxis = Placeholder() [dtype=int32]\n"
      "s = Split(axis, x) [num_split=2, T=float32] @/device:CPU:0\n"
      "y = Add(s:0, s:1) [T=float32] @/device:CPU:1");
  EXPECT_EQ(transfers_.size(), 2u);
}

TEST_F(PartitionTest, B11ControlEdgeCrossesAsEmptyConstant) {
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\n"
      "y = Placeholder(^x) [dtype=float32] @/device:CPU:1\n"
      "z = NoOp(^x, ^y) @/device:CPU:1");
  ASSERT_EQ(transfers_.size(), 1u);
  EXPECT_EQ(Inputs("y"), "^x/_recv");
  EXPECT_EQ(Inputs("z"), "^x/_recv, ^y");
  EXPECT_EQ(Inputs("x/_send"), "x/_control:0");
  EXPECT_EQ(Inputs("x/_control"), "^x");
  EXPECT_TRUE(transfers_[0].source.is_control());
  EXPECT_EQ(
      graph_.node(graph_.Find("x/_control")).node_attrs().Get<TensorLiteralPtr>("value").value()->shape.num_elements(),
      0);
}

TEST_F(PartitionTest, B12MemoryKindsOfBothEnds) {
  devices_ = TestDevices({"CPU:0", "GPU:0"});
  kernels_.Without("cpu", "Shape")
      .Without("cpu", "Reshape")
      .WithHostMemory("sim", "Shape", {}, {0})
      .WithHostMemory("sim", "Reshape", {1}, {});
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\n"
      "s = Shape(x) [T=float32]\n"
      "c = Neg(s) [T=int32] @/device:CPU:0\n"
      "r = Reshape(x, c) [T=float32]");
  // x -> Shape and Reshape in device memory, s -> c from host memory, c -> r into host memory.
  ASSERT_EQ(transfers_.size(), 3u);
  auto find = [&](const char* source) {
    for (const Transfer& t : transfers_) {
      if (graph_.node(t.source.node).name == source) return t;
    }
    return Transfer{};
  };
  EXPECT_TRUE(find("x").source_on_host);
  EXPECT_FALSE(find("x").destination_on_host);
  EXPECT_TRUE(find("s").source_on_host);
  EXPECT_TRUE(graph_.node(find("s").send).attrs.Find("_input_hostmem") != nullptr);
  EXPECT_TRUE(find("c").destination_on_host);
  EXPECT_TRUE(graph_.node(find("c").recv).attrs.Find("_output_hostmem") != nullptr);
  EXPECT_TRUE(graph_.node(find("x").recv).attrs.Find("_output_hostmem") == nullptr);
  EXPECT_EQ(find("s").cause, "requested device of c");
  EXPECT_EQ(find("x").cause, "no kernel for Shape on cpu");
}

TEST_F(PartitionTest, B10HostAndDeviceMemoryAreDifferentPairs) {
  devices_ = TestDevices({"CPU:0", "GPU:0"});
  kernels_.WithHostMemory("sim", "Reshape", {1}, {});
  Cut("x = Placeholder() [dtype=int32] @/device:CPU:0\n"
      "y = Neg(x) [T=int32] @/device:GPU:0\n"
      "r = Reshape(y, x) [T=int32] @/device:GPU:0");
  EXPECT_EQ(transfers_.size(), 2u);
}

TEST_F(PartitionTest, B13SameDeviceDifferentMemoryKinds) {
  devices_ = TestDevices({"CPU:0", "GPU:0"});
  kernels_.WithHostMemory("sim", "Shape", {}, {0}).WithHostMemory("sim", "Reshape", {1}, {});
  Cut("x = Placeholder() [dtype=float32] @/device:GPU:0\n"
      "s = Shape(x) [T=float32] @/device:GPU:0\n"
      "r = Reshape(x, s) [T=float32] @/device:GPU:0\n"
      "n = Neg(s) [T=int32] @/device:GPU:0");
  ASSERT_EQ(transfers_.size(), 1u);
  EXPECT_EQ(Inputs("r"), "x:0, s:0");
  EXPECT_EQ(Inputs("n"), "s/_recv:0");
  EXPECT_EQ(Inputs("s/_recv"), "^s/_send");
  EXPECT_EQ(transfers_[0].cause, "host memory output");
  EXPECT_EQ(transfers_[0].source_device, transfers_[0].destination_device);
}

TEST_F(PartitionTest, B14ReadOfAReferenceWaitsForTheReadersOtherInputs) {
  Cut("v = VariableV2() [dtype=float32, shape=[]] @/device:CPU:0\n"
      "one = Placeholder() [dtype=float32] @/device:CPU:0\n"
      "inc = AssignAdd(v, one) [T=float32] @/device:CPU:0\n"
      "x = Placeholder() [dtype=float32] @/device:CPU:1\n"
      "y = Add(v, x, ^inc) [T=float32] @/device:CPU:1");
  EXPECT_EQ(Inputs("y"), "v/_read/_recv:0, x:0, ^inc/_recv");
  EXPECT_EQ(Inputs("v/_read"), "v:0, ^x/_recv, ^inc");
}

TEST_F(PartitionTest, B14AloneAReferenceIsReadBySend) {
  Cut("v = VariableV2() [dtype=float32, shape=[]] @/device:CPU:0\ny = Neg(v) [T=float32] @/device:CPU:1");
  EXPECT_EQ(Inputs("y"), "v/_recv:0");
  EXPECT_EQ(Inputs("v/_send"), "v:0");
  EXPECT_EQ(graph_.node(graph_.Find("v/_recv")).output_types[0], DType::kFloat32);
}

TEST_F(PartitionTest, FeedsAndFetchesAreCauses) {
  devices_ = TestDevices({"CPU:0", "GPU:0"});
  Cut("x = _Arg() [T=float32, index=0]\ny = Neg(x) [T=float32]\nr = _Retval(y) [T=float32, index=0]");
  ASSERT_EQ(transfers_.size(), 2u);
  EXPECT_EQ(transfers_[0].cause, "feed");
  EXPECT_EQ(transfers_[1].cause, "fetch");
}

constexpr char kLoop[] = R"(
  zero = Const() [dtype=int32, value=tensor<int32[]:0>]
  limit = Const() [dtype=int32, value=tensor<int32[]:10>]
  enter = Enter(zero) [T=int32, frame_name="f"]
  enter_limit = Enter(limit) [T=int32, frame_name="f", is_constant=true]
  merge = Merge(enter, next) [T=int32, N=2]
  less = Less(merge, enter_limit) [T=int32]
  cond = LoopCond(less)
  switch = Switch(merge, cond) [T=int32]
  one = Const(^switch) [dtype=int32, value=tensor<int32[]:1>]
  inc = Add(switch:1, one) [T=int32]
  next = NextIteration(inc) [T=int32]
  exit = Exit(switch:0) [T=int32]
)";

TEST_F(PartitionTest, B3LoopNodesMoveToTheirMerge) {
  fixed_ = {{"zero", "CPU:0"}, {"enter", "CPU:0"}, {"next", "CPU:0"}, {"inc", "CPU:0"}, {"merge", "CPU:1"}};
  Cut(kLoop);
  EXPECT_EQ(DeviceOf("enter"), "CPU:1");
  EXPECT_EQ(DeviceOf("next"), "CPU:1");
  EXPECT_EQ(Inputs("merge"), "enter:0, next:0");
  EXPECT_EQ(Inputs("enter"), "zero/_recv:0");
  EXPECT_EQ(Inputs("next"), "inc/_recv:0");
  EXPECT_STREQ(placement_.records[graph_.Find("next")].rule, "B3");
}

TEST_F(PartitionTest, B3LoopInvariantsCrossBeforeTheLoop) {
  fixed_ = {{"limit", "CPU:0"}, {"enter_limit", "CPU:0"}, {"less", "CPU:1"}};
  Cut(std::string(absl::StrCat(kLoop, "also = Neg(enter_limit) [T=int32] @/device:CPU:0")).c_str());
  EXPECT_EQ(Inputs("also"), "enter_limit:0");
  EXPECT_TRUE(absl::StrContains(Inputs("less"), "enter_limit/1:0")) << Inputs("less");
  EXPECT_EQ(Inputs("enter_limit/1"), "limit/_recv:0");
}

TEST_F(PartitionTest, LoopsScatteredInEveryWayStayWellFormed) {
  devices_ = TestDevices({"CPU:0", "CPU:1", "CPU:2"});
  for (int seed = 0; seed < 200; ++seed) {
    policy_ = absl::StrCat("scatter~", seed);
    Cut(kLoop);
    ASSERT_TRUE(status_.ok()) << status_;
    for (const Node& node : graph_.nodes()) {
      if (node.removed || !node.is("Merge")) continue;
      EXPECT_TRUE(graph_.node(node.inputs[0].node).is("Enter"));
      EXPECT_TRUE(graph_.node(node.inputs[1].node).is("NextIteration"));
    }
  }
}

TEST_F(PartitionTest, C10ReferencesNeverCross) {
  graph_ = GraphFromText(
      TestOps(),
      "v = VariableV2() [dtype=float32, shape=[]]\nx = Placeholder() [dtype=float32]\na = Assign(v, x) [T=float32]");
  placement_.records.resize(3);
  for (int i = 0; i < 3; ++i) placement_.records[i].device = i == 2 ? 1 : 0;
  EXPECT_EQ(PartitionGraph(graph_, placement_, devices_, kernels_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PartitionTest, B33DevicesThatTheSessionLacksAreInternal) {
  graph_ = GraphFromText(TestOps(), "x = Placeholder() [dtype=float32]");
  placement_.records.resize(1);
  placement_.records[0].device = static_cast<int>(devices_.size());
  EXPECT_EQ(PartitionGraph(graph_, placement_, devices_, kernels_).status().code(), absl::StatusCode::kInternal);
}

TEST_F(PartitionTest, B1NodeWithoutDeviceIsInternal) {
  graph_ = GraphFromText(TestOps(), "x = Placeholder() [dtype=float32]");
  placement_.records.resize(1);
  EXPECT_EQ(PartitionGraph(graph_, placement_, devices_, kernels_).status().code(), absl::StatusCode::kInternal);
}

TEST_F(PartitionTest, EveryInsertedNodeSaysWho) {
  Cut("x = Placeholder() [dtype=float32] @/device:CPU:0\ny = Neg(x, ^x) [T=float32] @/device:CPU:1");
  for (const Node& node : graph_.nodes()) {
    if (node.is("_Send") || node.is("_Recv") || node.is("Const")) {
      EXPECT_STREQ(node.inserted_by, "partition") << node.name;
      EXPECT_EQ(node.origin, kNoNode);
    }
  }
  EXPECT_EQ(Count("_Send"), 2);
}

}  // namespace
}  // namespace thalweg
