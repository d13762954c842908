// Loading: text and binary, all faults at once, each in its own words; what must load although it looks odd.
#include "thalweg/graph/loader.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "thalweg/tests/graph/test_ops.h"
#include "thalweg/tests/support/tests_dir.h"
#include "thalweg/graph.pb.h"
#include "thalweg/graph/functions.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ToBinary(const std::string& text) {
  GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph)) << text;
  return graph.SerializeAsString();
}

absl::StatusOr<LoadResult> LoadBytes(const std::string& bytes, LoadLimits limits = {}) {
  LoadOptions options;
  options.schemas = &TestOps();
  options.limits = limits;
  return LoadGraphBytes(bytes, nullptr, "test.pb", options);
}

// The first error of a text that must be refused with InvalidArgument; its message contains every one of `words`.
void ExpectFault(const std::string& text, const std::string& kind_and_node, const std::vector<std::string>& words,
                 absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::StatusOr<LoadResult> loaded = LoadText(text);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(Kinds(*loaded), ElementsAre(kind_and_node)) << text;
  EXPECT_EQ(loaded->status().code(), code) << loaded->status();
  for (const std::string& word : words) EXPECT_THAT(std::string(loaded->status().message()), HasSubstr(word));
}

const std::string kX = PlaceholderText("x");

TEST(Loader, TextAndBinaryGiveTheSameGraph) {
  const std::string text =
      UnaryText("z", "Neg", "y") + UnaryText("y", "Neg", "x") + kX + "versions { producer: 1286 bad_consumers: 3 }";
  const Graph from_text = LoadGood(text);
  const absl::StatusOr<LoadResult> from_binary = LoadBytes(ToBinary(text));
  ASSERT_TRUE(from_binary.ok()) << from_binary.status();
  EXPECT_EQ(from_binary->graph.ToString(), from_text.ToString());
  EXPECT_EQ(from_binary->graph.versions.producer, 1286);
  EXPECT_THAT(from_binary->graph.versions.bad_consumers, ElementsAre(3));
  EXPECT_EQ(from_text.node(0).origin, 0);
  EXPECT_THAT(from_text.node(1).output_types, ElementsAre(DType::kFloat32));
}

TEST(Loader, SevenFaultsOfSevenKindsAreSevenFindings) {
  const std::string text = kX + UnaryText("a", "Negg", "x") + UnaryText("b", "Neg", "x", "DT_STRING") +
                           UnaryText("c", "Neg", "nowhere") + "node { name: 'd' op: 'Neg' input: 'x' }\n" +
                           UnaryText("e", "Neg", "x:7") + UnaryText("f", "Neg", "x", "DT_INT32") +
                           UnaryText("g", "Neg", "h") + UnaryText("h", "Neg", "g");
  const absl::StatusOr<LoadResult> loaded = LoadText(text);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(Kinds(*loaded), ElementsAre("unknown op(a)", "bad attribute(b)", "missing input(c)",
                                          "missing attribute(d)", "port(e)", "dtype(f)", "cycle(g)"));
  EXPECT_EQ(loaded->status().code(), absl::StatusCode::kNotFound) << "the code of the first fault in file order";
  for (const char* node : {"'a'", "'b'", "'c'", "'d'", "'e'", "'f'", "'g'"}) {
    EXPECT_THAT(std::string(loaded->status().message()), HasSubstr(node));
  }
}

TEST(Loader, G1BadNames) {
  for (const char* name : {"has space", "^caret", "col:on", "-dash", "/slash", "_under", "a?", "a>", ">a", "a>>b",
                           "\\303\\244", "a\\000b"}) {
    const absl::StatusOr<LoadResult> loaded = LoadText(std::string("node { name: '") + name + "' op: 'NoOp' }");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ(loaded->findings.size(), 1u) << name;
    EXPECT_EQ(loaded->findings[0].kind, "bad name") << name;
  }
  ExpectFault("node { op: 'NoOp' }", "bad name()", {"node number 1", "NoOp"});
  for (const char* name : {"a", "A.b-c_d/e", "0", ".", "a>b", "1/2>3"})
    LoadGood(std::string("node { name: '") + name + "' op: 'NoOp' }");
}

TEST(Loader, G2DuplicateName) { ExpectFault(kX + UnaryText("x", "Neg", "x"), "duplicate name(x)", {"Placeholder"}); }

