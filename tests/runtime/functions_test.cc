// What functions, conditionals and loops in functional form compute. Expected values of side effects and codes of faults are
// those of TensorFlow 2.21.
#include <cmath>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

using ::testing::HasSubstr;

const std::string kInt = TypeAttr("T", "DT_INT32");
const std::string kIntVariable = TypeAttr("dtype", "DT_INT32");

std::string BodyNode(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs, absl::string_view attrs = kInt) {
  return NodeText(name, op, inputs, attrs, "node_def");
}
Tensor Int(int32_t value) { return *Tensor::Of<int32_t>({value}, Shape()); }
Tensor Bool(bool value) { return *Tensor::Of<bool>({value}, Shape()); }

class Functions : public ::testing::Test {
 protected:
  void Load(const std::string& text, SessionOptions options = {}) {
    absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(text, options);
    ASSERT_TRUE(session.ok()) << session.status() << "\n" << text;
    session_ = *std::move(session);
  }
  absl::StatusOr<int32_t> RunInt(const Feeds& feeds, const std::string& fetch) {
    absl::StatusOr<std::vector<Tensor>> result = session_->Run(feeds, {fetch});
    if (!result.ok()) return result.status();
    return (*result)[0].flat<int32_t>()[0];
  }
  absl::Status Target(const std::string& target, const Feeds& feeds = {}) { return session_->Run(feeds, {}, {target}).status(); }

  std::unique_ptr<Session> session_;
};

// Adds `by` to the variable `v` (argument), as the nodes NAME, NAMEr, NAMEs.
std::string AddTo(const std::string& name, const std::string& v, const std::string& by) {
  return BodyNode(name + "r", "ReadVariableOp", {v}, kIntVariable) + BodyNode(name + "s", "AddV2", {name + "r:value:0", by}) +
         BodyNode(name, "AssignVariableOp", {v, name + "s:z:0"}, kIntVariable);
}

// x + 1; adds 1 to v (a control result, if wanted) and to w (never).
FunctionText TwoEffects(bool is_control_result) {
  FunctionText f{"F", {{"x", "DT_INT32"}, {"v", "DT_RESOURCE"}, {"w", "DT_RESOURCE"}}, {{"r", "DT_INT32"}, {"rv", "DT_RESOURCE"}, {"rw", "DT_RESOURCE"}}};
  f.stateful = true;
  f.nodes = IntConst("one", 1, "node_def") + AddTo("to_v", "v", "one:output:0") + AddTo("to_w", "w", "one:output:0") + BodyNode("sum", "AddV2", {"x", "one:output:0"});
  f.rets = {{"r", "sum:z:0"}, {"rv", "v"}, {"rw", "w"}};
  if (is_control_result) f.control_results = {"to_v"};
  return f;
}
// x < 3; adds 100 to w.
FunctionText EffectfulCondition() {
  FunctionText f{"C", {{"x", "DT_INT32"}, {"v", "DT_RESOURCE"}, {"w", "DT_RESOURCE"}}, {{"r", "DT_BOOL"}}};
  f.stateful = true;
  f.nodes = IntConst("three", 3, "node_def") + IntConst("hundred", 100, "node_def") + AddTo("to_w", "w", "hundred:output:0") + BodyNode("less", "Less", {"x", "three:output:0"});
  f.rets = {{"r", "less:z:0"}};
  return f;
}

std::string Variables() {
  std::string text = IntConst("zero", 0);
  for (const char* name : {"v", "w"}) {
    text += NodeText(name, "VarHandleOp", {}, kIntVariable + AttrText("shape", "shape {}") + AttrText("shared_name", absl::StrCat("s: '", name, "'"))) +
            NodeText(absl::StrCat("init_", name), "AssignVariableOp", {name, "zero"}, kIntVariable) + NodeText(absl::StrCat("read_", name), "ReadVariableOp", {name}, kIntVariable);
  }
  return text;
}

