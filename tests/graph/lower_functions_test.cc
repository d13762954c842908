// Lowering of functional form, by the nodes that come out of it. What they compute is tested in tests/runtime.
#include "thalweg/graph/lowering/lower_functions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/graph/check.h"
#include "thalweg/graph/loader.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

using ::testing::HasSubstr;

const std::string kInt = TypeAttr("T", "DT_INT32");

std::string BodyNode(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs, absl::string_view attrs = kInt) {
  return NodeText(name, op, inputs, attrs, "node_def");
}
std::string CallAttrs(const std::string& function, const std::vector<std::string>& in = {"DT_INT32"}, const std::vector<std::string>& out = {"DT_INT32"}) {
  return TypesAttr("Tin", in) + TypesAttr("Tout", out) + FuncAttr("f", function);
}
std::string IfAttrs(const std::string& then_branch, const std::string& else_branch, const std::vector<std::string>& in = {"DT_INT32"},
                    const std::string& type = "DT_BOOL") {
  return TypeAttr("Tcond", type) + TypesAttr("Tin", in) + TypesAttr("Tout", {"DT_INT32"}) + FuncAttr("then_branch", then_branch) +
         FuncAttr("else_branch", else_branch);
}
std::string WhileAttrs(const std::string& cond, const std::string& body, const std::vector<std::string>& types) {
  return TypesAttr("T", types) + FuncAttr("cond", cond) + FuncAttr("body", body);
}
const std::string kMarked = AttrText("_lower_using_switch_merge", "b: true");

