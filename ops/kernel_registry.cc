#include "thalweg/ops/kernel_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

bool Allows(const std::vector<DType>& allowed, DType type) { return std::find(allowed.begin(), allowed.end(), type) != allowed.end(); }

// True if every constrained attribute of the node has an allowed type.
bool Matches(const KernelDef& def, const NodeAttrs& attrs) {
  for (const auto& [name, allowed] : def.constraints) {
    const Attr* value = attrs.Find(name);
    if (value == nullptr) return false;
    if (const DType* type = std::get_if<DType>(value)) {
      if (!Allows(allowed, *type)) return false;
      continue;
    }
    absl::StatusOr<std::vector<DType>> list = attrs.Get<std::vector<DType>>(name);
    if (!list.ok() || !std::all_of(list->begin(), list->end(), [&](DType t) { return Allows(allowed, t); })) return false;
  }
  return true;
}

std::string DescribeNode(const NodeAttrs& attrs) {
  std::string out = attrs.schema()->name;
  for (const AttrDecl& decl : attrs.schema()->attrs) {
    const Attr* value = attrs.Find(decl.name);
    if (decl.kind == AttrKind::kType && value != nullptr) absl::StrAppend(&out, " ", decl.name, "=", AttrToString(*value));
  }
  return out;
}

// The types that kernels of one backend have, attribute by attribute: "T: float32, float64; Tidx: int32". "" if there is
// no kernel on that backend.
std::string TypesOn(absl::string_view backend, const std::vector<std::unique_ptr<KernelDef>>& defs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_attr;
  bool any = false;
  for (const auto& def : defs) {
    if (def->backend != backend) continue;
    any = true;
    for (const auto& [name, types] : def->constraints) {
      auto entry = std::find_if(by_attr.begin(), by_attr.end(), [&](const auto& e) { return e.first == name; });
      if (entry == by_attr.end()) entry = by_attr.insert(by_attr.end(), {name, {}});
      for (const DType type : types) {
        std::string text = DTypeName(type);
        std::vector<std::string>& known = entry->second;
        if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(std::move(text));
      }
    }
  }
  if (any && by_attr.empty()) return "any type";
  return absl::StrJoin(by_attr, "; ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, ": ", absl::StrJoin(entry.second, ", "));
  });
}

absl::Status NoKernel(const NodeAttrs& attrs, absl::string_view backend, const std::vector<std::unique_ptr<KernelDef>>* defs) {
  std::string have = "there are none for this op";
  if (defs != nullptr) {
    const std::string types = TypesOn(backend, *defs);
    have = types.empty() ? absl::StrCat("none there; on ", defs->front()->backend, ": ", TypesOn(defs->front()->backend, *defs))
                         : absl::StrCat("have ", types);
  }
  return absl::NotFoundError(absl::StrCat("no kernel for ", DescribeNode(attrs), " on ", backend, " (", have, ")"));
}

}  // namespace

KernelDef& KernelRegistry::Add(absl::string_view op, absl::string_view backend, KernelFactory factory) {
  auto def = std::make_unique<KernelDef>();
  def->op = std::string(op);
  def->backend = std::string(backend);
  def->factory = factory;
  std::vector<std::unique_ptr<KernelDef>>& list = defs_[def->op];
  list.push_back(std::move(def));
  return *list.back();
}

absl::StatusOr<const KernelDef*> KernelRegistry::Find(const NodeAttrs& attrs, absl::string_view backend) const {
  auto it = defs_.find(attrs.schema()->name);
  if (it == defs_.end()) return NoKernel(attrs, backend, nullptr);
  const KernelDef* best = nullptr;
  bool tie = false;
  for (const auto& def : it->second) {
    if (def->backend != backend || !Matches(*def, attrs)) continue;
    if (best == nullptr || def->priority > best->priority) {
      best = def.get();
      tie = false;
    } else {
      tie = tie || def->priority == best->priority;
    }
  }
  if (best == nullptr) return NoKernel(attrs, backend, &it->second);
  if (tie) return absl::InvalidArgumentError(absl::StrCat("two kernels of equal priority match ", DescribeNode(attrs), " on ", backend));
  return best;
}

std::vector<const KernelDef*> KernelRegistry::ForOp(absl::string_view op) const {
  std::vector<const KernelDef*> out;
  auto it = defs_.find(op);
  if (it != defs_.end()) {
    for (const auto& def : it->second) out.push_back(def.get());
  }
  return out;
}

std::vector<const KernelDef*> KernelRegistry::All() const {
  std::vector<const KernelDef*> out;
  for (const auto& entry : defs_) {
    for (const auto& def : entry.second) out.push_back(def.get());
  }
  std::stable_sort(out.begin(), out.end(), [](const KernelDef* a, const KernelDef* b) { return a->op < b->op; });
  return out;
}

}  // namespace thalweg