// E28, E30, H31: the two variables after one step that fetches a reader of the node's result, or only runs the node.
TEST_F(Functions, SideEffects) {
  const std::vector<std::string> types = {"DT_INT32", "DT_RESOURCE", "DT_RESOURCE"};
  const std::vector<std::string> args = {"x", "v", "w"};
  const std::string tin_tout = TypesAttr("Tin", types) + TypesAttr("Tout", types);
  const std::string branches = TypeAttr("Tcond", "DT_BOOL") + tin_tout + FuncAttr("then_branch", "F") + FuncAttr("else_branch", "F");
  const std::string loop = TypesAttr("T", types) + FuncAttr("cond", "C") + FuncAttr("body", "F");
  const std::string marked = AttrText("_lower_using_switch_merge", "b: true");
  const std::string target = NodeText("target", "Const", {}, TypeAttr("dtype", "DT_STRING") + AttrText("value", "tensor { dtype: DT_STRING tensor_shape {} string_val: '/device:CPU:0' }"));
  struct Case {
    std::string name;
    std::string call;
    bool is_control_result;
    int result, v_fetched, w_fetched, v_run, w_run;
  };
  for (const Case& c : std::vector<Case>{
           {"direct", NodeText("c", "F", args), false, 1, 1, 1, 1, 1},
           {"partitioned", NodeText("c", "PartitionedCall", args, tin_tout + FuncAttr("f", "F")), false, 1, 0, 0, 0, 0},
           {"partitioned with control result", NodeText("c", "StatefulPartitionedCall", args, tin_tout + FuncAttr("f", "F")), true, 1, 1, 0, 1, 0},
           {"if", NodeText("c", "If", {"p", "x", "v", "w"}, branches), false, 1, 1, 1, 1, 1},
           {"stateless if", NodeText("c", "StatelessIf", {"p", "x", "v", "w"}, branches), true, 1, 1, 1, 1, 1},
           {"marked if", NodeText("c", "If", {"p", "x", "v", "w"}, branches + marked), true, 1, 0, 0, 1, 0},
           {"while", NodeText("c", "While", args, loop), false, 3, 3, 403, 3, 403},
           {"marked while", NodeText("c", "While", args, loop + marked), true, 3, 3, 0, 3, 0},
           {"remote", target + NodeText("c", "RemoteCall", {"target", "x", "v", "w"}, tin_tout + FuncAttr("f", "F")), false, 1, 1, 1, 1, 1}}) {
    SCOPED_TRACE(c.name);
    Load(IntPlaceholder("x") + NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL")) + Variables() + c.call + NodeText("y", "Neg", {"c"}, kInt) +
         NodeText("after", "NoOp", {"^c"}) + Library({TwoEffects(c.is_control_result), EffectfulCondition()}));
    const Feeds feeds = c.call.find("'p'") == std::string::npos ? Feeds{{"x", Int(0)}} : Feeds{{"x", Int(0)}, {"p", Bool(true)}};
    for (const bool fetches : {true, false}) {
      ASSERT_TRUE(Target("init_v").ok());
      ASSERT_TRUE(Target("init_w").ok());
      if (fetches) EXPECT_EQ(RunInt(feeds, "y").value_or(99), -c.result);
      else EXPECT_TRUE(Target("after", feeds).ok());
      EXPECT_EQ(RunInt({}, "read_v").value_or(-1), fetches ? c.v_fetched : c.v_run) << fetches;
      EXPECT_EQ(RunInt({}, "read_w").value_or(-1), fetches ? c.w_fetched : c.w_run) << fetches;
    }
  }
}

