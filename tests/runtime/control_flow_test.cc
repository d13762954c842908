// Conditionals and loops through the session, by the replay executor and by the frame executor: both must give the same results.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/effort.h"

namespace thalweg {
namespace {

// Writes version 1 control flow over int64 scalars as GraphDef text.
class GraphWriter {
 public:
  std::string Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& attrs, std::string name = "") {
    if (name.empty()) name = absl::StrCat("n", next_++);
    absl::StrAppend(&text_, "node { name: '", name, "' op: '", op, "'");
    for (const std::string& input : inputs) {
      if (!input.empty()) absl::StrAppend(&text_, " input: '", input, "'");
    }
    absl::StrAppend(&text_, " ", attrs, "}\n");
    return name;
  }
  static std::string Type(const std::string& key, const std::string& type) {
    return absl::StrCat("attr { key: '", key, "' value { type: ", type, " } } ");
  }
  static std::string T() { return Type("T", "DT_INT64"); }
  static std::string Int(const std::string& key, int64_t value) { return absl::StrCat("attr { key: '", key, "' value { i: ", value, " } } "); }

  std::string Const(int64_t value, const std::string& control = "", const std::string& name = "") {
    return Node("Const", {control}, absl::StrCat(Type("dtype", "DT_INT64"), "attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: ",
                                                 value, " } } }"), name);
  }
  std::string Placeholder(const std::string& name, const std::string& type = "DT_INT64") {
    return Node("Placeholder", {}, Type("dtype", type) + "attr { key: 'shape' value { shape {} } }", name);
  }
  std::string Binary(const std::string& op, const std::string& a, const std::string& b, const std::string& name = "", const std::string& control = "") {
    return Node(op, {a, b, control}, T(), name);
  }
  std::string Identity(const std::string& x, const std::string& type = "DT_INT64", const std::string& name = "") {
    return Node("Identity", {x}, Type("T", type), name);
  }
  std::string Switch(const std::string& data, const std::string& pred, const std::string& type = "DT_INT64", const std::string& name = "") {
    return Node("Switch", {data, pred}, Type("T", type), name);
  }
  std::string Merge(const std::vector<std::string>& inputs, const std::string& name = "", const std::string& control = "") {
    std::vector<std::string> all = inputs;
    all.push_back(control);
    return Node("Merge", all, T() + Int("N", static_cast<int64_t>(inputs.size())), name);
  }
  std::string Enter(const std::string& x, const std::string& frame, bool constant = false, int parallel = 10, const std::string& name = "") {
    return Node("Enter", {x}, absl::StrCat(T(), Int("parallel_iterations", parallel), "attr { key: 'frame_name' value { s: '", frame,
                                           "' } } attr { key: 'is_constant' value { b: ", constant ? "true" : "false", " } }"), name);
  }
  std::string Unary(const std::string& op, const std::string& x, const std::string& name = "") { return Node(op, {x}, T(), name); }
  std::string LoopCond(const std::string& x) { return Node("LoopCond", {x}, ""); }
  std::string NewName(const std::string& base) { return absl::StrCat(base, next_++); }

  // i = 0; while (i < limit) i = i + 1. Names: NAME/merge, /switch, /add, /exit.
  std::string CounterLoop(const std::string& name, const std::string& start, const std::string& limit, const std::string& frame, int parallel = 10) {
    const std::string enter = Enter(start, frame, false, parallel);
    const std::string bound = Enter(limit, frame, true, parallel);
    const std::string merge = Merge({enter, name + "/next"}, name + "/merge");
    const std::string condition = LoopCond(Binary("Less", merge, bound));
    Switch(merge, condition, "DT_INT64", name + "/switch");
    const std::string one = Const(1, "^" + Identity(name + "/switch:1"));
    Binary("AddV2", name + "/switch:1", one, name + "/add");
    Unary("NextIteration", name + "/add", name + "/next");
    return Unary("Exit", name + "/switch", name + "/exit");
  }

  std::string text() const { return "versions { producer: 1087 }\n" + text_; }

