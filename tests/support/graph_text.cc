#include "thalweg/tests/support/graph_text.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/shape_context.h"

namespace thalweg::testing {
namespace {

[[noreturn]] void Fail(absl::string_view line, const std::string& what) {
  std::fprintf(stderr, "graph text: %s in line '%s'\n", what.c_str(), std::string(line).c_str());
  std::abort();
}

// Splits at commas outside brackets and quotes.
std::vector<std::string> SplitTopLevel(absl::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '[' || c == '<')) ++depth;
    if (!quoted && (c == ']' || c == '>')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) part = std::string(absl::StripAsciiWhitespace(part));
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

std::string Unquote(absl::string_view text, absl::string_view line) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') Fail(line, absl::StrCat("'", text, "' is no text"));
  return std::string(text.substr(1, text.size() - 2));
}

PartialShape ParseShape(absl::string_view text, absl::string_view line) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    if (text == "<unknown>") return PartialShape();
    Fail(line, absl::StrCat("'", text, "' is no shape"));
  }
  std::vector<int64_t> dims;
  for (absl::string_view dim : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t size = kUnknownDim;
    if (absl::StripAsciiWhitespace(dim) != "?" && !absl::SimpleAtoi(dim, &size))
      Fail(line, absl::StrCat("bad dimension ", dim));
    dims.push_back(size);
  }
  absl::StatusOr<PartialShape> shape = PartialShape::Make(dims);
  if (!shape.ok()) Fail(line, std::string(shape.status().message()));
  return *shape;
}

template <typename T>
void AppendBytes(double value, std::string* bytes) {
  const T typed = static_cast<T>(value);
  bytes->append(reinterpret_cast<const char*>(&typed), sizeof(typed));
}

// tensor<float32[2]:1,2>
TensorLiteralPtr ParseTensor(absl::string_view text, absl::string_view line) {
  if (!absl::ConsumePrefix(&text, "tensor<") || !absl::ConsumeSuffix(&text, ">")) Fail(line, "bad tensor");
  const std::vector<absl::string_view> halves = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const size_t bracket = halves[0].find('[');
  absl::StatusOr<DType> type = ParseDType(halves[0].substr(0, bracket));
  if (!type.ok() || bracket == absl::string_view::npos) Fail(line, "bad tensor type or shape");
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = *type;
  literal->shape = *ParseShape(halves[0].substr(bracket), line).ToShape();
  auto bytes = std::make_shared<std::string>();
  for (absl::string_view element : absl::StrSplit(halves.size() > 1 ? halves[1] : "", ',', absl::SkipWhitespace())) {
    double value = 0;
    if (!absl::SimpleAtod(element, &value)) Fail(line, absl::StrCat("bad element ", element));
    switch (*type) {
      case DType::kFloat32: AppendBytes<float>(value, bytes.get()); break;
      case DType::kFloat64: AppendBytes<double>(value, bytes.get()); break;
      case DType::kInt32: AppendBytes<int32_t>(value, bytes.get()); break;
      case DType::kInt64: AppendBytes<int64_t>(value, bytes.get()); break;
      case DType::kBool: AppendBytes<bool>(value, bytes.get()); break;
      default: Fail(line, "tensors of this type cannot be written");
    }
  }
  literal->content = *bytes;
  literal->owner = bytes;
  return literal;
}

Attr ParseAttr(const AttrDecl* decl, absl::string_view text, absl::string_view line) {
  if (absl::StartsWith(text, "tensor<")) return ParseTensor(text, line);
  if (text == "true" || text == "false") return text == "true";
  if (absl::StartsWith(text, "\"")) return Unquote(text, line);
  if (absl::StartsWith(text, "[\"")) {
    std::vector<std::string> texts;
    for (const std::string& part : SplitTopLevel(text.substr(1, text.size() - 2))) texts.push_back(Unquote(part, line));
    return MakeListAttr(std::move(texts));
  }
  if (decl != nullptr && decl->kind == AttrKind::kType) {
    absl::StatusOr<DType> type = ParseDType(text);
    if (!type.ok()) Fail(line, std::string(type.status().message()));
    return *type;
  }
  if (decl != nullptr && decl->kind == AttrKind::kShape) return MakeShapeAttr(ParseShape(text, line));
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  float real = 0;
  if (absl::SimpleAtof(text, &real)) return real;
  Fail(line, absl::StrCat("cannot read the attribute value '", text, "'"));
}