// A node waits for all its inputs: what changes a variable on the way to one that no body reads happens all the same. A loop
// that TensorFlow turns into Switch and Merge loses such variables.
TEST_F(Functions, EffectsOnTheWayToArgumentsThatNobodyReads) {
  const std::vector<std::string> types = {"DT_INT32", "DT_INT32"};
  const std::string tin_tout = TypesAttr("Tin", types) + TypesAttr("Tout", types);
  FunctionText pass;  // (x + 1, a)
  pass.name = "P";
  pass.args = {{"x", "DT_INT32"}, {"a", "DT_INT32"}};
  pass.results = {{"r", "DT_INT32"}, {"s", "DT_INT32"}};
  pass.nodes = IntConst("one", 1, "node_def") + BodyNode("add", "AddV2", {"x", "one:output:0"});
  pass.rets = {{"r", "add:z:0"}, {"s", "a"}};
  FunctionText below = pass;
  below.name = "B";
  below.results = {{"r", "DT_BOOL"}};
  below.nodes = IntConst("three", 3, "node_def") + BodyNode("less", "Less", {"x", "three:output:0"});
  below.rets = {{"r", "less:z:0"}};
  FunctionText nested = pass;
  nested.name = "N";
  nested.nodes = NodeText("inner", "PartitionedCall", {"x", "a"}, tin_tout + FuncAttr("f", "P"), "node_def");
  nested.rets = {{"r", "inner:output:0"}, {"s", "inner:output:1"}};
  const std::string loop = TypesAttr("T", types) + FuncAttr("cond", "B") + FuncAttr("body", "P");
  struct Case {
    std::string call;
    int changed;
  };
  for (const Case& c : std::vector<Case>{{NodeText("c", "PartitionedCall", {"x", "a"}, tin_tout + FuncAttr("f", "P")), 5},
                                         {NodeText("c", "PartitionedCall", {"x", "a"}, tin_tout + FuncAttr("f", "N")), 5},
                                         {NodeText("c", "P", {"x", "a"}), 5},
                                         {NodeText("c", "StatelessWhile", {"x", "a"}, loop), 5},
                                         {NodeText("c", "StatelessWhile", {"x", "a"}, loop + AttrText("_lower_using_switch_merge", "b: true")), 0}}) {
    SCOPED_TRACE(c.call);
    Load(IntPlaceholder("x") + Variables() + IntConst("five", 5) + NodeText("change", "AssignAddVariableOp", {"v", "five"}, kIntVariable) +
         NodeText("a", "Identity", {"x", "^change"}, kInt) + c.call + NodeText("y", "Neg", {"c"}, kInt) + Library({pass, below, nested}));
    ASSERT_TRUE(Target("init_v").ok());
    ASSERT_TRUE(RunInt({{"x", Int(0)}}, "y").ok());
    EXPECT_EQ(RunInt({}, "read_v").value_or(-1), c.changed);
  }
}

// L5. Every level is a call of its own.
TEST_F(Functions, Recursion) {
  FunctionText f{"factorial", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  const std::string branch = TypeAttr("Tcond", "DT_BOOL") + TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("then_branch", "base") + FuncAttr("else_branch", "step");
  f.nodes = IntConst("one", 1, "node_def") + BodyNode("le", "LessEqual", {"n", "one:output:0"}) + BodyNode("if", "If", {"le:z:0", "n"}, branch);
  f.rets = {{"r", "if:output:0"}};
  const FunctionText base{"base", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}, IntConst("one", 1, "node_def"), {{"r", "one:output:0"}}};
  for (const bool partitioned : {false, true}) {
    const std::string call = partitioned ? BodyNode("rec", "PartitionedCall", {"d:z:0"}, TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("f", "factorial"))
                                         : BodyNode("rec", "factorial", {"d:z:0"}, "");
    const FunctionText step{"step", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}},
                            IntConst("one", 1, "node_def") + BodyNode("d", "Sub", {"n", "one:output:0"}) + call + BodyNode("m", "Mul", {"n", partitioned ? "rec:output:0" : "rec:r:0"}),
                            {{"r", "m:z:0"}}};
    for (const int threads : {1, 4}) {
      SessionOptions options;
      options.threads = threads;
      Load(IntPlaceholder("n") + NodeText("y", "factorial", {"n"}) + Library({f, base, step}), options);
      EXPECT_EQ(RunInt({{"n", Int(1)}}, "y").value_or(-1), 1);
      EXPECT_EQ(RunInt({{"n", Int(10)}}, "y").value_or(-1), 3628800);
      EXPECT_EQ(RunInt({{"n", Int(200)}}, "y").value_or(-1), 0) << "the product overflows to 0";
    }
  }
}

TEST_F(Functions, E34EndlessRecursionIsAnError) {
  const FunctionText f{"f", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("again", "f", {"n"}, ""), {{"r", "again:r:0"}}};
  const FunctionText twice{"twice", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("one", "twice", {"n"}, "") + BodyNode("two", "twice", {"n"}, "") + BodyNode("sum", "AddV2", {"one:r:0", "two:r:0"}),
                           {{"r", "sum:z:0"}}};
  Load(IntPlaceholder("n") + NodeText("y", "f", {"n"}) + NodeText("z", "twice", {"n"}) + IntConst("k", 3) + NodeText("sum", "AddV2", {"n", "k"}, kInt) +
       Library({f, twice}));
  for (const char* fetch : {"y", "z"}) {
    const absl::Status status = RunInt({{"n", Int(1)}}, fetch).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_LT(status.message().size(), 1000u);
  }
  EXPECT_EQ(RunInt({{"n", Int(4)}}, "sum").value_or(-1), 7) << "the session is still there";
}

