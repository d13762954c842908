#include "thalweg/ops/common/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "thalweg/ops/common/element_cell.h"

namespace thalweg {
namespace {

constexpr double kNanosPerByte = 0.1;
constexpr double kNanosPerPart = 20;

}  // namespace

absl::StatusOr<Shape> WithLeadingDim(int64_t first, const Shape& rest) {
  Dims dims;
  dims.push_back(first);
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return Shape::Make(dims);
}

Shape WithoutLeadingDim(const Shape& shape) {
  return *Shape::Make(shape.dims().subspan(1));  // a part of a valid shape is one
}

Tensor RowsAs(const Tensor& value, int64_t begin, int64_t end, Shape shape) {
  return value.Rows(begin, end).AliasedAs(value.dtype(), std::move(shape));
}

void CopyToOffsets(KernelContext& ctx, absl::Span<const Tensor> parts, absl::Span<const int64_t> offsets, Tensor* out) {
  const double bytes = static_cast<double>(out->num_elements() * ElementBytes(out->dtype()));
  const double nanos = kNanosPerPart + kNanosPerByte * bytes / static_cast<double>(std::max<size_t>(parts.size(), 1));
  WithCell(out->dtype(), [&](auto cell) {
    using Cell = decltype(cell);
    char* to = static_cast<char*>(out->mutable_raw());
    ctx.ParallelFor(static_cast<int64_t>(parts.size()), nanos, [&, to](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t count = parts[i].num_elements();
        if (count > 0) Cell::CopyRun(to + offsets[i] * Cell::kBytes, static_cast<const char*>(parts[i].raw()), count);
      }
    });
  });
}

void CopyConsecutively(KernelContext& ctx, absl::Span<const Tensor> parts, Tensor* out) {
  std::vector<int64_t> offsets(parts.size());
  int64_t offset = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    offsets[i] = offset;
    offset += parts[i].num_elements();
  }
  CopyToOffsets(ctx, parts, offsets, out);
}

void ClearElements(Tensor* tensor) {
  const int64_t count = tensor->num_elements();
  if (count == 0) return;
  const auto clear = [](auto elements) { std::fill(elements.begin(), elements.end(), typename decltype(elements)::value_type()); };
  switch (tensor->dtype()) {
    case DType::kString: return clear(tensor->mutable_flat<std::string>());
    case DType::kResource: return clear(tensor->mutable_flat<ResourceHandle>());
    case DType::kVariant: return clear(tensor->mutable_flat<Variant>());
    default: std::memset(tensor->mutable_raw(), 0, static_cast<size_t>(count) * DTypeSize(tensor->dtype()));
  }
}

absl::StatusOr<Tensor> ZeroTensor(KernelContext& ctx, DType dtype, const Shape& shape) {
  THALWEG_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(dtype, shape, ctx.host_allocator(), ctx.node().id));
  ClearElements(&zeros);
  return zeros;
}

}  // namespace thalweg