struct ParsedLine {
  std::string text;
  std::string name;
  std::string op;
  std::string device;
  std::vector<std::string> inputs;
  std::vector<std::string> attrs;
};

ParsedLine ParseLine(absl::string_view line) {
  ParsedLine parsed;
  parsed.text = std::string(line);
  const size_t equals = line.find(" = ");
  const size_t open = line.find('(', equals);
  const size_t close = line.find(')', open);
  if (close == absl::string_view::npos) Fail(line, "not of the form 'name = Op(inputs)'");
  parsed.name = std::string(line.substr(0, equals));
  parsed.op = std::string(line.substr(equals + 3, open - equals - 3));
  parsed.inputs = SplitTopLevel(line.substr(open + 1, close - open - 1));
  absl::string_view rest = line.substr(close + 1);
  const size_t at = rest.rfind(" @");
  if (at != absl::string_view::npos && rest.find(']', at) == absl::string_view::npos) {
    parsed.device = std::string(rest.substr(at + 2));
    rest = rest.substr(0, at);
  }
  rest = absl::StripAsciiWhitespace(rest);
  if (!rest.empty()) {
    if (!absl::ConsumePrefix(&rest, "[") || !absl::ConsumeSuffix(&rest, "]")) Fail(line, "attributes need brackets");
    parsed.attrs = SplitTopLevel(rest);
  }
  return parsed;
}

Node MakeNode(const OpRegistry& schemas, const ParsedLine& line, NodeId id) {
  Node node;
  node.name = line.name;
  node.op = line.op;
  node.schema = schemas.Find(line.op);
  node.requested_device = line.device;
  node.origin = id;
  if (node.schema == nullptr) Fail(line.text, absl::StrCat("unknown op ", line.op));
  for (const std::string& attr : line.attrs) {
    const std::vector<std::string> halves = absl::StrSplit(attr, absl::MaxSplits('=', 1));
    if (halves.size() != 2) Fail(line.text, absl::StrCat("attribute '", attr, "' has no value"));
    node.attrs.Set(halves[0], ParseAttr(node.schema->FindAttr(halves[0]), halves[1], line.text));
  }
  std::vector<DType> types;
  absl::Status status = ResolveOutputTypes(node.node_attrs(), &types);
  if (!status.ok()) Fail(line.text, std::string(status.message()));
  node.output_types.assign(types.begin(), types.end());
  return node;
}

absl::Status DeclaredShape(ShapeContext& c) {
  absl::StatusOr<PartialShape> shape = c.attrs().Get<PartialShape>("shape");
  if (shape.ok()) c.set_output(0, *std::move(shape));
  return absl::OkStatus();
}

absl::Status FedShape(ShapeContext& c) {
  absl::StatusOr<std::vector<PartialShape>> shapes = c.attrs().Get<std::vector<PartialShape>>("_output_shapes");
  if (shapes.ok() && shapes->size() == 1) c.set_output(0, (*shapes)[0]);
  return absl::OkStatus();
}

absl::Status ValueShape(ShapeContext& c) {
  const TensorLiteralPtr value = c.attrs().GetOr<TensorLiteralPtr>("value", nullptr);
  if (value != nullptr) c.set_output(0, PartialShape::Known(value->shape));
  return absl::OkStatus();
}

absl::Status SameRank(ShapeContext& c) {
  if (c.input(0).has_rank()) c.set_output(0, PartialShape::UnknownOfRank(c.input(0).rank()));
  return absl::OkStatus();
}

absl::Status ShapeFromInput1(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

Graph GraphFromText(const OpRegistry& schemas, absl::string_view text) {
  std::vector<ParsedLine> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty() && line[0] != '#') lines.push_back(ParseLine(line));
  }
  Graph graph;
  graph.schemas = &schemas;
  for (const ParsedLine& line : lines) graph.AddNode(MakeNode(schemas, line, graph.num_nodes()));
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    Node& node = graph.mutable_node(id);
    for (const std::string& input : lines[id].inputs) {
      absl::StatusOr<Endpoint> endpoint = graph.ParseEndpoint(input);
      if (!endpoint.ok()) Fail(lines[id].text, std::string(endpoint.status().message()));
      node.inputs.push_back(*endpoint);
      if (!endpoint->is_control()) ++node.num_data_inputs;
    }
  }
  return graph;
}