TEST(Loader, G3UnknownOpsAreToldApart) {
  ExpectFault(kX + UnaryText("y", "Negg", "x"), "unknown op(y)", {"Negg", "did you mean 'Neg'"},
              absl::StatusCode::kNotFound);
  ExpectFault(kX + UnaryText("y", "Cholesky", "x"), "unknown op(y)", {"TensorFlow"}, absl::StatusCode::kUnimplemented);
  ExpectFault("node { name: 'n' }", "unknown op(n)", {"does not say"});
}

// Nodes of the ends of steps and of edges between devices mean something only inside the compiled graph that they belong to.
TEST(Loader, B31NodesThatOnlyAnEngineMakes) {
  const std::string type = " attr { key: 'T' value { type: DT_FLOAT } }";
  ExpectFault("node { name: 'a' op: '_Arg'" + type + " attr { key: 'index' value { i: 0 } } }", "engine op(a)", {"_Arg", "only an engine"});
  ExpectFault(kX + "node { name: 's' op: '_Send' input: 'x'" + type + " attr { key: 'pair' value { i: 0 } } }", "engine op(s)", {"_Send", "partitions"});
  for (const char* op : {"_Retval", "_Recv", "_Call", "_Fail", "_FusedElementwise", "_DeviceIndex"}) {
    ExpectFault(absl::StrCat("node { name: 'n' op: '", op, "' }"), "engine op(n)", {op});
  }
}

TEST(Loader, G4G5G6EdgeTexts) {
  ExpectFault(kX + "node { name: 'z' op: 'Neg' input: '^x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
              "input order(z)", {"'x'"});
  ExpectFault(kX + UnaryText("y", "Neg", "x") + "node { name: 'z' op: 'NoOp' input: '^y:0' }", "bad input(z)",
              {"^y:0", "no port"});
  ExpectFault(kX + UnaryText("z", "Neg", "xx"), "missing input(z)", {"'xx'", "did you mean 'x'"});
  ExpectFault("node { name: 'z' op: 'NoOp' input: '^ghost' }", "missing input(z)", {"control input", "ghost"});
  ExpectFault(kX + UnaryText("z", "Neg", ""), "bad input(z)", {"names no node"});
  ExpectFault(kX + UnaryText("z", "Neg", "x:0:0"), "missing input(z)", {"x:0"});
}

TEST(Loader, L13PortsBeyond32BitsAreRefused) {
  ExpectFault(kX + UnaryText("z", "Neg", "x:4294967296"), "bad input(z)", {"4294967296", "32 bits"});
  ExpectFault(kX + UnaryText("z", "Neg", "x:99999999999999999999"), "bad input(z)", {"32 bits"});
}

TEST(Loader, G7PortOutOfRange) {
  ExpectFault(kX + UnaryText("z", "Neg", "x:1"), "port(z)", {"output 1", "'x'", "only 1"});
  ExpectFault("node { name: 'go' op: 'NoOp' }" + UnaryText("z", "Neg", "go"), "port(z)", {"'go'", "no outputs"});
}

TEST(Loader, G8InputCount) {
  ExpectFault(kX + "node { name: 'z' op: 'Neg' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
              "input count(z)", {"takes 1 input", "has 2"});
  ExpectFault(kX + "node { name: 'z' op: 'AddN' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' "
                   "value { i: 3 } } }",
              "input count(z)", {"takes 3 inputs", "N*T", "has 1"});
}

TEST(Loader, G9UndeclaredAttributesAreDroppedWithARemark) {
  const absl::StatusOr<LoadResult> loaded = LoadText(kX +
                                                     "node { name: 'y' op: 'Neg' input: 'x' attr { key: 'T' value { "
                                                     "type: DT_FLOAT } } attr { key: 'newer' value { b: false } }"
                                                     " attr { key: '_hint' value { i: 3 } } }" +
                                                     "node { name: 'z' op: 'Neg' input: 'x' attr { key: 'T' value { "
                                                     "type: DT_FLOAT } } attr { key: 'mode' value { s: 'fast' } } }");
  ASSERT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  EXPECT_THAT(Kinds(*loaded, Finding::Severity::kNote), ElementsAre("unknown attribute(y)"));
  EXPECT_THAT(Kinds(*loaded, Finding::Severity::kWarning), ElementsAre("unknown attribute(z)"));
  EXPECT_EQ(loaded->graph.node(1).attrs.Find("newer"), nullptr);
  EXPECT_NE(loaded->graph.node(1).attrs.Find("_hint"), nullptr);
}

