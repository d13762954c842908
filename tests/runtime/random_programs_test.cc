// Random structured programs (nested calls, conditionals and loops with side effects), against the same program interpreted
// step by step. Every graph runs several ways, all of which must agree.
#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/effort.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

using Values = std::vector<int32_t>;

int32_t Wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// A function as text for the graph and as code for the interpreter. Its first argument is the variable `log`.
struct Function {
  std::string name;
  int num_results = 0;
  std::function<Values(const Values& args, int32_t* log)> run;
};

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) { main_ = MakeFunction(3, 2, 2); }

  std::string GraphText() const {
    const std::string variable = TypeAttr("dtype", "DT_INT32");
    std::string text = IntPlaceholder("x") + IntPlaceholder("y") + IntConst("zero", 0) + NodeText("log", "VarHandleOp", {}, variable + AttrText("shape", "shape {}")) +
                       NodeText("init", "AssignVariableOp", {"log", "zero"}, variable) + NodeText("main", main_.name, {"log", "x", "y"}) +
                       NodeText("read", "ReadVariableOp", {"log", "^main"}, variable);
    return text + Library(functions_);
  }

  // The results, then the log.
  Values Interpret(int32_t x, int32_t y) const {
    int32_t log = 0;
    Values out = main_.run({x, y}, &log);
    out.push_back(log);
    return out;
  }

 private:
  using Step = std::function<void(Values* values, int32_t* log)>;

  // The function being written.
  struct Body {
    FunctionText text;
    std::vector<std::string> tensors;  // by value
    std::vector<Step> steps;
    std::string last;                  // the last node with side effects; "" for none
    int num_nodes = 0;

    std::string NewName() { return absl::StrCat("n", num_nodes++); }
    // Inputs that keep side effects in order.
    std::vector<std::string> InOrder(std::vector<std::string> inputs) const {
      if (!last.empty()) inputs.push_back("^" + last);
      return inputs;
    }
    void AddNode(const std::string& name, const std::string& op, const std::vector<std::string>& inputs, const std::string& attrs) {
      text.nodes += NodeText(name, op, inputs, attrs, "node_def");
    }
  };

  int Random(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  int RandomValue(const Body& body) { return Random(static_cast<int>(body.tensors.size())); }
  std::vector<int> RandomValues(const Body& body, int count) {
    std::vector<int> values;
    for (int k = 0; k < count; ++k) values.push_back(RandomValue(body));
    return values;
  }
  static Values Pick(const Values& values, const std::vector<int>& which) {
    Values picked;
    for (const int k : which) picked.push_back(values[k]);
    return picked;
  }
  static std::vector<std::string> Types(int ints) {
    std::vector<std::string> types = {"DT_RESOURCE"};
    types.resize(ints + 1, "DT_INT32");
    return types;
  }
  static std::vector<std::string> Tensors(const Body& body, const std::vector<int>& which, std::vector<std::string> first) {
    for (const int k : which) first.push_back(body.tensors[k]);
    return first;
  }

  Function MakeFunction(int depth, int num_args, int num_results) {
    Body body;
    body.text.name = absl::StrCat("f", functions_.size());
    functions_.emplace_back();  // takes the number
    const size_t index = functions_.size() - 1;
    body.text.stateful = true;
    body.text.args.push_back({"log", "DT_RESOURCE"});
    for (int k = 0; k < num_args; ++k) {
      body.text.args.push_back({absl::StrCat("a", k), "DT_INT32"});
      body.tensors.push_back(absl::StrCat("a", k));
    }
    const int num_steps = 1 + Random(4);
    for (int k = 0; k < num_steps; ++k) AddStep(depth, &body);
    std::vector<int> returned;
    for (int k = 0; k < num_results; ++k) {
      returned.push_back(Random(2) == 0 ? static_cast<int>(body.tensors.size()) - 1 : RandomValue(body));
      body.text.results.push_back({absl::StrCat("r", k), "DT_INT32"});
      body.text.rets.push_back({absl::StrCat("r", k), body.tensors[returned.back()]});
    }
    if (!body.last.empty()) body.text.control_results = {body.last};
    functions_[index] = body.text;
    auto steps = std::make_shared<std::vector<Step>>(std::move(body.steps));
    return {body.text.name, num_results, [steps, returned](const Values& args, int32_t* log) {
              Values values = args;
              for (const Step& step : *steps) step(&values, log);
              return Pick(values, returned);
            }};
  }

  void AddStep(int depth, Body* body) {
    switch (Random(depth > 0 ? 8 : 4)) {
      case 0:
        return AddConstant(body);
      case 1:
        return AddLog(body);
      case 2:
      case 3:
        return AddArithmetic(body);
      case 4:
        return AddIf(depth, body);
      case 5:
        return AddWhile(depth, body);
      case 6:
        return AddCase(depth, body);
      default:
        return AddCall(depth, body);
    }
  }

  void AddConstant(Body* body) {
    const int32_t value = Random(7) - 3;
    const std::string name = body->NewName();
    body->text.nodes += IntConst(name, value, "node_def");
    body->tensors.push_back(name + ":output:0");
    body->steps.push_back([value](Values* values, int32_t*) { values->push_back(value); });
  }

  void AddArithmetic(Body* body) {
    static constexpr const char* kOps[] = {"AddV2", "Sub", "Mul", "Maximum"};
    const int op = Random(4);
    const std::vector<int> in = RandomValues(*body, 2);
    const std::string name = body->NewName();
    body->AddNode(name, kOps[op], Tensors(*body, in, {}), TypeAttr("T", "DT_INT32"));
    body->tensors.push_back(name + ":z:0");
    body->steps.push_back([op, in](Values* values, int32_t*) {
      const int64_t a = (*values)[in[0]], b = (*values)[in[1]];
      values->push_back(op == 0 ? Wrap(a + b) : op == 1 ? Wrap(a - b) : op == 2 ? Wrap(a * b) : static_cast<int32_t>(std::max(a, b)));
    });
  }

  // log = 31 log + value.
  void AddLog(Body* body) {
    const int in = RandomValue(*body);
    const std::string name = body->NewName();
    const std::string dtype = TypeAttr("dtype", "DT_INT32"), type = TypeAttr("T", "DT_INT32");
    body->text.nodes += IntConst(name + "k", 31, "node_def");
    body->AddNode(name + "r", "ReadVariableOp", body->InOrder({"log"}), dtype);
    body->AddNode(name + "m", "Mul", {name + "r:value:0", name + "k:output:0"}, type);
    body->AddNode(name + "s", "AddV2", {name + "m:z:0", body->tensors[in]}, type);
    body->AddNode(name, "AssignVariableOp", {"log", name + "s:z:0"}, dtype);
    body->last = name;
    body->steps.push_back([in](Values* values, int32_t* log) { *log = Wrap(int64_t{*log} * 31 + (*values)[in]); });
  }

  void AddResults(const std::string& name, int count, absl::string_view output, Body* body) {
    for (int k = 0; k < count; ++k) body->tensors.push_back(absl::StrCat(name, ":", output, ":", k));
    body->last = name;
  }

  void AddCall(int depth, Body* body) {
    const std::vector<int> in = RandomValues(*body, 1 + Random(3));
    const Function f = MakeFunction(depth - 1, static_cast<int>(in.size()), 1 + Random(2));
    const std::string name = body->NewName();
    if (Random(2) == 0) {
      body->AddNode(name, f.name, body->InOrder(Tensors(*body, in, {"log"})), "");
      for (int k = 0; k < f.num_results; ++k) body->tensors.push_back(absl::StrCat(name, ":r", k));
      body->last = name;
    } else {
      std::vector<std::string> out(f.num_results, "DT_INT32");
      body->AddNode(name, "StatefulPartitionedCall", body->InOrder(Tensors(*body, in, {"log"})),
                    TypesAttr("Tin", Types(static_cast<int>(in.size()))) + TypesAttr("Tout", out) + FuncAttr("f", f.name));
      AddResults(name, f.num_results, "output", body);
    }
    body->steps.push_back([f, in](Values* values, int32_t* log) { Append(f.run(Pick(*values, in), log), values); });
  }

  static void Append(const Values& more, Values* values) { values->insert(values->end(), more.begin(), more.end()); }

  void AddIf(int depth, Body* body) {
    const std::vector<int> compared = RandomValues(*body, 2), in = RandomValues(*body, 1 + Random(3));
    const int num_results = 1 + Random(2);
    const Function yes = MakeFunction(depth - 1, static_cast<int>(in.size()), num_results), no = MakeFunction(depth - 1, static_cast<int>(in.size()), num_results);
    const std::string name = body->NewName();
    body->AddNode(name + "p", "Less", Tensors(*body, compared, {}), TypeAttr("T", "DT_INT32"));
    body->AddNode(name, "If", body->InOrder(Tensors(*body, in, {name + "p:z:0", "log"})),
                  TypeAttr("Tcond", "DT_BOOL") + TypesAttr("Tin", Types(static_cast<int>(in.size()))) + TypesAttr("Tout", std::vector<std::string>(num_results, "DT_INT32")) +
                      FuncAttr("then_branch", yes.name) + FuncAttr("else_branch", no.name));
    AddResults(name, num_results, "output", body);
    body->steps.push_back([yes, no, compared, in](Values* values, int32_t* log) {
      const bool less = (*values)[compared[0]] < (*values)[compared[1]];
      Append((less ? yes : no).run(Pick(*values, in), log), values);
    });
  }

  void AddCase(int depth, Body* body) {
    const int index = RandomValue(*body);
    const std::vector<int> in = RandomValues(*body, 1 + Random(2));
    std::vector<Function> branches;
    std::string names;
    const int num_branches = 1 + Random(3);
    for (int k = 0; k < num_branches; ++k) {
      branches.push_back(MakeFunction(depth - 1, static_cast<int>(in.size()), 1));
      absl::StrAppend(&names, " func { name: '", branches.back().name, "' }");
    }
    const std::string name = body->NewName();
    body->AddNode(name, "Case", body->InOrder(Tensors(*body, in, {body->tensors[index], "log"})),
                  TypesAttr("Tin", Types(static_cast<int>(in.size()))) + TypesAttr("Tout", {"DT_INT32"}) + AttrText("branches", absl::StrCat("list {", names, " }")));
    AddResults(name, 1, "output", body);
    body->steps.push_back([branches, index, in](Values* values, int32_t* log) {
      const int32_t wanted = (*values)[index], last = static_cast<int32_t>(branches.size()) - 1;
      Append(branches[wanted < 0 || wanted > last ? last : wanted].run(Pick(*values, in), log), values);  // L7
    });
  }

  // for (i = 0; i < trips; ++i) values = inner(values)
  void AddWhile(int depth, Body* body) {
    const std::vector<int> in = RandomValues(*body, 1 + Random(3));
    const int count = static_cast<int>(in.size()), trips = Random(4);
    const Function inner = MakeFunction(depth - 1, count, count);
    const std::string name = body->NewName(), cond = absl::StrCat("c", functions_.size()), loop_body = absl::StrCat("b", functions_.size());
    FunctionText c{cond, {{"i", "DT_INT32"}, {"trips", "DT_INT32"}, {"log", "DT_RESOURCE"}}, {{"r", "DT_BOOL"}}};
    c.nodes = NodeText("less", "Less", {"i", "trips"}, TypeAttr("T", "DT_INT32"), "node_def");
    c.rets = {{"r", "less:z:0"}};
    FunctionText b{loop_body, c.args, {{"i_out", "DT_INT32"}, {"trips_out", "DT_INT32"}, {"log_out", "DT_RESOURCE"}}};
    b.stateful = true;
    b.rets = {{"i_out", "next:z:0"}, {"trips_out", "trips"}, {"log_out", "log"}};
    std::vector<std::string> inner_inputs = {"log"};
    for (int k = 0; k < count; ++k) {
      const std::string arg = absl::StrCat("a", k), out = absl::StrCat("o", k);
      c.args.push_back({arg, "DT_INT32"});
      b.args.push_back({arg, "DT_INT32"});
      b.results.push_back({out, "DT_INT32"});
      b.rets.push_back({out, absl::StrCat("inner:r", k)});
      inner_inputs.push_back(arg);
    }
    b.nodes = IntConst("one", 1, "node_def") + NodeText("next", "AddV2", {"i", "one:output:0"}, TypeAttr("T", "DT_INT32"), "node_def") +
              NodeText("inner", inner.name, inner_inputs, "", "node_def");
    b.control_results = {"inner"};
    functions_.push_back(c);
    functions_.push_back(b);

    body->text.nodes += IntConst(name + "i", 0, "node_def") + IntConst(name + "t", trips, "node_def");
    std::vector<std::string> types = {"DT_INT32", "DT_INT32", "DT_RESOURCE"};
    types.resize(3 + count, "DT_INT32");
    body->AddNode(name, "While", body->InOrder(Tensors(*body, in, {name + "i:output:0", name + "t:output:0", "log"})),
                  TypesAttr("T", types) + FuncAttr("cond", cond) + FuncAttr("body", loop_body));
    for (int k = 0; k < count; ++k) body->tensors.push_back(absl::StrCat(name, ":output:", 3 + k));
    body->last = name;
    body->steps.push_back([inner, in, trips](Values* values, int32_t* log) {
      Values carried = Pick(*values, in);
      for (int i = 0; i < trips; ++i) carried = inner.run(carried, log);
      Append(carried, values);
    });
  }

  std::mt19937 random_;
  std::vector<FunctionText> functions_;
  Function main_;
};

