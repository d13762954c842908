#include "thalweg/ops/common/gemm.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "thalweg/ops/common/onednn.h"
#include "thalweg/tests/ops/numeric_helpers.h"

namespace thalweg {
namespace {

using testing::Inexact;
using testing::Scrambled;

template <typename T>
T Conjugate(T x) {
  return x;
}
template <typename R>
std::complex<R> Conjugate(std::complex<R> x) {
  return std::conj(x);
}

template <typename T>
class Gemms : public ::testing::Test {};
using Types = ::testing::Types<float, double, int16_t, int32_t, int64_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Gemms, Types);

template <typename T>
std::vector<T> Operand(int64_t n, uint32_t seed) {
  std::vector<T> values(n);
  const std::vector<float> parts = Scrambled<float>(2 * n, seed);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
      values[i] = T(parts[2 * i], parts[2 * i + 1]);
    else values[i] = static_cast<T>(parts[i]);
  }
  return values;
}

template <typename T>
void CheckAgainstDefinition(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  const std::vector<T> a = Operand<T>(m * k, 1), b = Operand<T>(k * n, 2);
  std::vector<T> c(m * n, T(77));
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.lda = transpose_a ? m : k, g.transpose_a = g.conjugate_a = transpose_a;
  g.b = b.data(), g.ldb = transpose_b ? k : n, g.transpose_b = transpose_b;
  g.c = c.data(), g.ldc = n;
  ASSERT_TRUE(Gemm(g).ok());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = T(0);
      for (int64_t p = 0; p < k; ++p) {
        sum += (transpose_a ? Conjugate(a[p * m + i]) : a[i * k + p]) * (transpose_b ? b[j * k + p] : b[p * n + j]);
      }
      ASSERT_EQ(c[i * n + j], sum) << m << "x" << n << "x" << k << " at " << i << "," << j;
    }
  }
}

// Sizes around the edges of tiles and blocks; the values make every sum exact.
TYPED_TEST(Gemms, AgreesWithTheDefinition) {
  const int64_t kSizes[][3] = {{1, 1, 1},   {6, 16, 8},   {7, 17, 9}, {3, 70, 5}, {100, 33, 3},
                               {5, 600, 2}, {97, 9, 300}, {2, 3, 0},  {0, 3, 2},  {2, 0, 2}};
  for (const auto& s : kSizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      CheckAgainstDefinition<TypeParam>(s[0], s[1], s[2], transposes & 1, transposes & 2);
    }
  }
}

TEST(Gemm, IntegersWrap) {
  const int32_t a[] = {1 << 30, 1 << 30}, b[] = {4, 3};
  int32_t c = 0;
  GemmArgs<int32_t> g;
  g.m = g.n = 1, g.k = 2, g.a = a, g.lda = 2, g.b = b, g.ldb = 1, g.c = &c, g.ldc = 1;
  ASSERT_TRUE(Gemm(g).ok());
  EXPECT_EQ(c, -1073741824);
}

// To rounding, not to the bit: the library blocks the inner dimension by the size of what it is given.
TEST(TileGemm, TilesGiveTheValuesOfTheWhole) {
  const int64_t kSizes[][3] = {{500, 70, 90},  {64, 700, 80},  {2000, 2, 900},
                               {1, 3000, 700}, {3000, 1, 700}, {333, 257, 1030}};
  for (const auto& [m, n, k] : kSizes) {
    const std::vector<float> a = Inexact(m * k, 1), b = Inexact(k * n, 2);
    for (int transposes = 0; transposes < 4; ++transposes) {
      std::vector<float> whole(m * n), tiled(m * n);
      GemmArgs<float> g;
      g.m = m, g.n = n, g.k = k;
      g.transpose_a = transposes & 1, g.transpose_b = transposes & 2;
      g.a = a.data(), g.lda = g.transpose_a ? m : k, g.b = b.data(), g.ldb = g.transpose_b ? k : n, g.ldc = n;
      g.c = whole.data();
      ASSERT_TRUE(Gemm(g).ok());
      g.c = tiled.data();
      for (int threads : {2, 3, 7}) {
        const GemmTiles tiles = TileGemm(m, n, k, threads);
        for (int64_t i = 0; i < tiles.count(); ++i) ASSERT_TRUE(GemmTile(g, tiles, i).ok());
        for (size_t i = 0; i < whole.size(); ++i) {
          ASSERT_NEAR(whole[i], tiled[i], 1e-6 * std::sqrt(static_cast<double>(k)) * (1 + std::abs(whole[i])))
              << m << "x" << n << "x" << k << " threads " << threads << " at " << i;
        }
      }
    }
  }
}

TEST(TileGemm, NeverCutsOffASingleRow) {
  for (int64_t m = 2; m < 40; ++m) {
    for (int threads = 1; threads < 20; ++threads) {
      const GemmTiles tiles = TileGemm(m, 2, 10'000'000, threads);
      EXPECT_NE(m % tiles.rows, 1) << m << " by " << tiles.rows;
      EXPECT_GE(tiles.rows * tiles.down, m);
      EXPECT_LT(tiles.rows * (tiles.down - 1), m);
    }
  }
}

// The convolutions of usual networks and the oddest that graphs contain: none may fall to oneDNN's reference code.
TEST(OneDnn, NoReferenceConvolutions) {
  using Dim = onednn::ConvProblem::Dim;
  const struct {
    int64_t in_channels, out_channels, groups;
    Dim y, x;
  } kProblems[] = {
      {3, 64, 1, {224, 112, 7, 2, 1, 2, 3}, {224, 112, 7, 2, 1, 2, 3}},
      {64, 64, 1, {56, 56, 3, 1, 1, 1, 1}, {56, 56, 3, 1, 1, 1, 1}},
      {256, 512, 1, {56, 28, 1, 2, 1, 0, -1}, {56, 28, 1, 2, 1, 0, -1}},
      {144, 144, 144, {56, 56, 3, 1, 1, 1, 1}, {56, 56, 3, 1, 1, 1, 1}},
      {1, 1, 1, {4, 3, 2, 1, 1, 0, 0}, {4, 3, 2, 1, 1, 0, 0}},
      {2, 2, 1, {9, 5, 3, 1, 2, 0, 0}, {8, 2, 3, 1, 3, 0, 0}},
      {4, 6, 2, {8, 8, 3, 1, 1, 1, 1}, {8, 8, 3, 1, 1, 1, 1}},
  };
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "oneDNN has fast code from AVX2 on";
  for (const auto& p : kProblems) {
    onednn::ConvProblem problem;
    problem.in_channels = p.in_channels;
    problem.out_channels = p.out_channels;
    problem.groups = p.groups;
    problem.dims = {p.y, p.x, Dim()};
    const auto convolution = onednn::Convolution::Create(problem);
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    EXPECT_EQ((*convolution)->implementation().find("ref"), std::string::npos) << (*convolution)->implementation();
  }
}

}  // namespace
}  // namespace thalweg