// r = a + 1.
FunctionText Increment(const std::string& name = "inc") {
  return {name, {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, IntConst("one", 1, "node_def") + BodyNode("sum", "AddV2", {"a", "one:output:0"}), {{"r", "sum:z:0"}}};
}
// r = 7, whatever a is.
FunctionText Seven() { return {"seven", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, IntConst("k", 7, "node_def"), {{"r", "k:output:0"}}}; }
// r = a; an Assert that no result needs.
FunctionText Asserting(bool is_control_result) {
  FunctionText f{"asserting", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.nodes = BodyNode("zero", "Const", {}, TypeAttr("dtype", "DT_INT32") + AttrText("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 }")) +
            BodyNode("positive", "Greater", {"a", "zero:output:0"}) + BodyNode("check", "Assert", {"positive:z:0", "a"}, TypesAttr("T", {"DT_INT32"}));
  f.rets = {{"r", "a"}};
  if (is_control_result) f.control_results = {"check"};
  return f;
}
FunctionText Less3() {
  return {"less3", {{"i", "DT_INT32"}, {"x", "DT_INT32"}}, {{"r", "DT_BOOL"}}, IntConst("three", 3, "node_def") + BodyNode("less", "Less", {"i", "three:output:0"}),
          {{"r", "less:z:0"}}};
}
// i + 1; x stays.
FunctionText Step() {
  return {"step", {{"i", "DT_INT32"}, {"x", "DT_INT32"}}, {{"i_out", "DT_INT32"}, {"x_out", "DT_INT32"}}, BodyNode("sum", "AddV2", {"i", "x"}),
          {{"i_out", "sum:z:0"}, {"x_out", "x"}}};
}

class LowerFunctions : public ::testing::Test {
 protected:
  // Lowers what a step needs that fetches and runs these.
  Graph Lower(const std::string& text, const std::vector<std::string>& fetches, const std::vector<std::string>& targets = {},
              const LoweringLimits& limits = {}) {
    LoadOptions load;
    load.schemas = &BuiltinOps().schemas;
    absl::StatusOr<LoadResult> loaded = LoadGraphBytes(text, nullptr, "test.pbtxt", load);
    EXPECT_TRUE(loaded.ok() && loaded->status().ok()) << (loaded.ok() ? loaded->status() : loaded.status());
    std::vector<Endpoint> fetched;
    std::vector<NodeId> run;
    for (const std::string& name : fetches) fetched.push_back(*loaded->graph.ParseEndpoint(name));
    for (const std::string& name : targets) run.push_back(loaded->graph.Find(name));
    absl::StatusOr<PrunedGraph> step = PruneGraph(loaded->graph, {{}, fetched, run});
    EXPECT_TRUE(step.ok()) << step.status();
    LoweringOptions options;
    options.limits = limits;
    options.devices = {*DeviceName::ParseLocalOrFull("/job:localhost/replica:0/task:0/device:CPU:0")};
    const absl::Status lowered = thalweg::LowerFunctions(*step, options);
    EXPECT_TRUE(lowered.ok()) << lowered;
    const absl::Status checked = CheckGraph(step->graph);
    EXPECT_TRUE(checked.ok()) << checked << "\n" << step->graph.ToString();
    return std::move(step->graph);
  }

  static int Count(const Graph& graph, absl::string_view op) {
    int count = 0;
    for (const Node& node : graph.nodes()) count += !node.removed && node.op == op;
    return count;
  }
  static std::vector<std::string> Inputs(const Graph& graph, absl::string_view name) {
    std::vector<std::string> inputs;
    const NodeId id = graph.Find(name);
    EXPECT_NE(id, kNoNode) << name << " in\n" << graph.ToString();
    if (id == kNoNode) return inputs;
    for (const Endpoint input : graph.node(id).inputs) inputs.push_back(graph.EndpointName(input));
    return inputs;
  }
  using Names = std::vector<std::string>;
};

TEST_F(LowerFunctions, ACallBecomesItsBody) {
  const std::string library = Library({Increment()});
  for (const std::string& call : {NodeText("c", "inc", {"x"}), NodeText("c", "PartitionedCall", {"x"}, CallAttrs("inc")),
                                  NodeText("c", "StatefulPartitionedCall", {"x"}, CallAttrs("inc"))}) {
    const Graph graph = Lower(IntPlaceholder("x") + call + NodeText("y", "Neg", {"c"}, kInt) + library, {"y"});
    EXPECT_EQ(Inputs(graph, "c/sum"), (Names{"x:0", "c/one:0"}));
    EXPECT_EQ(Inputs(graph, "y"), (Names{"c/sum:0"}));
    EXPECT_EQ(Inputs(graph, "c/one"), (Names{})) << "nothing that it could wait for";
    EXPECT_EQ(graph.node(graph.Find("c/sum")).origin, 1) << "the call in the loaded graph";
  }
}

TEST_F(LowerFunctions, E27NothingStartsBeforeControlInputs) {
  const std::string text = IntPlaceholder("x") + NodeText("before", "NoOp", {}) + NodeText("c", "inc", {"x", "^before"}) + Library({Increment()});
  const Graph graph = Lower(text, {"c"});
  EXPECT_EQ(Inputs(graph, "c/one"), (Names{"^before"}));
  EXPECT_EQ(Inputs(graph, "c/_arg"), (Names{"x:0", "^before"}));
}

// Observed with TensorFlow 2.21: E28, E30, H31.
TEST_F(LowerFunctions, SideEffectsThatNoResultNeeds) {
  struct Case {
    std::string call;
    bool is_control_result;
    bool runs;
  };
  const std::string p = NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL"));
  const std::string conditional = NodeText("c", "If", {"p", "x"}, IfAttrs("asserting", "asserting"));
  const std::string marked = NodeText("c", "If", {"p", "x"}, IfAttrs("asserting", "asserting") + kMarked);
  for (const Case& c : std::vector<Case>{{NodeText("c", "asserting", {"x"}), false, true},
                                         {NodeText("c", "PartitionedCall", {"x"}, CallAttrs("asserting")), false, false},
                                         {NodeText("c", "PartitionedCall", {"x"}, CallAttrs("asserting")), true, true},
                                         {conditional, false, true},
                                         {marked, true, false}}) {
    const std::string text = IntPlaceholder("x") + p + c.call + NodeText("y", "Neg", {"c"}, kInt) + NodeText("after", "NoOp", {"^c"}) +
                             Library({Asserting(c.is_control_result)});
    EXPECT_EQ(Count(Lower(text, {"y"}), "Assert") > 0, c.runs) << c.call;
    if (c.is_control_result) {
      EXPECT_GT(Count(Lower(text, {}, {"after"}), "Assert"), 0) << c.call;
    }
  }
}

TEST_F(LowerFunctions, ResultsWaitForSideEffectsAndSideEffectsForAllInputs) {
  FunctionText f = Asserting(true);
  f.args.push_back({"b", "DT_INT32"});
  const std::string text = IntPlaceholder("x") + IntPlaceholder("z") + NodeText("c", "asserting", {"x", "z"}) + Library({f});
  const Graph graph = Lower(text, {"c"});
  EXPECT_EQ(Inputs(graph, "c/_start"), (Names{"^x", "^z"}));
  EXPECT_EQ(Inputs(graph, "c/_arg"), (Names{"x:0", "^c/_start"}));
  EXPECT_EQ(Inputs(graph, "c/zero"), (Names{"^c/_start"}));
  EXPECT_EQ(Inputs(graph, "c/_result"), (Names{"c/_arg:0", "^c/check"}));
}

TEST_F(LowerFunctions, IfBecomesSwitchAndMerge) {
  const std::string text = IntPlaceholder("x") + NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL")) +
                           NodeText("c", "StatelessIf", {"p", "x"}, IfAttrs("inc", "seven")) + Library({Increment(), Seven()});
  const Graph graph = Lower(text, {"c"});
  EXPECT_EQ(Inputs(graph, "c/_switch_0"), (Names{"x:0", "p:0"}));
  EXPECT_EQ(Inputs(graph, "c/then/sum"), (Names{"c/_switch_0:1", "c/then/one:0"}));
  EXPECT_EQ(Inputs(graph, "c/then/one"), (Names{"^c/_pivot_then"})) << "E10";
  EXPECT_EQ(Inputs(graph, "c/else/k"), (Names{"^c/_pivot_else"})) << "E10";
  EXPECT_EQ(Inputs(graph, "c/_merge_0"), (Names{"c/else/k:0", "c/then/sum:0"})) << "E11";
}

TEST_F(LowerFunctions, E15PredicatesOfOtherTypesAreConverted) {
  const std::string text = IntPlaceholder("x") + NodeText("c", "StatelessIf", {"x", "x"}, IfAttrs("inc", "seven", {"DT_INT32"}, "DT_INT32")) +
                           Library({Increment(), Seven()});
  const Graph graph = Lower(text, {"c"});
  EXPECT_EQ(Inputs(graph, "c/_predicate"), (Names{"x:0"}));
  EXPECT_EQ(Inputs(graph, "c/_switch_0"), (Names{"x:0", "c/_predicate:0"}));
}

TEST_F(LowerFunctions, E14CaseSwitchesByIndex) {
  const std::string branches = TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) +
                               AttrText("branches", "list { func { name: 'inc' } func { name: 'seven' } func { name: 'inc' } }");
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("c", "StatelessCase", {"x", "x"}, branches) + Library({Increment(), Seven()}), {"c"});
  EXPECT_EQ(graph.node(graph.Find("c/_switch_0")).num_outputs(), 3);
  EXPECT_EQ(Inputs(graph, "c/_merge_0"), (Names{"c/branch_0/sum:0", "c/branch_1/k:0", "c/branch_2/sum:0"}));
}