// L7.
TEST_F(Functions, PredicatesOfAnyType) {
  const FunctionText one{"one", {}, {{"r", "DT_INT32"}}, IntConst("k", 1, "node_def"), {{"r", "k:output:0"}}};
  const FunctionText zero{"zero", {}, {{"r", "DT_INT32"}}, IntConst("k", 0, "node_def"), {{"r", "k:output:0"}}};
  const auto choose = [&](const std::string& type, const Tensor& predicate) {
    Load(NodeText("p", "Placeholder", {}, TypeAttr("dtype", type)) +
         NodeText("y", "StatelessIf", {"p"}, TypeAttr("Tcond", type) + TypesAttr("Tin", {}) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("then_branch", "one") + FuncAttr("else_branch", "zero")) +
         Library({one, zero}));
    return RunInt({{"p", predicate}}, "y").value_or(-1);
  };
  EXPECT_EQ(choose("DT_FLOAT", *Tensor::Of<float>({NAN}, Shape())), 1);
  EXPECT_EQ(choose("DT_FLOAT", *Tensor::Of<float>({-0.0f}, Shape())), 0);
  EXPECT_EQ(choose("DT_FLOAT", *Tensor::Of<float>({1e-40f}, Shape())), 1);
  EXPECT_EQ(choose("DT_INT32", Int(-5)), 1);
  EXPECT_EQ(choose("DT_INT32", Int(0)), 0);
  EXPECT_EQ(choose("DT_STRING", *Tensor::Of<std::string>({""}, Shape())), 0);
  EXPECT_EQ(choose("DT_STRING", *Tensor::Of<std::string>({"0"}, Shape())), 1);
  EXPECT_EQ(choose("DT_FLOAT", *Tensor::Of<float>({}, *Shape::Make({0}))), 0) << "no elements";
  EXPECT_EQ(choose("DT_FLOAT", *Tensor::Of<float>({0, 0}, *Shape::Make({2}))), 1) << "elements, whatever they are";
}

// An Assert about a loop invariant must not run in a loop that is over before it begins.
TEST_F(Functions, NothingOfTheBodyRunsInALoopOfNoIterations) {
  const FunctionText cond{"cond", {{"i", "DT_INT32"}, {"n", "DT_INT32"}}, {{"r", "DT_BOOL"}}, BodyNode("less", "Less", {"i", "n"}), {{"r", "less:z:0"}}};
  FunctionText body{"body", {{"i", "DT_INT32"}, {"n", "DT_INT32"}}, {{"i_out", "DT_INT32"}, {"n_out", "DT_INT32"}}};
  body.nodes = IntConst("one", 1, "node_def") + IntConst("two", 2, "node_def") + BodyNode("small", "Less", {"n", "two:output:0"}) + BodyNode("check", "Assert", {"small:z:0", "n"}, TypesAttr("T", {"DT_INT32"})) +
               BodyNode("bad", "Reshape", {"n", "n"}, kInt) + BodyNode("next", "AddV2", {"i", "one:output:0", "^check"});
  body.rets = {{"i_out", "next:z:0"}, {"n_out", "n"}};
  Load(IntPlaceholder("i") + IntPlaceholder("n") + NodeText("w", "While", {"i", "n"}, TypesAttr("T", {"DT_INT32", "DT_INT32"}) + FuncAttr("cond", "cond") + FuncAttr("body", "body")) + Library({cond, body}));
  EXPECT_EQ(RunInt({{"i", Int(9)}, {"n", Int(5)}}, "w").value_or(-1), 9);
  EXPECT_EQ(RunInt({{"i", Int(0)}, {"n", Int(1)}}, "w").value_or(-1), 1);
  const absl::Status failed = RunInt({{"i", Int(0)}, {"n", Int(5)}}, "w").status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("w/body/check"));
}