TEST(Loader, G10AttributesAgainstTheirDeclaration) {
  const std::string pad =
      "node { name: 'p' op: 'Pad' input: 'x' attr { key: 'padding' value { s: '%s' } } attr { key: 'strides' value { "
      "list { %s } } } %s }";
  const auto text = [&pad](const char* padding, const char* strides, const char* more) {
    char buffer[500];
    std::snprintf(buffer, sizeof(buffer), pad.c_str(), padding, strides, more);
    return kX + buffer;
  };
  LoadGood(text("SAME", "i: [1, 1, 1, 1]", ""));
  ExpectFault(text("same", "i: [1, 1, 1, 1]", ""), "bad attribute(p)", {"padding", "same", "SAME"});
  ExpectFault(text("SAME", "i: [1, 1, 1]", ""), "bad attribute(p)", {"strides", "3", "at least 4"});
  ExpectFault(text("SAME", "f: [1, 1, 1, 1]", ""), "bad attribute(p)", {"list(float)", "list(int)"});
  ExpectFault(text("SAME", "", ""), "bad attribute(p)", {"0 entries"});
  ExpectFault(text("SAME", "i: [1, 1, 1, 1]", "attr { key: 'on' value { i: 1 } }"), "bad attribute(p)",
              {"int", "bool"});
  ExpectFault(text("SAME", "i: [1, 1, 1, 1]", "attr { key: 'rate' value { } }"), "bad attribute(p)",
              {"nothing", "float"});
  ExpectFault(text("SAME", "i: [1, 1, 1, 1]", "attr { key: 'rate' value { placeholder: 'r' } }"), "bad attribute(p)",
              {"placeholder"});
  ExpectFault(kX + UnaryText("z", "Neg", "x", "DT_STRING"), "bad attribute(z)", {"string", "float32"});
  ExpectFault(kX + UnaryText("z", "Identity", "x", "DT_FLOAT_REF"), "bad attribute(z)", {"reference"});
  ExpectFault(kX + UnaryText("z", "Identity", "x", "DT_INVALID"), "bad attribute(z)", {"DT_INVALID"});
  ExpectFault(kX + UnaryText("z", "Identity", "x", "250"), "bad attribute(z)", {"250"});
  ExpectFault(PlaceholderText("p", "DT_FLOAT", "dim { size: -2 }"), "bad attribute(p)", {"shape", "-2"});
}

TEST(Loader, G11CountsAreBoundedBeforeArraysAreSized) {
  const std::string split =
      "node { name: 'd' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } } node { name: 's' op: "
      "'Split' input: 'd' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'num_split' value { i: ";
  ExpectFault(kX + split + "2147483647 } } }", "bad attribute(s)", {"num_split", "2147483647"});
  ExpectFault(kX + split + "-1 } } }", "bad attribute(s)", {"num_split", "-1"});
}

TEST(Loader, G12TypesAndReferences) {
  ExpectFault(PlaceholderText("i", "DT_INT32") + UnaryText("z", "Neg", "i"), "dtype(z)", {"i:0", "int32", "float32"});
  const std::string variable =
      "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape { } } } }";
  const std::string assign =
      "node { name: 'a' op: 'Assign' input: '%' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }";
  const auto assign_to = [&assign](const char* name) { return std::string(assign).replace(assign.find('%'), 1, name); };
  LoadGood(kX + variable + assign_to("v"));
  LoadGood(variable + UnaryText("read", "Neg", "v"));
  ExpectFault(kX + assign_to("x"), "reference(a)", {"x:0", "value"});
}

