#include "thalweg/graph/placement/placement.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/tests/support/fake_kernels.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

using testing::FakeKernels;
using testing::GraphFromText;
using testing::TestDevices;
using testing::TestOps;

class PlacementTest : public ::testing::Test {
 protected:
  // "name:DEVICE rule" per node, in order of the text.
  std::string Place(const char* text) {
    graph_ = GraphFromText(TestOps(), text);
    absl::StatusOr<Placement> placed = PlaceGraph(graph_, devices_, kernels_, options_);
    status_ = placed.status();
    if (!placed.ok()) return std::string(status_.message());
    placement_ = *placed;
    std::string out;
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      const DecisionRecord& record = placement_.records[id];
      absl::StrAppend(&out, out.empty() ? "" : "; ", graph_.node(id).name, "@",
                      devices_[record.device].name.ToShortString(), " ", record.rule);
    }
    return out;
  }
  std::string DeviceOf(const char* node) {
    return devices_[placement_.records[graph_.Find(node)].device].name.ToShortString();
  }
  void ExpectError(const char* text, absl::StatusCode code, std::vector<std::string> words) {
    const std::string message = Place(text);
    EXPECT_EQ(status_.code(), code) << message;
    for (const std::string& word : words)
      EXPECT_TRUE(absl::StrContains(message, word)) << "no '" << word << "' in: " << message;
  }

  std::vector<PlacementDevice> devices_ = TestDevices({"CPU:0", "GPU:0"});
  FakeKernels kernels_;
  PlacementOptions options_;
  Graph graph_;
  Placement placement_;
  absl::Status status_;
};

TEST_F(PlacementTest, C14AcceleratorBeforeCpu) {
  EXPECT_EQ(Place("a = Placeholder() [dtype=float32]\nb = Neg(a) [T=float32]"), "a@GPU:0 C17; b@GPU:0 C14");
}

TEST_F(PlacementTest, C3NoKernelForTheTypeLeavesTheCpu) {
  kernels_.Without("sim", "Neg", DType::kInt32);
  EXPECT_EQ(Place("a = Const() [dtype=int32, value=tensor<int32[]:1>]\n"
                  "b = Neg(a) [T=int32]\n"
                  "c = Cast(b) [SrcT=int32, DstT=float32]"),
            "a@CPU:0 C17; b@CPU:0 C14; c@GPU:0 C14");
}

TEST_F(PlacementTest, C7KernelPriorityOrdersDevices) {
  kernels_.WithPriority("cpu", "Neg", 2);
  EXPECT_EQ(Place("a = Neg(b) [T=float32]\nb = Identity(c) [T=float32]\nc = Placeholder() [dtype=float32]"),
            "a@CPU:0 C14; b@GPU:0 C14; c@GPU:0 C17");
}

TEST_F(PlacementTest, C13RequestedNamesFullPartialAndOld) {
  EXPECT_EQ(Place("a = Neg(b) [T=float32] @/device:CPU:0\n"
                  "b = Neg(c) [T=float32] @/gpu:0\n"
                  "c = Neg(d) [T=float32] @/job:localhost/replica:0/task:0/device:CPU:0\n"
                  "d = Neg(e) [T=float32] @/device:CPU:*\n"
                  "e = Placeholder() [dtype=float32] @/job:localhost"),
            "a@CPU:0 C14; b@GPU:0 C14; c@CPU:0 C14; d@CPU:0 C14; e@CPU:0 C17");
}

TEST_F(PlacementTest, C15SoftPlacementDropsTypeAndIndex) {
  EXPECT_EQ(Place("a = Neg(b) [T=float32] @/device:TPU:3\nb = Neg(c) [T=float32]\nc = Placeholder() [dtype=float32]"),
            "a@GPU:0 C15; b@GPU:0 C14; c@GPU:0 C17");
}

TEST_F(PlacementTest, C15SoftPlacementKeepsTheJob) {
  ExpectError("y = Placeholder() [dtype=float32] @/job:worker/task:3", absl::StatusCode::kInvalidArgument,
              {"'y'", "/job:worker/task:3"});
}

