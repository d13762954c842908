// What is said of steps that wait, and the checks at their end (I2); what waits inside loops and calls.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/devices/device.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session.h"
#include "thalweg/runtime/step.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kInt = TypeAttr("T", "DT_INT32");
const std::string kQueueOfInts = TypesAttr("component_types", {"DT_INT32"}) + AttrText("shared_name", "s: 'q'");

Tensor Int(int32_t value) { return *Tensor::Of<int32_t>({value}, Shape()); }

// A queue 'q' of int32 as the nodes q, x (fed) and put.
std::string Queue(int capacity = 32) {
  return NodeText("q", "FIFOQueueV2", {}, kQueueOfInts + AttrText("capacity", absl::StrCat("i: ", capacity))) + IntPlaceholder("x") +
         NodeText("put", "QueueEnqueueV2", {"q", "x"}, TypesAttr("Tcomponents", {"DT_INT32"}));
}
std::string Dequeue(absl::string_view name, const std::vector<std::string>& inputs, absl::string_view keyword = "node") {
  return NodeText(name, "QueueDequeueV2", inputs, TypesAttr("component_types", {"DT_INT32"}), keyword);
}

// for (i = 0; i < limit; i = next_value): i is 'i:1' in the body and 'exit' after it; 'stay' and 'one' are there for the body. Frame 'loop'.
std::string CountTo(const std::string& limit, const std::string& next_value, int parallel = 10) {
  const auto enter = [&](const char* name, const std::string& from, bool constant) {
    return NodeText(name, "Enter", {from}, kInt + AttrText("frame_name", "s: 'loop'") + AttrText("is_constant", constant ? "b: true" : "b: false") +
                                               AttrText("parallel_iterations", absl::StrCat("i: ", parallel)));
  };
  return IntConst("zero", 0) + enter("begin", "zero", false) + enter("bound", limit, true) +
         NodeText("merge", "Merge", {"begin", "next"}, kInt + AttrText("N", "i: 2")) + NodeText("less", "Less", {"merge", "bound"}, kInt) +
         NodeText("cond", "LoopCond", {"less"}) + NodeText("i", "Switch", {"merge", "cond"}, kInt) + NodeText("stay", "Identity", {"i:1"}, kInt) +
         NodeText("one", "Const", {"^stay"}, TypeAttr("dtype", "DT_INT32") + AttrText("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }")) +
         NodeText("next", "NextIteration", {next_value}, kInt) + NodeText("exit", "Exit", {"i"}, kInt);
}

std::unique_ptr<Session> Open(const std::string& text, SessionOptions options = {}) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(text, options);
  EXPECT_TRUE(session.ok()) << session.status() << "\n" << text;
  return session.ok() ? *std::move(session) : nullptr;
}

SessionOptions Threads(int threads, bool general_frames = false) {
  SessionOptions options;
  options.threads = threads;
  options.general_frames = general_frames;
  return options;
}

RunOptions Limit(int milliseconds) {
  RunOptions options;
  options.timeout = std::chrono::milliseconds(milliseconds);
  return options;
}

