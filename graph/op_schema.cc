#include "thalweg/graph/op_schema.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/arg_types.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

// Largest number of tensors that one argument may stand for (robustness rule 19); AddN of thousands is legal.
constexpr int64_t kMaxArgCount = 65536;

[[noreturn]] void BadDeclaration(absl::string_view text, absl::string_view why) {
  std::fprintf(stderr, "malformed op declaration \"%s\": %s\n", std::string(text).c_str(), std::string(why).c_str());
  std::abort();
}

const std::vector<DType>& RealNumberTypes() {
  static const auto& types = *new std::vector<DType>{
      DType::kFloat32, DType::kFloat64, DType::kInt32,    DType::kUInt8,   DType::kInt16,  DType::kInt8,
      DType::kInt64,   DType::kBFloat16, DType::kUInt16,  DType::kFloat16, DType::kUInt32, DType::kUInt64};
  return types;
}

const std::vector<DType>& QuantizedTypes() {
  static const auto& types =
      *new std::vector<DType>{DType::kQInt8, DType::kQUInt8, DType::kQInt32, DType::kQInt16, DType::kQUInt16};
  return types;
}

const std::vector<DType>& NumberTypes() {
  static const auto& types = *new std::vector<DType>([] {
    std::vector<DType> t = RealNumberTypes();
    t.push_back(DType::kComplex64);
    t.push_back(DType::kComplex128);
    t.insert(t.end(), QuantizedTypes().begin(), QuantizedTypes().end());
    return t;
  }());
  return types;
}

// Splits at `separator` outside brackets and quotes; pieces are trimmed, an empty text gives none.
std::vector<std::string> SplitTopLevel(absl::string_view text, char separator) {
  std::vector<std::string> pieces;
  std::string current;
  int depth = 0;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '(' || c == '{' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == '}' || c == ']')) --depth;
    if (c == separator && depth == 0 && !quoted) {
      pieces.emplace_back(absl::StripAsciiWhitespace(current));
      current.clear();
    } else {
      current += c;
    }
  }
  if (!absl::StripAsciiWhitespace(current).empty()) pieces.emplace_back(absl::StripAsciiWhitespace(current));
  return pieces;
}

ArgDecl ParseArg(absl::string_view text, const OpSchema& schema) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  ArgDecl arg;
  arg.name = std::string(absl::StripAsciiWhitespace(parts.first));
  absl::string_view type = absl::StripAsciiWhitespace(parts.second);
  if (absl::ConsumePrefix(&type, "Ref(")) {
    arg.is_ref = true;
    if (!absl::ConsumeSuffix(&type, ")")) BadDeclaration(text, "Ref( without )");
  }
  const size_t star = type.find('*');
  if (star != absl::string_view::npos) {
    arg.number_attr = std::string(absl::StripAsciiWhitespace(type.substr(0, star)));
    type = absl::StripAsciiWhitespace(type.substr(star + 1));
  }
  const AttrDecl* attr = schema.FindAttr(type);
  if (attr != nullptr) {
    (attr->is_list ? arg.type_list_attr : arg.type_attr) = std::string(type);
    return arg;
  }
  absl::StatusOr<DType> dtype = ParseDType(type);
  if (!dtype.ok()) BadDeclaration(text, "the type is neither an attribute nor a dtype");
  arg.type = *dtype;
  return arg;
}

void ParseArgs(absl::string_view text, const OpSchema& schema, std::vector<ArgDecl>* args) {
  for (const std::string& piece : SplitTopLevel(text, ',')) args->push_back(ParseArg(piece, schema));
}