TEST_F(LowerFunctions, WhileBecomesAFrame) {
  const std::string text = IntPlaceholder("i") + IntPlaceholder("x") + NodeText("w", "StatelessWhile", {"i", "x"}, WhileAttrs("less3", "step", {"DT_INT32", "DT_INT32"})) +
                           Library({Less3(), Step()});
  const Graph graph = Lower(text, {"w", "w:1"});
  EXPECT_EQ(Inputs(graph, "w/_merge_0"), (Names{"w/_enter_0:0", "w/_next_0:0"})) << "E16";
  EXPECT_EQ(Inputs(graph, "w/cond/three"), (Names{"^w/_merge_0"})) << "E20";
  EXPECT_EQ(Inputs(graph, "w/cond/less"), (Names{"w/_merge_0:0", "w/cond/three:0"}));
  EXPECT_EQ(Inputs(graph, "w/_switch_0"), (Names{"w/_merge_0:0", "w/_loop_cond:0"}));
  EXPECT_EQ(Inputs(graph, "w/body/sum"), (Names{"w/_switch_0:1", "w/_enter_1:0"})) << "x never changes: a loop invariant";
  EXPECT_EQ(Inputs(graph, "w/_next_0"), (Names{"w/body/sum:0"}));
  EXPECT_EQ(Inputs(graph, "_retval_w_0_0"), (Names{"w/_exit_0:0"})) << "E22";
  EXPECT_EQ(Inputs(graph, "_retval_w_1_1"), (Names{"x:0"}));
  EXPECT_EQ(graph.node(graph.Find("w/_enter_1")).node_attrs().GetOr<bool>("is_constant", false), true);
  EXPECT_EQ(graph.node(graph.Find("w/_enter_0")).node_attrs().GetOr<std::string>("frame_name", ""), "w");
}