 private:
  std::string text_;
  int next_ = 0;
};

enum class Executor { kReplay, kFrames };

std::unique_ptr<Session> Open(const std::string& graph, SessionOptions options = {}) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(graph, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

SessionOptions OptionsFor(Executor executor) {
  SessionOptions options;
  options.threads = executor == Executor::kReplay ? 1 : 2;
  options.general_frames = executor == Executor::kFrames;
  options.optimize = false;
  return options;
}

Tensor Number(int64_t value) { return *Tensor::Scalar<int64_t>(value); }

class ControlFlow : public ::testing::TestWithParam<Executor> {
 protected:
  std::unique_ptr<Session> Open(const GraphWriter& graph) { return thalweg::Open(graph.text(), OptionsFor(GetParam())); }

  static int64_t Fetch(Session& session, const Feeds& feeds, const std::string& name) {
    absl::StatusOr<std::vector<Tensor>> result = session.Run(feeds, {name});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? (*result)[0].flat<int64_t>()[0] : -1;
  }
};

TEST_P(ControlFlow, LoopsCountFromZeroTripsOn) {
  GraphWriter g;
  g.Placeholder("n");
  g.CounterLoop("loop", g.Const(0), "n", "f");
  auto session = Open(g);
  for (int64_t n : {0, 1, 2, 37}) EXPECT_EQ(Fetch(*session, {{"n", Number(n)}}, "loop/exit"), n);
}

// A dead fetch is InvalidArgument and says why; a dead target is success (L1).
TEST_P(ControlFlow, DeadFetchNamesTheSwitch) {
  GraphWriter g;
  g.Placeholder("x");
  g.Placeholder("p", "DT_BOOL");
  g.Switch("x", "p", "DT_INT64", "choose");
  g.Binary("AddV2", "choose:1", "choose:1", "twice");
  auto session = Open(g);
  const Feeds no = {{"x", Number(3)}, {"p", *Tensor::Scalar<bool>(false)}};
  const absl::Status status = session->Run(no, {"twice"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'choose' (Switch) had the predicate false")) << status;
  EXPECT_TRUE(session->Run(no, {}, {"twice"}).ok());
  EXPECT_EQ(Fetch(*session, {{"x", Number(3)}, {"p", *Tensor::Scalar<bool>(true)}}, "twice"), 6);
}

// L2: no value after no trips, several after several; frame and iteration are named.
TEST_P(ControlFlow, FetchInsideALoop) {
  GraphWriter g;
  g.Placeholder("n");
  g.CounterLoop("loop", g.Const(0), "n", "f");
  auto session = Open(g);
  const absl::Status none = session->Run({{"n", Number(0)}}, {"loop/add"}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(none.message(), "iteration 0 of frame 'f'")) << none;
  EXPECT_EQ(session->Run({{"n", Number(3)}}, {"loop/add"}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Fetch(*session, {{"n", Number(0)}}, "loop/merge"), 0);
}

// A27: the control input from the branch not taken does not kill the Merge. A30: its second output is the index.
TEST_P(ControlFlow, MergeIgnoresDeadControls) {
  GraphWriter g;
  g.Placeholder("x");
  g.Placeholder("p", "DT_BOOL");
  g.Switch("x", "p", "DT_INT64", "s");
  const std::string on_true = g.Identity("s:1");
  const std::string on_false = g.Identity("s:0");
  g.Merge({on_false, on_true}, "m", "^" + on_true);
  auto session = Open(g);
  absl::StatusOr<std::vector<Tensor>> result = session->Run({{"x", Number(7)}, {"p", *Tensor::Scalar<bool>(false)}}, {"m", "m:1"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].flat<int64_t>()[0], 7);
  EXPECT_EQ((*result)[1].flat<int32_t>()[0], 0);
}

// A30: the index of one Merge, read by another Merge and by a node that runs later.
TEST_P(ControlFlow, MergeReadsTheIndexOfAnother) {
  GraphWriter g;
  g.Placeholder("x");
  g.Placeholder("p", "DT_BOOL");
  g.Switch("x", "p", "DT_INT64", "s");
  g.Merge({"s:0", "s:1"}, "m");
  g.Node("Merge", {"m:1"}, GraphWriter::Type("T", "DT_INT32") + GraphWriter::Int("N", 1), "of_index");
  g.Node("Identity", {"m:1", "^of_index"}, GraphWriter::Type("T", "DT_INT32"), "later");
  auto session = Open(g);
  for (const bool p : {false, true}) {
    absl::StatusOr<std::vector<Tensor>> result = session->Run({{"x", Number(7)}, {"p", *Tensor::Scalar<bool>(p)}}, {"of_index", "later"});
    ASSERT_TRUE(result.ok()) << result.status();
    for (const Tensor& index : *result) EXPECT_EQ(index.flat<int32_t>()[0], p ? 1 : 0);
  }
}

// A28, I1: a loop in a branch that is not taken dies, also where its Merge has a control input.
TEST_P(ControlFlow, LoopInUntakenBranchDies) {
  GraphWriter g;
  g.Placeholder("n");
  g.Placeholder("p", "DT_BOOL");
  g.Switch("n", "p", "DT_INT64", "s");
  const std::string zero = g.Const(0, "^" + g.Identity("s:1"));
  const std::string enter = g.Enter(zero, "f");
  const std::string bound = g.Enter("s:1", "f", true);
  const std::string merge = g.Merge({enter, "next"}, "merge", "^" + bound);
  const std::string condition = g.LoopCond(g.Binary("Less", merge, bound));
  g.Switch(merge, condition, "DT_INT64", "inner");
  g.Binary("AddV2", "inner:1", g.Const(1, "^" + g.Identity("inner:1")), "add");
  g.Unary("NextIteration", "add", "next");
  g.Unary("Exit", "inner", "exit");
  g.Merge({"exit", g.Identity("s:0")}, "out");
  auto session = Open(g);
  EXPECT_EQ(Fetch(*session, {{"n", Number(5)}, {"p", *Tensor::Scalar<bool>(true)}}, "out"), 5);
  EXPECT_EQ(Fetch(*session, {{"n", Number(9)}, {"p", *Tensor::Scalar<bool>(false)}}, "out"), 9);
  const absl::Status dead = session->Run({{"n", Number(9)}, {"p", *Tensor::Scalar<bool>(false)}}, {"exit"}).status();
  EXPECT_EQ(dead.code(), absl::StatusCode::kInvalidArgument);
}

// I4: two loops of one frame name share the frame; one may even start where the other ended.
TEST_P(ControlFlow, LoopsMayShareAFrame) {
  GraphWriter g;
  g.Placeholder("n");
  g.Placeholder("m");
  g.CounterLoop("a", g.Const(0), "n", "f");
  g.CounterLoop("b", g.Const(0), "m", "f");
  g.Binary("AddV2", "a/exit", "b/exit", "sum");
  auto session = Open(g);
  EXPECT_EQ(Fetch(*session, {{"n", Number(3)}, {"m", Number(8)}}, "sum"), 11);

  GraphWriter chained;
  chained.Placeholder("n");
  chained.CounterLoop("a", chained.Const(0), "n", "f");
  const std::string more = chained.Binary("AddV2", "a/exit", "a/exit");
  chained.CounterLoop("b", "a/exit", more, "f");
  auto chained_session = Open(chained);
  EXPECT_EQ(Fetch(*chained_session, {{"n", Number(3)}}, "b/exit"), 6);
}

// Frames without a loop, and without LoopCond (L3).
TEST_P(ControlFlow, EnterAndExitWithoutALoop) {
  GraphWriter g;
  g.Placeholder("x");
  const std::string enter = g.Enter("x", "f");
  g.Unary("Exit", g.Binary("AddV2", enter, enter), "out");
  auto session = Open(g);
  EXPECT_EQ(Fetch(*session, {{"x", Number(4)}}, "out"), 8);
}

// A29: two values for one Merge are an error, not a coin toss.
TEST_P(ControlFlow, TwoValuesForOneMerge) {
  GraphWriter g;
  g.Placeholder("x");
  g.Merge({"x", g.Identity("x")}, "m");
  auto session = Open(g);
  EXPECT_EQ(session->Run({{"x", Number(1)}}, {"m"}).status().code(), absl::StatusCode::kInternal);
}

// H16: edges between frames are refused, with both nodes, the frame, and what is missing.
TEST_P(ControlFlow, CrossFrameEdgesAreExplained) {
  GraphWriter g;
  g.Placeholder("n");
  g.CounterLoop("loop", g.Const(0), "n", "f");
  g.Binary("AddV2", "loop/add", "n", "bad");
  auto session = Open(g);
  const absl::Status status = session->Run({{"n", Number(1)}}, {"bad"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"'bad'", "'loop/add'", "_arg_n", "frame 'f'", "Exit"}) EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  EXPECT_EQ(Fetch(*session, {{"n", Number(1)}}, "loop/exit"), 1) << "other steps go on";
}

// H7.
TEST_P(ControlFlow, ParallelIterationsBelowOneAreRefused) {
  for (int parallel : {0, -1}) {
    GraphWriter g;
    g.Placeholder("n");
    g.CounterLoop("loop", g.Const(0), "n", "f", parallel);
    EXPECT_EQ(Open(g)->Run({{"n", Number(1)}}, {"loop/exit"}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// H10: an endless loop ends with its time limit, or when it is cancelled; the session stays usable.
TEST_P(ControlFlow, EndlessLoopIsStopped) {
  GraphWriter g;
  g.Placeholder("n");
  g.CounterLoop("loop", g.Const(0), "n", "f");
  auto session = Open(g);
  const Feeds endless = {{"n", Number(int64_t{1} << 62)}};
  RunOptions limited;
  limited.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(session->Run(endless, {"loop/exit"}, {}, limited).status().code(), absl::StatusCode::kDeadlineExceeded);

  Cancellation cancellation;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancellation.Cancel();
  });
  EXPECT_EQ(session->Run(endless, {"loop/exit"}, {}, {}, &cancellation).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_EQ(Fetch(*session, {{"n", Number(3)}}, "loop/exit"), 3);
}

// H11: steps that end in the middle of an iteration.
TEST_P(ControlFlow, CancelledStepsLeaveNothingBehind) {
  GraphWriter g;
  g.Placeholder("n");
  g.CounterLoop("loop", g.Const(0), "n", "f");
  auto session = Open(g);
  RunOptions limited;
  limited.timeout = std::chrono::microseconds(100);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(session->Run({{"n", Number(int64_t{1} << 62)}}, {"loop/exit"}, {}, limited).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(Fetch(*session, {{"n", Number(7)}}, "loop/exit"), 7);
  EXPECT_LT(session->peak_memory_bytes(), 1 << 18);
}

// a, b = b, a beside a counter, a value that is only carried along and one that nobody reads after the loop: each must stay what it is,
// whatever executors share between iterations.
TEST_P(ControlFlow, LoopVariablesTradePlaces) {
  GraphWriter g;
  g.Placeholder("n");
  const std::vector<std::string> starts = {g.Const(0), g.Const(3), g.Const(5), g.Const(7), g.Const(11)};
  std::vector<std::string> merges, values;
  for (size_t k = 0; k < starts.size(); ++k) {
    merges.push_back(g.Merge({g.Enter(starts[k], "f"), absl::StrCat("next", k)}, absl::StrCat("merge", k)));
  }
  const std::string condition = g.LoopCond(g.Binary("Less", merges[0], g.Enter("n", "f", true)));
  for (size_t k = 0; k < starts.size(); ++k) {
    const std::string name = absl::StrCat("switch", k);
    g.Switch(merges[k], condition, "DT_INT64", name);
    values.push_back(g.Identity(name + ":1"));
    if (k != 4) g.Unary("Exit", name, absl::StrCat("exit", k));
  }
  const std::string one = g.Const(1, "^" + values[0]);
  const std::vector<std::string> results = {g.Binary("AddV2", values[0], one), values[2], values[1], values[3], g.Binary("AddV2", values[4], values[1])};
  for (size_t k = 0; k < results.size(); ++k) g.Unary("NextIteration", results[k], absl::StrCat("next", k));
  auto session = Open(g);
  for (int64_t n : {0, 1, 2, 5}) {
    const Feeds feeds = {{"n", Number(n)}};
    EXPECT_EQ(Fetch(*session, feeds, "exit0"), n);
    EXPECT_EQ(Fetch(*session, feeds, "exit1"), n % 2 == 0 ? 3 : 5);
    EXPECT_EQ(Fetch(*session, feeds, "exit2"), n % 2 == 0 ? 5 : 3);
    EXPECT_EQ(Fetch(*session, feeds, "exit3"), 7);
  }
}

// A conditional in a loop whose branches hand the variable on, change it, or read it twice.
TEST_P(ControlFlow, BranchesOfALoopShareTheirInput) {
  GraphWriter g;
  g.Placeholder("n");
  const std::string i = g.Merge({g.Enter(g.Const(0), "f"), "next_i"}, "merge_i");
  const std::string x = g.Merge({g.Enter(g.Const(1), "f"), "next_x"}, "merge_x");
  const std::string condition = g.LoopCond(g.Binary("Less", i, g.Enter("n", "f", true)));
  g.Switch(i, condition, "DT_INT64", "switch_i");
  g.Switch(x, condition, "DT_INT64", "switch_x");
  const std::string in_i = g.Identity("switch_i:1");
  const std::string in_x = g.Identity("switch_x:1");
  const std::string small = g.Binary("Less", in_i, g.Const(3, "^" + in_i));
  g.Switch(in_x, small, "DT_INT64", "branch");
  const std::string twice = g.Binary("AddV2", "branch:1", g.Identity("branch:1"));
  g.Unary("NextIteration", g.Merge({"branch:0", twice}), "next_x");
  g.Unary("NextIteration", g.Binary("AddV2", in_i, g.Const(1, "^" + in_i)), "next_i");
  g.Unary("Exit", "switch_x", "exit");
  auto session = Open(g);
  for (int64_t n : {0, 1, 3, 6}) EXPECT_EQ(Fetch(*session, {{"n", Number(n)}}, "exit"), int64_t{1} << std::min<int64_t>(n, 3));
}

// What made a fetch dead is found behind nodes that only hand values on, which the executors pass over.
TEST_P(ControlFlow, DeadFetchBehindIdentities) {
  GraphWriter g;
  g.Placeholder("x");
  g.Placeholder("p", "DT_BOOL");
  g.Switch("x", "p", "DT_INT64", "choose");
  const std::string on_false = g.Identity(g.Identity("choose:0"));
  const std::string constant = g.Const(4, "^" + on_false);
  g.Binary("AddV2", constant, constant, "eight");
  auto session = Open(g);
  const absl::Status status = session->Run({{"x", Number(3)}, {"p", *Tensor::Scalar<bool>(true)}}, {"eight"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "'choose' (Switch) had the predicate true")) << status;
  EXPECT_EQ(Fetch(*session, {{"x", Number(3)}, {"p", *Tensor::Scalar<bool>(false)}}, "eight"), 8);
}

INSTANTIATE_TEST_SUITE_P(Executors, ControlFlow, ::testing::Values(Executor::kReplay, Executor::kFrames),
                         [](const auto& info) { return info.param == Executor::kReplay ? "Replay" : "Frames"; });

// Random structured programs over a few variables, and what they mean.
struct Statement {
  enum Kind { kAssign, kIf, kWhile } kind = kAssign;
  std::string op;          // of kAssign: AddV2, Sub, Mul
  int target = 0;
  int a = 0, b = 0;        // operands; of kIf: a < b; of kWhile: FloorMod(a, 5) iterations
  int64_t constant = 0;    // b < 0: this instead
  int parallel = 10;
  std::vector<Statement> first, second;
};
using Program = std::vector<Statement>;

constexpr int kVariables = 4;

Program RandomProgram(std::mt19937& rng, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(rng() % n); };
  Program program(1 + pick(4));
  for (Statement& s : program) {
    const int kind = depth == 0 ? 0 : pick(4);
    s.a = pick(kVariables);
    s.b = pick(kVariables + 1) - 1;
    s.constant = pick(7) - 3;
    s.target = pick(kVariables);
    static constexpr const char* kOps[] = {"AddV2", "Sub", "Mul"};
    s.op = kOps[pick(3)];
    s.parallel = 1 + pick(4);
    if (kind < 2) continue;
    s.kind = kind == 2 ? Statement::kIf : Statement::kWhile;
    s.first = RandomProgram(rng, depth - 1);
    if (s.kind == Statement::kIf && pick(3) > 0) s.second = RandomProgram(rng, depth - 1);
  }
  return program;
}

int64_t FloorMod(int64_t a, int64_t b) { return ((a % b) + b) % b; }

void Interpret(const Program& program, std::vector<int64_t>& v) {
  for (const Statement& s : program) {
    const uint64_t a = v[s.a];
    const uint64_t b = s.b < 0 ? s.constant : v[s.b];
    if (s.kind == Statement::kAssign) {
      v[s.target] = static_cast<int64_t>(s.op == "AddV2" ? a + b : s.op == "Sub" ? a - b : a * b);
    } else if (s.kind == Statement::kIf) {
      Interpret(static_cast<int64_t>(a) < static_cast<int64_t>(b) ? s.first : s.second, v);
    } else {
      const int64_t trips = FloorMod(v[s.a], 5);
      for (int64_t i = 0; i < trips; ++i) Interpret(s.first, v);
    }
  }
}

void FindAssigned(const Program& program, std::set<int>* assigned) {
  for (const Statement& s : program) {
    if (s.kind == Statement::kAssign) assigned->insert(s.target);
    FindAssigned(s.first, assigned);
    FindAssigned(s.second, assigned);
  }
}

class ProgramWriter {
 public:
  explicit ProgramWriter(GraphWriter& g) : g_(g) {}

  // `pivot` is the control input that puts constants into the branch or loop body at hand, and keeps what is computed from loop
  // invariants alone out of the last iteration (A44f).
  void Write(const Program& program, std::vector<std::string>& v, const std::string& pivot) {
    for (const Statement& s : program) {
      if (s.kind == Statement::kAssign) v[s.target] = g_.Binary(s.op, v[s.a], Second(s, v, pivot), "", pivot);
      else if (s.kind == Statement::kIf) WriteIf(s, v, pivot);
      else WriteWhile(s, v, pivot);
    }
  }

 private:
  std::string Second(const Statement& s, const std::vector<std::string>& v, const std::string& pivot) {
    return s.b < 0 ? g_.Const(s.constant, pivot) : v[s.b];
  }

  void WriteIf(const Statement& s, std::vector<std::string>& v, const std::string& pivot) {
    const std::string pred = g_.Binary("Less", v[s.a], Second(s, v, pivot), "", pivot);
    const std::string both = g_.Switch(pred, pred, "DT_BOOL");
    const std::string pred_id = g_.Identity(pred, "DT_BOOL");
    std::vector<std::string> taken, other;
    for (const std::string& x : v) {
      const std::string choice = g_.Switch(x, pred_id);
      taken.push_back(choice + ":1");
      other.push_back(choice + ":0");
    }
    Write(s.first, taken, "^" + g_.Identity(both + ":1", "DT_BOOL"));
    Write(s.second, other, "^" + g_.Identity(both + ":0", "DT_BOOL"));
    for (int i = 0; i < kVariables; ++i) v[i] = g_.Merge({other[i], taken[i]});
  }

  void WriteWhile(const Statement& s, std::vector<std::string>& v, const std::string& pivot) {
    const std::string frame = g_.NewName("frame");
    const std::string limit = g_.Enter(g_.Binary("FloorMod", v[s.a], g_.Const(5, pivot), "", pivot), frame, true, s.parallel);
    std::set<int> assigned;
    FindAssigned(s.first, &assigned);
    // Variable kVariables is the counter; what the body does not assign is a loop invariant.
    std::vector<std::string> inside(kVariables + 1), next(kVariables + 1), choice(kVariables + 1);
    for (int i = 0; i <= kVariables; ++i) {
      const std::string start = i < kVariables ? v[i] : g_.Const(0, pivot);
      if (i < kVariables && assigned.count(i) == 0) {
        inside[i] = g_.Enter(start, frame, true, s.parallel);
        continue;
      }
      next[i] = g_.NewName("next");
      inside[i] = g_.Merge({g_.Enter(start, frame, false, s.parallel), next[i]});
    }
    const std::string condition = g_.LoopCond(g_.Binary("Less", inside[kVariables], limit));
    for (int i = 0; i <= kVariables; ++i) {
      if (next[i].empty()) continue;
      choice[i] = g_.Switch(inside[i], condition);
      inside[i] = choice[i] + ":1";
    }
    const std::string body_pivot = "^" + g_.Identity(inside[kVariables]);
    const std::string counter = g_.Binary("AddV2", inside[kVariables], g_.Const(1, body_pivot));
    inside.pop_back();
    Write(s.first, inside, body_pivot);
    inside.push_back(counter);
    for (int i = 0; i <= kVariables; ++i) {
      if (next[i].empty()) continue;
      g_.Unary("NextIteration", inside[i], next[i]);
      if (i < kVariables) v[i] = g_.Unary("Exit", choice[i]);
    }
  }

  GraphWriter& g_;
};

// Nested conditionals and loops with trip counts from 0 equal a sequential interpreter, whichever executor runs them, rewritten or not,
// on one device or scattered over CPUs and the simulated accelerator.
TEST(RandomPrograms, EqualASequentialInterpreter) {
  std::vector<std::pair<std::string, SessionOptions>> ways;
  const auto add = [&](const std::string& name, int threads, bool general, const std::string& devices, const std::string& policy) {
    SessionOptions options;
    options.threads = threads;
    options.general_frames = general;
    options.devices = devices;
    options.policy = policy;
    ways.emplace_back(name, options);
  };
  add("replay", 1, false, "CPU:0", "default");
  add("frames", 1, true, "CPU:0", "default");
  add("frames on threads", 3, true, "CPU:0,CPU:1", "scatter~3");
  add("replay scattered", 1, false, "CPU:0,CPU:1,CPU:2", "scatter~5");
  add("accelerator", 2, false, "CPU:0,GPU:0=sim", "scatter~7");
  ways.push_back(ways[0]);
  ways.back().first = "replay as written";
  ways.back().second.optimize = false;
  const std::vector<std::vector<int64_t>> starts = {{0, 1, 2, 3}, {7, -3, 4, 1}};
  const int programs = testing::Effort("THALWEG_RANDOM_PROGRAMS", 200, 10);
  for (int seed = 0; seed < programs; ++seed) {
    std::mt19937 rng(seed);
    const Program program = RandomProgram(rng, 3);
    GraphWriter g;
    std::vector<std::string> v, fetches;
    for (int i = 0; i < kVariables; ++i) v.push_back(g.Placeholder(absl::StrCat("v", i)));
    ProgramWriter(g).Write(program, v, "");
    for (int i = 0; i < kVariables; ++i) fetches.push_back(g.Identity(v[i], "DT_INT64", absl::StrCat("out", i)));
    for (const auto& [name, options] : ways) {
      std::unique_ptr<Session> session = Open(g.text(), options);
      ASSERT_NE(session, nullptr);
      for (const std::vector<int64_t>& start : starts) {
        Feeds feeds;
        for (int i = 0; i < kVariables; ++i) feeds.emplace_back(absl::StrCat("v", i), Number(start[i]));
        std::vector<int64_t> want = start;
        Interpret(program, want);
        RunOptions limited;
        limited.timeout = std::chrono::seconds(20);
        absl::StatusOr<std::vector<Tensor>> result = session->Run(feeds, fetches, {}, limited);
        if (!result.ok()) std::cerr << g.text();
        ASSERT_TRUE(result.ok()) << "seed " << seed << ", " << name << ": " << result.status();
        std::vector<int64_t> got;
        for (const Tensor& t : *result) got.push_back(t.flat<int64_t>()[0]);
        ASSERT_EQ(got, want) << "seed " << seed << ", " << name;
      }
    }
  }
}

}  // namespace
}  // namespace thalweg
