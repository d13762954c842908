#include "thalweg/graph/placement/kernel_support.h"

namespace thalweg {
namespace {

void AppendTypes(const Attr* value, std::vector<int>* key) {
  key->push_back(-1);  // separates attributes: lists have any length
  if (value == nullptr) return;
  if (const DType* type = std::get_if<DType>(value)) {
    key->push_back(static_cast<int>(*type));
  } else if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(value)) {
    const auto* types = std::get_if<std::vector<DType>>(&(*list)->values);
    if (types == nullptr) return;
    for (DType type : *types) key->push_back(static_cast<int>(type));
  }
}

}  // namespace

const KernelSupport* KernelSupportTable::For(const Node& node) {
  OpEntry& entry = EntryOf(node);
  key_.clear();
  const NodeAttrs attrs = node.node_attrs();
  for (absl::string_view name : entry.type_attrs) AppendTypes(attrs.Find(name), &key_);
  for (const auto& [types, support] : entry.variants) {
    if (types == key_) return support.get();
  }
  entry.variants.emplace_back(key_, Ask(node));
  return entry.variants.back().second.get();
}

KernelSupportTable::OpEntry& KernelSupportTable::EntryOf(const Node& node) {
  if (node.schema == nullptr) return by_function_[std::string(node.op)];
  auto [it, is_new] = by_schema_.try_emplace(node.schema);
  if (is_new) {
    for (const AttrDecl& decl : node.schema->attrs) {
      if (decl.kind == AttrKind::kType) it->second.type_attrs.push_back(decl.name);
    }
  }
  return it->second;
}

std::unique_ptr<KernelSupport> KernelSupportTable::Ask(const Node& node) const {
  auto support = std::make_unique<KernelSupport>();
  support->priorities.resize(devices_.size());
  support->refusals.resize(devices_.size());
  for (int d = 0; d < devices_.size(); ++d) {
    const std::string& backend = devices_[d].backend;
    if (absl::Status status = kernels_.CanRun(node, backend); !status.ok()) {
      support->refusals[d] = std::string(status.message());
      continue;
    }
    support->devices.set(d);
    support->priorities[d] = kernels_.Priority(node, backend);
    support->has_priorities |= support->priorities[d] != 0;
  }
  return support;
}

}  // namespace thalweg