TEST(Loader, G13Cycles) {
  ExpectFault("node { name: 'p' op: 'NoOp' input: '^q' } node { name: 'q' op: 'NoOp' input: '^p' }", "cycle(p)",
              {"p -> q -> p"});
  ExpectFault("node { name: 's' op: 'NoOp' input: '^s' }", "cycle(s)", {"itself"});
  const std::string t = " attr { key: 'T' value { type: DT_FLOAT } } ";
  const std::string loop =
      kX + "node { name: 'm' op: 'Merge' input: 'x' input: '%' attr { key: 'N' value { i: 2 } }" + t + "}";
  const auto loop_from = [&loop](const char* name) { return std::string(loop).replace(loop.find('%'), 1, name); };
  LoadGood(loop_from("n") + UnaryText("n", "NextIteration", "m"));
  ExpectFault(loop_from("n") + UnaryText("n", "Identity", "m"), "cycle(m)", {"m -> n -> m"});
  ExpectFault(kX + "node { name: 'a' op: 'Add' input: 'x' input: 'n'" + t + "}" + UnaryText("n", "NextIteration", "a"),
              "cycle(a)", {"NextIteration"});
}

TEST(Loader, G14Versions) {
  ExpectFault("versions { min_consumer: 5000 } node { name: 'n' op: 'NoOp' }", "version()", {"5000", "2474"});
  ExpectFault("versions { producer: 9 bad_consumers: [7, 2474] } node { name: 'n' op: 'NoOp' }", "version()", {"2474"});
  LoadGood("versions { producer: 999999 bad_consumers: 7 } node { name: 'n' op: 'NoOp' }");
}

TEST(Loader, G15DeprecatedOps) {
  const std::string old = kX + "node { name: 'o' op: 'Old' input: 'x' }";
  LoadGood(old + "versions { producer: 8 }");
  ExpectFault(old + "versions { producer: 9 }", "deprecated op(o)", {"9", "use Neg"}, absl::StatusCode::kUnimplemented);
}

TEST(Loader, G28DeviceTexts) {
  const auto with_device = [](const std::string& device) {
    return "node { name: 'n' op: 'NoOp' device: '" + device + "' }";
  };
  for (const char* good : {"", "/", "/device:CPU:0", "/cpu:0", "/job:localhost", "/device:GPU:*",
                           "/job:a/replica:0/task:3/device:CPU:7"}) {
    LoadGood(with_device(good));
  }
  for (const char* bad : {"/device:CPU:zero", "cpu 0", "/job:a/task", "/device:CPU:-1", "@x", "/gpu"}) {
    ExpectFault(with_device(bad), "bad device(n)", {bad});
  }
}

TEST(Loader, ColocationWithAnUnknownNode) {
  const auto with_class = [](const std::string& text) {
    return "node { name: 'n' op: 'NoOp' attr { key: '_class' value { list { s: '" + text + "' } } } }";
  };
  LoadGood(with_class("loc:@n"));
  LoadGood(with_class("ghost"));
  ExpectFault(with_class("loc:@ghost"), "colocation(n)", {"ghost"});
}

std::string ConstText(const std::string& tensor, const std::string& dtype = "DT_FLOAT") {
  return "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: " + dtype +
         " } } attr { key: 'value' value { tensor { " + tensor + " } } } }";
}

TEST(Loader, L12ConstantsOfTheWrongLengthFailWhereTheyAreNeeded) {
  const absl::StatusOr<LoadResult> loaded =
      LoadText(ConstText("dtype: DT_FLOAT tensor_content: 'abc' tensor_shape { dim { size: 2 } }"));
  ASSERT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  EXPECT_THAT(Kinds(*loaded, Finding::Severity::kWarning), ElementsAre("constant(c)"));
}

TEST(Loader, Rule24ConstantsThatAreWrongInThemselves) {
  ExpectFault(ConstText("dtype: DT_DOUBLE double_val: 1"), "constant(c)", {"float", "double"});
  ExpectFault(ConstText("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }"), "bad attribute(c)", {"value", "-1"});
  ExpectFault(
      ConstText(
          "dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } dim { size: 1099511627776 } } float_val: 1"),
      "bad attribute(c)", {"value"});
  ExpectFault(ConstText("dtype: 9999"), "bad attribute(c)", {"9999"});
  ExpectFault(ConstText("dtype: DT_FLOAT_REF", "DT_FLOAT_REF"), "bad attribute(c)", {"reference"});
  ExpectFault(ConstText("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } float_val: 1"), "constant(c)",
              {"4000000000000 bytes"}, absl::StatusCode::kResourceExhausted);
}