const OpRegistry& TestOps() {
  static const OpRegistry* const ops = [] {
    auto* r = new OpRegistry;
    r->Add("NoOp() -> ()").Role(OpRole::kNoOp);
    r->Add("Const() -> output: dtype", "value: tensor; dtype: type").Shape(ValueShape).Role(OpRole::kConstant);
    r->Add("Placeholder() -> output: dtype", "dtype: type; shape: shape = unknown").Shape(DeclaredShape);
    r->Add("Identity(input: T) -> output: T", "T: type");
    r->Add("StopGradient(input: T) -> output: T", "T: type");
    r->Add("Snapshot(input: T) -> output: T", "T: type");
    r->Add("Neg(x: T) -> y: T", "T: type").Shape(UnchangedShape);
    r->Add("Add(x: T, y: T) -> z: T", "T: type").Commutative();
    r->Add("AddV2(x: T, y: T) -> z: T", "T: type").Commutative();
    r->Add("Sub(x: T, y: T) -> z: T", "T: type");
    r->Add("Mul(x: T, y: T) -> z: T", "T: type").Commutative();
    r->Add("RealDiv(x: T, y: T) -> z: T", "T: type");
    r->Add("MatMul(a: T, b: T) -> product: T", "T: type; transpose_a: bool = false; transpose_b: bool = false");
    r->Add("Transpose(x: T, perm: Tperm) -> y: T", "T: type; Tperm: {int32, int64} = int32").Shape(SameRank);
    r->Add("Reshape(tensor: T, shape: Tshape) -> output: T", "T: type; Tshape: {int32, int64} = int32")
        .Shape(ShapeFromInput1);
    r->Add("Cast(x: SrcT) -> y: DstT", "SrcT: type; DstT: type; Truncate: bool = false");
    r->Add("Shape(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32");
    r->Add("Rank(input: T) -> output: int32", "T: type");
    r->Add("Size(input: T) -> output: out_type", "T: type; out_type: {int32, int64} = int32");
    r->Add("Split(axis: int32, value: T) -> output: num_split*T", "num_split: int >= 1; T: type");
    r->Add("ArgMax(input: T, dimension: int32) -> output: output_type", "T: type; output_type: {int32, int64} = int64");
    r->Add("RandomUniform(shape: T) -> output: dtype", "seed: int = 0; seed2: int = 0; dtype: type; T: {int32, int64}")
        .Stateful();
    r->Add("VariableV2() -> ref: Ref(dtype)",
           "shape: shape; dtype: type; container: string = \"\"; shared_name: string = \"\"")
        .Stateful();
    r->Add("Assign(ref: Ref(T), value: T) -> output_ref: Ref(T)", "T: type").AllowsUninitializedInput();
    r->Add("AssignAdd(ref: Ref(T), value: T) -> output_ref: Ref(T)", "T: type");
    r->Add("ApplyMomentum(var: Ref(T), accum: Ref(T), grad: T) -> out: Ref(T)", "T: type");
    r->Add("VarHandleOp() -> resource: resource", "dtype: type; shape: shape").Stateful();
    r->Add("ReadVariableOp(resource: resource) -> value: dtype", "dtype: type").Stateful();
    r->Add("AssignVariableOp(resource: resource, value: dtype) -> ()", "dtype: type").Stateful();
    r->Add("Switch(data: T, pred: bool) -> (output_false: T, output_true: T)", "T: type");
    r->Add("Merge(inputs: N*T) -> (output: T, value_index: int32)", "T: type; N: int >= 1");
    r->Add("Enter(data: T) -> output: T",
           "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10");
    r->Add("Exit(data: T) -> output: T", "T: type").Role(OpRole::kExit);
    r->Add("NextIteration(data: T) -> output: T", "T: type");
    r->Add("LoopCond(input: bool) -> output: bool");
    r->Add("Less(x: T, y: T) -> z: bool", "T: type");
    r->Add("_Arg() -> output: T", "T: type; index: int >= 0").Shape(FedShape).Stateful().Role(OpRole::kArg);
    r->Add("_Retval(input: T) -> ()", "T: type; index: int >= 0").Stateful().Role(OpRole::kRetval);
    r->Add("_Send(tensor: T) -> ()",
           "T: type; pair: int >= 0")
        .Stateful()
        .Role(OpRole::kSend);
    r->Add("_Recv() -> tensor: tensor_type",
           "tensor_type: type; pair: int >= 0")
        .Stateful()
        .Role(OpRole::kRecv);
    return r;
  }();
  return *ops;
}

}  // namespace thalweg::testing