// A44f: what reads only invariants would run once more after the last iteration, and in a loop of no iterations.
TEST_F(LowerFunctions, WhatReadsOnlyInvariantsRunsInTheBodyOnly) {
  FunctionText step = Step();
  step.nodes = BodyNode("square", "Mul", {"x", "x"}) + BodyNode("sum", "AddV2", {"i", "square:z:0"});
  const std::string text = IntPlaceholder("i") + IntPlaceholder("x") + NodeText("w", "StatelessWhile", {"i", "x"}, WhileAttrs("less3", "step", {"DT_INT32", "DT_INT32"})) +
                           Library({Less3(), step});
  const Graph graph = Lower(text, {"w"});
  EXPECT_EQ(Inputs(graph, "w/body/square"), (Names{"w/_enter_1:0", "w/_enter_1:0", "^w/_pivot"}));
}

TEST_F(LowerFunctions, E21SideEffectsOfAnIterationPrecedeTheNext) {
  FunctionText step = Step();
  step.nodes = Asserting(false).nodes + step.nodes;
  size_t at = 0;
  while ((at = step.nodes.find("'a'", at)) != std::string::npos) step.nodes.replace(at, 3, "'i'");
  const std::string text = IntPlaceholder("i") + IntPlaceholder("x") + NodeText("w", "While", {"i", "x"}, WhileAttrs("less3", "step", {"DT_INT32", "DT_INT32"})) +
                           Library({Less3(), step});
  const Graph graph = Lower(text, {"w", "w:1"});
  EXPECT_EQ(Inputs(graph, "w/_next_0"), (Names{"w/body/sum:0", "^w/body/check"}));
  EXPECT_EQ(Inputs(graph, "w/_enter_0"), (Names{"i:0", "^w/_start"}));
  EXPECT_EQ(Inputs(graph, "_retval_w_1_1"), (Names{"w/_result:0"})) << "also an invariant leaves after the loop only";
}