TEST(Loader, RepeatedControlInputsCountOnce) {
  std::string inputs = "input: 'x'";
  for (int i = 0; i < 40; ++i) inputs += " input: '^a' input: '^b'";
  const Graph graph = LoadGood(kX + "node { name: 'a' op: 'NoOp' } node { name: 'z' op: 'Neg' " + inputs +
                               " attr { key: 'T' value { type: DT_FLOAT } } } node { name: 'b' op: 'NoOp' }");
  EXPECT_EQ(graph.EndpointName(graph.node(2).inputs[1]), "^a");
  EXPECT_EQ(graph.EndpointName(graph.node(2).inputs[2]), "^b");
  EXPECT_EQ(graph.node(2).inputs.size(), 3u);
}

TEST(Loader, StaticShapesThatContradictAreRefused) {
  ExpectFault(PlaceholderText("a", "DT_FLOAT", "dim { size: 2 }") +
                  PlaceholderText("b", "DT_FLOAT", "dim { size: 3 }") +
                  "node { name: 's' op: 'Add' input: 'a' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }",
              "shape(s)", {"[2]", "[3]"});
}

const char kFunction[] =
    "library { function { signature { name: 'Twice' input_arg { name: 'x' type_attr: 'T' } output_arg { name: 'y' "
    "type_attr: 'T' }"
    " attr { name: 'T' type: 'type' } } ret { key: 'y' value: 'd:z:0' }"
    " node_def { name: 'd' op: 'Add' input: 'x' input: 'x' attr { key: 'T' value { placeholder: 'T' } } } } }\n";

TEST(Loader, FunctionsAreOpsOfTheirGraph) {
  const Graph graph = LoadGood(kX + UnaryText("y", "Twice", "x") + UnaryText("z", "Neg", "y") + kFunction);
  ASSERT_NE(graph.functions, nullptr);
  EXPECT_NE(graph.functions->Find("Twice"), nullptr);
  EXPECT_EQ(graph.node(1).schema, nullptr);
  EXPECT_THAT(graph.node(1).output_types, ElementsAre(DType::kFloat32));
  ExpectFault(kX + UnaryText("y", "Twice", "x", "DT_INT32") + kFunction, "dtype(y)", {"int32"});
  ExpectFault("node { name: 'y' op: 'Twice' } " + std::string(kFunction), "missing attribute(y)", {"'T'"});
}

TEST(Loader, L5FunctionsMayNotHideOps) {
  std::string function = kFunction;
  function.replace(function.find("Twice"), 5, "Neg");
  ExpectFault(function, "bad function()", {"'Neg'", "built-in"});
}

TEST(Loader, MalformedSignaturesAreRefused) {
  std::string function = kFunction;
  function.replace(function.find("attr { name: 'T' type: 'type' }"), 0, "attr { name: 'T' type: 'type' } ");
  ExpectFault(function, "bad function()", {"'Twice'", "'T'", "twice"});
}

TEST(Loader, L4MissingFunctionsAreAWarning) {
  const absl::StatusOr<LoadResult> loaded = LoadText(
      "node { name: 'p' op: 'PartitionedCall' attr { key: 'Tin' value { list { } } } attr { key: 'Tout' value { list { "
      "} } }"
      " attr { key: 'f' value { func { name: 'Gone' } } } }");
  ASSERT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  EXPECT_THAT(Kinds(*loaded, Finding::Severity::kWarning), ElementsAre("missing function(p)"));
}

TEST(Loader, D2ExtendingAGraph) {
  const Graph base = LoadGood(kX + "versions { producer: 7 }");
  const absl::StatusOr<LoadResult> extended =
      LoadText(UnaryText("y", "Neg", "x") + "versions { producer: 7 min_consumer: 3 }", &base);
  ASSERT_TRUE(extended.ok() && extended->status().ok()) << extended.status() << extended->status();
  EXPECT_EQ(extended->graph.num_nodes(), 2);
  EXPECT_EQ(extended->graph.versions.min_consumer, 3);
  EXPECT_EQ(base.num_nodes(), 1);

  EXPECT_THAT(Kinds(*LoadText(UnaryText("x", "Neg", "x") + "versions { producer: 7 }", &base)),
              ElementsAre("duplicate name(x)"));
  EXPECT_THAT(Kinds(*LoadText(UnaryText("y", "Neg", "x") + "versions { producer: 8 }", &base)),
              ElementsAre("version()"));
}

