// Every op declared here equals TensorFlow's declaration of it (tests/golden/ops.json): arguments, attributes with
// defaults, minima and allowed values, and flags. A declaration may not be close, only equal: graphs are checked
// against it.
#include <fstream>
#include <limits>
#include <map>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "thalweg/graph/op_schema.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/tests_dir.h"

namespace thalweg {
namespace {

using Json = nlohmann::json;

const std::map<std::string, Json>& TensorFlowOps() {
  static const auto& ops = *[] {
    auto* by_name = new std::map<std::string, Json>;
    std::ifstream file(testing::TestsDir() + "/golden/ops.json");
    const Json document = Json::parse(file);
    for (const Json& op : document.at("ops")) by_name->emplace(op.at("name").get<std::string>(), op);
    return by_name;
  }();
  return ops;
}

// The wire name without its prefix, as in ops.json: "FLOAT".
std::string TypeName(DType type) { return DTypeProtoName(type).substr(3); }

Json ArgJson(const ArgDecl& arg) {
  Json json = {{"name", arg.name}};
  if (!arg.number_attr.empty()) json["number_attr"] = arg.number_attr;
  if (!arg.type_list_attr.empty()) json["type_list_attr"] = arg.type_list_attr;
  else if (!arg.type_attr.empty()) json["type_attr"] = arg.type_attr;
  else json["type"] = TypeName(arg.type);
  if (arg.is_ref) json["ref"] = true;
  return json;
}

Json ArgsJson(const std::vector<ArgDecl>& args) {
  Json json = Json::array();
  for (const ArgDecl& arg : args) json.push_back(ArgJson(arg));
  return json;
}

Json ShapeJson(const PartialShape& shape) {
  if (!shape.has_rank()) return nullptr;
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

// Like ops.json: JSON has no infinities.
Json FloatJson(float value) {
  if (value == std::numeric_limits<float>::infinity()) return "inf";
  if (value == -std::numeric_limits<float>::infinity()) return "-inf";
  return value;
}

Json ElementJson(const std::string& v) { return v; }
Json ElementJson(int64_t v) { return v; }
Json ElementJson(float v) { return FloatJson(v); }
Json ElementJson(bool v) { return v; }
Json ElementJson(DType v) { return TypeName(v); }
Json ElementJson(const PartialShape& v) { return ShapeJson(v); }
Json ElementJson(const TensorLiteralPtr&) { return "tensor"; }
Json ElementJson(const FunctionRef& v) { return v.name; }

template <typename T>
const char* FieldName() {
  if constexpr (std::is_same_v<T, std::string>) return "s";
  else if constexpr (std::is_same_v<T, int64_t>) return "i";
  else if constexpr (std::is_same_v<T, float>) return "f";
  else if constexpr (std::is_same_v<T, bool>) return "b";
  else if constexpr (std::is_same_v<T, DType>) return "type";
  else if constexpr (std::is_same_v<T, PartialShape>) return "shape";
  else if constexpr (std::is_same_v<T, TensorLiteralPtr>) return "tensor";
  else return "func";
}

Json ListJson(const AttrList& list) {
  return std::visit(
      [](const auto& values) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::monostate>) {
          return Json::object();
        } else {
          Json elements = Json::array();
          for (const auto& value : values) elements.push_back(ElementJson(value));
          return Json{{FieldName<typename std::decay_t<decltype(values)>::value_type>(), elements}};
        }
      },
      list.values);
}

Json ValueJson(const Attr& value) {
  if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value)) return {{"list", ListJson(**list)}};
  if (const auto* shape = std::get_if<std::shared_ptr<const PartialShape>>(&value))
    return {{"shape", ShapeJson(**shape)}};
  if (const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(&value))
    return {{"func", (*function)->name}};
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                      std::is_same_v<T, bool> || std::is_same_v<T, DType>) {
          return {{FieldName<T>(), ElementJson(v)}};
        } else {
          return "no plain value";
        }
      },
      value);
}