TEST_F(PlacementTest, C16HardPlacementNamesNodeDeviceAndWhatThereIs) {
  options_.allow_soft_placement = false;
  ExpectError("y = Placeholder() [dtype=float32] @/device:GPU:7", absl::StatusCode::kInvalidArgument,
              {"'y'", "/device:GPU:7", "does not exist", "CPU:0, GPU:0"});
  kernels_.Without("sim", "Neg");
  ExpectError("y = Neg(x) [T=float32] @/device:GPU:0\nx = Placeholder() [dtype=float32]",
              absl::StatusCode::kInvalidArgument, {"'y'", "/device:GPU:0", "no kernel for Neg T=float32 on sim"});
}

TEST_F(PlacementTest, C16OneDeviceHardColocationNamesBoth) {
  devices_ = TestDevices({"CPU:0"});
  options_.allow_soft_placement = false;
  ExpectError(
      "x = Placeholder() [dtype=float32]\n"
      "double = Add(x, x) [T=float32] @/device:GPU:0\n"
      "y = Neg(double) [T=float32, _class=[\"loc:@double\"]]",
      absl::StatusCode::kInvalidArgument, {"'double'", "'y'", "/device:GPU:0", "does not exist"});
}

TEST_F(PlacementTest, C5NoKernelAnywhere) {
  kernels_.Without("sim", "Neg").Without("cpu", "Neg");
  ExpectError("y = Neg(x) [T=float32]\nx = Placeholder() [dtype=float32]", absl::StatusCode::kInvalidArgument,
              {"'y'", "no kernel for Neg T=float32 on cpu", "on sim"});
}

TEST_F(PlacementTest, MalformedDeviceIsAlwaysAnError) {
  for (const char* device : {"/device:CPU:zero", "/device:CPU:-1", "cpu 0", "/job:a/task", "@x"}) {
    ExpectError(absl::StrCat("y = Placeholder() [dtype=float32] @", device).c_str(), absl::StatusCode::kInvalidArgument,
                {"y", device});
  }
}

TEST_F(PlacementTest, C22NoDevices) {
  devices_.clear();
  Place("y = Placeholder() [dtype=float32]");
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PlacementTest, C8ClassesNameNodesOrJustGroups) {
  kernels_.Without("sim", "ArgMax");
  EXPECT_EQ(Place("x = Placeholder() [dtype=float32] @/device:CPU:0\n"
                  "y = Neg(x) [T=float32, _class=[\"loc:@x\", \"other\"]]\n"
                  "p = Neg(x) [T=float32, _class=[\"loc:@nobody\"]] @/device:CPU:0\n"
                  "q = Neg(x) [T=float32, _class=[\"loc:@nobody\"]]"),
            "x@CPU:0 C6; y@CPU:0 C14; p@CPU:0 C14; q@CPU:0 C6");
}

TEST_F(PlacementTest, C9SoftPlacementIgnoresAnImpossibleClass) {
  kernels_.Without("sim", "Neg").Without("cpu", "Mul");
  const char* text =
      "x = Placeholder() [dtype=float32]\n"
      "y = Neg(x) [T=float32]\n"
      "z = Mul(x, x) [T=float32, _class=[\"loc:@y\"]]";
  Place(text);
  EXPECT_EQ(DeviceOf("y"), "CPU:0");
  EXPECT_EQ(DeviceOf("z"), "GPU:0");
  options_.allow_soft_placement = false;
  ExpectError(text, absl::StatusCode::kInvalidArgument, {"'y' (Neg)", "'z' (Mul)", "_class"});
}

TEST_F(PlacementTest, C10ReferenceEdgesTieAndTheProducersRequestWins) {
  Place(
      "v = VariableV2() [dtype=float32, shape=[]] @/device:CPU:0\n"
      "x = Placeholder() [dtype=float32]\n"
      "a = Assign(v, x) [T=float32] @/device:GPU:0\n"
      "r = Identity(v) [T=float32] @/device:GPU:0");
  EXPECT_EQ(DeviceOf("v"), "CPU:0");
  EXPECT_EQ(DeviceOf("a"), "CPU:0");
  EXPECT_EQ(DeviceOf("r"), "GPU:0");  // reads the value, not the reference
}

TEST_F(PlacementTest, C10ResourceEdgesTie) {
  kernels_.Without("sim", "AssignVariableOp");
  Place(
      "v = VarHandleOp() [dtype=float32, shape=[]]\n"
      "x = Placeholder() [dtype=float32]\n"
      "a = AssignVariableOp(v, x) [dtype=float32]\n"
      "r = ReadVariableOp(v) [dtype=float32]");
  EXPECT_EQ(DeviceOf("v"), "CPU:0");
  EXPECT_EQ(DeviceOf("r"), "CPU:0");
}

