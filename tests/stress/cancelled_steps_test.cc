// Ten thousand steps that end at a random moment, by cancellation or time limit, in the middle of loops, calls and waits: nothing of
// them may be left.

#include <malloc.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

constexpr int kSteps = 10'000;
// Every loop and call has vectors of this many floats under way, so that one that is left is seen.
constexpr int kFloats = 1024;
// Of the process over thousands of steps: tables that grow to the deepest recursion so far, but not an iteration, frame, container or
// state of a call for every step.
constexpr int64_t kMostGrowth = int64_t{1} << 20;

const std::string kFloat = TypeAttr("T", "DT_FLOAT");

std::string Enter(absl::string_view name, const std::string& from, const std::string& frame, absl::string_view type, bool constant = false) {
  return NodeText(name, "Enter", {from}, TypeAttr("T", type) + AttrText("frame_name", absl::StrCat("s: '", frame, "'")) +
                                             AttrText("is_constant", constant ? "b: true" : "b: false") + AttrText("parallel_iterations", "i: 4"));
}

// An endless loop over a vector; a node in it is NAME/w, what comes out NAME/out. Every iteration ends with the node `awaited`, if any.
std::string EndlessLoop(const std::string& name, const std::string& awaited = "") {
  const std::string n = name + "/";
  std::vector<std::string> last = {n + "w"};
  if (!awaited.empty()) last.push_back("^" + awaited);
  return Enter(n + "v_in", "x", name, "DT_FLOAT") + NodeText(n + "v_m", "Merge", {n + "v_in", n + "v_n"}, kFloat + AttrText("N", "i: 2")) +
         Enter(n + "t_in", "true", name, "DT_BOOL", true) + NodeText(n + "c", "LoopCond", {n + "t_in"}) + NodeText(n + "v", "Switch", {n + "v_m", n + "c"}, kFloat) +
         NodeText(n + "w", "Neg", {n + "v:1"}, kFloat) + NodeText(n + "after", "Identity", last, kFloat) + NodeText(n + "v_n", "NextIteration", {n + "after"}, kFloat) +
         NodeText(n + "out", "Exit", {n + "v"}, kFloat);
}

std::string Graph() {
  const std::string component = TypesAttr("component_types", {"DT_FLOAT"});
  const std::string types = TypesAttr("Tin", {"DT_RESOURCE", "DT_FLOAT"}) + TypesAttr("Tout", {"DT_FLOAT"});
  // Calls itself for ever, and takes an element of the queue on every second level.
  FunctionText down{"Down", {{"q", "DT_RESOURCE"}, {"v", "DT_FLOAT"}}, {{"r", "DT_FLOAT"}}};
  down.stateful = true;
  down.nodes = NodeText("neg", "Neg", {"v"}, kFloat, "node_def") + NodeText("sq", "Square", {"neg:y:0"}, kFloat, "node_def") +
               NodeText("deeper", "StatefulPartitionedCall", {"q", "sq:y:0"}, types + FuncAttr("f", "Down"), "node_def") +
               NodeText("sum", "AddV2", {"deeper:output:0", "v"}, kFloat, "node_def");
  down.rets = {{"r", "sum:z:0"}};
  FunctionText wait{"Wait", {{"q", "DT_RESOURCE"}, {"v", "DT_FLOAT"}}, {{"r", "DT_FLOAT"}}};
  wait.stateful = true;
  wait.nodes = NodeText("neg", "Neg", {"v"}, kFloat, "node_def") + NodeText("take", "QueueDequeueV2", {"q"}, component, "node_def") +
               NodeText("deeper", "StatefulPartitionedCall", {"q", "neg:y:0"}, types + FuncAttr("f", "Wait"), "node_def") +
               NodeText("sum", "AddV2", {"deeper:output:0", "take:components:0"}, kFloat, "node_def");
  wait.rets = {{"r", "sum:z:0"}};
  const std::string queue = NodeText("q", "FIFOQueueV2", {}, component + AttrText("shared_name", "s: 'q'") + AttrText("capacity", "i: 4"));
  const std::string in_loop = Enter("wait/q", "q", "wait", "DT_RESOURCE", true) + NodeText("wait/take", "QueueDequeueV2", {"wait/q", "^wait/w"}, component);
  return NodeText("x", "Placeholder", {}, TypeAttr("dtype", "DT_FLOAT")) +
         NodeText("true", "Const", {}, TypeAttr("dtype", "DT_BOOL") + AttrText("value", "tensor { dtype: DT_BOOL tensor_shape {} bool_val: true }")) + queue +
         EndlessLoop("loop") + EndlessLoop("wait", "wait/take") + in_loop +
         // Two loops side by side, one of which waits.
         NodeText("both", "AddV2", {"loop/out", "wait/out"}, kFloat) + NodeText("take", "QueueDequeueV2", {"q"}, component) +
         NodeText("taken", "Neg", {"take"}, kFloat) + NodeText("down", "StatefulPartitionedCall", {"q", "x"}, types + FuncAttr("f", "Down")) +
         NodeText("down_wait", "StatefulPartitionedCall", {"q", "x"}, types + FuncAttr("f", "Wait")) + Library({down, wait});
}