Json AttrJson(const AttrDecl& attr) {
  Json json = {{"name", attr.name}, {"type", attr.KindName()}};
  if (attr.has_minimum) json["minimum"] = attr.minimum;
  if (attr.has_default) json["default"] = ValueJson(attr.default_value);
  std::vector<std::string> types;
  for (const DType type : attr.allowed_types) types.push_back(TypeName(type));
  if (!types.empty()) json["allowed"] = {{"list", {{"type", types}}}};
  if (!attr.allowed_strings.empty()) json["allowed"] = {{"list", {{"s", attr.allowed_strings}}}};
  return json;
}

// A form in which order that means nothing is gone and floats are compared as floats.
Json Canonical(Json attr) {
  if (attr.contains("allowed")) {
    for (Json& values : attr["allowed"]["list"]) {  // a set: TensorFlow lists some types twice
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
    }
  }
  if (attr.contains("default") && attr["default"].contains("f") && attr["default"]["f"].is_number()) {
    attr["default"]["f"] = attr["default"]["f"].get<float>();
  }
  if (attr.contains("default") && attr["default"].contains("func")) attr["default"]["func"] = "";
  return attr;
}

std::map<std::string, Json> AttrsByName(const Json& attrs) {
  std::map<std::string, Json> by_name;
  for (const Json& attr : attrs) by_name.emplace(attr.at("name").get<std::string>(), Canonical(attr));
  return by_name;
}

// Ops that the engine puts into graphs itself may differ from what TensorFlow calls by the same name.
bool IsInternal(const std::string& op) { return op[0] == '_'; }

TEST(Declarations, EqualTensorFlows) {
  ASSERT_GT(TensorFlowOps().size(), 1500u);
  int compared = 0;
  for (const OpSchema* schema : BuiltinOps().schemas.All()) {
    if (IsInternal(schema->name)) continue;
    const auto found = TensorFlowOps().find(schema->name);
    ASSERT_NE(found, TensorFlowOps().end()) << schema->name << " is no op of TensorFlow";
    const Json& op = found->second;
    EXPECT_EQ(ArgsJson(schema->inputs), op.value("in", Json::array())) << schema->name << ": inputs";
    EXPECT_EQ(ArgsJson(schema->outputs), op.value("out", Json::array())) << schema->name << ": outputs";
    Json attrs = Json::array();
    for (const AttrDecl& attr : schema->attrs) attrs.push_back(AttrJson(attr));
    EXPECT_EQ(AttrsByName(attrs), AttrsByName(op.value("attrs", Json::array()))) << schema->name << ": attributes";
    EXPECT_EQ(schema->stateful, op.value("stateful", false)) << schema->name << ": stateful";
    EXPECT_EQ(schema->allows_uninitialized_input, op.value("uninitialized_input", false))
        << schema->name << ": uninitialised inputs";
    EXPECT_EQ(schema->deprecated_at, op.value("deprecated", 0)) << schema->name << ": deprecation";
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Elementwise work, data movement, products and convolutions of the core ops run on the simulated accelerator in every dtype.
TEST(Kernels, OfComputingCoreOpsAreThereForTheSimulatedDevice) {
  for (const char* op :
       {"Abs",        "AddN",     "AddV2",    "BiasAdd",     "BroadcastTo",      "Cast",         "Ceil",      "ConcatV2",
        "Conv2D",     "Conv3D",   "Erf",      "DepthToSpace", "Conv2DBackpropInput", "Equal",     "FloorDiv",  "FloorMod",
        "GatherNd",   "GatherV2", "IdentityN", "IsNan",      "LogicalAnd",       "MatMul",       "Minimum",   "OneHot",
        "OnesLike",   "Pack",     "PadV2",    "Pow",         "ReverseV2",        "SelectV2",     "Selu",      "Sign",
        "Slice",      "Softplus", "Softsign", "SpaceToDepth", "Split",           "StridedSlice", "Tanh",      "Tile",
        "Transpose",  "Unpack",   "ZerosLike", "BatchMatMulV2", "DepthwiseConv2dNative"}) {
    int on_cpu = 0, on_sim = 0;
    for (const KernelDef* kernel : BuiltinOps().kernels.ForOp(op)) {
      on_cpu += kernel->backend == "cpu";
      on_sim += kernel->backend == "sim";
    }
    EXPECT_GT(on_sim, 0) << op;
    EXPECT_EQ(on_sim, on_cpu) << op;
  }
}

}  // namespace
}  // namespace thalweg