// The kind of an attribute without its list(...): a word or a set in braces.
void ParseKind(absl::string_view text, absl::string_view whole, AttrDecl* attr) {
  if (absl::ConsumePrefix(&text, "{")) {
    if (!absl::ConsumeSuffix(&text, "}")) BadDeclaration(whole, "{ without }");
    attr->kind = AttrKind::kType;
    for (const std::string& item : SplitTopLevel(text, ',')) {
      if (item.front() == '"') {
        attr->kind = AttrKind::kString;
        attr->allowed_strings.push_back(item.substr(1, item.size() - 2));
      } else {
        absl::StatusOr<DType> dtype = ParseDType(item);
        if (!dtype.ok()) BadDeclaration(whole, absl::StrCat("unknown type ", item));
        attr->allowed_types.push_back(*dtype);
      }
    }
    return;
  }
  static constexpr std::pair<const char*, AttrKind> kWords[] = {
      {"int", AttrKind::kInt},       {"float", AttrKind::kFloat}, {"bool", AttrKind::kBool},
      {"string", AttrKind::kString}, {"type", AttrKind::kType},   {"shape", AttrKind::kShape},
      {"tensor", AttrKind::kTensor}, {"func", AttrKind::kFunc}};
  for (const auto& [word, kind] : kWords) {
    if (text == word) {
      attr->kind = kind;
      return;
    }
  }
  attr->kind = AttrKind::kType;
  if (text == "numbertype") attr->allowed_types = NumberTypes();
  else if (text == "realnumbertype") attr->allowed_types = RealNumberTypes();
  else if (text == "quantizedtype") attr->allowed_types = QuantizedTypes();
  else BadDeclaration(whole, absl::StrCat("unknown kind ", text));
}

std::string Unquote(absl::string_view text, absl::string_view whole) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"')
    BadDeclaration(whole, "a string default needs quotes");
  return std::string(text.substr(1, text.size() - 2));
}

PartialShape ParseShapeDefault(absl::string_view text, absl::string_view whole) {
  if (text == "unknown") return PartialShape();
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) BadDeclaration(whole, "bad shape default");
  Dims dims;
  for (const std::string& item : SplitTopLevel(text, ',')) {
    int64_t d = kUnknownDim;
    if (item != "?" && !absl::SimpleAtoi(item, &d)) BadDeclaration(whole, "bad dimension in default");
    dims.push_back(d);
  }
  return PartialShape::OfDims(std::move(dims));
}

Attr ParseScalarDefault(AttrKind kind, absl::string_view text, absl::string_view whole) {
  switch (kind) {
    case AttrKind::kInt: {
      int64_t v;
      if (!absl::SimpleAtoi(text, &v)) BadDeclaration(whole, "bad int default");
      return v;
    }
    case AttrKind::kFloat: {
      float v;
      if (!absl::SimpleAtof(text, &v)) BadDeclaration(whole, "bad float default");
      return v;
    }
    case AttrKind::kBool:
      if (text != "true" && text != "false") BadDeclaration(whole, "bad bool default");
      return text == "true";
    case AttrKind::kString:
      return Unquote(text, whole);
    case AttrKind::kType: {
      absl::StatusOr<DType> v = ParseDType(text);
      if (!v.ok()) BadDeclaration(whole, "bad type default");
      return *v;
    }
    case AttrKind::kShape:
      return MakeShapeAttr(ParseShapeDefault(text, whole));
    case AttrKind::kFunc: {
      FunctionRef f{Unquote(text, whole), std::make_shared<const AttrMap>()};
      return std::make_shared<const FunctionRef>(std::move(f));
    }
    case AttrKind::kTensor:
      BadDeclaration(whole, "tensor attributes take no default");
  }
  BadDeclaration(whole, "bad default");
}

template <typename T>
Attr ListDefault(AttrKind kind, const std::vector<std::string>& items, absl::string_view whole) {
  std::vector<T> values;
  for (const std::string& item : items) values.push_back(std::get<T>(ParseScalarDefault(kind, item, whole)));
  return MakeListAttr(std::move(values));
}

Attr ParseListDefault(AttrKind kind, absl::string_view text, absl::string_view whole) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]"))
    BadDeclaration(whole, "a list default needs brackets");
  const std::vector<std::string> items = SplitTopLevel(text, ',');
  if (items.empty()) return std::make_shared<const AttrList>();
  switch (kind) {
    case AttrKind::kInt: return ListDefault<int64_t>(kind, items, whole);
    case AttrKind::kFloat: return ListDefault<float>(kind, items, whole);
    case AttrKind::kBool: return ListDefault<bool>(kind, items, whole);
    case AttrKind::kString: return ListDefault<std::string>(kind, items, whole);
    case AttrKind::kType: return ListDefault<DType>(kind, items, whole);
    default: BadDeclaration(whole, "lists of this kind take no default");
  }
}

