#include "thalweg/graph/attrs.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <type_traits>

#include "absl/container/node_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/op_schema.h"

namespace thalweg {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string Quote(absl::string_view s) { return absl::StrCat("\"", absl::CHexEscape(s), "\""); }

std::string LiteralString(const TensorLiteral& t) { return absl::StrCat(DTypeName(t.dtype), t.shape.ToString()); }

std::string FunctionString(const FunctionRef& f) { return f.name; }

template <typename T>
std::string ElementString(const T& v) {
  if constexpr (std::is_same_v<T, std::string>) return Quote(v);
  else if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
  else if constexpr (std::is_same_v<T, DType>) return DTypeName(v);
  else if constexpr (std::is_same_v<T, PartialShape>) return v.ToString();
  else if constexpr (std::is_same_v<T, TensorLiteralPtr>) return LiteralString(*v);
  else if constexpr (std::is_same_v<T, FunctionRef>) return FunctionString(v);
  else return absl::StrCat(v);
}

template <typename T>
const char* ElementKind() {
  if constexpr (std::is_same_v<T, std::string>) return "string";
  else if constexpr (std::is_same_v<T, int64_t>) return "int";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_same_v<T, DType>) return "type";
  else if constexpr (std::is_same_v<T, PartialShape>) return "shape";
  else if constexpr (std::is_same_v<T, TensorLiteralPtr>) return "tensor";
  else return "func";
}

std::string ListString(const AttrList& list, size_t limit) {
  return std::visit(Overloaded{[](std::monostate) { return std::string("[]"); },
                               [limit](const auto& values) {
                                 std::string out = "[";
                                 for (size_t i = 0; i < values.size(); ++i) {
                                   if (i) out += ", ";
                                   if (out.size() > limit) {
                                     out += "...";
                                     break;
                                   }
                                   using T = typename std::decay_t<decltype(values)>::value_type;
                                   out += ElementString<T>(values[i]);
                                 }
                                 return out + "]";
                               }},
                    list.values);
}

bool LiteralEquals(const TensorLiteralPtr& a, const TensorLiteralPtr& b) {
  if (a == b) return true;
  return a && b && a->dtype == b->dtype && a->shape == b->shape && a->content == b->content &&
         a->strings == b->strings && a->fault == b->fault;
}

bool MapEquals(const AttrMap& a, const AttrMap& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && AttrEquals(x.second, y.second);
         });
}

bool FunctionEquals(const FunctionRef& a, const FunctionRef& b) {
  return a.name == b.name && MapEquals(*a.attrs, *b.attrs);
}

template <typename T>
bool ElementEquals(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, TensorLiteralPtr>) return LiteralEquals(a, b);
  else if constexpr (std::is_same_v<T, FunctionRef>) return FunctionEquals(a, b);
  else return a == b;
}

bool ListEquals(const AttrList& a, const AttrList& b) {
  return std::visit(
      Overloaded{[&](std::monostate) { return b.values.index() == 0; },
                 [&](const auto& x) {
                   const auto* y = std::get_if<std::decay_t<decltype(x)>>(&b.values);
                   using T = typename std::decay_t<decltype(x)>::value_type;
                   return y != nullptr && x.size() == y->size() &&
                          std::equal(x.begin(), x.end(), y->begin(),
                                     [](const T& p, const T& q) { return ElementEquals<T>(p, q); });
                 }},
      a.values);
}

// The list of type std::vector<T> in `value`; an empty list of unknown kind counts as an empty vector.
template <typename T>
const std::vector<T>* ListOf(const Attr& value) {
  static const auto& kEmpty = *new std::vector<T>();
  const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value);
  if (list == nullptr) return nullptr;
  if ((*list)->values.index() == 0) return &kEmpty;
  return std::get_if<std::vector<T>>(&(*list)->values);
}

template <typename T>
struct Reader;  // Reader<T>::Read(value, out) -> bool

template <typename T>
bool ReadPlain(const Attr& value, T* out) {
  const T* v = std::get_if<T>(&value);
  if (v != nullptr) *out = *v;
  return v != nullptr;
}
#define THALWEG_PLAIN_READER_(T) \
  template <> struct Reader<T> { static bool Read(const Attr& v, T* out) { return ReadPlain(v, out); } };
THALWEG_PLAIN_READER_(std::string)
THALWEG_PLAIN_READER_(int64_t)
THALWEG_PLAIN_READER_(float)
THALWEG_PLAIN_READER_(bool)
THALWEG_PLAIN_READER_(DType)
THALWEG_PLAIN_READER_(TensorLiteralPtr)
#undef THALWEG_PLAIN_READER_

bool FitsInt32(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
}

