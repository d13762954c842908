#include "thalweg/graph/passes/hoist_products.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/fake_kernels.h"
#include "thalweg/tests/support/graph_text.h"
#include "thalweg/tests/support/pass_steps.h"

namespace thalweg {
namespace {

using testing::FakeKernels;
using testing::GraphFromText;

constexpr int64_t kWidth = 128;  // so that a square matrix is as large as one must be

// What the cases share: ten rows x, and a loop over t with the state h.
constexpr char kLoop[] =
    "x = Placeholder() [dtype=float32, shape=[10,1,128]]\n"
    "zero = Const() [dtype=int32, value=tensor<int32[]:0>]\nten = Const() [dtype=int32, value=tensor<int32[]:10>]\n"
    "one = Const() [dtype=int32, value=tensor<int32[]:1>]\nh0 = Placeholder() [dtype=float32, shape=[1,128]]\n"
    "sizes = Const() [dtype=int32, value=tensor<int32[2]:1,128>]\n"
    "count = Const() [dtype=int32, value=tensor<int32[10]:0,1,2,3,4,5,6,7,8,9>]\n"
    "square = Const() [dtype=float32, value=tensor<float32[1]:1>]\ntall = Const() [dtype=float32, value=tensor<float32[1]:1>]\n"
    "enter_t = Enter(zero) [T=int32, frame_name=\"f\"]\nenter_h = Enter(h0) [T=float32, frame_name=\"f\"]\n"
    "enter_ten = Enter(ten) [T=int32, frame_name=\"f\", is_constant=true]\n"
    "enter_one = Enter(one) [T=int32, frame_name=\"f\", is_constant=true]\n"
    "enter_square = Enter(square) [T=float32, frame_name=\"f\", is_constant=true]\n"
    "enter_tall = Enter(tall) [T=float32, frame_name=\"f\", is_constant=true]\n"
    "enter_sizes = Enter(sizes) [T=int32, frame_name=\"f\", is_constant=true]\n"
    "enter_axis = Enter(one) [T=int32, frame_name=\"f\", is_constant=true]\n"
    "merge_t = Merge(enter_t, next_t) [T=int32, N=2]\nmerge_h = Merge(enter_h, next_h) [T=float32, N=2]\n"
    "less = Less(merge_t, enter_ten) [T=int32]\ncond = LoopCond(less)\n"
    "switch_t = Switch(merge_t, cond) [T=int32]\nswitch_h = Switch(merge_h, cond) [T=float32]\n"
    "add = AddV2(switch_t:1, enter_one) [T=int32]\nnext_t = NextIteration(add) [T=int32]\n"
    "next_h = NextIteration(z) [T=float32]\nexit = Exit(switch_h) [T=float32]\n";

constexpr char kList[] =
    "list = TensorListFromTensor(x, sizes) [element_dtype=float32, shape_type=int32]\n"
    "enter_list = Enter(list) [T=variant, frame_name=\"f\", is_constant=true]\n"
    "row = TensorListGetItem(enter_list, switch_t:1, enter_sizes) [element_dtype=float32]\n";

constexpr char kArray[] =
    "array = TensorArrayV3(ten) [dtype=float32]\n"
    "filled = TensorArrayScatterV3(array, count, x, array:1) [T=float32]\n"
    "enter_array = Enter(array) [T=resource, frame_name=\"f\", is_constant=true]\n"
    "enter_flow = Enter(filled) [T=float32, frame_name=\"f\", is_constant=true]\n"
    "row = TensorArrayReadV3(enter_array, switch_t:1, enter_flow) [dtype=float32]\n";

constexpr char kAlone[] = "z = MatMul(row, enter_square) [T=float32]\n";
constexpr char kWithState[] =
    "both = ConcatV2(row, switch_h:1, enter_axis) [T=float32, N=2, Tidx=int32]\nz = MatMul(both, enter_tall) [T=float32]\n";

class HoistProductsTest : public ::testing::Test {
 protected:
  // Runs the pass on a graph whose constants `square` and `tall` are matrices counting up. Returns whether it changed the graph.
  bool Run(const std::string& text) {
    Graph loaded = GraphFromText(BuiltinOps().schemas, text);
    SetMatrix(&loaded, "square", kWidth);
    SetMatrix(&loaded, "tall", 2 * kWidth);
    CompileRequest request;
    request.devices = devices_;
    request.kernels = &kernels_;
    request.fetches.push_back(*loaded.ParseEndpoint("exit"));
    std::vector<PassReport> reports;
    const Pass pass[] = {{"hoist_products", HoistProducts}, {"again", HoistProducts}};
    result_ = testing::StepAfter(loaded, request, pass, &reports);
    EXPECT_EQ(reports[0].nodes_after, reports[1].nodes_after) << "H23";
    EXPECT_TRUE(AnalyzeControlFlow(result_.graph).ok());
    return result_.graph.Find("z/_products") != kNoNode;
  }

