// Bodies of functions as graphs: names of tensors, attributes of calls, faults.
#include "thalweg/graph/lowering/function_body.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/graph/loader.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/function_texts.h"

namespace thalweg::testing {
namespace {

using ::testing::HasSubstr;

LoadResult Load(const std::string& text) {
  LoadOptions options;
  options.schemas = &BuiltinOps().schemas;
  absl::StatusOr<LoadResult> loaded = LoadGraphBytes(text, nullptr, "test.pbtxt", options);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadResult();
}

std::string BodyNode(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs, absl::string_view attrs = "") {
  return NodeText(name, op, inputs, attrs, "node_def");
}

absl::StatusOr<std::shared_ptr<const FunctionBody>> Instantiate(const FunctionText& function, const AttrMap& attrs = {}) {
  // Kept for the bodies' sake: they share strings with nothing, but the library is read through the graph.
  static auto& graphs = *new std::vector<std::unique_ptr<Graph>>();
  graphs.push_back(std::make_unique<Graph>(Load(IntPlaceholder("unused") + Library({function})).graph));
  return InstantiateFunction(*graphs.back(), {function.name, std::make_shared<const AttrMap>(attrs)});
}

// Wire format, "How tensors are named inside a FunctionDef".
TEST(FunctionBody, NamesTensorsByOutputAndIndex) {
  FunctionText f{"f", {{"x", "DT_FLOAT"}}, {{"top", "DT_FLOAT"}, {"indices", "DT_INT32"}, {"same", "DT_FLOAT"}}};
  f.nodes = IntConst("axis", 0, "node_def") + IntConst("k", 2, "node_def") +
            BodyNode("split", "Split", {"axis:output:0", "x"}, TypeAttr("T", "DT_FLOAT") + AttrText("num_split", "i: 3")) +
            BodyNode("best", "TopKV2", {"split:output:2", "k:output", "^axis", "^x"}, TypeAttr("T", "DT_FLOAT"));
  f.rets = {{"indices", "best:indices:0"}, {"top", "best:values"}, {"same", "x:0"}};
  const auto body = Instantiate(f);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ((*body)->graph.ToString(),
            "x = _Arg() [T=float32, _function_node=\"f/x\", index=0]\n"
            "axis = Const() [_function_node=\"f/axis\", dtype=int32, value=int32[]]\n"
            "k = Const() [_function_node=\"f/k\", dtype=int32, value=int32[]]\n"
            "split = Split(axis:0, x:0) [T=float32, _function_node=\"f/split\", num_split=3]\n"
            "best = TopKV2(split:2, k:0, ^x, ^axis) [T=float32, _function_node=\"f/best\"]\n"
            "_retval_top_0 = _Retval(best:0) [T=float32, _function_node=\"f/_retval_top_0\", index=0]\n"
            "_retval_indices_1 = _Retval(best:1) [T=int32, _function_node=\"f/_retval_indices_1\", index=1]\n"
            "_retval_same_2 = _Retval(x:0) [T=float32, _function_node=\"f/_retval_same_2\", index=2]\n");
}

FunctionText SumOfList() {
  FunctionText f{"f", {}, {{"z", "T"}}};
  f.extra = " input_arg { name: 'xs' type_attr: 'T' number_attr: 'N' }";
  f.attrs = " attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' }";
  f.nodes = BodyNode("s", "AddN", {"xs"}, AttrText("T", "placeholder: 'T'") + AttrText("N", "placeholder: 'N'"));
  f.rets = {{"z", "s:sum:0"}};
  return f;
}

TEST(FunctionBody, L10ListsHaveTheLengthThatTheCallSays) {
  for (const int64_t length : {1, 3}) {
    AttrMap attrs;
    attrs.Set("T", DType::kInt32);
    attrs.Set("N", length);
    const auto body = Instantiate(SumOfList(), attrs);
    ASSERT_TRUE(body.ok()) << body.status();
    EXPECT_EQ((*body)->args.size(), static_cast<size_t>(length));
    EXPECT_EQ((*body)->graph.node((*body)->graph.Find("s")).num_data_inputs, length);
    EXPECT_EQ((*body)->result_type(0), DType::kInt32);
  }
}

TEST(FunctionBody, EveryFaultNamesFunctionAndNode) {
  const FunctionText good{"f", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("n", "Neg", {"a"}, TypeAttr("T", "DT_INT32")), {{"r", "n:y:0"}}};
  ASSERT_TRUE(Instantiate(good).ok()) << Instantiate(good).status();
  struct Case {
    std::string nodes;
    std::vector<std::pair<std::string, std::string>> rets;
    std::string mentions;
  };
  const std::string neg = good.nodes;
  const std::string t = TypeAttr("T", "DT_INT32");
  for (const Case& c : std::vector<Case>{
           {BodyNode("n", "Neg", {"b"}, t), good.rets, "'b'"},
           {BodyNode("n", "NoSuchOperation", {"a"}, t), good.rets, "NoSuchOperation"},
           {BodyNode("n", "_Arg", {}, t + AttrText("index", "i: 0")), good.rets, "only the engine"},
           {BodyNode("n", "Neg", {"a:1"}, t), good.rets, "a:1"},
           {BodyNode("n", "Neg", {"a:output:0"}, t), good.rets, "a:output:0"},
           {BodyNode("n", "Neg", {"m"}, t) + BodyNode("m", "Neg", {"n:y:0"}, t), good.rets, "'m'"},
           {BodyNode("n", "Neg", {"m:y:0"}, t) + BodyNode("m", "Neg", {"n:y:0"}, t), good.rets, "cycle"},
           {BodyNode("n", "Neg", {"a"}, TypeAttr("T", "DT_FLOAT")), good.rets, "float32"},
           {BodyNode("n", "Neg", {"a"}), good.rets, "'T'"},
           {BodyNode("n", "Neg", {"a"}, AttrText("T", "placeholder: 'U'")), good.rets, "'U'"},
           {BodyNode("n", "Neg", {"^a", "a"}, t), good.rets, "control input"},
           {BodyNode("n", "Neg", {"a", "^q"}, t), good.rets, "'q'"},
           {BodyNode("a", "Neg", {"a"}, t), {{"r", "a"}}, "twice"},
           {neg, {}, "'r'"},
           {neg, {{"r", "zz:y:0"}}, "zz:y:0"},
           {neg, {{"r", "n:out:0"}}, "'out'"},
           {neg, {{"r", "n:y:0"}, {"nope", "n:y:0"}}, "nope"},
       }) {
    FunctionText f = good;
    f.nodes = c.nodes;
    f.rets = c.rets;
    const absl::Status status = Instantiate(f).status();
    EXPECT_FALSE(status.ok()) << f.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.mentions));
    EXPECT_THAT(std::string(status.message()), HasSubstr("function 'f'"));
  }
}

