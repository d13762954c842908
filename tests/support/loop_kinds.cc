#include "thalweg/tests/support/loop_kinds.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

const std::string kInt = TypeAttr("T", "DT_INT32");
const std::string kFloat = TypeAttr("T", "DT_FLOAT");

std::string Enter(const std::string& name, const std::string& from, const std::string& frame, absl::string_view type, bool constant) {
  return NodeText(name, "Enter", {from}, TypeAttr("T", type) + AttrText("frame_name", absl::StrCat("s: '", frame, "'")) +
                                             AttrText("is_constant", constant ? "b: true" : "b: false") + AttrText("parallel_iterations", "i: 4"));
}

std::string IntConstAfter(const std::string& name, int value, const std::string& control) {
  return NodeText(name, "Const", {"^" + control}, TypeAttr("dtype", "DT_INT32") +
                                                     AttrText("value", absl::StrCat("tensor { dtype: DT_INT32 tensor_shape {} int_val: ", value, " }")));
}

// What an iteration does with the value it carries: nodes that lead from the tensor `value` to the node `result`. `alive` is a node of
// the iteration that runs if its body does.
struct Body {
  std::string nodes;
  std::string result;
};
using MakeBody = std::function<Body(const std::string& name, const std::string& value, const std::string& alive)>;

// for (i = 0; i < limit; ++i) v = body(v), where iteration fail_at divides by zero. Its value is NAME/out; NAME/stay is there in every
// iteration with a body, NAME/f is fail_at.
std::string Loop(const std::string& name, const std::string& start, const std::string& zero, const std::string& limit, const std::string& fail_at,
                 const MakeBody& make_body) {
  const std::string n = name + "/";
  const Body body = make_body(name, n + "v:1", n + "stay");
  return Enter(n + "i_in", zero, name, "DT_INT32", false) + Enter(n + "v_in", start, name, "DT_FLOAT", false) + Enter(n + "n", limit, name, "DT_INT32", true) +
         Enter(n + "f", fail_at, name, "DT_INT32", true) + NodeText(n + "i_m", "Merge", {n + "i_in", n + "i_n"}, kInt + AttrText("N", "i: 2")) +
         NodeText(n + "v_m", "Merge", {n + "v_in", n + "v_n"}, kFloat + AttrText("N", "i: 2")) + NodeText(n + "less", "Less", {n + "i_m", n + "n"}, kInt) +
         NodeText(n + "c", "LoopCond", {n + "less"}) + NodeText(n + "i", "Switch", {n + "i_m", n + "c"}, kInt) +
         NodeText(n + "v", "Switch", {n + "v_m", n + "c"}, kFloat) + NodeText(n + "stay", "Identity", {n + "i:1"}, kInt) + IntConstAfter(n + "one", 1, n + "stay") +
         NodeText(n + "next", "AddV2", {n + "i:1", n + "one"}, kInt) + NodeText(n + "gap", "Sub", {n + "f", n + "i:1"}, kInt) +
         NodeText(n + "div", "FloorDiv", {n + "next", n + "gap"}, kInt) + body.nodes +
         NodeText(n + "after", "Identity", {body.result, "^" + n + "div"}, kFloat) + NodeText(n + "i_n", "NextIteration", {n + "next"}, kInt) +
         NodeText(n + "v_n", "NextIteration", {n + "after"}, kFloat) + NodeText(n + "out", "Exit", {n + "v"}, kFloat);
}

Body Negated(const std::string& name, const std::string& value, const std::string&) { return {NodeText(name + "/neg", "Neg", {value}, kFloat), name + "/neg"}; }

// No kernel touches the carried value.
Body Carried(const std::string&, const std::string& value, const std::string&) { return {"", value}; }

Body Multiplied(const std::string& name, const std::string& value, const std::string&) {
  return {NodeText(name + "/product", "MatMul", {value, value}, kFloat), name + "/product"};
}

Body Nested(const std::string& name, const std::string& value, const std::string& alive) {
  const std::string inner = name + "_inner";
  return {IntConstAfter(name + "/zero", 0, alive) + IntConstAfter(name + "/few", 20, alive) +
              Loop(inner, value, name + "/zero", name + "/few", name + "/f", Negated),
          inner + "/out"};
}

Body ThroughAList(const std::string& name, const std::string& value, const std::string& alive) {
  const std::string n = name + "/list_", element = TypeAttr("element_dtype", "DT_FLOAT");
  return {IntConstAfter(n + "zero", 0, alive) + IntConstAfter(n + "four", 4, alive) + IntConstAfter(n + "any", -1, alive) +
              NodeText(n + "new", "TensorListReserve", {n + "any", n + "four"}, element + TypeAttr("shape_type", "DT_INT32")) +
              NodeText(n + "set", "TensorListSetItem", {n + "new", n + "zero", value}, element) +
              NodeText(n + "get", "TensorListGetItem", {n + "set", n + "zero", n + "any"}, element) + NodeText(n + "neg", "Neg", {n + "get"}, kFloat),
          n + "neg"};
}