TEST(Loader, Rule23EveryTruncationIsAnErrorOrAShorterGraph) {
  const std::string whole = ToBinary(kX + UnaryText("y", "Neg", "x") +
                                     ConstText("dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: 2 } }") +
                                     "versions { producer: 21 }");
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::StatusOr<LoadResult> loaded = LoadBytes(whole.substr(0, size));
    if (loaded.ok()) {
      EXPECT_LE(loaded->graph.num_nodes(), 3);
    } else {
      EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("test.pb"));
    }
  }
  EXPECT_EQ(LoadBytes(whole.substr(0, whole.size() - 1)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Loader, Rule23Limits) {
  const std::string three = ToBinary(
      "node { name: 'a' op: 'NoOp' } node { name: 'b' op: 'NoOp' } node { name: 'c' op: 'NoOp' input: ['^a', '^b'] }");
  LoadLimits limits;
  limits.max_nodes = 2;
  EXPECT_EQ(LoadBytes(three, limits).status().code(), absl::StatusCode::kResourceExhausted);
  limits = LoadLimits();
  limits.max_inputs_per_node = 1;
  EXPECT_THAT(Kinds(*LoadBytes(three, limits)), ElementsAre("too many inputs(c)"));
  limits = LoadLimits();
  limits.max_name_bytes = 4;
  EXPECT_EQ(Kinds(*LoadBytes(ToBinary("node { name: 'abcde' op: 'NoOp' }"), limits))[0], "bad name(abcd)");
}

TEST(Loader, Rule23NestingIsBounded) {
  std::string attr = "i: 1";
  for (int i = 0; i < 200; ++i) attr = "func { name: 'f' attr { key: 'a' value { " + attr + " } } }";
  const std::string text = "node { name: 'n' op: 'NoOp' attr { key: '_deep' value { " + attr + " } } }";
  EXPECT_EQ(LoadText(text).status().code(), absl::StatusCode::kInvalidArgument);
  GraphDef graph;
  google::protobuf::TextFormat::Parser parser;
  ASSERT_TRUE(parser.ParseFromString(text, &graph));
  const std::string bytes = graph.SerializeAsString();
  const absl::Status nested = LoadBytes(bytes).status();
  EXPECT_EQ(nested.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nested.message()), HasSubstr("deeper than"));
  // What is corrupt is not taken for what is nested too deep.
  const size_t key = bytes.find("_deep");
  std::string corrupt = bytes;
  corrupt[key + 5] = '\x17';
  EXPECT_EQ(LoadBytes(corrupt).status().code(), absl::StatusCode::kDataLoss);
}

