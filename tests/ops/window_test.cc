#include "thalweg/ops/nn/window.h"

#include <limits>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

TEST(FitWindow, SamePadsMoreAtTheEnd) {
  const WindowFit fit = *FitWindow(5, 2, WindowDim{.stride = 2}, Padding::kSame);
  EXPECT_EQ(fit.out, 3);
  EXPECT_EQ(fit.pad_before, 0);
  EXPECT_EQ(fit.pad_after, 1);
}

TEST(FitWindow, SameWithDilation) {
  const WindowFit fit = *FitWindow(7, 3, WindowDim{.dilation = 2}, Padding::kSame);
  EXPECT_EQ(fit.out, 7);
  EXPECT_EQ(fit.pad_before, 2);
  EXPECT_EQ(fit.pad_after, 2);
}

TEST(FitWindow, ValidMayLeaveInputUnused) {
  const WindowFit fit = *FitWindow(7, 2, WindowDim{.stride = 4}, Padding::kValid);
  EXPECT_EQ(fit.out, 2);
  EXPECT_EQ(fit.pad_after, -1);
}

TEST(FitWindow, ValidWindowLargerThanTheInput) {
  EXPECT_EQ(FitWindow(2, 3, WindowDim(), Padding::kValid)->out, 0);
  EXPECT_EQ(FitWindow(2, 5, WindowDim{.stride = 2}, Padding::kValid)->out, 0);
  EXPECT_EQ(FitWindow(2, 5, WindowDim(), Padding::kValid).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FitWindow, Explicit) {
  const WindowFit fit = *FitWindow(6, 3, WindowDim{.explicit_before = 1, .explicit_after = 2}, Padding::kExplicit);
  EXPECT_EQ(fit.out, 7);
  EXPECT_EQ(fit.pad_before, 1);
  EXPECT_EQ(fit.pad_after, 2);
}

TEST(FitWindow, SizesThatOverflowAreErrors) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(FitWindow(kHuge, 3, WindowDim(), Padding::kValid).ok());
  EXPECT_FALSE(FitWindow(5, kHuge, WindowDim{.dilation = 3}, Padding::kSame).ok());
  EXPECT_FALSE(FitWindow(kHuge - 1, 3, WindowDim{.stride = 2, .explicit_before = 5}, Padding::kExplicit).ok());
}

// Known sizes are judged as TensorFlow's shape functions judge them: more strictly than its kernels.
TEST(WindowedDim, RefusesWindowsLargerThanTheInput) {
  EXPECT_EQ(*WindowedDim(3, 3, WindowDim(), Padding::kValid), 1);
  EXPECT_FALSE(WindowedDim(2, 3, WindowDim(), Padding::kValid).ok());
  EXPECT_FALSE(WindowedDim(2, 5, WindowDim{.explicit_before = 1, .explicit_after = 1}, Padding::kExplicit).ok());
  EXPECT_EQ(*WindowedDim(2, 5, WindowDim(), Padding::kSame), 2);
}

TEST(CheckWindow, WhatOnlyKernelsRefuse) {
  WindowAttrs window;
  window.dims.resize(2);
  EXPECT_TRUE(CheckConvWindow(window).ok());
  EXPECT_TRUE(CheckPoolWindow(window).ok());
  window.batch.stride = 2;
  EXPECT_EQ(CheckConvWindow(window).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckPoolWindow(window).code(), absl::StatusCode::kUnimplemented);
  window.batch.stride = 1;
  window.dims[0].size = 0;
  EXPECT_EQ(CheckPoolWindow(window).code(), absl::StatusCode::kInvalidArgument);
}

TEST(WindowedDim, KeepsSymbolsThatNothingChanges) {
  constexpr int64_t kSymbol = kUnknownDim - 3;
  EXPECT_EQ(*WindowedDim(kSymbol, 3, WindowDim(), Padding::kSame), kSymbol);
  EXPECT_EQ(*WindowedDim(kSymbol, 1, WindowDim(), Padding::kValid), kSymbol);
  EXPECT_EQ(*WindowedDim(kSymbol, 3, WindowDim(), Padding::kValid), kUnknownDim);
  EXPECT_EQ(*WindowedDim(7, kUnknownDim, WindowDim{.stride = 2}, Padding::kSame), 4);
}

}  // namespace
}  // namespace thalweg