Body ThroughAStack(const std::string& name, const std::string& value, const std::string& alive) {
  const std::string n = name + "/stack_";
  return {IntConstAfter(n + "most", 10, alive) + NodeText(n + "new", "StackV2", {n + "most"}, TypeAttr("elem_type", "DT_FLOAT") + AttrText("stack_name", "s: ''")) +
              NodeText(n + "push", "StackPushV2", {n + "new", value}, kFloat) +
              NodeText(n + "pop", "StackPopV2", {n + "new", "^" + n + "push"}, TypeAttr("elem_type", "DT_FLOAT")),
          n + "pop"};
}

const std::string kComponents = TypesAttr("component_types", {"DT_FLOAT"});

std::string Queue() {
  return NodeText("q", "FIFOQueueV2", {}, kComponents + AttrText("shared_name", "s: 'q'")) + NodeText("put", "QueueEnqueueV2", {"q", "x"}, TypesAttr("Tcomponents", {"DT_FLOAT"}));
}

Body Awaited(const std::string& name, const std::string& value, const std::string&) {
  const std::string n = name + "/";
  return {Enter(n + "q", "q", name, "DT_RESOURCE", true) + NodeText(n + "neg", "Neg", {value}, kFloat) +
              NodeText(n + "take", "QueueDequeueV2", {n + "q", "^" + n + "neg"}, kComponents) + NodeText(n + "sum", "AddV2", {n + "neg", n + "take"}, kFloat),
          n + "sum"};
}

std::string Inputs() {
  return NodeText("x", "Placeholder", {}, TypeAttr("dtype", "DT_FLOAT")) + IntPlaceholder("limit") + IntPlaceholder("fail_at") + IntConst("zero", 0);
}

std::string Out(const std::string& from) { return NodeText("out", "Identity", {from}, kFloat); }

std::string OneLoop(const MakeBody& body) { return Inputs() + Loop("loop", "x", "zero", "limit", "fail_at", body) + Out("loop/out"); }

// Nothing to compute at all: not even whether to go on.
std::string BareLoop() {
  return Inputs() + NodeText("true", "Const", {}, TypeAttr("dtype", "DT_BOOL") + AttrText("value", "tensor { dtype: DT_BOOL tensor_shape {} bool_val: true }")) +
         Enter("true_in", "true", "loop", "DT_BOOL", true) + Enter("v_in", "x", "loop", "DT_FLOAT", false) +
         NodeText("v_m", "Merge", {"v_in", "v_n"}, kFloat + AttrText("N", "i: 2")) + NodeText("c", "LoopCond", {"true_in"}) +
         NodeText("v", "Switch", {"v_m", "c"}, kFloat) + NodeText("v_n", "NextIteration", {"v:1"}, kFloat) + NodeText("exit", "Exit", {"v"}, kFloat) + Out("exit");
}

// Two loops of one step, of which the second waits.
std::string SideBySide() {
  return Inputs() + Queue() + Loop("busy", "x", "zero", "limit", "fail_at", Negated) + Loop("waits", "x", "zero", "limit", "fail_at", Awaited) +
         NodeText("sum", "AddV2", {"busy/out", "waits/out"}, kFloat) + Out("sum");
}

// A fan of dequeues from one queue that stays empty.
std::string ManyWaits() {
  constexpr int kWaits = 3000;
  std::string text = Inputs() + Queue() + NodeText("all", "NoOp", {});
  std::vector<std::string> taken;
  for (int k = 0; k < kWaits; ++k) {
    const std::string name = absl::StrCat("take", k);
    text += NodeText(name, "QueueDequeueV2", {"q"}, kComponents);
    taken.push_back(name);
  }
  return text + NodeText("sum", "AddN", taken, kFloat + AttrText("N", absl::StrCat("i: ", kWaits))) + Out("sum");
}

const std::vector<std::pair<std::string, std::string>> kLoopArgs = {{"i", "DT_INT32"}, {"limit", "DT_INT32"}, {"fail_at", "DT_INT32"}, {"v", "DT_FLOAT"}};
const std::vector<std::pair<std::string, std::string>> kLoopResults = {{"i_r", "DT_INT32"}, {"limit_r", "DT_INT32"}, {"fail_at_r", "DT_INT32"}, {"v_r", "DT_FLOAT"}};
const std::vector<std::string> kLoopTypes = {"DT_INT32", "DT_INT32", "DT_INT32", "DT_FLOAT"};

