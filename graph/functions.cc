#include "thalweg/graph/functions.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "thalweg/function.pb.h"
#include "thalweg/graph/attr_decode.h"
#include "thalweg/op_def.pb.h"

namespace thalweg {
namespace {

absl::Status SetKind(absl::string_view text, AttrDecl* attr) {
  static constexpr absl::string_view kKinds[] = {"int", "float", "bool", "string", "type", "shape", "tensor", "func"};
  absl::string_view kind = text;
  attr->is_list = absl::StartsWith(text, "list(") && absl::EndsWith(text, ")");
  if (attr->is_list) kind = text.substr(5, text.size() - 6);
  const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", attr->name, "' has the unknown kind '", text, "'"));
  }
  attr->kind = static_cast<AttrKind>(found - std::begin(kKinds));
  return absl::OkStatus();
}

absl::StatusOr<AttrDecl> DecodeAttrDecl(const OpDef::AttrDef& message) {
  AttrDecl attr;
  attr.name = message.name();
  THALWEG_RETURN_IF_ERROR(SetKind(message.type(), &attr));
  attr.has_minimum = message.has_minimum();
  attr.minimum = message.minimum();
  for (const int type : message.allowed_values().list().type()) attr.allowed_types.push_back(static_cast<DType>(type));
  for (const std::string& text : message.allowed_values().list().s()) attr.allowed_strings.push_back(text);
  attr.has_default = message.has_default_value();
  if (attr.has_default) {
    THALWEG_ASSIGN_OR_RETURN(attr.default_value, DecodeAttr(message.default_value()));
  }
  return attr;
}

absl::StatusOr<ArgDecl> DecodeArg(const OpDef::ArgDef& message, const OpSchema& schema) {
  ArgDecl arg;
  arg.name = message.name();
  arg.type = static_cast<DType>(message.type());
  arg.type_attr = message.type_attr();
  arg.number_attr = message.number_attr();
  arg.type_list_attr = message.type_list_attr();
  arg.is_ref = message.is_ref();
  if (arg.type_attr.empty() && arg.type_list_attr.empty() && !IsValidDType(message.type())) {
    return absl::InvalidArgumentError(absl::StrCat("argument '", arg.name, "' has no valid type"));
  }
  for (const std::string* attr : {&arg.type_attr, &arg.number_attr, &arg.type_list_attr}) {
    if (!attr->empty() && schema.FindAttr(*attr) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument '", arg.name, "' rests on the attribute '", *attr, "', which is not declared"));
    }
  }
  return arg;
}

// Body texts name inputs and outputs apart, so only names of one kind may not repeat.
template <typename Declarations>
absl::Status RefuseRepeatedNames(const Declarations& declarations, absl::string_view what) {
  absl::flat_hash_set<absl::string_view> names;
  for (const auto& declaration : declarations) {
    if (!names.insert(declaration.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(what, " '", declaration.name, "' is declared twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpSchema> DecodeOpDef(const OpDef& message) {
  OpSchema schema;
  schema.name = message.name();
  for (const OpDef::AttrDef& attr : message.attr()) {
    THALWEG_ASSIGN_OR_RETURN(AttrDecl decl, DecodeAttrDecl(attr));
    schema.attrs.push_back(std::move(decl));
  }
  THALWEG_RETURN_IF_ERROR(RefuseRepeatedNames(schema.attrs, "attribute"));
  for (const OpDef::ArgDef& arg : message.input_arg()) {
    THALWEG_ASSIGN_OR_RETURN(ArgDecl decl, DecodeArg(arg, schema));
    schema.inputs.push_back(std::move(decl));
  }
  for (const OpDef::ArgDef& arg : message.output_arg()) {
    THALWEG_ASSIGN_OR_RETURN(ArgDecl decl, DecodeArg(arg, schema));
    schema.outputs.push_back(std::move(decl));
  }
  THALWEG_RETURN_IF_ERROR(RefuseRepeatedNames(schema.inputs, "input"));
  THALWEG_RETURN_IF_ERROR(RefuseRepeatedNames(schema.outputs, "output"));
  schema.stateful = message.is_stateful();
  schema.commutative = message.is_commutative();
  schema.allows_uninitialized_input = message.allows_uninitialized_input();
  schema.deprecated_at = message.deprecation().version();
  schema.deprecation_advice = message.deprecation().explanation();
  return schema;
}

absl::Status FunctionLibrary::Add(std::shared_ptr<const FunctionDef> function) {
  const std::string& name = function->signature().name();
  if (name.empty()) return absl::InvalidArgumentError("a function of the library has no name");
  const auto found = functions_.find(name);
  if (found != functions_.end()) {
    if (google::protobuf::util::MessageDifferencer::Equals(*found->second.def, *function)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("function '", name, "' is defined twice, differently"));
  }
  absl::StatusOr<OpSchema> signature = DecodeOpDef(function->signature());
  if (!signature.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("function '", name, "': ", signature.status().message()));
  }
  functions_.emplace(name, Entry{std::move(function), std::make_shared<const OpSchema>(*std::move(signature))});
  return absl::OkStatus();
}

absl::Status FunctionLibrary::SetGradient(absl::string_view function, absl::string_view gradient) {
  const auto [entry, is_new] = gradients_.emplace(function, gradient);
  if (is_new || entry->second == gradient) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("function '", function, "' has two gradients, '", entry->second, "' and '", gradient, "'"));
}

const FunctionDef* FunctionLibrary::Find(absl::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second.def.get();
}

const OpSchema* FunctionLibrary::Signature(absl::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second.signature.get();
}

absl::string_view FunctionLibrary::Gradient(absl::string_view function) const {
  const auto found = gradients_.find(function);
  return found == gradients_.end() ? absl::string_view() : absl::string_view(found->second);
}

std::vector<absl::string_view> FunctionLibrary::Names() const {
  std::vector<absl::string_view> names;
  for (const auto& entry : functions_) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace thalweg
