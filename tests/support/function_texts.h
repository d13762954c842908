// Texts of graphs with functions, for tests: short forms of nodes and of function definitions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace thalweg::testing {

// One attribute: Attr("T", "type: DT_INT32").
inline std::string AttrText(absl::string_view name, absl::string_view value) {
  return absl::StrCat(" attr { key: '", name, "' value { ", value, " } }");
}
inline std::string TypeAttr(absl::string_view name, absl::string_view type) { return AttrText(name, absl::StrCat("type: ", type)); }
inline std::string TypesAttr(absl::string_view name, const std::vector<std::string>& types) {
  std::string list;
  for (const std::string& type : types) absl::StrAppend(&list, " type: ", type);
  return AttrText(name, absl::StrCat("list {", list, " }"));
}
inline std::string FuncAttr(absl::string_view name, absl::string_view function, absl::string_view attrs = "") {
  return AttrText(name, absl::StrCat("func { name: '", function, "' ", attrs, " }"));
}
inline std::string NodeText(absl::string_view name, absl::string_view op, const std::vector<std::string>& inputs, absl::string_view attrs = "",
                            absl::string_view keyword = "node") {
  std::string text = absl::StrCat(keyword, " { name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: '", input, "'");
  return absl::StrCat(text, attrs, " }\n");
}
inline std::string IntConst(absl::string_view name, int value, absl::string_view keyword = "node") {
  return NodeText(name, "Const", {},
                  TypeAttr("dtype", "DT_INT32") + AttrText("value", absl::StrCat("tensor { dtype: DT_INT32 tensor_shape {} int_val: ", value, " }")),
                  keyword);
}
inline std::string IntPlaceholder(absl::string_view name) { return NodeText(name, "Placeholder", {}, TypeAttr("dtype", "DT_INT32")); }

// A function; `args` and `results` are pairs of name and type ("DT_INT32", or an attribute's name).
struct FunctionText {
  std::string name;
  std::vector<std::pair<std::string, std::string>> args;
  std::vector<std::pair<std::string, std::string>> results;
  std::string nodes;                                       // node_def texts
  std::vector<std::pair<std::string, std::string>> rets;   // result, tensor
  std::vector<std::string> control_results;                // nodes
  bool stateful = false;
  std::string attrs;                                       // of the signature
  std::string extra;                                       // further fields of the signature

  std::string Arg(const std::pair<std::string, std::string>& arg, absl::string_view field) const {
    const bool is_type = arg.second.rfind("DT_", 0) == 0;
    return absl::StrCat(" ", field, " { name: '", arg.first, "' ", is_type ? absl::StrCat("type: ", arg.second) : absl::StrCat("type_attr: '", arg.second, "'"), " }");
  }
  std::string ToString() const {
    std::string text = absl::StrCat("function { signature { name: '", name, "'", stateful ? " is_stateful: true" : "");
    for (const auto& arg : args) text += Arg(arg, "input_arg");
    for (const auto& result : results) text += Arg(result, "output_arg");
    absl::StrAppend(&text, attrs, extra);
    for (const std::string& control : control_results) absl::StrAppend(&text, " control_output: '", control, "'");
    absl::StrAppend(&text, " }\n", nodes);
    for (const auto& [result, tensor] : rets) absl::StrAppend(&text, " ret { key: '", result, "' value: '", tensor, "' }");
    for (const std::string& control : control_results) absl::StrAppend(&text, " control_ret { key: '", control, "' value: '", control, "' }");
    return absl::StrCat(text, " }\n");
  }
};

inline std::string Library(const std::vector<FunctionText>& functions) {
  std::string text = "library {\n";
  for (const FunctionText& function : functions) text += function.ToString();
  return text + "}\n";
}

}  // namespace thalweg::testing