// What asks for the place of state is obeyed before what asks for the place of a reader.
TEST_F(PlacementTest, C11TheRequestOfTheStateWins) {
  Place(
      "v = VarHandleOp() [dtype=float32, shape=[]] @/device:CPU:0\n"
      "r = ReadVariableOp(v) [dtype=float32] @/device:GPU:0");
  EXPECT_EQ(DeviceOf("v"), "CPU:0");
  EXPECT_EQ(DeviceOf("r"), "CPU:0");
}

// Equal devices share no load: what nothing ties goes to the first.
TEST_F(PlacementTest, C19TheFirstFeasibleDeviceTakesAll) {
  devices_ = TestDevices({"CPU:0", "CPU:1", "CPU:2"});
  Place("a = Placeholder() [dtype=float32]\nb = Neg(a) [T=float32]\nc = Neg(a) [T=float32]");
  for (const char* node : {"a", "b", "c"}) EXPECT_EQ(DeviceOf(node), "CPU:0") << node;
}

TEST_F(PlacementTest, H33SoftPlacementMovesTheWholeReferenceGroup) {
  kernels_.Without("sim", "AssignAdd", DType::kInt32);
  const char* text =
      "v = VariableV2() [dtype=int32, shape=[]] @/device:GPU:0\n"
      "x = Const() [dtype=int32, value=tensor<int32[]:1>]\n"
      "a = AssignAdd(v, x) [T=int32]\n"
      "i = Assign(v, x) [T=int32] @/device:GPU:0";
  Place(text);
  for (const char* node : {"v", "a", "i"}) EXPECT_EQ(DeviceOf(node), "CPU:0") << node;
  options_.allow_soft_placement = false;
  ExpectError(text, absl::StatusCode::kInvalidArgument,
              {"'v' (VariableV2) requests /device:GPU:0", "'a' (AssignAdd) cannot run on GPU:0",
               "no kernel for AssignAdd T=int32", "'v' -- reference or resource edge -- 'a'"});
}

TEST_F(PlacementTest, A34TheShortestChainIsShown) {
  options_.allow_soft_placement = false;
  kernels_.Without("sim", "Mul");
  ExpectError(
      "v = VariableV2() [dtype=float32, shape=[]]\n"
      "x = Placeholder() [dtype=float32]\n"
      "a = Assign(v, x) [T=float32]\n"
      "b = AssignAdd(a, x) [T=float32, _class=[\"loc:@v\"]] @/device:GPU:0\n"
      "c = Neg(x) [T=float32, _class=[\"loc:@v\"]]\n"
      "d = Mul(x, x) [T=float32, _class=[\"loc:@c\"]]",
      absl::StatusCode::kInvalidArgument,
      {"'b' (AssignAdd) requests /device:GPU:0, but 'd' (Mul) cannot run on GPU:0",
       "'b' -- _class -- 'v' -- _class -- 'c' -- _class -- 'd'"});
}

TEST_F(PlacementTest, C17GeneratorGoesWhereAllItsConsumersAre) {
  kernels_.Without("sim", "Neg");
  Place(
      "c = Const() [dtype=float32, value=tensor<float32[]:1>]\n"
      "shared = Const() [dtype=float32, value=tensor<float32[]:1>]\n"
      "y = Neg(c) [T=float32]\n"
      "z = Neg(shared) [T=float32]\n"
      "w = Identity(shared) [T=float32]");
  EXPECT_EQ(DeviceOf("c"), "CPU:0");
  EXPECT_EQ(DeviceOf("shared"), "GPU:0");
}

TEST_F(PlacementTest, C18MetadataStaysWithItsInput) {
  kernels_.Without("sim", "Neg");
  EXPECT_EQ(Place("x = Placeholder() [dtype=float32]\ny = Neg(x) [T=float32]\ns = Shape(y) [T=float32]"),
            "x@CPU:0 C17; y@CPU:0 C14; s@CPU:0 C18");
}