Tensor Scalar(int32_t value) { return *Tensor::Of<int32_t>({value}, Shape()); }

absl::StatusOr<Values> RunGraph(const std::string& text, const SessionOptions& options, int32_t x, int32_t y) {
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::FromMemory(text, options));
  THALWEG_RETURN_IF_ERROR(session->Run({}, {}, {"init"}).status());
  THALWEG_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, session->Run({{"x", Scalar(x)}, {"y", Scalar(y)}}, {"main:0", "main:1", "read"}));
  Values values;
  for (const Tensor& tensor : fetched) values.push_back(tensor.flat<int32_t>()[0]);
  return values;
}

class RandomPrograms : public ::testing::TestWithParam<SessionOptions> {};

TEST_P(RandomPrograms, EqualAnInterpreter) {
  const int programs = Effort("THALWEG_RANDOM_CALLS", 60, 6);
  for (int seed = 1; seed <= programs; ++seed) {
    const Program program(static_cast<uint32_t>(seed));
    const std::string text = program.GraphText();
    for (const auto& [x, y] : {std::pair<int32_t, int32_t>{1, 2}, {3, -1}}) {
      const absl::StatusOr<Values> values = RunGraph(text, GetParam(), x, y);
      ASSERT_TRUE(values.ok()) << "seed " << seed << ": " << values.status() << "\n" << text;
      ASSERT_EQ(*values, program.Interpret(x, y)) << "seed " << seed << " x " << x << " y " << y << "\n" << text;
    }
  }
}

SessionOptions Options(int threads, bool optimize, const std::string& policy = "default") {
  SessionOptions options;
  options.threads = threads;
  options.optimize = optimize;
  options.policy = policy;
  if (policy != "default") options.devices = "CPU:0,CPU:1,CPU:2";
  return options;
}

INSTANTIATE_TEST_SUITE_P(Runs, RandomPrograms,
                         ::testing::Values(Options(1, true), Options(1, false), Options(4, true), Options(1, true, "scatter~3"), Options(4, false, "scatter~11")));

}  // namespace
}  // namespace thalweg::testing
