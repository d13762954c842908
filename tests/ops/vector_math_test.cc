// The vector functions against long double, in units in the last place, and at special values.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/common/vector_pow.h"

namespace thalweg {
namespace {

// The greatest error over [low, high], in units in the last place of T; results that are denormal are left out.
template <typename T, typename Function, typename Reference>
double WorstError(Function function, Reference reference, double low, double high) {
  constexpr int kSteps = 300000;
  double worst = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const T x = static_cast<T>(low + (high - low) * i / kSteps);
    const long double exact = reference(static_cast<long double>(x));
    const T rounded = std::fabs(static_cast<T>(exact));
    if (!(rounded >= std::numeric_limits<T>::min()) || std::isinf(rounded)) continue;
    const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
    worst = std::max(worst, static_cast<double>(std::fabs((static_cast<long double>(function(x)) - exact) / ulp)));
  }
  return worst;
}

// The greatest errors allowed. Those of float are TensorFlow's.
struct Bounds {
  double exp, expm1, log, log1p, tanh, sigmoid, softplus, erf;
};

template <typename T>
void ExpectAccurate(double exp_low, double exp_high, const Bounds& bounds) {
  using namespace vector_math;
  EXPECT_LE(WorstError<T>([](T x) { return Exp(x); }, [](long double x) { return std::exp(x); }, exp_low, exp_high), bounds.exp);
  EXPECT_LE(WorstError<T>([](T x) { return Expm1(x); }, [](long double x) { return std::expm1(x); }, -40, exp_high), bounds.expm1);
  EXPECT_LE(WorstError<T>([](T x) { return Expm1(x); }, [](long double x) { return std::expm1(x); }, -1, 1), bounds.expm1);
  EXPECT_LE(WorstError<T>([](T x) { return Log(x); }, [](long double x) { return std::log(x); }, 1e-6, 3), bounds.log);
  EXPECT_LE(WorstError<T>([](T x) { return Log(x); }, [](long double x) { return std::log(x); }, 1, 1e38), 1.0);
  EXPECT_LE(WorstError<T>([](T x) { return Log1p(x); }, [](long double x) { return std::log1p(x); }, -0.999, 4), bounds.log1p);
  EXPECT_LE(WorstError<T>([](T x) { return Tanh(x); }, [](long double x) { return std::tanh(x); }, -22, 22), bounds.tanh);
  EXPECT_LE(WorstError<T>([](T x) { return Tanh(x); }, [](long double x) { return std::tanh(x); }, -0.5, 0.5), bounds.tanh);
  EXPECT_LE(WorstError<T>([](T x) { return Sigmoid(x); }, [](long double x) { return 1 / (1 + std::exp(-x)); }, -80, 80),
            bounds.sigmoid);
  EXPECT_LE(WorstError<T>([](T x) { return Softplus(x); }, [](long double x) { return std::log1p(std::exp(x)); }, -80, 80),
            bounds.softplus);
  EXPECT_LE(WorstError<T>([](T x) { return Erf(x); }, [](long double x) { return std::erf(x); }, -7, 7), bounds.erf);
}

TEST(VectorMathTest, FloatIsAccurate) { ExpectAccurate<float>(-87.3, 88.7, {1.5, 5.0, 3.5, 4.0, 5.5, 7.0, 7.5, 6.0}); }

TEST(VectorMathTest, FloatTurns) {
  using namespace vector_math;
  const auto sine = [](float x) { return SineOfTurn<false>(x, SplitTurn(x)); };
  const auto cosine = [](float x) { return SineOfTurn<true>(x, SplitTurn(x)); };
  const auto great_sine = [](float x) { return SineOfTurn<false>(x, SplitGreatTurn(x)); };
  const auto great_cosine = [](float x) { return SineOfTurn<true>(x, SplitGreatTurn(x)); };
  const auto exact_sine = [](long double x) { return std::sin(x); };
  const auto exact_cosine = [](long double x) { return std::cos(x); };
  EXPECT_LE(WorstError<float>(sine, exact_sine, -3, 3), 2.0);
  EXPECT_LE(WorstError<float>(cosine, exact_cosine, -1.5, 1.5), 2.0);
  EXPECT_LE(WorstError<float>(great_sine, exact_sine, kGreatestSineTurn, 1e6), 2.0);
  EXPECT_LE(WorstError<float>(great_cosine, exact_cosine, -1e6, -kGreatestCosineTurn), 2.0);
  EXPECT_LE(WorstError<float>(great_sine, exact_sine, 1e15, 1e17), 2.0);
  EXPECT_TRUE(std::signbit(sine(-0.0f)));
  EXPECT_TRUE(std::isnan(sine(std::numeric_limits<float>::infinity())));
}

TEST(VectorMathTest, FloatPow) {
  using vector_math::Pow;
  for (float y : {-2.5f, -1.0f, 0.3f, 0.5f, 2.0f, 3.7f}) {
    EXPECT_LE(WorstError<float>([=](float x) { return Pow(x, y); }, [=](long double x) { return std::pow(x, (long double)y); },
                                1e-3, 50), 3.0) << y;
  }
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (float x : {-inf, -2.0f, -1.0f, -0.5f, -0.0f, 0.0f, 0.5f, 1.0f, 3.0f, inf, nan}) {
    for (float y : {-inf, -3.0f, -2.0f, -0.5f, 0.0f, 0.5f, 1.0f, 2.0f, 3.0f, 1e10f, inf, nan}) {
      const float got = Pow(x, y), want = std::pow(x, y);
      const bool equal = std::isnan(want) ? std::isnan(got)
                         : want == 0      ? got == 0 && std::signbit(got) == std::signbit(want)
                         : std::isinf(want) ? got == want : std::fabs(got - want) <= std::fabs(want) * 1e-6f;
      EXPECT_TRUE(equal) << x << "^" << y << " = " << want << ", not " << got;
    }
  }
}
TEST(VectorMathTest, DoubleIsAccurate) { ExpectAccurate<double>(-708, 709.7, {1.5, 2.5, 2.5, 3.0, 3.5, 3.0, 4.0, 3.0}); }

template <typename T>
class VectorMathTest : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMathTest, Floats);