template <>
struct Reader<int32_t> {
  static bool Read(const Attr& v, int32_t* out) {
    const int64_t* i = std::get_if<int64_t>(&v);
    if (i == nullptr || !FitsInt32(*i)) return false;
    *out = static_cast<int32_t>(*i);
    return true;
  }
};
template <>
struct Reader<PartialShape> {
  static bool Read(const Attr& v, PartialShape* out) {
    const auto* s = std::get_if<std::shared_ptr<const PartialShape>>(&v);
    if (s == nullptr) return false;
    *out = **s;
    return true;
  }
};
template <>
struct Reader<FunctionRef> {
  static bool Read(const Attr& v, FunctionRef* out) {
    const auto* f = std::get_if<std::shared_ptr<const FunctionRef>>(&v);
    if (f == nullptr) return false;
    *out = **f;
    return true;
  }
};
template <typename T>
struct Reader<std::vector<T>> {
  static bool Read(const Attr& v, std::vector<T>* out) {
    const std::vector<T>* list = ListOf<T>(v);
    if (list == nullptr) return false;
    *out = *list;
    return true;
  }
};
template <>
struct Reader<std::vector<int32_t>> {
  static bool Read(const Attr& v, std::vector<int32_t>* out) {
    const std::vector<int64_t>* list = ListOf<int64_t>(v);
    if (list == nullptr || !std::all_of(list->begin(), list->end(), FitsInt32)) return false;
    out->assign(list->begin(), list->end());
    return true;
  }
};

}  // namespace

std::string AttrKindName(const Attr& value) {
  return std::visit(
      Overloaded{[](std::monostate) -> std::string { return "nothing"; },
                 [](const std::shared_ptr<const PartialShape>&) -> std::string { return "shape"; },
                 [](const std::shared_ptr<const FunctionRef>&) -> std::string { return "func"; },
                 [](const AttrPlaceholder&) -> std::string { return "placeholder"; },
                 [](const std::shared_ptr<const AttrList>& list) -> std::string {
                   return std::visit(Overloaded{[](std::monostate) -> std::string { return "list()"; },
                                                [](const auto& values) -> std::string {
                                                  using T = typename std::decay_t<decltype(values)>::value_type;
                                                  return absl::StrCat("list(", ElementKind<T>(), ")");
                                                }},
                                     list->values);
                 },
                 [](const auto& v) -> std::string { return ElementKind<std::decay_t<decltype(v)>>(); }},
      value);
}

std::string AttrToString(const Attr& value, size_t limit) {
  std::string out = std::visit(
      Overloaded{[](std::monostate) -> std::string { return "<nothing>"; },
                 [](const std::shared_ptr<const PartialShape>& s) { return s->ToString(); },
                 [](const std::shared_ptr<const FunctionRef>& f) { return FunctionString(*f); },
                 [](const AttrPlaceholder& p) { return absl::StrCat("$", p.name); },
                 [limit](const std::shared_ptr<const AttrList>& list) { return ListString(*list, limit); },
                 [](const auto& v) { return ElementString<std::decay_t<decltype(v)>>(v); }},
      value);
  if (out.size() > limit + 3) out = absl::StrCat(out.substr(0, limit), "...");
  return out;
}

bool AttrEquals(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  return std::visit(Overloaded{[](std::monostate) { return true; },
                               [&](const std::shared_ptr<const PartialShape>& s) {
                                 return *s == *std::get<std::shared_ptr<const PartialShape>>(b);
                               },
                               [&](const std::shared_ptr<const FunctionRef>& f) {
                                 return FunctionEquals(*f, *std::get<std::shared_ptr<const FunctionRef>>(b));
                               },
                               [&](const std::shared_ptr<const AttrList>& l) {
                                 return ListEquals(*l, *std::get<std::shared_ptr<const AttrList>>(b));
                               },
                               [&](const AttrPlaceholder& p) { return p.name == std::get<AttrPlaceholder>(b).name; },
                               [&](const auto& v) {
                                 using T = std::decay_t<decltype(v)>;
                                 return ElementEquals<T>(v, std::get<T>(b));
                               }},
                    a);
}

uint64_t AttrHash(const Attr& value) {
  if (const auto* v = std::get_if<DType>(&value)) return absl::HashOf(value.index(), *v);
  if (const auto* v = std::get_if<int64_t>(&value)) return absl::HashOf(value.index(), *v);
  if (const auto* v = std::get_if<bool>(&value)) return absl::HashOf(value.index(), *v);
  if (const auto* v = std::get_if<std::string>(&value)) return absl::HashOf(value.index(), *v);
  // Kind and printed form, plus the content of tensors: equal values print alike, and collisions only cost a
  // comparison.
  uint64_t h = absl::HashOf(value.index(), AttrToString(value, 200));
  if (const auto* t = std::get_if<TensorLiteralPtr>(&value); t != nullptr && *t)
    h = absl::HashOf(h, (*t)->content.substr(0, 4096));
  return h;
}

