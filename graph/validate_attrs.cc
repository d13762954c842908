#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/validate.h"

namespace thalweg {
namespace {

// `Scalar` is how one value of the kind is held, `Element` how a list holds it.
template <typename Scalar, typename Element = Scalar>
bool Holds(const AttrDecl& decl, const Attr& value) {
  if (!decl.is_list) return std::holds_alternative<Scalar>(value);
  const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value);
  if (list == nullptr) return false;
  // An empty list fits every kind.
  return (*list)->values.index() == 0 || std::holds_alternative<std::vector<Element>>((*list)->values);
}

bool IsOfKind(const AttrDecl& decl, const Attr& value) {
  switch (decl.kind) {
    case AttrKind::kInt: return Holds<int64_t>(decl, value);
    case AttrKind::kFloat: return Holds<float>(decl, value);
    case AttrKind::kBool: return Holds<bool>(decl, value);
    case AttrKind::kString: return Holds<std::string>(decl, value);
    case AttrKind::kType: return Holds<DType>(decl, value);
    case AttrKind::kTensor: return Holds<TensorLiteralPtr>(decl, value);
    case AttrKind::kShape: return Holds<std::shared_ptr<const PartialShape>, PartialShape>(decl, value);
    case AttrKind::kFunc: return Holds<std::shared_ptr<const FunctionRef>, FunctionRef>(decl, value);
  }
  return false;
}

// The elements of a scalar or list attribute of type T.
template <typename T>
absl::Span<const T> ElementsOf(const Attr& value) {
  if (const T* scalar = std::get_if<T>(&value)) return absl::MakeConstSpan(scalar, 1);
  const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value);
  if (list == nullptr) return {};
  const auto* values = std::get_if<std::vector<T>>(&(*list)->values);
  return values == nullptr ? absl::Span<const T>() : absl::MakeConstSpan(*values);
}

size_t ListLength(const AttrList& list) {
  return std::visit(
      [](const auto& values) -> size_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::monostate>) return 0;
        else return values.size();
      },
      list.values);
}

absl::Status CheckMinimum(const AttrDecl& decl, const Attr& value) {
  if (!decl.has_minimum) return absl::OkStatus();
  if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value)) {
    const size_t length = ListLength(**list);
    if (decl.minimum <= 0 || length >= static_cast<uint64_t>(decl.minimum)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", decl.name, "' has ", length, " entries, but must have at least ", decl.minimum));
  }
  const auto* number = std::get_if<int64_t>(&value);
  if (number == nullptr || *number >= decl.minimum) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", decl.name, "' is ", *number, ", but must be at least ", decl.minimum));
}

absl::Status CheckTypes(const AttrDecl& decl, const Attr& value) {
  for (const DType type : ElementsOf<DType>(value)) {
    if (IsRef(type)) {
      return absl::InvalidArgumentError(absl::StrCat("attribute '", decl.name, "' is the reference type ",
                                                     DTypeName(type), "; only value types may be given"));
    }
    const auto& allowed = decl.allowed_types;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
      return absl::InvalidArgumentError(absl::StrCat("attribute '", decl.name, "' is ", DTypeName(type), ", but only ",
                                                     DTypeListString(allowed), " are allowed"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStrings(const AttrDecl& decl, const Attr& value) {
  const auto& allowed = decl.allowed_strings;
  if (allowed.empty()) return absl::OkStatus();
  for (const std::string& text : ElementsOf<std::string>(value)) {
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("attribute '", decl.name, "' is \"",
                                                   absl::CHexEscape(text.substr(0, 80)), "\", but only \"",
                                                   absl::StrJoin(allowed, "\", \""), "\" are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttr(const AttrDecl& decl, const Attr& value) {
  if (!IsOfKind(decl, value)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", decl.name, "' is ", AttrToString(value), " of kind ",
                                                   AttrKindName(value), ", but the op declares ", decl.KindName()));
  }
  THALWEG_RETURN_IF_ERROR(CheckMinimum(decl, value));
  if (decl.kind == AttrKind::kType) return CheckTypes(decl, value);
  if (decl.kind == AttrKind::kString) return CheckStrings(decl, value);
  return absl::OkStatus();
}

}  // namespace thalweg
