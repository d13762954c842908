#include "thalweg/ops/linalg/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/common/target_clones.h"

namespace thalweg {
namespace {

constexpr int64_t kPanel = 128;  // columns whose sums stay in vector registers

// Smaller matrices stay in second-level caches (1 to 2 MiB) anyway; of much larger ones hardly anything is left there.
constexpr int64_t kSmallest = int64_t{3} << 18, kLargest = int64_t{6} << 20;

constexpr int kLanes = 16;
constexpr int kVectors = kPanel / kLanes;
using Vector [[gnu::vector_size(kLanes * sizeof(float))]] = float;

// sums[0, kPanel) = row * panel.
THALWEG_CLONES void RowTimesPanel(const float* row, const float* panel, int64_t rows, float* sums) {
  Vector sum[kVectors] = {};
  for (int64_t r = 0; r < rows; ++r, panel += kPanel) {
    const float factor = row[r];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      Vector column;
      std::memcpy(&column, panel + i * kLanes, sizeof(column));
      sum[i] += factor * column;
    }
  }
  std::memcpy(sums, sum, sizeof(sum));
}

}  // namespace

int64_t PackedMatrix::num_panels() const { return (columns_ + kPanel - 1) / kPanel; }

std::unique_ptr<PackedMatrix> PackedMatrix::Make(const KernelInit& init, size_t operand) {
  const TensorLiteralPtr constant = init.constant_input(operand);
  if (constant == nullptr || constant->dtype != DType::kFloat32 || constant->shape.rank() != 2) return nullptr;
  const int64_t bytes = constant->shape.num_elements() * static_cast<int64_t>(sizeof(float));
  if (bytes < kSmallest || bytes > kLargest) return nullptr;
  Device& device = *init.node().device;
  if (device.memory() != MemoryKind::kHost) return nullptr;
  absl::StatusOr<Tensor> plain = Tensor::FromLiteral(constant, device.allocator());
  if (!plain.ok()) return nullptr;
  const int64_t rows = constant->shape.dim(0), columns = constant->shape.dim(1);
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  absl::StatusOr<Tensor> packed =
      Tensor::Allocate(DType::kFloat32, Shape::Of({panels, rows, kPanel}), device.allocator(), init.node().id);
  if (!packed.ok()) return nullptr;
  const float* from = static_cast<const float*>(plain->raw());
  float* to = static_cast<float*>(packed->mutable_raw());
  for (int64_t first = 0; first < columns; first += kPanel) {
    const int64_t width = std::min(kPanel, columns - first);
    for (int64_t r = 0; r < rows; ++r, to += kPanel) {
      std::copy_n(from + r * columns + first, width, to);
      std::fill(to + width, to + kPanel, 0.0f);
    }
  }
  return std::unique_ptr<PackedMatrix>(new PackedMatrix(rows, columns, *std::move(packed)));
}

void PackedMatrix::Multiply(KernelContext& ctx, const float* row, float* c) {
  const bool backwards = backwards_.load(std::memory_order_relaxed);
  backwards_.store(!backwards, std::memory_order_relaxed);
  const int64_t panels = num_panels();
  const float* packed = static_cast<const float*>(panels_.raw());
  ctx.ParallelFor(panels, GemmNanos(DType::kFloat32, 1, kPanel, rows_), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = backwards ? panels - 1 - i : i;
      const int64_t first = panel * kPanel;
      if (first + kPanel <= columns_) {
        RowTimesPanel(row, packed + first * rows_, rows_, c + first);
        continue;
      }
      float sums[kPanel];
      RowTimesPanel(row, packed + first * rows_, rows_, sums);
      std::copy_n(sums, columns_ - first, c + first);
    }
  });
}

}  // namespace thalweg