// A loop without variables, round which only the values of a resource go.
TEST_F(Functions, ALoopOverAResourceAlone) {
  FunctionText cond{"cond", {{"v", "DT_RESOURCE"}}, {{"r", "DT_BOOL"}}};
  cond.nodes = IntConst("five", 5, "node_def") + BodyNode("read", "ReadVariableOp", {"v"}, kIntVariable) + BodyNode("less", "Less", {"read:value:0", "five:output:0"});
  cond.rets = {{"r", "less:z:0"}};
  FunctionText body{"body", {{"v", "DT_RESOURCE"}}, {{"v_out", "DT_RESOURCE"}}, IntConst("two", 2, "node_def") + AddTo("add", "v", "two:output:0"), {{"v_out", "v"}}};
  Load(Variables() + NodeText("w_loop", "While", {"v"}, TypesAttr("T", {"DT_RESOURCE"}) + FuncAttr("cond", "cond") + FuncAttr("body", "body")) +
       NodeText("read", "ReadVariableOp", {"w_loop"}, kIntVariable) + Library({cond, body}));
  ASSERT_TRUE(Target("init_v").ok());
  EXPECT_EQ(RunInt({}, "read").value_or(-1), 6);
}

// L5, L6: the code is that of the call.
TEST_F(Functions, AResultWithoutValueIsAnErrorOfTheCall) {
  const FunctionText half{"half", {{"x", "DT_INT32"}, {"p", "DT_BOOL"}}, {{"f", "DT_INT32"}, {"t", "DT_INT32"}}, BodyNode("s", "Switch", {"x", "p"}), {{"f", "s:output_false:0"}, {"t", "s:output_true:0"}}};
  Load(IntPlaceholder("x") + NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL")) + NodeText("c", "half", {"x", "p"}) + Library({half}));
  EXPECT_EQ(RunInt({{"x", Int(1)}, {"p", Bool(true)}}, "c:1").status().code(), absl::StatusCode::kInternal);
}

// As observed: two calls of one function draw from one generator.
TEST_F(Functions, CopiesOfANodeShareItsState) {
  FunctionText queue{"q", {}, {{"r", "DT_INT32"}}};
  queue.stateful = true;
  queue.nodes = BodyNode("v", "VarHandleOp", {}, kIntVariable + AttrText("shape", "shape {}")) + IntConst("k", 5, "node_def") + BodyNode("set", "AssignVariableOp", {"v:resource:0", "k:output:0"}, kIntVariable) +
                BodyNode("read", "ReadVariableOp", {"v:resource:0", "^set"}, kIntVariable);
  queue.rets = {{"r", "read:value:0"}};
  FunctionText reader = queue;
  reader.name = "reader";
  reader.nodes = BodyNode("v", "VarHandleOp", {}, kIntVariable + AttrText("shape", "shape {}")) + BodyNode("read", "ReadVariableOp", {"v:resource:0"}, kIntVariable);
  Load(NodeText("a", "q", {}) + NodeText("b", "reader", {"^a"}) + Library({queue, reader}));
  EXPECT_EQ(RunInt({}, "b").value_or(-1), 5) << "a resource without a name has that of its node, in every function";
}

// Mutually recursive functions, and chains that double at every level, run in bounded memory.
TEST_F(Functions, AChainOfDoublingCallsCanBeCancelled) {
  std::vector<FunctionText> functions;
  functions.push_back({"f0", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, IntConst("one", 1, "node_def") + BodyNode("s", "AddV2", {"a", "one:output:0"}), {{"r", "s:z:0"}}});
  for (int k = 1; k <= 30; ++k) {
    const std::string callee = absl::StrCat("f", k - 1);
    functions.push_back({absl::StrCat("f", k), {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("p", callee, {"a"}, "") + BodyNode("q", callee, {"p:r:0"}, ""), {{"r", "q:r:0"}}});
  }
  Load(IntPlaceholder("x") + NodeText("small", "f4", {"x"}) + NodeText("y", "f30", {"x"}) + Library(functions));
  EXPECT_EQ(RunInt({{"x", Int(0)}}, "small").value_or(-1), 16);
  RunOptions options;
  options.timeout = std::chrono::milliseconds(200);
  EXPECT_EQ(session_->Run({{"x", Int(0)}}, {"y"}, {}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace thalweg::testing