TEST_F(LowerFunctions, E26FramesColocationAndNamesGetThePrefix) {
  FunctionText f{"f", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.nodes = BodyNode("enter", "Enter", {"a"}, kInt + AttrText("frame_name", "s: 'loop'")) + BodyNode("out", "Exit", {"enter:output:0"}) +
            BodyNode("near", "Neg", {"out:output:0"}, kInt + AttrText("_class", "list { s: 'loc:@out' s: 'loc:@gone' }"));
  f.rets = {{"r", "near:y:0"}};
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("c", "f", {"x"}) + NodeText("d", "f", {"x"}) + Library({f}), {"c", "d"});
  EXPECT_EQ(graph.node(graph.Find("c/enter")).node_attrs().GetOr<std::string>("frame_name", ""), "c/loop") << "I4";
  EXPECT_EQ(graph.node(graph.Find("d/enter")).node_attrs().GetOr<std::string>("frame_name", ""), "d/loop");
  EXPECT_EQ(graph.node(graph.Find("c/near")).node_attrs().GetOr<std::vector<std::string>>("_class", {}), (Names{"loc:@c/out"}));
}

TEST_F(LowerFunctions, E31BodiesAreCompletedFromTheCaller) {
  FunctionText f = Increment("f");
  f.nodes = NodeText("one", "Const", {}, TypeAttr("dtype", "DT_INT32") + AttrText("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 }") + " device: '/device:CPU:1'", "node_def") +
            BodyNode("sum", "AddV2", {"a", "one:output:0"});
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("c", "f", {"x"}, " device: '/job:localhost/device:CPU:0'") + Library({f}), {"c"});
  EXPECT_EQ(graph.node(graph.Find("c/one")).requested_device, "/job:localhost/device:CPU:1");
  EXPECT_EQ(graph.node(graph.Find("c/sum")).requested_device, "/job:localhost/device:CPU:0");
}

TEST_F(LowerFunctions, E34RecursionStaysACall) {
  FunctionText f{"f", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.nodes = IntConst("one", 1, "node_def") + BodyNode("le", "LessEqual", {"n", "one:output:0"}) + BodyNode("if", "If", {"le:z:0", "n"}, IfAttrs("inc", "again"));
  f.rets = {{"r", "if:output:0"}};
  FunctionText again{"again", {{"n", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("rec", "f", {"n"}, ""), {{"r", "rec:r:0"}}};
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("c", "f", {"x"}) + Library({f, again, Increment()}), {"c"});
  EXPECT_EQ(Count(graph, "_Call"), 1);
  EXPECT_EQ(Inputs(graph, "c/if/else/rec"), (Names{"c/if/_switch_0:0"}));
  EXPECT_EQ(graph.node(graph.Find("c/if/else/rec")).node_attrs().GetOr<FunctionRef>("f", {}).name, "f");
}

// A chain of functions each of which calls the next one twice.
TEST_F(LowerFunctions, InliningIsBounded) {
  std::vector<FunctionText> functions = {Increment("f0")};
  for (int k = 1; k <= 30; ++k) {
    const std::string callee = absl::StrCat("f", k - 1);
    functions.push_back({absl::StrCat("f", k), {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}},
                         BodyNode("first", callee, {"a"}, "") + BodyNode("second", callee, {"first:r:0"}, ""), {{"r", "second:r:0"}}});
  }
  LoweringLimits limits;
  limits.max_added_nodes = 1000;
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("c", "f30", {"x"}) + Library(functions), {"c"}, {}, limits);
  EXPECT_LT(graph.num_nodes(), 1200);
  EXPECT_GT(Count(graph, "_Call"), 100);
}

TEST_F(LowerFunctions, ABodyWhoseResultsMayBeMissingStaysACall) {
  FunctionText f{"half", {{"x", "DT_INT32"}, {"p", "DT_BOOL"}}, {{"f", "DT_INT32"}, {"t", "DT_INT32"}}, BodyNode("s", "Switch", {"x", "p"}),
                 {{"f", "s:output_false:0"}, {"t", "s:output_true:0"}}};
  const std::string text = IntPlaceholder("x") + NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL"));
  EXPECT_EQ(Count(Lower(text + NodeText("c", "half", {"x", "p"}) + Library({f}), {"c"}), "_Call"), 1);
  f.results.pop_back();
  f.nodes += BodyNode("m", "Merge", {"s:output_false:0", "s:output_true:0"}, kInt + AttrText("N", "i: 2"));
  f.rets = {{"f", "m:output:0"}};
  EXPECT_EQ(Count(Lower(text + NodeText("c", "half", {"x", "p"}) + Library({f}), {"c"}), "_Call"), 0);
}