TEST(Loader, Rule23TextsOfBinaryGraphsAreUtf8) {
  const std::string whole = ToBinary("node { name: 'name' op: 'NoOp' input: '^other' device: 'gear' attr { key: '_key' value { i: 1 } } }");
  for (const char* text : {"name", "NoOp", "other", "gear", "_key"}) {
    for (const char* bad : {"\x80z", "\xc0\x80", "\xc3(", "\xed\xa0", "\xff\xff"}) {
      std::string broken = whole;
      broken.replace(broken.find(text), 2, bad);
      EXPECT_EQ(LoadBytes(broken).status().code(), absl::StatusCode::kDataLoss) << text;
    }
    std::string letter = whole;
    letter.replace(letter.find(text), 2, "\xc3\xa4");
    EXPECT_NE(LoadBytes(letter).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST(Loader, Rule23AGraphCutWithinItsFirstNodeIsDataLoss) {
  const std::string whole = ToBinary("node { name: 'a_long_name_that_is_text' op: 'NoOp' }");
  for (size_t size : {1, 2, 3, 8}) {
    EXPECT_EQ(LoadBytes(whole.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(LoadBytes(" \n ").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Loader, Rule25FindingsAreBounded) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "node { name: 'n" + std::to_string(i) + "' op: 'NoOp' input: '^ghost" + std::to_string(i) + "' }\n";
  const absl::StatusOr<LoadResult> loaded = LoadText(text);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(Kinds(*loaded).size(), 1000u);
  EXPECT_THAT(loaded->findings.back().message, HasSubstr("2000 more"));
  EXPECT_THAT(std::string(loaded->status().message()), HasSubstr("... and 980 more"));
}

TEST(Loader, TextFaultsHaveTheirPlace) {
  const auto message = [](const std::string& text) { return std::string(LoadText(text).status().message()); };
  EXPECT_THAT(message("node {\n  name: 'a'\n  opp: 'NoOp'\n}\n"), HasSubstr("line 3, column 3: "));
  EXPECT_THAT(message("node {\n  attr { key: 'T' value { type: DT_FLOATT } }\n}\n"), HasSubstr("line 2, column 33: "));
  EXPECT_THAT(message("node {\n  name: 'a'\n  op 'NoOp'\n}\n"), HasSubstr("line 3, column 6: "));
  EXPECT_THAT(message("\xef\xbb\xbfnode {\r\n  name: 'a\r\n}"), HasSubstr("line 2, "));
  EXPECT_THAT(message("This is not a graph."), HasSubstr("'This is not a graph.'"));
  EXPECT_THAT(message(" \n\t\n"), HasSubstr("empty"));
  EXPECT_THAT(message(""), HasSubstr("empty"));
}

TEST(Loader, LargeConstantsAreReferencedNotCopied) {
  GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      ConstText("dtype: DT_UINT8 tensor_shape { dim { size: 10000 } }", "DT_UINT8"), &graph));
  (*graph.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->set_tensor_content(std::string(10000, 'q'));
  auto bytes = std::make_shared<std::string>(graph.SerializeAsString());
  LoadOptions options;
  options.schemas = &TestOps();

  absl::StatusOr<LoadResult> viewing = LoadGraphBytes(*bytes, bytes, "test", options);
  ASSERT_TRUE(viewing.ok() && viewing->status().ok());
  const auto literal_of = [](const LoadResult& r) {
    return std::get<TensorLiteralPtr>(*r.graph.node(0).attrs.Find("value"));
  };
  const char* content = literal_of(*viewing)->content.data();
  EXPECT_GE(content, bytes->data());
  EXPECT_LT(content, bytes->data() + bytes->size());
  EXPECT_EQ(literal_of(*viewing)->content, std::string(10000, 'q'));
  EXPECT_GT(bytes.use_count(), 1) << "the literal keeps the bytes alive";

  absl::StatusOr<LoadResult> copying = LoadGraphBytes(*bytes, nullptr, "test", options);
  ASSERT_TRUE(copying.ok());
  content = literal_of(*copying)->content.data();
  EXPECT_TRUE(content < bytes->data() || content >= bytes->data() + bytes->size());
}

TEST(Loader, FilesAreReadOrNamed) {
  LoadOptions options;
  options.schemas = &TestOps();
  EXPECT_EQ(LoadGraphFile("/nonexistent/graph.pb", options).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LoadGraphFile(testing::TestsDir(), options).status().code(), absl::StatusCode::kInvalidArgument);

  // With a constant that stays a view of what was read, whatever becomes of the file.
  GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      ConstText("dtype: DT_UINT8 tensor_shape { dim { size: 1000000 } }", "DT_UINT8"), &graph));
  (*graph.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->set_tensor_content(std::string(1000000, 'm'));
  const std::string path = ::testing::TempDir() + "loader_test_large.pb";
  std::ofstream(path, std::ios::binary) << graph.SerializeAsString();
  absl::StatusOr<LoadResult> loaded = LoadGraphFile(path, options);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  ASSERT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  const Graph kept = std::move(loaded->graph);
  EXPECT_EQ(std::get<TensorLiteralPtr>(*kept.node(0).attrs.Find("value"))->content, std::string(1000000, 'm'));
  std::remove(path.c_str());
}

TEST(Loader, UnknownFieldsAreSkipped) {
  std::string bytes = ToBinary("node { name: 'n' op: 'NoOp' }");
  bytes += std::string("\x9a\x3f\x03xyz", 6);           // a field of number 1011 with three bytes
  bytes += std::string("\xa3\x3f\x08\x01\xa4\x3f", 6);  // a group
  const absl::StatusOr<LoadResult> loaded = LoadBytes(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->findings, IsEmpty());
  EXPECT_EQ(LoadBytes(std::string("\x9a\x3f\x03xyz", 6)).status().code(), absl::StatusCode::kInvalidArgument)
      << "nothing of a GraphDef";
}

}  // namespace
}  // namespace thalweg
