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

absl::Status NoKernel(const NodeAttrs& attrs, absl::string_view backend, const std::vector<std::unique_ptr<KernelDef>>* defs) {
  std::vector<std::string> have;
  if (defs != nullptr) {
    for (const auto& def : *defs) {
      std::string text = def->backend;
      for (const auto& [name, types] : def->constraints) absl::StrAppend(&text, " ", name, " in ", DTypeListString(types));
      have.push_back(std::move(text));
      if (have.size() == 12) {
        have.push_back("...");
        break;
      }
    }
  }
  return absl::NotFoundError(absl::StrCat("no kernel for ", DescribeNode(attrs), " on ", backend,
                                          have.empty() ? " (there are none for this op)" : " (have: ", absl::StrJoin(have, "; "),
                                          have.empty() ? "" : ")"));
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
