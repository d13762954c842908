// Attribute values of nodes and op declarations.
//
// Attr is a small immutable-by-convention value; large members (tensors, lists, functions) are shared, so copies are
// cheap. AttrMap is the sorted list of a node's own attributes; NodeAttrs adds the defaults of the op's declaration.
#pragma once

#include <atomic>
#include <cstddef>
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
// True for numbers, types and texts: what is copied and compared at a glance.
bool IsSmallAttr(const Attr& value);

// Copies share their entries until one of them is changed, so that nodes of copied graphs, and like nodes of one graph, cost one
// pointer each. Threading: different maps may be used from different threads, whatever they share.
class AttrMap {
 public:
  using Entry = std::pair<absl::string_view, Attr>;  // names are interned for the process

  AttrMap() = default;
  AttrMap(const AttrMap& other);
  AttrMap(AttrMap&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  AttrMap& operator=(AttrMap other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~AttrMap();

  // Null if there is none of that name.
  const Attr* Find(absl::string_view name) const;
  void Set(absl::string_view name, Attr value);
  bool Erase(absl::string_view name);
  size_t size() const { return entries().size(); }
  auto begin() const { return entries().begin(); }
  auto end() const { return entries().end(); }
  void Reserve(size_t n) { MutableEntries().reserve(n); }
  // True if both have the same entries in the same memory; maps of equal contents may have their own.
  bool SharesWith(const AttrMap& other) const { return shared_ == other.shared_; }
  // Tells maps that share apart from others, for as long as one of them lives.
  const void* identity() const { return shared_; }

 private:
  using Entries = std::vector<Entry>;  // sorted by name
  struct Shared {
    std::atomic<int64_t> owners{1};
    Entries entries;
  };

  const Entries& entries() const;
  Entries& MutableEntries();  // this map's alone

  Shared* shared_ = nullptr;  // null: empty
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