TEST_F(PlacementTest, C21EarlierChoicesBindTheGroup) {
  options_.stateful_assignments["v"] = 0;
  Place("v = VariableV2() [dtype=float32, shape=[]]\nx = Placeholder() [dtype=float32]\na = Assign(v, x) [T=float32]");
  EXPECT_EQ(DeviceOf("v"), "CPU:0");
  EXPECT_EQ(DeviceOf("a"), "CPU:0");
}

TEST_F(PlacementTest, StatePlacementSeesTheWholeGraph) {
  // Two steps that see one variable each must leave both where the third, which ties them, can use them.
  options_.policy = "scatter~3";
  devices_ = TestDevices({"CPU:0", "CPU:1", "CPU:2"});
  const Graph graph = GraphFromText(TestOps(), R"(
    v = VariableV2() [dtype=float32, shape=[]]
    w = VariableV2() [dtype=float32, shape=[]]
    g = Placeholder() [dtype=float32]
    m = ApplyMomentum(v, w, g) [T=float32]
  )");
  auto state = PlaceState(graph, devices_, kernels_, options_);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->size(), 2u);
  EXPECT_EQ(state->at("v"), state->at("w"));
}

TEST_F(PlacementTest, StatePlacementSkipsWhatCannotBePlaced) {
  kernels_.Without("sim", "Assign").Without("cpu", "VariableV2", DType::kInt32);
  const Graph graph = GraphFromText(TestOps(), R"(
    bad = VariableV2() [dtype=int32, shape=[]]
    x = Placeholder() [dtype=int32]
    a = Assign(bad, x) [T=int32]
    good = VariableV2() [dtype=float32, shape=[]]
    y = Placeholder() [dtype=float32]
    b = AssignAdd(good, y) [T=float32]
  )");
  auto state = PlaceState(graph, devices_, kernels_, options_);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(state->contains("good"));
}

TEST_F(PlacementTest, PinsAreHardAndTheLastMatchWins) {
  options_.pins = {{"a.*", "GPU:0"}, {"ab", "CPU:0"}};
  EXPECT_EQ(Place("ab = Neg(aa) [T=float32]\naa = Neg(x) [T=float32]\nx = Placeholder() [dtype=float32]\n"),
            "ab@CPU:0 pin; aa@GPU:0 pin; x@GPU:0 C17");
  kernels_.Without("sim", "Neg");
  ExpectError("aa = Neg(x) [T=float32]\nx = Placeholder() [dtype=float32]", absl::StatusCode::kInvalidArgument,
              {"'aa'", "pinned to GPU:0 by 'a.*'", "no kernel for Neg"});
}

TEST_F(PlacementTest, PinOverridesTheRequestOfItsNode) {
  options_.pins = {{"a", "CPU:0"}};
  EXPECT_EQ(Place("a = Placeholder() [dtype=float32] @/device:GPU:0"), "a@CPU:0 pin");
}

TEST_F(PlacementTest, OptionsThatNameUnknownDevicesAreNotFound) {
  options_.pins = {{".*", "GPU:4"}};
  ExpectError("a = Placeholder() [dtype=float32]", absl::StatusCode::kNotFound, {"GPU:4", "CPU:0, GPU:0"});
  options_.pins.clear();
  options_.fixed["a"] = "TPU:0";
  ExpectError("a = Placeholder() [dtype=float32]", absl::StatusCode::kNotFound, {"'a'", "TPU:0"});
  options_.fixed.clear();
  options_.pins = {{"(", "CPU:0"}};
  ExpectError("a = Placeholder() [dtype=float32]", absl::StatusCode::kInvalidArgument, {"regular expression"});
}

TEST_F(PlacementTest, PlacementFilesAreObeyedExactly) {
  options_.fixed = {{"a", "/job:localhost/replica:0/task:0/device:CPU:0"}, {"b", "GPU:0"}, {"elsewhere", "CPU:0"}};
  EXPECT_EQ(Place("a = Neg(b) [T=float32, _class=[\"loc:@b\"]]\nb = Placeholder() [dtype=float32]"),
            "a@CPU:0 file; b@GPU:0 file");
  kernels_.Without("cpu", "Neg");
  ExpectError("a = Neg(b) [T=float32]\nb = Placeholder() [dtype=float32]", absl::StatusCode::kInvalidArgument,
              {"'a'", "placement file"});
}