  void SetMatrix(Graph* graph, absl::string_view name, int64_t rows) {
    auto values = std::make_shared<std::vector<float>>(rows * kWidth);
    for (size_t i = 0; i < values->size(); ++i) (*values)[i] = static_cast<float>(i);
    auto literal = std::make_shared<TensorLiteral>();
    literal->dtype = DType::kFloat32;
    literal->shape = Shape::Of({rows, kWidth});
    literal->content = absl::string_view(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(float));
    literal->owner = values;
    graph->mutable_node(graph->Find(name)).attrs.Set("value", TensorLiteralPtr(std::move(literal)));
  }

  // "Op(inputs)" of a node.
  std::string Text(absl::string_view name) const {
    const NodeId id = result_.graph.Find(name);
    if (id == kNoNode) return "none";
    return testing::OpWithInputs(result_.graph, result_.graph.node(id));
  }

  float FirstOf(absl::string_view matrix) const {
    const TensorLiteralPtr value = std::get<TensorLiteralPtr>(*result_.graph.node(result_.graph.Find(matrix)).attrs.Find("value"));
    float first;
    std::memcpy(&first, value->content.data(), sizeof(first));
    return first;
  }

  FakeKernels kernels_;
  std::vector<PlacementDevice> devices_ = {{*DeviceName::ParseLocalOrFull("CPU:0"), "cpu", true}};
  PrunedGraph result_;
};

TEST_F(HoistProductsTest, RowsOfAListOrAnArray) {
  for (const char* rows : {kList, kArray}) {
    ASSERT_TRUE(Run(absl::StrCat(kLoop, rows, kAlone))) << rows;
    EXPECT_EQ(Text("z"), "GatherV2(z/_enter:0,switch_t:1,z/_enter/1:0,^row)");
    EXPECT_EQ(Text("z/_all"), "MatMul(z/_rows:0,z/_element_matrix:0)");
    EXPECT_EQ(Text("z/_rows"), "Reshape(x:0,z/_rows_shape:0)");
    EXPECT_EQ(Text("z/_products"), "Reshape(z/_all:0,z/_products_shape:0)");
  }
}

TEST_F(HoistProductsTest, RowsThatAreConcatenatedWithTheState) {
  ASSERT_TRUE(Run(absl::StrCat(kLoop, kList, kWithState)));
  EXPECT_EQ(Text("z"), "AddV2(z/_of_others:0,z/_of_element:0)");
  EXPECT_EQ(Text("z/_of_others"), "MatMul(switch_h:1,z/_enter/2:0)");
  EXPECT_EQ(FirstOf("z/_element_matrix"), 0);
  EXPECT_EQ(FirstOf("z/_other_matrix"), static_cast<float>(kWidth * kWidth));
  // The other way around.
  ASSERT_TRUE(Run(absl::StrCat(kLoop, kList,
                               "both = ConcatV2(switch_h:1, row, enter_axis) [T=float32, N=2, Tidx=int32]\nz = MatMul(both, enter_tall) [T=float32]\n")));
  EXPECT_EQ(FirstOf("z/_element_matrix"), static_cast<float>(kWidth * kWidth));
  EXPECT_EQ(FirstOf("z/_other_matrix"), 0);
}

TEST_F(HoistProductsTest, ABiasMovesAlong) {
  const std::string biased = absl::StrCat(
      kLoop, kList, "bias = Const() [dtype=float32, value=tensor<float32[128]:3>]\n"
      "enter_bias = Enter(bias) [T=float32, frame_name=\"f\", is_constant=true]\n",
      "both = ConcatV2(row, switch_h:1, enter_axis) [T=float32, N=2, Tidx=int32]\nproduct = MatMul(both, enter_tall) [T=float32]\n"
      "z = BiasAdd(product, enter_bias) [T=float32]\n");
  Run(biased);
  EXPECT_EQ(Text("z"), "AddV2(product/_of_others:0,product/_of_element:0)");
  EXPECT_EQ(Text("product"), "none");
  EXPECT_EQ(Text("product/_biased"), "BiasAdd(product/_all:0,bias:0)");
  EXPECT_EQ(Text("product/_products"), "Reshape(product/_biased:0,product/_products_shape:0)");
  // Not if the product is read without it.
  std::string read_twice = biased;
  read_twice.replace(read_twice.find("Exit(switch_h)"), 14, "Exit(switch_h, ^product)");
  Run(read_twice);
  EXPECT_EQ(Text("z"), "BiasAdd(product:0,enter_bias:0)");
}

TEST_F(HoistProductsTest, WhatCouldNotBeConcatenatedStays) {
  std::string text = absl::StrCat(kLoop, kList, kWithState);
  text.replace(text.find("[10,1,128]"), 10, "[10,4,128]");
  text.replace(text.find("int32[2]:1,128"), 14, "int32[2]:4,128");
  EXPECT_FALSE(Run(text)) << "four rows beside one";
}

TEST_F(HoistProductsTest, EveryElementOfAConcatMoves) {
  ASSERT_TRUE(Run(absl::StrCat(kLoop, kList,
                               "again = Identity(row) [T=float32]\n"
                               "both = ConcatV2(row, again, enter_axis) [T=float32, N=2, Tidx=int32]\nz = MatMul(both, enter_tall) [T=float32]\n")));
  EXPECT_EQ(Text("z/_of_others").substr(0, 8), "GatherV2");
}

TEST_F(HoistProductsTest, ChecksBetweenReadingAndProductStay) {
  ASSERT_TRUE(Run(absl::StrCat(kLoop, kList, "sure = EnsureShape(row) [T=float32, shape=[1,128]]\nz = MatMul(sure, enter_square) [T=float32]\n")));
  EXPECT_EQ(Text("z"), "GatherV2(z/_enter:0,switch_t:1,z/_enter/1:0,^sure)");
}

TEST_F(HoistProductsTest, ArraysThatOthersWriteStay) {
  std::string text = absl::StrCat(kLoop, kArray, kAlone);
  absl::StrAppend(&text, "more = TensorArrayWriteV3(array, one, h0, filled) [T=float32]\n");
  // The flow that is read must be the one that leads behind the scatter.
  EXPECT_TRUE(Run(text)) << "what is not part of the step does not count";
  text = absl::StrCat(kLoop, kArray, kAlone);
  text.replace(text.find("Enter(filled)"), 13, "Enter(more)");
  absl::StrAppend(&text, "more = TensorArrayWriteV3(array, one, h0, filled) [T=float32]\n");
  EXPECT_FALSE(Run(text));
  text = absl::StrCat(kLoop, kArray, kAlone);
  text.replace(text.find("Exit(switch_h)"), 14, "Exit(switch_h, ^late)");
  absl::StrAppend(&text, "late = TensorArrayWriteV3(enter_array, switch_t:1, switch_h:1, enter_flow) [T=float32]\n");
  EXPECT_FALSE(Run(text)) << "written inside the loop";
}

TEST_F(HoistProductsTest, RowsInAnotherOrderStay) {
  std::string text = absl::StrCat(kLoop, kArray, kAlone);
  text.replace(text.find("0,1,2,3"), 7, "1,0,2,3");
  EXPECT_FALSE(Run(text));
}

TEST_F(HoistProductsTest, WhatDoesNotPayStays) {
  std::string text = absl::StrCat(kLoop, kList, kAlone);
  text.replace(text.find("[10,1,128]"), 10, "[10,64,128]");
  text.replace(text.find("int32[2]:1,128"), 14, "int32[2]:64,128");
  EXPECT_FALSE(Run(text)) << "many rows per element";
  text = absl::StrCat(kLoop, kList, kAlone);
  text.replace(text.find("[10,1,128]"), 10, "[1000000,1,128]");
  EXPECT_FALSE(Run(text)) << "too large a product";
  text = absl::StrCat(kLoop, kList, kAlone);
  text.replace(text.find("[10,1,128]"), 10, "[?,1,128]");
  EXPECT_FALSE(Run(text)) << "of unknown size";
}

TEST_F(HoistProductsTest, VariableMatricesStay) {
  std::string text = absl::StrCat(kLoop, kList, kAlone);
  text.replace(text.find("Enter(square)"), 13, "Enter(given)");
  absl::StrAppend(&text, "given = Placeholder() [dtype=float32, shape=[128,128]]\n");
  EXPECT_FALSE(Run(text));
}

TEST_F(HoistProductsTest, NoDeviceIsLost) {
  devices_.push_back({*DeviceName::ParseLocalOrFull("GPU:0"), "sim", false});
  kernels_.Without("sim", "GatherV2");
  EXPECT_FALSE(Run(absl::StrCat(kLoop, kList, kAlone)));
}

}  // namespace
}  // namespace thalweg
