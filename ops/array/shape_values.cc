#include "thalweg/ops/array/shape_values.h"

#include <utility>

#include "thalweg/proto/status_macros.h"

namespace thalweg {

std::optional<std::vector<ElementKnowledge>> KnownElements(const ShapeContext& c, int i) {
  std::vector<ElementKnowledge> elements;
  if (const std::optional<std::vector<int64_t>> ints = c.input_ints(i)) {
    for (const int64_t v : *ints) elements.push_back({v, v >= 0 ? v : kUnknownDim});
    return elements;
  }
  if (c.input_value(i)) {
    for (const int64_t d : *c.input_value(i)) {
      elements.push_back({IsKnownDim(d) ? std::optional<int64_t>(d) : std::nullopt, d});
    }
    return elements;
  }
  const int64_t count = c.input(i).has_rank() ? c.input(i).NumElementsOrUnknown() : -1;
  if (count < 0 || count > kMaxRank) return std::nullopt;
  elements.resize(count);
  return elements;
}

std::optional<Dims> KnownDims(const ShapeContext& c, int i) {
  if (c.input_literal(i) == nullptr && !c.input_value(i)) return std::nullopt;
  const std::optional<std::vector<ElementKnowledge>> elements = KnownElements(c, i);
  if (!elements || elements->size() > kMaxRank) return std::nullopt;
  Dims dims;
  for (const ElementKnowledge& e : *elements) dims.push_back(e.dim);
  return dims;
}

absl::StatusOr<std::optional<int64_t>> ConstantScalar(const ShapeContext& c, int i) {
  if (c.input_literal(i) == nullptr) return std::optional<int64_t>();
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  return c.input_int(i);
}

absl::Status SetOutputDims(ShapeContext& c, Dims dims) {
  Dims plain = dims;
  for (int64_t& d : plain) d = IsKnownDim(d) ? d : kUnknownDim;
  THALWEG_RETURN_IF_ERROR(PartialShape::Make(plain).status());
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace thalweg