// L4, L6: what is wrong with a call fails whoever makes it, with TensorFlow's codes.
TEST_F(LowerFunctions, FaultsOfCallsBecomeNodes) {
  struct Case {
    std::string call;
    absl::StatusCode code;
  };
  const std::string p = NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL"));
  const std::string two = NodeText("c", "PartitionedCall", {"x", "x"}, CallAttrs("inc", {"DT_INT32", "DT_INT32"}));
  for (const Case& c : std::vector<Case>{
           {NodeText("c", "PartitionedCall", {"x"}, CallAttrs("gone")), absl::StatusCode::kInvalidArgument},
           {two, absl::StatusCode::kInvalidArgument},
           {NodeText("c", "PartitionedCall", {"p"}, CallAttrs("inc", {"DT_BOOL"})), absl::StatusCode::kInvalidArgument},
           {NodeText("c", "PartitionedCall", {"x"}, CallAttrs("inc", {"DT_INT32"}, {"DT_FLOAT"})), absl::StatusCode::kInternal},
           {NodeText("c", "If", {"p", "x"}, IfAttrs("inc", "gone")), absl::StatusCode::kNotFound},
           {NodeText("c", "While", {"x"}, WhileAttrs("inc", "step", {"DT_INT32"})), absl::StatusCode::kInvalidArgument},
           {NodeText("c", "While", {"x", "x"}, WhileAttrs("less3", "step", {"DT_INT32", "DT_INT32"}) + kMarked + AttrText("parallel_iterations", "i: 0")),
            absl::StatusCode::kInvalidArgument}}) {
    const Graph graph = Lower(IntPlaceholder("x") + p + c.call + Library({Increment(), Less3(), Step()}), {"c"});
    const NodeId fail = graph.Find("c");
    ASSERT_NE(fail, kNoNode) << graph.ToString();
    EXPECT_EQ(graph.node(fail).op, "_Fail");
    EXPECT_EQ(graph.node(fail).node_attrs().GetOr<int64_t>("code", 0), static_cast<int64_t>(c.code)) << c.call;
    EXPECT_THAT(graph.node(fail).node_attrs().GetOr<std::string>("message", ""), HasSubstr("'c'"));
  }
}

// Only the branch that does not fit fails.
TEST_F(LowerFunctions, AMisfitFailsItsBranch) {
  const std::string text = IntPlaceholder("x") + NodeText("p", "Placeholder", {}, TypeAttr("dtype", "DT_BOOL")) +
                           NodeText("c", "StatelessIf", {"p", "x"}, IfAttrs("inc", "less3")) + Library({Increment(), Less3()});
  const Graph graph = Lower(text, {"c"});
  EXPECT_EQ(Inputs(graph, "c/else"), (Names{"^c/_pivot_else"}));
  EXPECT_EQ(graph.node(graph.Find("c/else")).op, "_Fail");
}

TEST_F(LowerFunctions, AGradientOfTheLibraryIsCalled) {
  FunctionText gradient = Step();
  gradient.name = "dstep";
  std::string library = Library({Increment(), gradient});
  library.insert(library.rfind('}'), " gradient { function_name: 'inc' gradient_func: 'dstep' }\n");
  const std::string attrs = TypesAttr("Tin", {"DT_INT32", "DT_INT32"}) + TypesAttr("Tout", {"DT_INT32", "DT_INT32"}) + FuncAttr("f", "inc");
  const Graph graph = Lower(IntPlaceholder("x") + NodeText("g", "SymbolicGradient", {"x", "x"}, attrs) + library, {"g"});
  EXPECT_EQ(Inputs(graph, "_retval_g_0_0"), (Names{"g/sum:0"}));
}

}  // namespace
}  // namespace thalweg::testing