std::string TimeLimitMessage(Session& session, const std::string& fetch, const Feeds& feeds = {}) {
  const absl::Status status = session.Run(feeds, {fetch}, {}, Limit(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  return std::string(status.message());
}

// P8: without loops.
TEST(Diagnosis, AStepThatWaitsAtAQueueSaysSo) {
  auto session = Open(Queue() + Dequeue("take", {"q"}) + NodeText("out", "Neg", {"take"}, kInt));
  EXPECT_THAT(TimeLimitMessage(*session, "out"), AllOf(HasSubstr("'take' (QueueDequeueV2 on CPU:0) waits for 1 of 1 elements of queue 'q'"),
                                                       HasSubstr("it holds 0 of 32, is open"), HasSubstr("'out' waits for 'take'")));
}

// P8: frame and iteration are said.
TEST(Diagnosis, ALoopThatWaitsAtAQueueSaysInWhichIteration) {
  for (int threads : {1, 2}) {
    auto session = Open(Queue() + Dequeue("take", {"q_in", "^stay"}) + IntConst("five", 5) +
                        NodeText("q_in", "Enter", {"q"}, TypeAttr("T", "DT_RESOURCE") + AttrText("frame_name", "s: 'loop'") + AttrText("is_constant", "b: true")) +
                        NodeText("sum", "AddV2", {"i:1", "one"}, kInt) + NodeText("after", "Identity", {"sum", "^take"}, kInt) + CountTo("five", "after"),
                        Threads(threads));
    for (int k = 0; k < 3; ++k) ASSERT_TRUE(session->Run({{"x", Int(k)}}, {}, {"put"}).ok());
    EXPECT_THAT(TimeLimitMessage(*session, "exit"),
                AllOf(HasSubstr("'take' (QueueDequeueV2 on CPU:0) in iteration 3 of frame 'loop' waits for 1 of 1 elements of queue 'q'"),
                      HasSubstr("'after' in iteration 3 of frame 'loop' waits for 'take'")));
  }
}

// P8: an endless loop, by the executor for one thread and by the general one.
TEST(Diagnosis, AnEndlessLoopSaysWhereItIs) {
  for (bool general_frames : {false, true}) {
    auto session = Open(IntPlaceholder("n") + NodeText("same", "Mul", {"i:1", "one"}, kInt) + CountTo("n", "same"), Threads(1, general_frames));
    EXPECT_THAT(TimeLimitMessage(*session, "exit", {{"n", Int(1)}}), AllOf(HasSubstr("in iteration "), HasSubstr("of frame 'loop'")));
  }
}

// Waits until the running step says `part` of itself.
std::string WaitForDescription(const Session& session, const std::string& part) {
  for (int tries = 0; tries < 2000; ++tries) {
    const std::string text = session.DescribeSteps();
    if (text.find(part) != std::string::npos) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return session.DescribeSteps();
}

TEST(Diagnosis, RunningStepsCanBeDescribedFromOutside) {
  auto session = Open(Queue() + Dequeue("take", {"q"}) + NodeText("out", "Neg", {"take"}, kInt));
  EXPECT_EQ(session->DescribeSteps(), "");
  Cancellation cancellation;
  std::thread caller([&] { EXPECT_EQ(session->Run({}, {"out"}, {}, {}, &cancellation).status().code(), absl::StatusCode::kCancelled); });
  EXPECT_THAT(WaitForDescription(*session, "'out' waits for"),
              AllOf(HasSubstr("running for"), HasSubstr("for 'out:0'"), HasSubstr("'take' (QueueDequeueV2 on CPU:0) waits for 1 of 1 elements of queue 'q'"),
                    HasSubstr("'out' waits for 'take'")));
  cancellation.Cancel();
  caller.join();
  EXPECT_EQ(session->DescribeSteps(), "");
}

TEST(Diagnosis, RunningLoopsCanBeDescribedFromOutside) {
  for (bool general_frames : {false, true}) {
    auto session = Open(IntPlaceholder("n") + NodeText("same", "Mul", {"i:1", "one"}, kInt) + CountTo("n", "same"), Threads(2, general_frames));
    Cancellation cancellation;
    std::thread caller([&] {
      EXPECT_EQ(session->Run({{"n", Int(1)}}, {"exit"}, {}, {}, &cancellation).status().code(), absl::StatusCode::kCancelled);
    });
    EXPECT_THAT(WaitForDescription(*session, "frame 'loop'"), HasSubstr("frame 'loop'"));
    cancellation.Cancel();
    caller.join();
  }
}

// P8: on one thread the executor of general frames answers itself what waits; that is asked again and again, so at different moments.
TEST(Diagnosis, LoopsOnOneThreadTellOthersWhatWaits) {
  auto session = Open(IntPlaceholder("n") + NodeText("same", "Mul", {"i:1", "one"}, kInt) + CountTo("n", "same"), Threads(1, /*general_frames=*/true));
  Cancellation cancellation;
  std::thread caller([&] {
    EXPECT_EQ(session->Run({{"n", Int(1)}}, {"exit"}, {}, {}, &cancellation).status().code(), absl::StatusCode::kCancelled);
  });
  EXPECT_THAT(WaitForDescription(*session, " of frame 'loop' waits for '"), ::testing::ContainsRegex("'[a-z]+' in iteration [0-9]+ of frame 'loop' waits for '[a-z]+'"));
  cancellation.Cancel();
  caller.join();
  EXPECT_EQ(session->DescribeSteps(), "");
}

// A function that takes `n` elements from the queue one after the other, by calling itself, and gives their sum.
FunctionText TakeAll() {
  const std::string ints = TypesAttr("Tin", {"DT_RESOURCE", "DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"});
  FunctionText f{"TakeAll", {{"q", "DT_RESOURCE"}, {"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.stateful = true;
  f.nodes = IntConst("none", 0, "node_def") + IntConst("minus_one", -1, "node_def") + NodeText("more", "Greater", {"n", "none:output:0"}, kInt, "node_def") +
            NodeText("choice", "If", {"more:z:0", "q", "n"},
                     TypeAttr("Tcond", "DT_BOOL") + ints + FuncAttr("then_branch", "TakeOne") + FuncAttr("else_branch", "Done"), "node_def");
  f.rets = {{"r", "choice:output:0"}};
  return f;
}
std::string TakeAllLibrary() {
  const std::string ints = TypesAttr("Tin", {"DT_RESOURCE", "DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"});
  FunctionText done{"Done", {{"q", "DT_RESOURCE"}, {"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  done.nodes = IntConst("none", 0, "node_def");
  done.rets = {{"r", "none:output:0"}};
  FunctionText one{"TakeOne", {{"q", "DT_RESOURCE"}, {"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  one.stateful = true;
  one.nodes = IntConst("one", 1, "node_def") + Dequeue("take", {"q"}, "node_def") + NodeText("less", "Sub", {"n", "one:output:0"}, kInt, "node_def") +
              NodeText("rest", "StatefulPartitionedCall", {"q", "less:z:0"}, ints + FuncAttr("f", "TakeAll"), "node_def") +
              NodeText("sum", "AddV2", {"take:components:0", "rest:output:0"}, kInt, "node_def");
  one.rets = {{"r", "sum:z:0"}};
  return Library({TakeAll(), one, done});
}

// Calls within calls hold no thread while they wait: the elements come from the step itself, on one thread.
TEST(Diagnosis, RecursiveCallsMayWaitForTheirOwnStep) {
  const std::string ints = TypesAttr("Tin", {"DT_RESOURCE", "DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"});
  for (int threads : {1, 2}) {
    std::string text = Queue() + IntConst("three", 3) + NodeText("all", "StatefulPartitionedCall", {"q", "three"}, ints + FuncAttr("f", "TakeAll"));
    for (int k = 0; k < 3; ++k) {
      text += IntConst(absl::StrCat("v", k), 10 * k + 1) + NodeText(absl::StrCat("put", k), "QueueEnqueueV2", {"q", absl::StrCat("v", k)}, TypesAttr("Tcomponents", {"DT_INT32"}));
    }
    auto session = Open(text + TakeAllLibrary(), Threads(threads));
    absl::StatusOr<std::vector<Tensor>> sum = session->Run({}, {"all"}, {"put0", "put1", "put2"}, Limit(20000));
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ((*sum)[0].flat<int32_t>()[0], 33);
    // Two elements for three.
    EXPECT_THAT(TimeLimitMessage(*session, "all"), AllOf(HasSubstr("waits for the call of function 'TakeAll'"), HasSubstr("elements of queue 'q'")));
  }
}

// E34: also on threads with small stacks.
TEST(Diagnosis, DeepRecursionTakesNoStack) {
  FunctionText f{"Down", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.nodes = IntConst("none", 0, "node_def") + NodeText("more", "Greater", {"n", "none:output:0"}, kInt, "node_def") +
            NodeText("choice", "StatelessIf", {"more:z:0", "n"},
                     TypeAttr("Tcond", "DT_BOOL") + TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("then_branch", "More") + FuncAttr("else_branch", "Same"), "node_def");
  f.rets = {{"r", "choice:output:0"}};
  FunctionText more{"More", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  more.nodes = IntConst("one", 1, "node_def") + NodeText("less", "Sub", {"n", "one:output:0"}, kInt, "node_def") + NodeText("call", "Down", {"less:z:0"}, "", "node_def") +
               NodeText("sum", "AddV2", {"call:r:0", "one:output:0"}, kInt, "node_def");
  more.rets = {{"r", "sum:z:0"}};
  FunctionText same{"Same", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}, "", {{"r", "n"}}};
  auto session = Open(IntPlaceholder("n") + NodeText("down", "Down", {"n"}) + Library({f, more, same}), Threads(1));
  absl::StatusOr<std::vector<Tensor>> result = session->Run({{"n", Int(5000)}}, {"down"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].flat<int32_t>()[0], 5000);
  const absl::Status endless = session->Run({{"n", Int(1'000'000'000)}}, {"down"}).status();
  EXPECT_EQ(endless.code(), absl::StatusCode::kResourceExhausted) << endless;
  EXPECT_THAT(std::string(endless.message()), HasSubstr("function 'Down' is called within 10000 other calls"));
}

// One name, a variable per iteration, however many run side by side.
TEST(Diagnosis, TemporaryVariablesAreOfOneIteration) {
  const std::string shape = AttrText("shape", "shape {}"), dtype = TypeAttr("dtype", "DT_INT32");
  for (bool general_frames : {false, true}) {
    auto session = Open(IntConst("limit", 50) + NodeText("temp", "TemporaryVariable", {"^stay"}, shape + dtype + AttrText("var_name", "s: 't'")) +
                        NodeText("set", "Assign", {"temp", "stay"}, kInt) +
                        NodeText("value", "DestroyTemporaryVariable", {"set"}, kInt + AttrText("var_name", "s: 't'")) +
                        NodeText("inc", "AddV2", {"value", "one"}, kInt) + NodeText("early", "AddV2", {"i:1", "one"}, kInt) +
                        NodeText("sum_in", "Enter", {"zero"}, kInt + AttrText("frame_name", "s: 'loop'")) +
                        NodeText("sum", "Merge", {"sum_in", "sum_next"}, kInt + AttrText("N", "i: 2")) + NodeText("sum_switch", "Switch", {"sum", "cond"}, kInt) +
                        NodeText("add", "AddV2", {"sum_switch:1", "inc"}, kInt) + NodeText("sum_next", "NextIteration", {"add"}, kInt) +
                        NodeText("total", "Exit", {"sum_switch"}, kInt) + CountTo("limit", "early"),
                        Threads(2, general_frames));
    absl::StatusOr<std::vector<Tensor>> total = session->Run({}, {"total"});
    ASSERT_TRUE(total.ok()) << total.status();
    EXPECT_EQ((*total)[0].flat<int32_t>()[0], 1275);
  }
}

// Only nodes that run may fail a step: here what is wrong is seen when shapes are inferred, in a branch that is not taken.
TEST(Diagnosis, AFaultyNodeFailsOnlyTheStepsThatRunIt) {
  for (bool general_frames : {false, true}) {
    auto session = Open(NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL")) +
                        NodeText("x", "Placeholder", {}, TypeAttr("dtype", "DT_FLOAT")) + NodeText("s", "Switch", {"x", "p"}, TypeAttr("T", "DT_FLOAT")) +
                        NodeText("bad", "Conv2D", {"s:1", "s:1"}, TypeAttr("T", "DT_FLOAT") + AttrText("strides", "list { i: 1 i: 1 i: 1 }") + AttrText("padding", "s: 'VALID'")) +
                        NodeText("good", "Neg", {"s"}, TypeAttr("T", "DT_FLOAT")) + NodeText("m", "Merge", {"good", "bad"}, TypeAttr("T", "DT_FLOAT") + AttrText("N", "i: 2")),
                        Threads(1, general_frames));
    const Tensor x = *Tensor::Of<float>({1, 2}, *Shape::Make({1, 2, 1, 1}));
    const auto run = [&](bool p) { return session->Run({{"p", *Tensor::Of<bool>({p}, Shape())}, {"x", x}}, {"m"}).status(); };
    EXPECT_TRUE(run(false).ok()) << run(false);
    EXPECT_EQ(run(true).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(run(true).message()), AllOf(HasSubstr("'bad' (Conv2D on CPU:0): strides must have 4 numbers"), HasSubstr("inputs: float32[1,2,1,1]")));
  }
}

// A target that is computed: the device is found when the step runs.
TEST(Diagnosis, TheTargetOfARemoteCallMayBeComputed) {
  FunctionText f{"F", {{"x", "DT_INT32"}}, {{"r", "DT_INT32"}}, NodeText("neg", "Neg", {"x"}, kInt, "node_def"), {{"r", "neg:y:0"}}};
  for (const char* devices : {"CPU:0", "CPU:0,CPU:1"}) {
    SessionOptions options;
    options.devices = devices;
    auto session = Open(IntPlaceholder("x") + NodeText("target", "Placeholder", {}, TypeAttr("dtype", "DT_STRING")) +
                        NodeText("call", "RemoteCall", {"target", "x"}, TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("f", "F")) + Library({f}),
                        options);
    const auto run = [&](const std::string& target) {
      return session->Run({{"x", Int(7)}, {"target", *Tensor::Of<std::string>({target}, Shape())}}, {"call"});
    };
    ASSERT_TRUE(run("/device:CPU:0").ok()) << run("/device:CPU:0").status();
    EXPECT_EQ((*run("/job:localhost/replica:0/task:0/device:CPU:0"))[0].flat<int32_t>()[0], -7);
    EXPECT_EQ(run("/device:CPU:1").ok(), std::string(devices) != "CPU:0");
    EXPECT_THAT(std::string(run("/device:CPU:7").status().message()), AllOf(HasSubstr("'/device:CPU:7'"), HasSubstr("no device of this session"), HasSubstr("call")));
  }
}

// Of a loop the trace says which execution made another one ready, and in which iteration.
TEST(Diagnosis, TracesOfLoopsKnowWhoCameLast) {
  if (!kRecordingBuiltIn) GTEST_SKIP() << "this build cannot record steps";
  for (bool general_frames : {false, true}) {
    auto session = Open(IntConst("three", 3) + NodeText("sum", "AddV2", {"i:1", "one"}, kInt) + CountTo("three", "sum"), Threads(1, general_frames));
    Trace trace;
    RunOptions options;
    options.trace = &trace;
    ASSERT_TRUE(session->Run({}, {"exit"}, {}, options).ok());
    int merges = 0;
    for (const TraceEvent& e : trace.events) {
      if (trace.tables->nodes[e.node].name != "merge") continue;
      ++merges;
      ASSERT_GE(e.last_arriver, 0);
      EXPECT_EQ(trace.tables->nodes[e.last_arriver].name, e.iteration == 0 ? "begin" : "next") << general_frames;
    }
    EXPECT_EQ(merges, 4);
  }
}

// I2. A plan, made by hand, of a node that nothing ever makes ready.
TEST(Diagnosis, AStepThatEndsWithoutAllNodesIsAnError) {
  auto devices = *MakeDevices(*ParseDeviceList("CPU:0"), std::make_shared<MemoryBudget>(int64_t{1} << 20));
  KernelNode info;
  info.name = "forgotten";
  info.schema = BuiltinOps().schemas.Find("NoOp");
  info.device = devices[0].get();
  Plan plan;
  plan.execution = Execution::kFrames;
  plan.nodes.resize(1);
  plan.nodes[0].info = &info;
  plan.predecessor_offsets = {0, 0};
  plan.frame_plan.nodes.resize(1);
  plan.frame_plan.nodes[0].initial = 1;
  plan.frame_plan.frames.resize(1);
  plan.frame_plan.frames[0].nodes = {0};
  plan.frame_plan.frames[0].initial = {1};
  plan.frame_plan.one_thread = true;
  plan.frame_plan.check_completion = true;
  ThreadPool pool(1);
  SessionResources resources;
  StepState step(plan, {&pool, &resources, &devices[0]->allocator()});
  ScopedComputeThread compute;
  std::vector<Tensor> results;
  step.Start({}, &results, std::chrono::steady_clock::time_point::max(), nullptr);
  ExecuteFrames(step);
  const absl::Status status = step.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("I2"));
}

}  // namespace
}  // namespace thalweg::testing