std::vector<FunctionText> WhileFunctions() {
  FunctionText below{"Below", kLoopArgs, {{"r", "DT_BOOL"}}};
  below.nodes = NodeText("less", "Less", {"i", "limit"}, kInt, "node_def");
  below.rets = {{"r", "less:z:0"}};
  FunctionText body{"Body", kLoopArgs, kLoopResults};
  body.nodes = IntConst("one", 1, "node_def") + NodeText("next", "AddV2", {"i", "one:output:0"}, kInt, "node_def") +
               NodeText("gap", "Sub", {"fail_at", "i"}, kInt, "node_def") + NodeText("div", "FloorDiv", {"next:z:0", "gap:z:0"}, kInt, "node_def") +
               NodeText("neg", "Neg", {"v", "^div"}, kFloat, "node_def");
  body.rets = {{"i_r", "next:z:0"}, {"limit_r", "limit"}, {"fail_at_r", "fail_at"}, {"v_r", "neg:y:0"}};
  return {below, body};
}

std::string WhileNode(const std::string& name, const std::vector<std::string>& inputs, absl::string_view keyword = "node") {
  return NodeText(name, "While", inputs, TypesAttr("T", kLoopTypes) + FuncAttr("cond", "Below") + FuncAttr("body", "Body"), keyword);
}

std::string FunctionalLoop() { return Inputs() + WhileNode("loop", {"zero", "limit", "fail_at", "x"}) + Out("loop:3") + Library(WhileFunctions()); }

// The loop is within a function that calls itself, and so is called when the step comes to it.
std::string LoopInACall() {
  const std::string types = TypesAttr("Tin", kLoopTypes) + TypesAttr("Tout", {"DT_FLOAT"});
  std::vector<FunctionText> functions = WhileFunctions();
  FunctionText down{"Down", kLoopArgs, {{"r", "DT_FLOAT"}}};  // i: how many calls within each other
  down.stateful = true;
  down.nodes = IntConst("none", 0, "node_def") + NodeText("more", "Greater", {"i", "none:output:0"}, kInt, "node_def") +
               NodeText("choice", "If", {"more:z:0", "i", "limit", "fail_at", "v"}, TypeAttr("Tcond", "DT_BOOL") + types + FuncAttr("then_branch", "Deeper") + FuncAttr("else_branch", "Spin"), "node_def");
  down.rets = {{"r", "choice:output:0"}};
  FunctionText deeper{"Deeper", kLoopArgs, {{"r", "DT_FLOAT"}}};
  deeper.stateful = true;
  deeper.nodes = IntConst("one", 1, "node_def") + NodeText("less", "Sub", {"i", "one:output:0"}, kInt, "node_def") +
                 NodeText("call", "StatefulPartitionedCall", {"less:z:0", "limit", "fail_at", "v"}, types + FuncAttr("f", "Down"), "node_def");
  deeper.rets = {{"r", "call:output:0"}};
  FunctionText spin{"Spin", kLoopArgs, {{"r", "DT_FLOAT"}}};
  spin.stateful = true;
  spin.nodes = WhileNode("loop", {"i", "limit", "fail_at", "v"}, "node_def");
  spin.rets = {{"r", "loop:output:3"}};
  for (const FunctionText& f : {down, deeper, spin}) functions.push_back(f);
  return Inputs() + IntConst("three", 3) + NodeText("down", "StatefulPartitionedCall", {"three", "limit", "fail_at", "x"}, types + FuncAttr("f", "Down")) + Out("down") +
         Library(functions);
}

}  // namespace

std::vector<LoopKind> LoopKinds() {
  return {{"one kernel", OneLoop(Negated)},
          {"carried on", OneLoop(Carried)},
          {"no kernel", BareLoop(), /*waits=*/false, /*ends=*/false},
          {"long kernel", OneLoop(Multiplied)},
          {"nested", OneLoop(Nested)},
          {"list", OneLoop(ThroughAList)},
          {"stack", OneLoop(ThroughAStack)},
          {"queue", Inputs() + Queue() + Loop("loop", "x", "zero", "limit", "fail_at", Awaited) + Out("loop/out"), /*waits=*/true},
          {"side by side", SideBySide(), /*waits=*/true},
          {"many waits", ManyWaits(), /*waits=*/true, /*ends=*/false},
          {"functional", FunctionalLoop()},
          {"in a call", LoopInACall()}};
}

std::vector<LoopWay> LoopWays() {
  return {{"replay", 1},
          {"frames", 1, true},
          {"frames on threads", 2, true},
          {"scattered", 2, true, "CPU:0,CPU:1,CPU:2", "scatter~3"},
          {"replay scattered", 1, false, "CPU:0,CPU:1,CPU:2", "scatter~5"},
          {"accelerator", 2, false, "CPU:0,GPU:0=sim", "scatter~7"},
          {"accelerator, one thread", 1, false, "CPU:0,GPU:0=sim", "scatter~2"}};
}

}  // namespace thalweg::testing