TEST_F(PlacementTest, FeedsAndFetchesAreOnTheClientDevice) {
  EXPECT_EQ(Place("x = _Arg() [T=float32, index=0]\ny = Neg(x) [T=float32]\nr = _Retval(y) [T=float32, index=0]"),
            "x@CPU:0 feed; y@GPU:0 C14; r@CPU:0 fetch");
}

TEST_F(PlacementTest, ScatterIsDeterministicAndReachesEveryDevice) {
  devices_ = TestDevices({"CPU:0", "CPU:1", "CPU:2"});
  std::string text;
  for (int i = 0; i < 60; ++i) absl::StrAppend(&text, "n", i, " = Placeholder() [dtype=float32]\n");
  options_.policy = "scatter~7";
  const std::string first = Place(text.c_str());
  EXPECT_EQ(Place(text.c_str()), first);
  for (const char* device : {"@CPU:0", "@CPU:1", "@CPU:2"}) EXPECT_TRUE(absl::StrContains(first, device));
  options_.policy = "scatter~8";
  EXPECT_NE(Place(text.c_str()), first);
}

TEST_F(PlacementTest, ScatterKeepsGroupsTogetherWhateverTheOrderOfNodes) {
  devices_ = TestDevices({"CPU:0", "CPU:1", "CPU:2", "CPU:3", "CPU:4"});
  options_.policy = "scatter~11";
  Place("v = VariableV2() [dtype=float32, shape=[]]\nx = Placeholder() [dtype=float32]\na = Assign(v, x) [T=float32]");
  const std::string there = DeviceOf("v");
  EXPECT_EQ(DeviceOf("a"), there);
  Place("a = Assign(v, x) [T=float32]\nx = Placeholder() [dtype=float32]\nv = VariableV2() [dtype=float32, shape=[]]");
  EXPECT_EQ(DeviceOf("v"), there);
}

TEST_F(PlacementTest, UnknownPolicy) {
  options_.policy = "best";
  ExpectError("x = Placeholder() [dtype=float32]", absl::StatusCode::kInvalidArgument, {"best", "default", "scatter"});
}

TEST_F(PlacementTest, KernelsAreAskedOncePerOpAndType) {
  std::string text = "n0 = Placeholder() [dtype=float32]\n";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ") [T=float32]\n");
  Place(text.c_str());
  EXPECT_EQ(kernels_.questions, 4);  // two ops, two devices
}

TEST_F(PlacementTest, EveryRecordExplainsEveryDevice) {
  kernels_.Without("sim", "ArgMax");
  Place(
      "x = Placeholder() [dtype=float32]\nd = Const() [dtype=int32, value=tensor<int32[]:1>]\ny = ArgMax(x, d) "
      "[T=float32]");
  EXPECT_EQ(ExplainPlacement(graph_, placement_, devices_, graph_.Find("y")),
            "y  ArgMax  float32, int32 -> int64   requested -   assigned CPU:0\n"
            "  CPU:0  chosen    C14 only candidate\n"
            "  GPU:0  rejected  C3 no kernel for ArgMax T=float32 on sim\n"
            "  would change   GPU:0: a kernel for these types there, or other types\n");
}

TEST_F(PlacementTest, PlacementFileRoundTrip) {
  Place("a = Neg(b) [T=float32] @/device:CPU:0\nb = Placeholder() [dtype=float32]");
  auto read = ParsePlacement(WritePlacementJson(graph_, placement_, devices_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at("a"), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(read->size(), 2u);
}

TEST_F(PlacementTest, MalformedPlacementFiles) {
  for (const char* text :
       {"", "[]", "{}", "{\"schema\": 1}", "{\"schema\": \"thalweg.placement/1\", \"nodes\": []}",
        "{\"schema\": \"thalweg.placement/1\", \"nodes\": {\"a\": 3}}", "{\"schema\": \"thalweg.placement/2\"}"}) {
    EXPECT_EQ(ParsePlacement(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(ReadPlacementFile("/nonexistent/p.json").status().code(), absl::StatusCode::kNotFound);
  auto functions =
      ParsePlacement(R"({"schema": "thalweg.placement/1", "nodes": {}, "functions": {"f": {"n": "CPU:0"}}})");
  ASSERT_TRUE(functions.ok());
  EXPECT_EQ(functions->at("f/n"), "CPU:0");
}

}  // namespace
}  // namespace thalweg