// Position of `token` outside brackets and quotes, or npos.
size_t FindTopLevel(absl::string_view text, absl::string_view token) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (depth == 0 && absl::StartsWith(text.substr(i), token)) return i;
  }
  return absl::string_view::npos;
}

AttrDecl ParseAttr(absl::string_view text) {
  AttrDecl attr;
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) BadDeclaration(text, "an attribute needs ':'");
  attr.name = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  absl::string_view rest = absl::StripAsciiWhitespace(text.substr(colon + 1));
  const size_t at_least = FindTopLevel(rest, ">=");
  size_t equals = FindTopLevel(rest, "=");
  if (equals != absl::string_view::npos && at_least != absl::string_view::npos && equals == at_least + 1) {
    const size_t next = FindTopLevel(rest.substr(at_least + 2), "=");
    equals = next == absl::string_view::npos ? next : next + at_least + 2;
  }
  absl::string_view default_text;
  if (equals != absl::string_view::npos) {
    default_text = absl::StripAsciiWhitespace(rest.substr(equals + 1));
    attr.has_default = true;
    rest = absl::StripAsciiWhitespace(rest.substr(0, equals));
  }
  if (at_least != absl::string_view::npos) {
    attr.has_minimum = true;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(rest.substr(at_least + 2)), &attr.minimum))
      BadDeclaration(text, "bad minimum");
    rest = absl::StripAsciiWhitespace(rest.substr(0, at_least));
  }
  if (absl::ConsumePrefix(&rest, "list(")) {
    attr.is_list = true;
    if (!absl::ConsumeSuffix(&rest, ")")) BadDeclaration(text, "list( without )");
  }
  ParseKind(rest, text, &attr);
  if (attr.has_default) {
    attr.default_value = attr.is_list ? ParseListDefault(attr.kind, default_text, text)
                                      : ParseScalarDefault(attr.kind, default_text, text);
  }
  return attr;
}

std::unique_ptr<OpSchema> ParseDeclaration(absl::string_view signature, absl::string_view attrs) {
  auto schema = std::make_unique<OpSchema>();
  for (const std::string& piece : SplitTopLevel(attrs, ';')) schema->attrs.push_back(ParseAttr(piece));
  const size_t open = signature.find('(');
  const size_t arrow = signature.find("->");
  if (open == absl::string_view::npos) BadDeclaration(signature, "no argument list");
  schema->name = std::string(absl::StripAsciiWhitespace(signature.substr(0, open)));
  absl::string_view inputs =
      absl::StripAsciiWhitespace(signature.substr(open, arrow == absl::string_view::npos ? arrow : arrow - open));
  if (!absl::ConsumePrefix(&inputs, "(") || !absl::ConsumeSuffix(&inputs, ")"))
    BadDeclaration(signature, "bad argument list");
  ParseArgs(inputs, *schema, &schema->inputs);
  if (arrow != absl::string_view::npos) {
    absl::string_view outputs = absl::StripAsciiWhitespace(signature.substr(arrow + 2));
    if (absl::ConsumePrefix(&outputs, "(") && !absl::ConsumeSuffix(&outputs, ")"))
      BadDeclaration(signature, "( without )");
    ParseArgs(outputs, *schema, &schema->outputs);
  }
  return schema;
}

}  // namespace