TYPED_TEST(VectorMathTest, SpecialValues) {
  using T = TypeParam;
  using namespace vector_math;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  EXPECT_EQ(Exp(T(0)), T(1));
  EXPECT_EQ(Exp(inf), inf);
  EXPECT_EQ(Exp(-inf), T(0));
  EXPECT_EQ(Exp(T(1000)), inf);
  EXPECT_EQ(Expm1(-inf), T(-1));
  EXPECT_EQ(Expm1(inf), inf);
  EXPECT_EQ(Log(T(0)), -inf);
  EXPECT_EQ(Log(T(-0.0)), -inf);
  EXPECT_EQ(Log(T(1)), T(0));
  EXPECT_EQ(Log(inf), inf);
  EXPECT_TRUE(std::isnan(Log(T(-1))) && std::isnan(Log(-inf)));
  EXPECT_EQ(Log1p(T(-1)), -inf);
  EXPECT_EQ(Log1p(inf), inf);
  EXPECT_EQ(Tanh(inf), T(1));
  EXPECT_EQ(Tanh(-inf), T(-1));
  EXPECT_TRUE(std::signbit(Tanh(T(-0.0))));
  EXPECT_EQ(Sigmoid(inf), T(1));
  EXPECT_EQ(Sigmoid(-inf), T(0));
  EXPECT_EQ(Softplus(inf), inf);
  EXPECT_EQ(Softplus(-inf), T(0));
  EXPECT_EQ(Erf(inf), T(1));
  EXPECT_EQ(Erf(-inf), T(-1));
  for (T value : {Exp(nan), Expm1(nan), Log(nan), Log1p(nan), Tanh(nan), Sigmoid(nan), Softplus(nan), Erf(nan)}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace thalweg
