// The data-movement driver against a loop that does one element at a time, over random index spaces.
#include "thalweg/ops/common/strided_copy.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/tests/support/fake_step.h"

namespace thalweg {
namespace {

// A context good for ParallelFor only, which is all the drivers need.
class Driver {
 public:
  explicit Driver(int pieces) {
    step_.set_pieces(pieces);
    ctx_.Bind(&node_, &step_, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  KernelContext& ctx() { return ctx_; }

 private:
  testing::FakeStep step_;
  KernelNode node_;
  KernelContext ctx_;
};

template <typename T>
void NaiveCopy(const CopyDims& dims, size_t d, const T* src, T* dst) {
  if (d == dims.size()) {
    *dst = *src;
    return;
  }
  for (int64_t i = 0; i < dims[d].extent; ++i) {
    NaiveCopy(dims, d + 1, src + i * dims[d].src_stride, dst + i * dims[d].dst_stride);
  }
}

template <typename T>
T MakeValue(int64_t i) {
  return static_cast<T>(i * 37 + 11);
}
template <>
std::string MakeValue(int64_t i) {
  return "value " + std::to_string(i);
}
template <>
std::complex<double> MakeValue(int64_t i) {
  return {static_cast<double>(i), -static_cast<double>(i)};
}

// A destination that is dense in some order of its dimensions, a source with arbitrary, repeated or negative strides.
struct Space {
  CopyDims dims;
  int64_t src_first = 0;  // offset of index 0
  int64_t src_size = 1;
  int64_t dst_size = 1;
};

Space RandomSpace(std::mt19937& rng) {
  const auto pick = [&rng](int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); };
  Space space;
  const int rank = static_cast<int>(pick(6));
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 8, 17, 40};
  space.dims.resize(rank);
  std::vector<int> order(rank);
  for (int d = 0; d < rank; ++d) {
    order[d] = d;
    space.dims[d].extent = pick(40) == 0 ? 0 : kExtents[pick(rank > 3 ? 5 : 8)];
  }
  for (int d = rank - 1; d >= 0; --d) {
    space.dims[d].dst_stride = space.dst_size;
    space.dst_size *= std::max<int64_t>(space.dims[d].extent, 1);
  }
  std::shuffle(order.begin(), order.end(), rng);
  for (const int d : order) {
    CopyDim& dim = space.dims[d];
    if (pick(5) == 0) continue;  // repeats: stride 0
    dim.src_stride = space.src_size * (1 + (pick(4) == 0));
    space.src_size = dim.src_stride * std::max<int64_t>(dim.extent, 1);
    if (pick(4) == 0) {
      space.src_first += dim.src_stride * (std::max<int64_t>(dim.extent, 1) - 1);
      dim.src_stride = -dim.src_stride;
    }
  }
  return space;
}

template <typename T>
void CompareOnRandomSpaces(DType dtype, int rounds) {
  std::mt19937 rng(7);
  for (int round = 0; round < rounds; ++round) {
    const Space space = RandomSpace(rng);
    std::vector<T> src(space.src_size);
    for (size_t i = 0; i < src.size(); ++i) src[i] = MakeValue<T>(static_cast<int64_t>(i));
    std::vector<T> expected(space.dst_size), actual(space.dst_size);
    NaiveCopy(space.dims, 0, src.data() + space.src_first, expected.data());
    Driver driver(1 + round % 4);
    StridedCopy(driver.ctx(), dtype, space.dims, src.data() + space.src_first, actual.data());
    ASSERT_EQ(actual, expected) << DTypeName(dtype) << ", round " << round;
  }
}

TEST(StridedCopy, AgreesWithOneElementAtATime) {
  CompareOnRandomSpaces<uint8_t>(DType::kUInt8, 400);
  CompareOnRandomSpaces<uint16_t>(DType::kUInt16, 200);
  CompareOnRandomSpaces<uint32_t>(DType::kInt32, 400);
  CompareOnRandomSpaces<double>(DType::kFloat64, 200);
  CompareOnRandomSpaces<std::complex<double>>(DType::kComplex128, 200);
  CompareOnRandomSpaces<std::string>(DType::kString, 100);
}

TEST(StridedCopy, TransposesLargePlanesInTiles) {
  const int64_t rows = 300, columns = 211;
  std::vector<float> src(rows * columns), dst(rows * columns);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
  for (const int pieces : {1, 5}) {
    Driver driver(pieces);
    StridedCopy(driver.ctx(), DType::kFloat32, {{columns, 1, rows}, {rows, columns, 1}}, src.data(), dst.data());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) ASSERT_EQ(dst[c * rows + r], src[r * columns + c]);
    }
  }
}

TEST(FillElements, WritesEveryElement) {
  Driver driver(3);
  std::vector<std::string> strings(100);
  const std::string word = "word";
  FillElements(driver.ctx(), DType::kString, &word, 100, strings.data());
  EXPECT_EQ(strings, std::vector<std::string>(100, "word"));
  std::vector<int64_t> numbers(1000, -1);
  const int64_t seven = 7;
  FillElements(driver.ctx(), DType::kInt64, &seven, 999, numbers.data());
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 7), 999);
  EXPECT_EQ(numbers.back(), -1);
}

TEST(GatherBlocks, TakesBlocksFromGroupsAndZeroesNegativeOffsets) {
  Driver driver(2);
  const std::vector<int32_t> src = {0, 1, 2, 3, 10, 11, 12, 13};
  const std::vector<int64_t> offsets = {2, -1, 0};
  std::vector<int32_t> dst(12, 99);
  BlockGather gather;
  gather.outer = 2;
  gather.count = 3;
  gather.block = 2;
  gather.group = 4;
  gather.offsets = offsets.data();
  GatherBlocks(driver.ctx(), DType::kInt32, gather, src.data(), dst.data());
  EXPECT_EQ(dst, (std::vector<int32_t>{2, 3, 0, 0, 0, 1, 12, 13, 0, 0, 10, 11}));
}

}  // namespace
}  // namespace thalweg