bool IsSmallAttr(const Attr& value) {
  constexpr size_t kShortText = 64;
  if (const auto* text = std::get_if<std::string>(&value)) return text->size() <= kShortText;
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<float>(value) ||
         std::holds_alternative<bool>(value) || std::holds_alternative<DType>(value);
}

AttrMap::AttrMap(const AttrMap& other) : shared_(other.shared_) {
  if (shared_ != nullptr) shared_->owners.fetch_add(1, std::memory_order_relaxed);
}

AttrMap::~AttrMap() {
  if (shared_ != nullptr && shared_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
}

const AttrMap::Entries& AttrMap::entries() const {
  static const auto& kNone = *new Entries();
  return shared_ == nullptr ? kNone : shared_->entries;
}

AttrMap::Entries& AttrMap::MutableEntries() {
  // The acquire pairs with the release of whoever shared the entries last: what it read was read before they change.
  if (shared_ == nullptr || shared_->owners.load(std::memory_order_acquire) != 1) {
    auto own = std::make_unique<Shared>();
    own->entries = entries();
    AttrMap others;
    std::swap(others.shared_, shared_);
    shared_ = own.release();
  }
  return shared_->entries;
}

const Attr* AttrMap::Find(absl::string_view name) const {
  for (const auto& [key, value] : entries()) {
    if (key == name) return &value;
  }
  return nullptr;
}

void AttrMap::Set(absl::string_view name, Attr value) {
  Entries& entries = MutableEntries();
  auto it = std::lower_bound(entries.begin(), entries.end(), name,
                             [](const auto& e, absl::string_view n) { return e.first < n; });
  if (it != entries.end() && it->first == name) it->second = std::move(value);
  else entries.emplace(it, InternAttrName(name), std::move(value));
}

bool AttrMap::Erase(absl::string_view name) {
  if (Find(name) == nullptr) return false;
  Entries& entries = MutableEntries();
  entries.erase(std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == name; }));
  return true;
}

absl::string_view InternAttrName(absl::string_view name) {
  static auto& mutex = *new std::mutex;
  static auto& names = *new absl::node_hash_set<std::string>();  // nodes never move, so views stay valid
  std::lock_guard<std::mutex> lock(mutex);
  return *names.emplace(name).first;
}

const Attr* NodeAttrs::Find(absl::string_view name) const {
  if (attrs_ != nullptr) {
    if (const Attr* value = attrs_->Find(name)) return value;
  }
  if (schema_ != nullptr) {
    const AttrDecl* decl = schema_->FindAttr(name);
    if (decl != nullptr && decl->has_default) return &decl->default_value;
  }
  return nullptr;
}

template <typename T>
absl::StatusOr<T> NodeAttrs::Get(absl::string_view name) const {
  const Attr* value = Find(name);
  if (value == nullptr) return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is missing"));
  T out{};
  if (!Reader<T>::Read(*value, &out)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is ", AttrToString(*value), " (",
                                                   AttrKindName(*value),
                                                   "), which is not of the kind or range needed"));
  }
  return out;
}

#define THALWEG_INSTANTIATE_GET_(T) template absl::StatusOr<T> NodeAttrs::Get<T>(absl::string_view) const;
THALWEG_INSTANTIATE_GET_(std::string)
THALWEG_INSTANTIATE_GET_(int64_t)
THALWEG_INSTANTIATE_GET_(int32_t)
THALWEG_INSTANTIATE_GET_(float)
THALWEG_INSTANTIATE_GET_(bool)
THALWEG_INSTANTIATE_GET_(DType)
THALWEG_INSTANTIATE_GET_(PartialShape)
THALWEG_INSTANTIATE_GET_(TensorLiteralPtr)
THALWEG_INSTANTIATE_GET_(FunctionRef)
THALWEG_INSTANTIATE_GET_(std::vector<std::string>)
THALWEG_INSTANTIATE_GET_(std::vector<int64_t>)
THALWEG_INSTANTIATE_GET_(std::vector<int32_t>)
THALWEG_INSTANTIATE_GET_(std::vector<float>)
THALWEG_INSTANTIATE_GET_(std::vector<bool>)
THALWEG_INSTANTIATE_GET_(std::vector<DType>)
THALWEG_INSTANTIATE_GET_(std::vector<PartialShape>)
THALWEG_INSTANTIATE_GET_(std::vector<FunctionRef>)
#undef THALWEG_INSTANTIATE_GET_

}  // namespace thalweg
