// thalweg ops: which ops there are, which kernels they have, and whether they cover a graph.
#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tools/advice.h"
#include "thalweg/tools/coverage.h"
#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const auto* const spec =
      new CommandSpec{"ops",
                      "Lists ops with their kernels and element types, or checks that a graph is covered.",
                      "[OP]",
                      0,
                      1,
                      {{FlagKind::kValue, "for", "", "g.pb", "the ops of this graph and what runs them"},
                       {FlagKind::kSwitch, "json", "", "", "for programs: arguments, attributes, kernels per backend"}},
                      {"thalweg ops Conv2D", "thalweg ops --for model.pb", "thalweg ops --json"}};
  return *spec;
}

std::string TypeText(const ArgDecl& arg) {
  std::string type = arg.type != DType::kInvalid   ? DTypeName(arg.type)
                     : !arg.type_list_attr.empty() ? arg.type_list_attr
                                                   : arg.type_attr;
  if (!arg.number_attr.empty()) type = absl::StrCat(arg.number_attr, "*", type);
  return arg.is_ref ? absl::StrCat("Ref(", type, ")") : type;
}

std::string SignatureText(const OpSchema& schema) {
  const auto list = [](const std::vector<ArgDecl>& args) {
    return absl::StrJoin(args, ", ",
                         [](std::string* out, const ArgDecl& a) { absl::StrAppend(out, a.name, ": ", TypeText(a)); });
  };
  return absl::StrCat(schema.name, "(", list(schema.inputs), ") -> (", list(schema.outputs), ")");
}

std::vector<std::string> TypeNames(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (DType t : types) names.push_back(DTypeName(t));
  return names;
}

OrderedJson ArgsJson(const std::vector<ArgDecl>& args) {
  OrderedJson list = OrderedJson::array();
  for (const ArgDecl& arg : args) list.push_back({{"name", arg.name}, {"type", TypeText(arg)}});
  return list;
}

OrderedJson AttrJson(const AttrDecl& attr) {
  OrderedJson json = {{"name", attr.name}, {"kind", attr.KindName()}};
  if (attr.has_default) json["default"] = AttrToString(attr.default_value);
  if (attr.has_minimum) json["minimum"] = attr.minimum;
  if (!attr.allowed_types.empty()) json["allowed_types"] = TypeNames(attr.allowed_types);
  if (!attr.allowed_strings.empty()) json["allowed_strings"] = attr.allowed_strings;
  return json;
}

OrderedJson KernelJson(const KernelDef& def) {
  OrderedJson constraints = OrderedJson::object();
  for (const auto& [attr, types] : def.constraints) constraints[attr] = TypeNames(types);
  return {
      {"backend", def.backend}, {"types", constraints}, {"host_memory", def.host_memory}, {"priority", def.priority}};
}

OrderedJson OpJson(const OpSchema& schema) {
  OrderedJson json;
  json["name"] = schema.name;
  json["inputs"] = ArgsJson(schema.inputs);
  json["outputs"] = ArgsJson(schema.outputs);
  json["attrs"] = OrderedJson::array();
  for (const AttrDecl& attr : schema.attrs) json["attrs"].push_back(AttrJson(attr));
  json["stateful"] = schema.stateful;
  json["shape_function"] = schema.shape_fn != nullptr;
  json["cost_function"] = schema.cost_fn != nullptr;
  json["kernels"] = OrderedJson::array();
  for (const KernelDef* def : BuiltinOps().kernels.ForOp(schema.name)) json["kernels"].push_back(KernelJson(*def));
  return json;
}

// The element types that kernels of one backend have for an attribute, all definitions together.
std::string KernelSummary(const std::string& op, absl::string_view backend) {
  std::map<std::string, std::vector<std::string>> types;
  int count = 0;
  for (const KernelDef* def : BuiltinOps().kernels.ForOp(op)) {
    if (def->backend != backend) continue;
    ++count;
    for (const auto& [attr, allowed] : def->constraints) {
      for (DType t : allowed) {
        std::vector<std::string>& names = types[attr];
        if (std::find(names.begin(), names.end(), DTypeName(t)) == names.end()) names.push_back(DTypeName(t));
      }
    }
  }
  if (count == 0) return "none";
  if (types.empty()) return "any type";
  return absl::StrJoin(types, "; ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, ": ", absl::StrJoin(entry.second, ", "));
  });
}