absl::Status AppendArgTypes(const NodeAttrs& attrs, const ArgDecl& arg, std::vector<DType>* types) {
  const size_t begin = types->size();
  if (!arg.type_list_attr.empty()) {
    THALWEG_ASSIGN_OR_RETURN(std::vector<DType> list, attrs.Get<std::vector<DType>>(arg.type_list_attr));
    if (list.size() > kMaxArgCount) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", arg.type_list_attr, "' has ", list.size(), " entries, more than ", kMaxArgCount));
    }
    types->insert(types->end(), list.begin(), list.end());
  } else {
    int64_t count = 1;
    if (!arg.number_attr.empty()) {
      THALWEG_ASSIGN_OR_RETURN(count, attrs.Get<int64_t>(arg.number_attr));
      if (count < 0 || count > kMaxArgCount) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute '", arg.number_attr, "' is ", count, "; it must be in [0,", kMaxArgCount, "]"));
      }
    }
    DType type = arg.type;
    if (!arg.type_attr.empty()) {
      THALWEG_ASSIGN_OR_RETURN(type, attrs.Get<DType>(arg.type_attr));
    }
    types->insert(types->end(), count, type);
  }
  if (arg.is_ref) {
    for (size_t i = begin; i < types->size(); ++i) (*types)[i] = MakeRef((*types)[i]);
  }
  return absl::OkStatus();
}

namespace {

absl::Status ResolveTypes(const NodeAttrs& attrs, const std::vector<ArgDecl>& args, std::vector<DType>* types) {
  types->clear();
  for (const ArgDecl& arg : args) THALWEG_RETURN_IF_ERROR(AppendArgTypes(attrs, arg, types));
  return absl::OkStatus();
}

absl::StatusOr<ArgRange> RangeOf(const NodeAttrs& attrs, const std::vector<ArgDecl>& args, absl::string_view name) {
  std::vector<DType> types;
  for (const ArgDecl& arg : args) {
    const int begin = static_cast<int>(types.size());
    THALWEG_RETURN_IF_ERROR(AppendArgTypes(attrs, arg, &types));
    if (arg.name == name) return ArgRange{begin, static_cast<int>(types.size()) - begin};
  }
  return absl::InvalidArgumentError(absl::StrCat("op ", attrs.schema()->name, " has no argument '", name, "'"));
}

}  // namespace

std::string AttrDecl::KindName() const {
  static constexpr const char* kNames[] = {"int", "float", "bool", "string", "type", "shape", "tensor", "func"};
  const char* base = kNames[static_cast<int>(kind)];
  return is_list ? absl::StrCat("list(", base, ")") : base;
}

const AttrDecl* OpSchema::FindAttr(absl::string_view attr) const {
  for (const AttrDecl& decl : attrs) {
    if (decl.name == attr) return &decl;
  }
  return nullptr;
}

absl::Status ResolveInputTypes(const NodeAttrs& attrs, std::vector<DType>* types) {
  return ResolveTypes(attrs, attrs.schema()->inputs, types);
}
absl::Status ResolveOutputTypes(const NodeAttrs& attrs, std::vector<DType>* types) {
  return ResolveTypes(attrs, attrs.schema()->outputs, types);
}
absl::StatusOr<ArgRange> InputRange(const NodeAttrs& attrs, absl::string_view name) {
  return RangeOf(attrs, attrs.schema()->inputs, name);
}
absl::StatusOr<ArgRange> OutputRange(const NodeAttrs& attrs, absl::string_view name) {
  return RangeOf(attrs, attrs.schema()->outputs, name);
}

OpSchemaBuilder OpRegistry::Add(absl::string_view signature, absl::string_view attrs) {
  std::unique_ptr<OpSchema> schema = ParseDeclaration(signature, attrs);
  OpSchema* raw = schema.get();
  if (!schemas_.emplace(raw->name, std::move(schema)).second) BadDeclaration(signature, "declared twice");
  return OpSchemaBuilder(raw);
}

const OpSchema* OpRegistry::Find(absl::string_view op) const {
  auto it = schemas_.find(op);
  return it == schemas_.end() ? nullptr : it->second.get();
}

std::vector<const OpSchema*> OpRegistry::All() const {
  std::vector<const OpSchema*> all;
  for (const auto& entry : schemas_) all.push_back(entry.second.get());
  std::sort(all.begin(), all.end(), [](const OpSchema* a, const OpSchema* b) { return a->name < b->name; });
  return all;
}

}  // namespace thalweg
