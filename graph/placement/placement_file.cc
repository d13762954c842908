#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr char kSchema[] = "thalweg.placement/1";

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed placement: ", what, "; expected {\"schema\": \"", kSchema,
                                                 "\", \"nodes\": {\"NODE\": \"DEVICE\"}}"));
}

absl::Status ReadNodes(const Json& nodes, const std::string& prefix,
                       absl::flat_hash_map<std::string, std::string>* placement) {
  if (!nodes.is_object()) return Malformed(absl::StrCat("'", prefix, "nodes' is no object"));
  for (const auto& [name, device] : nodes.items()) {
    if (!device.is_string()) return Malformed(absl::StrCat("the device of node '", prefix, name, "' is no text"));
    placement->emplace(absl::StrCat(prefix, name), device.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ReadPlacementFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read placement file '", path, "'"));
  std::ostringstream text;
  text << file.rdbuf();
  absl::StatusOr<absl::flat_hash_map<std::string, std::string>> placement = ParsePlacement(text.str());
  if (placement.ok()) return placement;
  return absl::Status(placement.status().code(), absl::StrCat(path, ": ", placement.status().message()));
}

absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ParsePlacement(absl::string_view json) {
  const Json document = Json::parse(json.begin(), json.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return Malformed("not JSON");
  if (!document.is_object()) return Malformed("not an object");
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != kSchema) return Malformed("no or another schema");
  absl::flat_hash_map<std::string, std::string> placement;
  if (const auto nodes = document.find("nodes"); nodes != document.end()) {
    THALWEG_RETURN_IF_ERROR(ReadNodes(*nodes, "", &placement));
  }
  if (const auto functions = document.find("functions"); functions != document.end()) {
    if (!functions->is_object()) return Malformed("'functions' is no object");
    for (const auto& [function, nodes] : functions->items()) {
      THALWEG_RETURN_IF_ERROR(ReadNodes(nodes, absl::StrCat(function, "/"), &placement));
    }
  }
  return placement;
}

std::string WritePlacementJson(const Graph& graph, const Placement& placement,
                               absl::Span<const PlacementDevice> devices) {
  OrderedJson nodes = OrderedJson::object(), functions = OrderedJson::object();
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    const int device = placement.records[id].device;
    if (node.removed || device < 0) continue;
    const std::string name = devices[device].name.ToString();
    if (node.inserted_by == nullptr) {
      nodes[std::string(node.name)] = name;
      continue;
    }
    // Of the copies of a function's node the first one speaks for all: the file has one place for them.
    const std::string copied = node.node_attrs().GetOr<std::string>(kFunctionNodeAttr, "");
    const size_t slash = copied.find('/');
    if (slash != std::string::npos) functions[copied.substr(0, slash)].emplace(copied.substr(slash + 1), name);
  }
  const OrderedJson document = {{"schema", kSchema}, {"nodes", std::move(nodes)}, {"functions", std::move(functions)}};
  return document.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace thalweg
