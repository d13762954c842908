// Names in a body that is copied into another graph: what names a node, frame or device must fit its new surroundings.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// A frame name that `taken` does not have yet, `wanted` if that is free; it is added there (I4).
std::string UniqueFrameName(absl::string_view wanted, absl::flat_hash_set<std::string>* taken);

// The device that a body's node asks for, what it leaves open taken from the caller's (E31). Texts that are no device
// names are returned as they are: placement reports them.
std::string CompletedDevice(absl::string_view of_body, absl::string_view of_caller);

// The attributes of one copy of a body, under one prefix.
class LoweredNames {
 public:
  // `frames`: the names that are taken; must outlive this.
  LoweredNames(absl::string_view prefix, absl::flat_hash_set<std::string>* frames) : prefix_(prefix), frames_(frames) {}

  // Prefixes the names of frames and of colocation groups (E26).
  void RewriteAttrs(Node* node);

 private:
  const std::string prefix_;
  absl::flat_hash_set<std::string>* const frames_;
  absl::flat_hash_map<std::string, std::string> new_frames_;  // by name in the body
};

}  // namespace thalweg