int ShowOp(const std::string& name, bool json, Console& console) {
  const OpSchema* schema = BuiltinOps().schemas.Find(name);
  if (schema == nullptr) {
    std::vector<std::string> names;
    for (const OpSchema* s : BuiltinOps().schemas.All()) names.push_back(s->name);
    const std::vector<std::string> nearest = NearestWords(name, names);
    return console.Fail(
        {absl::NotFoundError(absl::StrCat(
             "no op '", name, "'", nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", ")))),
         kExitUsage, nearest.empty() ? "thalweg ops" : absl::StrCat("thalweg ops ", nearest[0])});
  }
  if (json) {
    OrderedJson document = {{"schema", "thalweg.ops/1"}, {"ops", OrderedJson::array({OpJson(*schema)})}};
    console.Print(ToText(document));
    return kExitOk;
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  table.AddRow({"op", SignatureText(*schema)});
  for (const AttrDecl& attr : schema->attrs) {
    table.AddRow({"attribute", absl::StrCat(attr.name, ": ", attr.KindName(), attr.has_default ? " = " : "",
                                            attr.has_default ? AttrToString(attr.default_value) : "")});
  }
  if (schema->stateful) table.AddRow({"stateful", "never merged, folded or repeated"});
  table.AddRow({"cpu", KernelSummary(name, "cpu")});
  table.AddRow({"sim", KernelSummary(name, "sim")});
  console.Print(table.ToString());
  return kExitOk;
}

int ListAll(bool json, Console& console) {
  const std::vector<const OpSchema*> schemas = BuiltinOps().schemas.All();
  if (json) {
    OrderedJson document = {{"schema", "thalweg.ops/1"}, {"ops", OrderedJson::array()}};
    for (const OpSchema* schema : schemas) document["ops"].push_back(OpJson(*schema));
    console.Print(ToText(document));
    return kExitOk;
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
  for (const OpSchema* schema : schemas) {
    table.AddRow({schema->name, Ellipsis(absl::StrCat("cpu: ", KernelSummary(schema->name, "cpu")), 90),
                  KernelSummary(schema->name, "sim") == "none" ? "" : "sim"});
  }
  console.Print(table.ToString());
  console.Print(
      absl::StrCat(Plural(static_cast<int64_t>(schemas.size()), "op"), "; thalweg ops NAME shows one in full\n"));
  return kExitOk;
}

OrderedJson CoverageJson(const OpCoverage& row) {
  OrderedJson json = {{"op", row.op}, {"nodes", row.nodes}, {"known", row.known}};
  for (const auto& [backend, count] : row.runnable) json["runnable"][backend] = count;
  if (!row.first_missing.empty()) json["missing"] = {{"node", row.first_missing_node}, {"reason", row.first_missing}};
  return json;
}

int ShowCoverage(const std::string& path, bool json, Console& console) {
  const absl::StatusOr<std::vector<OpCoverage>> rows = CoverageOfFile(path);
  if (!rows.ok()) return console.Fail({rows.status(), kExitGraphUnusable, AdviceForLoad(path, rows.status())});
  const bool complete = std::all_of(rows->begin(), rows->end(), [](const OpCoverage& r) { return r.complete(); });
  if (json) {
    OrderedJson document = {
        {"schema", "thalweg.ops/1"}, {"graph", path}, {"complete", complete}, {"coverage", OrderedJson::array()}};
    for (const OpCoverage& row : *rows) document["coverage"].push_back(CoverageJson(row));
    console.Print(ToText(document));
    return complete ? kExitOk : kExitGraphUnusable;
  }
  Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  for (const OpCoverage& row : *rows) {
    std::string what = row.complete() ? "ok"
                       : !row.known   ? "unknown op"
                                      : absl::StrCat("no kernel: ", row.first_missing_node, ": ", row.first_missing);
    if (row.complete() && row.is_function) what = "function of this graph";
    table.AddRow({row.op, FormatCount(row.nodes), console.Paint(row.complete() ? Colour::kNone : Colour::kRed, what)});
  }
  console.Print(table.ToString());
  console.Print(complete ? "every node has a CPU kernel\n"
                         : "some nodes cannot run; steps that do not need them can\n");
  return complete ? kExitOk : kExitGraphUnusable;
}

int Run(const Arguments& arguments, Console& console) {
  const bool json = arguments.Has("json");
  if (const auto graph = arguments.Value("for")) return ShowCoverage(*graph, json, console);
  if (!arguments.positional().empty()) return ShowOp(arguments.positional()[0], json, console);
  return ListAll(json, console);
}

}  // namespace

const Verb kOpsVerb{&Spec, &Run};

}  // namespace thalweg::tools