TEST(FunctionBody, TheLoaderRefusesReachableBodiesOnly) {
  const FunctionText bad{"bad", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("n", "NoSuchOperation", {"a"}), {{"r", "n:y:0"}}};
  const std::string t = TypeAttr("T", "DT_INT32");
  FunctionText outer{"outer", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}, BodyNode("c", "bad", {"a"}), {{"r", "c:r:0"}}};
  const std::string library = Library({bad, outer});
  EXPECT_FALSE(Load(IntPlaceholder("x") + library).has_errors()) << "nobody calls it";
  const LoadResult direct = Load(IntPlaceholder("x") + NodeText("y", "outer", {"x"}) + library);
  ASSERT_TRUE(direct.has_errors());
  EXPECT_EQ(direct.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(direct.status().message()), HasSubstr("NoSuchOperation"));
  const std::string call = TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"});
  EXPECT_TRUE(Load(IntPlaceholder("x") + NodeText("y", "PartitionedCall", {"x"}, call + FuncAttr("f", "bad")) + library).has_errors());
  EXPECT_FALSE(Load(IntPlaceholder("x") + NodeText("y", "PartitionedCall", {"x"}, call + FuncAttr("f", "gone")) + library).has_errors())
      << "L4: a missing function fails the steps that call it";
}

TEST(FunctionBody, AttributesThatGrowWithEveryCallAreCutOff) {
  FunctionText f{"f", {{"a", "DT_INT32"}}, {{"r", "DT_INT32"}}};
  f.attrs = " attr { name: 'g' type: 'func' }";
  const std::string nested = "attr { key: 'g' value { placeholder: 'g' } } attr { key: 'h' value { placeholder: 'g' } }";
  f.nodes = BodyNode("c", "PartitionedCall", {"a"},
                     TypesAttr("Tin", {"DT_INT32"}) + TypesAttr("Tout", {"DT_INT32"}) +
                         FuncAttr("f", "f", "attr { key: 'g' value { func { name: 'k' " + nested + " } } }"));
  f.rets = {{"r", "c:output:0"}};
  const LoadResult loaded = Load(IntPlaceholder("x") + NodeText("y", "f", {"x"}, FuncAttr("g", "k")) + Library({f}));
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kResourceExhausted) << loaded.status();
}

TEST(FunctionBody, StateIsNamedAfterTheNode) {
  FunctionText f{"f", {}, {{"h", "DT_RESOURCE"}}};
  f.nodes = BodyNode("v", "VarHandleOp", {}, TypeAttr("dtype", "DT_INT32") + AttrText("shape", "shape {}"));
  f.rets = {{"h", "v:resource:0"}};
  const auto body = Instantiate(f);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ((*body)->graph.node((*body)->graph.Find("v")).node_attrs().GetOr<std::string>("shared_name", ""), "v");
}

}  // namespace
}  // namespace thalweg::testing