constexpr size_t kFirstRecursion = 4;

class Steps {
 public:
  Steps(int threads, bool general_frames) {
    SessionOptions options;
    options.threads = threads;
    options.general_frames = general_frames;
    session_ = *Session::FromMemory(Graph(), options);
    for (const char* fetch : {"loop/out", "wait/out", "both", "taken", "down_wait", "down"}) callables_.push_back(*session_->MakeCallable({"x"}, {fetch}));
    x_ = *Tensor::Allocate(DType::kFloat32, Shape::Of({kFloats}));
    for (float& v : x_.mutable_flat<float>()) v = 0.5f;
  }

  // One step that ends some microseconds after it began.
  void Run() {
    const size_t which = random_() % callables_.size();
    const auto& callable = callables_[which];
    const auto most = std::chrono::microseconds(1 + random_() % 80);
    absl::Status status;
    // A thread that comes late lets a recursion go very deep, so those end by their time limit.
    if (random_() % 8 == 0 && which < kFirstRecursion) {
      Cancellation cancellation;
      std::thread canceller([&] {
        std::this_thread::sleep_for(most);
        cancellation.Cancel();
      });
      status = callable->Run({x_}, {}, &cancellation).status();
      canceller.join();
    } else {
      RunOptions options;
      options.timeout = most;
      status = callable->Run({x_}, options).status();
    }
    const bool as_asked = status.code() == absl::StatusCode::kCancelled || status.code() == absl::StatusCode::kDeadlineExceeded ||
                          status.code() == absl::StatusCode::kResourceExhausted;  // "down" may reach its end first
    EXPECT_TRUE(as_asked) << status;
  }

  const Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  std::vector<std::shared_ptr<Callable>> callables_;
  Tensor x_;
  std::mt19937 random_{17};
};

// Of the process, as far as the C library knows (sanitizers look for leaks in their own way).
int64_t BytesInUse() { return static_cast<int64_t>(mallinfo2().uordblks); }

void CancelMany(int steps, int threads, bool general_frames) {
  Steps all(threads, general_frames);
  for (int i = 0; i < steps / 2; ++i) all.Run();
  const int64_t before = BytesInUse();
  for (int i = 0; i < steps / 2; ++i) all.Run();
  EXPECT_EQ(all.session().DescribeSteps(), "");
  EXPECT_LT(BytesInUse() - before, kMostGrowth);
}

TEST(CancelledSteps, NothingIsLeftOfReplayedLoopsCallsAndWaits) { CancelMany(kSteps / 2, 1, false); }
TEST(CancelledSteps, NothingIsLeftOfFrames) { CancelMany(kSteps / 4, 1, true); }
TEST(CancelledSteps, NothingIsLeftOnSeveralThreads) { CancelMany(kSteps / 4, 2, true); }

}  // namespace
}  // namespace thalweg::testing
