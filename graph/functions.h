// The functions that a graph file brings along: bodies as read, signatures as op declarations.
//
// Threading: filled by the loader, then read-only and thread-safe. Copies share the functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/op_schema.h"

namespace thalweg {

class FunctionDef;  // the generated messages; thalweg/function.pb.h, thalweg/op_def.pb.h
class OpDef;

// The declaration that an OpDef message holds. InvalidArgument for argument or attribute names that repeat, unknown
// attribute kinds, defaults of a wrong kind, and arguments without a type.
absl::StatusOr<OpSchema> DecodeOpDef(const OpDef& message);

class FunctionLibrary {
 public:
  // InvalidArgument if the signature is malformed, or a function of that name is there with another definition; adding
  // an equal one again does nothing.
  absl::Status Add(std::shared_ptr<const FunctionDef> function);
  // The function that computes the gradient of `function`. InvalidArgument if another one is set.
  absl::Status SetGradient(absl::string_view function, absl::string_view gradient);

  // Null if there is no such function.
  const FunctionDef* Find(absl::string_view name) const;
  const OpSchema* Signature(absl::string_view name) const;
  // "" if none is set.
  absl::string_view Gradient(absl::string_view function) const;

  size_t size() const { return functions_.size(); }
  // Sorted.
  std::vector<absl::string_view> Names() const;

 private:
  struct Entry {
    std::shared_ptr<const FunctionDef> def;
    std::shared_ptr<const OpSchema> signature;
  };
  absl::flat_hash_map<std::string, Entry> functions_;
  absl::flat_hash_map<std::string, std::string> gradients_;
};

}  // namespace thalweg
