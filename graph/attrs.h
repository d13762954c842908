// Attribute values of nodes and op declarations.
//
// Attr is a small immutable-by-convention value; large members (tensors, lists, functions) are shared, so copies are
// cheap. AttrMap is the sorted list of a node's own attributes; NodeAttrs adds the defaults of the op's declaration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

struct OpSchema;
class AttrMap;

// A function with the attributes that instantiate it.
struct FunctionRef {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // never null
};
// In a function body: the attribute of the call whose value stands here.
struct AttrPlaceholder {
  std::string name;
};
// A list. All elements have one kind; an empty list has none (monostate) and fits every list type.
struct AttrList {
  std::variant<std::monostate, std::vector<std::string>, std::vector<int64_t>, std::vector<float>, std::vector<bool>,
               std::vector<DType>, std::vector<PartialShape>, std::vector<TensorLiteralPtr>, std::vector<FunctionRef>>
      values;
};

using Attr = std::variant<std::monostate, std::string, int64_t, float, bool, DType, std::shared_ptr<const PartialShape>,
                               TensorLiteralPtr, std::shared_ptr<const FunctionRef>, std::shared_ptr<const AttrList>,
                               AttrPlaceholder>;

inline Attr MakeShapeAttr(PartialShape s) { return std::make_shared<const PartialShape>(std::move(s)); }
template <typename T>
Attr MakeListAttr(std::vector<T> values) {
  auto list = std::make_shared<AttrList>();
  list->values = std::move(values);
  return std::shared_ptr<const AttrList>(std::move(list));
}

// "int", "list(type)", "tensor", ... as written in op declarations; "nothing" for monostate.
std::string AttrKindName(const Attr& value);
// One line for messages and dumps, shortened to about `limit` characters.
std::string AttrToString(const Attr& value, size_t limit = 80);
// Structural equality (tensors by content).
bool AttrEquals(const Attr& a, const Attr& b);
// A hash consistent with AttrEquals.
uint64_t AttrHash(const Attr& value);

class AttrMap {
 public:
  // Null if there is none of that name.
  const Attr* Find(absl::string_view name) const;
  void Set(absl::string_view name, Attr value);
  bool Erase(absl::string_view name);
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  void Reserve(size_t n) { entries_.reserve(n); }

 private:
  std::vector<std::pair<absl::string_view, Attr>> entries_;  // sorted by name; names are interned for the process
};

// Process-wide interning of attribute names: few distinct ones exist, so they are never freed.
absl::string_view InternAttrName(absl::string_view name);

// What shape functions, cost functions and kernels read: the node's attributes, then the declaration's defaults.
class NodeAttrs {
 public:
  NodeAttrs(const AttrMap* attrs, const OpSchema* schema) : attrs_(attrs), schema_(schema) {}

  // Null if neither the node nor the declaration has it.
  const Attr* Find(absl::string_view name) const;
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  const OpSchema* schema() const { return schema_; }

  // Typed reading. T is one of: std::string, int64_t, int32_t (range-checked), float, bool, DType, PartialShape,
  // TensorLiteralPtr, FunctionRef, and std::vector of std::string, int64_t, int32_t, float, bool, DType, PartialShape.
  // InvalidArgument, naming the attribute, if it is missing or of another kind.
  template <typename T>
  absl::StatusOr<T> Get(absl::string_view name) const;
  // The same with a value for "not there" (a wrong kind gives the fallback too: loading has already reported it).
  template <typename T>
  T GetOr(absl::string_view name, T fallback) const {
    absl::StatusOr<T> value = Get<T>(name);
    return value.ok() ? *std::move(value) : std::move(fallback);
  }

 private:
  const AttrMap* attrs_;
  const OpSchema* schema_;
};

}  // namespace thalweg
