#include "thalweg/graph/lowering/lowered_names.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {

std::string UniqueFrameName(absl::string_view wanted, absl::flat_hash_set<std::string>* taken) {
  std::string name(wanted);
  for (int k = 1; !taken->insert(name).second; ++k) name = absl::StrCat(wanted, "_", k);
  return name;
}

std::string CompletedDevice(absl::string_view of_body, absl::string_view of_caller) {
  if (of_body.empty()) return std::string(of_caller);
  const absl::StatusOr<DeviceName> body = DeviceName::ParseLocalOrFull(of_body);
  absl::StatusOr<DeviceName> caller = DeviceName::ParseLocalOrFull(of_caller);
  if (!body.ok() || !caller.ok()) return std::string(of_body);
  // The number of a device of one type says nothing about another type's.
  if (body->type && body->type != caller->type) {
    caller->type.reset();
    caller->id.reset();
  }
  return body->CompletedFrom(*caller).ToString();
}

void LoweredNames::RewriteAttrs(Node* node) {
  if (node->schema != nullptr && node->schema->role == OpRole::kEnter) {
    const std::string frame = node->node_attrs().GetOr<std::string>("frame_name", "");
    std::string& renamed = new_frames_[frame];
    if (renamed.empty()) renamed = UniqueFrameName(absl::StrCat(prefix_, "/", frame), frames_);
    node->attrs.Set("frame_name", renamed);
  }
  const Attr* classes = node->attrs.Find("_class");
  if (classes == nullptr) return;
  std::vector<std::string> texts = node->node_attrs().GetOr<std::vector<std::string>>("_class", {});
  for (std::string& text : texts) {
    absl::string_view group = text;
    if (absl::ConsumePrefix(&group, "loc:@")) text = absl::StrCat("loc:@", prefix_, "/", group);
  }
  node->attrs.Set("_class", MakeListAttr(std::move(texts)));
}

}  // namespace thalweg
