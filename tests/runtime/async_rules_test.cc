// Rules about nodes that finish on other threads, and about what ends a step that has some (semantics A53 to A67).
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

// A chain of four nodes, the second and fourth of which a test pins to the accelerator; a queue; a counter; a reference variable
// that is never set.
constexpr char kGraph[] = R"(
versions { producer: 1087 }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "a" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "on_gpu_1" op: "Exp" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Log" input: "on_gpu_1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "on_gpu_2" op: "Neg" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
node { name: "put" op: "QueueEnqueueV2" input: "q" input: "x" attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
node { name: "take" op: "QueueDequeueV2" input: "q" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: "count" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "init" op: "AssignVariableOp" input: "count" input: "one" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "count" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "unset" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "reads_unset" op: "Neg" input: "unset" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "never" op: "AssignAddVariableOp" input: "count" input: "one" input: "^reads_unset" attr { key: "dtype" value { type: DT_FLOAT } } }
)";

SessionOptions OnTwoDevices(int threads) {
  SessionOptions options;
  options.threads = threads;
  options.devices = "CPU:0,GPU:0=sim";
  options.pins = {{"on_gpu_.*", "GPU:0"}, {"[^o].*", "CPU:0"}};
  options.optimize = false;
  return options;
}

std::unique_ptr<Session> MakeSession(const SessionOptions& options) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kGraph, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

Tensor Ones(int64_t count) { return *Tensor::Of<float>(std::vector<float>(static_cast<size_t>(count), 1), *Shape::Make({count})); }

float Read(Session& session) {
  auto value = session.Run({}, {"read"});
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? (*value)[0].flat<float>()[0] : 0;
}

// A53, A55: the thread of the accelerator that finishes a node hands on what this makes ready; it neither runs kernels of the CPU
// nor waits. A56, A57: the step ends when the last asynchronous node has, and all of them have run once.
TEST(AsyncRules, A53A55A56A57EnginesHandOnWhatTheyMakeReady) {
  if (!kRecordingBuiltIn) GTEST_SKIP() << "this build cannot record steps";
  for (const int threads : {1, 2, 3}) {
    for (const int64_t size : {int64_t{1}, int64_t{1} << 18}) {  // cheap nodes and expensive ones
      auto session = MakeSession(OnTwoDevices(threads));
      Trace trace;
      RunOptions options;
      options.trace = &trace;
      auto result = session->Run({{"x", Ones(size)}}, {}, {"on_gpu_2"}, options);
      ASSERT_TRUE(result.ok()) << result.status();
      int kernels = 0;
      for (const TraceEvent& event : trace.events) {
        const TraceNode& node = trace.tables->nodes[event.node];
        EXPECT_LE(event.end_nanos, trace.step_nanos) << node.name;
        if (node.op != "Neg" && node.op != "Exp" && node.op != "Log") continue;
        ++kernels;
        const bool by_engine = event.thread >= trace.threads;
        EXPECT_EQ(by_engine, absl::StartsWith(node.name, "on_gpu")) << node.name << " with " << threads << " threads";
      }
      EXPECT_EQ(kernels, 4);
    }
  }
}

// A54: a kernel may finish before the call that starts it returns (there is an element), and much later on the thread of another
// (there will be one).
TEST(AsyncRules, A54NodesFinishAtOnceOrLaterOnOtherThreads) {
  for (const int threads : {1, 2}) {
    auto session = MakeSession(OnTwoDevices(threads));
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(session->Run({{"x", Ones(3)}}, {}, {"put"}).ok());
      auto there = session->Run({}, {"take"});
      ASSERT_TRUE(there.ok()) << there.status();
      EXPECT_EQ((*there)[0].num_elements(), 3);
      auto coming = session->Run({{"x", Ones(4)}}, {"take"}, {"put"});
      ASSERT_TRUE(coming.ok()) << coming.status();
      EXPECT_EQ((*coming)[0].num_elements(), 4);
    }
  }
}

// A63, A65: an allocation that fails on the accelerator, long after its node was started, is the step's status, says what is in use,
// and ends what waits elsewhere.
TEST(AsyncRules, A63A65FailuresOfADeviceEndWaitsElsewhere) {
  for (const int threads : {1, 2}) {
    SessionOptions options = OnTwoDevices(threads);
    options.memory_limit_bytes = 3 << 20;
    auto session = MakeSession(options);
    RunOptions limited;
    limited.timeout = std::chrono::seconds(60);  // instead of a test that hangs
    const absl::Status status = session->Run({{"x", Ones(1 << 20)}}, {"on_gpu_2", "take"}, {}, limited).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "of the memory limit of 3145728 bytes are in use")) << status;
    EXPECT_TRUE(session->Run({{"x", Ones(1)}}, {"on_gpu_2"}).ok()) << "the session goes on";
  }
}

// A67: an input that cannot be made ready fails its node as a kernel would: what follows it does not run.
TEST(AsyncRules, A67InputsThatCannotBePreparedFailTheirNode) {
  for (const int threads : {1, 2}) {
    auto session = MakeSession(OnTwoDevices(threads));
    ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
    const absl::Status status = session->Run({}, {}, {"never"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "'reads_unset'")) << status;
    EXPECT_EQ(Read(*session), 1) << "nothing was added";
  }
}

}  // namespace
}  // namespace thalweg
