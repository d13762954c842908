#include "thalweg/ops/array/element_classes.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace thalweg {
namespace {

// Element i, counted over all tensors, joins the class stored under `key`, or opens it.
template <typename Map, typename Key>
void Join(ElementClasses* classes, Map& map, const Key& key) {
  const int64_t i = static_cast<int64_t>(classes->of_element.size());
  const auto [it, fresh] = map.try_emplace(key, static_cast<int64_t>(classes->first.size()));
  if (fresh) classes->first.push_back(i);
  classes->of_element.push_back(it->second);
}
void JoinAlone(ElementClasses* classes) {
  const int64_t i = static_cast<int64_t>(classes->of_element.size());
  classes->of_element.push_back(static_cast<int64_t>(classes->first.size()));
  classes->first.push_back(i);
}

// Floating formats as bits: exponent all ones and a mantissa is NaN; everything but the sign zero is zero.
template <typename Bits>
struct FloatFormat {
  Bits magnitude;
  Bits infinity;
  bool zeros_equal;  // TensorFlow tells the zeros of the 16-bit formats apart, those of the others not
};
constexpr FloatFormat<uint16_t> kHalfFormat{0x7fff, 0x7c00, false};
constexpr FloatFormat<uint16_t> kBFloat16Format{0x7fff, 0x7f80, false};
constexpr FloatFormat<uint32_t> kFloatFormat{0x7fffffffu, 0x7f800000u, true};
constexpr FloatFormat<uint64_t> kDoubleFormat{0x7fffffffffffffffu, 0x7ff0000000000000u, true};

using Tensors = std::vector<const Tensor*>;

template <typename Bits>
void ClassifyBits(const Tensors& tensors, ElementClasses* classes) {
  absl::flat_hash_map<Bits, int64_t> map;
  for (const Tensor* t : tensors) {
    const Bits* values = static_cast<const Bits*>(t->raw());
    for (int64_t i = 0; i < t->num_elements(); ++i) Join(classes, map, values[i]);
  }
}

template <typename Bits>
void ClassifyFloats(const Tensors& tensors, const FloatFormat<Bits>& format, ElementClasses* classes) {
  absl::flat_hash_map<Bits, int64_t> map;
  for (const Tensor* t : tensors) {
    const Bits* values = static_cast<const Bits*>(t->raw());
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      const Bits magnitude = values[i] & format.magnitude;
      if (magnitude > format.infinity) JoinAlone(classes);
      else Join(classes, map, magnitude == 0 && format.zeros_equal ? magnitude : values[i]);
    }
  }
}

void ClassifyStrings(const Tensors& tensors, ElementClasses* classes) {
  absl::flat_hash_map<absl::string_view, int64_t> map;
  for (const Tensor* t : tensors) {
    for (const std::string& value : t->flat<std::string>()) Join(classes, map, absl::string_view(value));
  }
}

}  // namespace

ElementClasses ClassifyElements(const Tensor& t, const Tensor* more) {
  Tensors tensors = {&t};
  if (more != nullptr) tensors.push_back(more);
  ElementClasses classes;
  switch (t.dtype()) {
    case DType::kString: ClassifyStrings(tensors, &classes); return classes;
    case DType::kFloat16: ClassifyFloats(tensors, kHalfFormat, &classes); return classes;
    case DType::kBFloat16: ClassifyFloats(tensors, kBFloat16Format, &classes); return classes;
    case DType::kFloat32: ClassifyFloats(tensors, kFloatFormat, &classes); return classes;
    case DType::kFloat64: ClassifyFloats(tensors, kDoubleFormat, &classes); return classes;
    default: break;
  }
  switch (DTypeSize(t.dtype())) {
    case 1: ClassifyBits<uint8_t>(tensors, &classes); break;
    case 2: ClassifyBits<uint16_t>(tensors, &classes); break;
    case 4: ClassifyBits<uint32_t>(tensors, &classes); break;
    default: ClassifyBits<uint64_t>(tensors, &classes); break;
  }
  return classes;
}

}  // namespace thalweg
