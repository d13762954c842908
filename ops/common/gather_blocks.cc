#include "thalweg/ops/common/gather_blocks.h"

#include <cstring>
#include <limits>
#include <string>

#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

constexpr double kNanosPerBlock = 4.0;  // a cache miss now and then
constexpr double kNanosPerByte = 0.1;
constexpr double kNanosPerObject = 20.0;

template <typename Cell>
void CopyBlock(char* dst, const char* src, int64_t block) {
  if (block == 1) Cell::Copy(dst, src);
  else Cell::CopyRun(dst, src, block);
}

template <typename Cell>
void CopyRange(const BlockGather& g, const char* src, char* dst, int64_t begin, int64_t end) {
  const int64_t block_bytes = g.block * Cell::kBytes;
  int64_t group = begin / g.count;
  int64_t i = begin % g.count;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t offset = g.offsets[group / g.outer * g.count + i];
    if (offset >= 0) CopyBlock<Cell>(dst + k * block_bytes, src + (group * g.group + offset) * Cell::kBytes, g.block);
    else if (Cell::kPlain) std::memset(dst + k * block_bytes, 0, block_bytes);
    if (++i == g.count) {
      i = 0;
      ++group;
    }
  }
}

}  // namespace

absl::Status RequireTextOfBlocks(KernelContext& ctx, DType dtype, const BlockGather& gather, const void* src) {
  if (dtype != DType::kString) return absl::OkStatus();
  const auto* strings = static_cast<const std::string*>(src);
  int64_t bytes = 0;
  for (int64_t group = 0; group < gather.batch * gather.outer; ++group) {
    const int64_t* offsets = gather.offsets + group / gather.outer * gather.count;
    for (int64_t i = 0; i < gather.count; ++i) {
      if (offsets[i] < 0) continue;
      const std::string* block = strings + group * gather.group + offsets[i];
      const int64_t block_bytes = TextBytes(absl::MakeConstSpan(block, static_cast<size_t>(gather.block)));
      if (!CheckedAdd(bytes, block_bytes, &bytes)) return RequireTextMemory(ctx, std::numeric_limits<int64_t>::max());
    }
  }
  return RequireTextMemory(ctx, bytes);
}

void GatherBlocks(KernelContext& ctx, DType dtype, const BlockGather& gather, const void* src, void* dst) {
  const int64_t blocks = gather.batch * gather.outer * gather.count;
  if (blocks == 0 || gather.block == 0) return;
  WithCell(dtype, [&](auto cell) {
    using Cell = decltype(cell);
    const double nanos =
        kNanosPerBlock + gather.block * (Cell::kPlain ? kNanosPerByte * Cell::kBytes : kNanosPerObject);
    ctx.ParallelFor(blocks, nanos, [&](int64_t begin, int64_t end) {
      CopyRange<Cell>(gather, static_cast<const char*>(src), static_cast<char*>(dst), begin, end);
    });
  });
}

}  // namespace thalweg
