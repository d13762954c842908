// What begin, end, strides and masks mean, on known and partly known shapes.
#include "thalweg/ops/common/strided_slice_spec.h"

#include <gtest/gtest.h>

#include <limits>

namespace thalweg {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

absl::StatusOr<Dims> Sliced(Dims input, std::vector<KnownIndex> begin, std::vector<KnownIndex> end,
                            std::vector<KnownIndex> strides, StridedSliceMasks masks = {}) {
  absl::StatusOr<StridedSlicePlan> plan = PlanStridedSlice(input, begin, end, strides, masks);
  if (!plan.ok()) return plan.status();
  return plan->OutputDims();
}

TEST(StridedSlice, CountsStepsInBothDirections) {
  EXPECT_EQ(*Sliced({10}, {2}, {9}, {3}), (Dims{3}));
  EXPECT_EQ(*Sliced({10}, {-1}, {-11}, {-4}), (Dims{3}));
  EXPECT_EQ(*Sliced({10}, {5}, {2}, {1}), (Dims{0}));
  EXPECT_EQ(*Sliced({0}, {0}, {5}, {1}), (Dims{0}));
}

TEST(StridedSlice, SurvivesTheLargestIndicesAndStrides) {
  EXPECT_EQ(*Sliced({3}, {kMin}, {kMax}, {kMax}), (Dims{1}));
  EXPECT_EQ(*Sliced({3}, {kMax}, {kMin}, {kMin}), (Dims{1}));
  EXPECT_FALSE(Sliced({3}, {kMin}, {0}, {1}, {.shrink_axis = 1}).ok());
  EXPECT_FALSE(Sliced({3}, {kMax}, {0}, {1}, {.shrink_axis = 1}).ok());
}

TEST(StridedSlice, L24_IgnoresMaskBitsBeyondTheSpecification) {
  EXPECT_EQ(*Sliced({4, 5}, {1}, {3}, {1}, {.begin = 2, .end = 2, .ellipsis = 4, .new_axis = 8, .shrink_axis = 16}),
            (Dims{2, 5}));
}

TEST(StridedSlice, EllipsisNewAxisAndShrinkShareTheIndices) {
  EXPECT_EQ(
      *Sliced({2, 3, 4, 5}, {1, 0, 0, 2}, {2, 0, 0, 4}, {1, 1, 1, 1}, {.ellipsis = 2, .new_axis = 4, .shrink_axis = 1}),
      (Dims{3, 4, 1, 2}));
  EXPECT_EQ(*Sliced({3}, {1}, {0}, {1}, {.new_axis = 1, .shrink_axis = 1}), (Dims{1, 3}));
  EXPECT_EQ(*Sliced({3}, {1}, {0}, {1}, {.ellipsis = 1, .new_axis = 1}), (Dims{3}));
  EXPECT_FALSE(Sliced({3, 3}, {0, 0}, {0, 0}, {1, 1}, {.ellipsis = 3}).ok());
  EXPECT_FALSE(Sliced({3}, {0}, {1}, {1}, {.ellipsis = 6}).ok());
  EXPECT_FALSE(Sliced({3}, {0, 0}, {1, 1}, {1, 1}).ok());
}

TEST(StridedSlice, RefusesStrideZeroAndSinglePositionsBackwards) {
  EXPECT_FALSE(Sliced({3}, {0}, {3}, {0}).ok());
  EXPECT_TRUE(Sliced({3}, {0}, {3}, {0}, {.new_axis = 1}).ok());
  EXPECT_FALSE(Sliced({3}, {0}, {3}, {-1}, {.shrink_axis = 1}).ok());
}

TEST(StridedSlice, KeepsSymbolsOfWholeDimensions) {
  const int64_t symbol = kUnknownDim - 3;
  EXPECT_EQ(*Sliced({symbol, 4}, {0, 1}, {0, 3}, {1, 1}, {.begin = 1, .end = 1}), (Dims{symbol, 2}));
  EXPECT_EQ(*Sliced({symbol}, {0}, {0}, {-1}, {.begin = 1, .end = 1}), (Dims{symbol}));
  EXPECT_EQ(*Sliced({symbol}, {1}, {0}, {1}, {.end = 1}), (Dims{kUnknownDim}));
  EXPECT_EQ(*Sliced({4}, {std::nullopt}, {3}, {1}), (Dims{kUnknownDim}));
  EXPECT_EQ(*Sliced({4}, {std::nullopt}, {3}, {1}, {.shrink_axis = 1}), (Dims{}));
}

}  // namespace
}  // namespace thalweg
