#include "thalweg/ops/math/special_functions.h"

#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace thalweg::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kPi = std::numbers::pi;
constexpr double kTiny = 1e-300;  // keeps continued fractions from dividing by zero
constexpr int kMaxTerms = 2000;

// B_2k / (2k)! for k = 1, 2, ...: the coefficients of Euler and Maclaurin's sum.
constexpr double kEulerMaclaurin[] = {
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
};

// x^a exp(-x) / gamma(a), the factor of incomplete gamma functions.
double GammaFactor(double a, double x) { return std::exp(a * std::log(x) - x - LogGamma(a)); }

// P by its power series, for x not much above a.
double GammaSeries(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < kMaxTerms && std::fabs(term) > sum * kEpsilon; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * GammaFactor(a, x);
}

// Q by its continued fraction (Lentz's way), for x above a.
double GammaFraction(double a, double x) {
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < kMaxTerms; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::fabs(factor - 1) < kEpsilon) break;
  }
  return h * GammaFactor(a, x);
}

// The continued fraction of the incomplete beta function, for x below (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::fabs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double h = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1;
    for (const double numerator : {even, odd}) {
      d = 1 + numerator * d;
      if (std::fabs(d) < kTiny) d = kTiny;
      c = 1 + numerator / c;
      if (std::fabs(c) < kTiny) c = kTiny;
      d = 1 / d;
      factor = d * c;
      h *= factor;
    }
    if (std::fabs(factor - 1) < kEpsilon) break;
  }
  return h;
}

// The x >= 0 with erfc(x) = q, for 0 < q <= 1: a rational estimate, then Halley's steps, whose correction is relative to the
// density, so that tiny q lose nothing.
double InverseErfc(double q) {
  const double t = std::sqrt(-2 * std::log(q / 2));
  double x = -0.70711 * ((2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)) - t);
  for (int i = 0; i < 4; ++i) {
    const double error = std::erfc(x) - q;
    const double density = 2 / std::sqrt(kPi) * std::exp(-x * x);
    x += error / (density - x * error);
  }
  return x;
}

// The sum in the asymptotic expansion of a modified Bessel function at large x: signs alternate for I.
double BesselAsymptotic(int order, double x, bool alternates) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 200; ++k) {
    const double odd = 2 * k - 1;
    const double next = term * (mu - odd * odd) / (8 * x * k) * (alternates ? -1 : 1);
    if (std::fabs(next) > std::fabs(term)) break;
    term = next;
    sum += term;
    if (std::fabs(term) < kEpsilon * std::fabs(sum)) break;
  }
  return sum;
}

// The power series of I at small |x|: all terms have one sign.
double BesselISeries(int order, double x) {
  const double quarter = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 200 && std::fabs(term) > kEpsilon * std::fabs(sum); ++k) {
    term *= quarter / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

constexpr double kBesselSwitch = 30;

struct Fresnel {
  double sine, cosine;
};

// The alternating power series, in extended precision because its terms grow large before they shrink.
Fresnel FresnelSeries(double x) {
  const long double z = std::numbers::pi_v<long double> / 2 * static_cast<long double>(x) * x;
  long double term = x, cosine = 0, sine = 0;  // term: x z^n / n!
  for (int n = 0; n < 300; ++n) {
    const long double part = term / (2 * n + 1) * (n % 4 < 2 ? 1 : -1);
    (n % 2 == 0 ? cosine : sine) += part;
    term *= z / (n + 1);
    if (n > z && term < 1e-22L) break;
  }
  return {static_cast<double>(sine), static_cast<double>(cosine)};
}

// The asymptotic expansion for x >= 4 through the auxiliary functions f and g.
Fresnel FresnelAsymptotic(double x) {
  const double z = kPi * x * x;
  double f = 0, g = 0, term = 1;
  for (int n = 0; n < 40; ++n) {
    (n % 2 == 0 ? f : g) += term * (n % 4 < 2 ? 1 : -1);
    const double next = term * (2 * n + 1) / z;
    if (next > term) break;
    term = next;
  }
  f /= kPi * x;
  g /= kPi * x;
  // The phase is taken from the exact remainder of x^2 / 4 where that exists: beyond, x is an even integer anyway.
  const double phase = kPi / 2 * std::fmod(x * x, 4.0);
  const double s = std::sin(phase), c = std::cos(phase);
  return {0.5 - f * c - g * s, 0.5 + f * s - g * c};
}

Fresnel FresnelIntegrals(double x) {
  const double a = std::fabs(x);
  if (std::isnan(x)) return {kNaN, kNaN};
  Fresnel result = a < 4 ? FresnelSeries(a) : a > 1e8 ? Fresnel{0.5, 0.5} : FresnelAsymptotic(a);
  return {std::copysign(result.sine, x), std::copysign(result.cosine, x)};
}

// sum of z^k / k^2 for |z| <= 1/2.
double DilogarithmSeries(double z) {
  double power = z, sum = 0;
  for (int k = 1; k < 80; ++k) {
    sum += power / (static_cast<double>(k) * k);
    power *= z;
  }
  return sum;
}

}  // namespace

double LogGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (x == 0 || (x < 0 && x == std::floor(x))) return kNaN;
  double result = 0;
  if (x < 0) {  // reflection
    result = -kPi / std::tan(kPi * x);
    x = 1 - x;
  }
  for (; x < 12; x += 1) result -= 1 / x;
  const double y = 1 / (x * x);
  const double tail = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
  return result + std::log(x) - 0.5 / x - tail;
}

double HurwitzZeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return kNaN;
  if (s == 1) return kInfinity;
  if (q <= 0) {
    // At its poles the function is infinite, but only even exponents say with which sign.
    if (q == std::floor(q)) return s == std::floor(s) && std::fmod(s, 2) == 0 ? kInfinity : kNaN;
    if (s != std::floor(s)) return kNaN;
  }
  // The first terms one by one, the rest by Euler and Maclaurin.
  double sum = 0, a = q;
  for (int k = 0; k < 12 || a <= 9; ++k, a += 1) {
    if (k > 100000) return kNaN;
    const double term = std::pow(a, -s);
    sum += term;
    if (a > 0 && std::fabs(term) < kEpsilon * std::fabs(sum) * 1e-3) return sum;
  }
  double power = std::pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  double factor = s;
  power /= a;
  for (int k = 0; k < static_cast<int>(std::size(kEulerMaclaurin)); ++k) {
    const double term = factor * power * kEulerMaclaurin[k];
    sum += term;
    if (std::fabs(term) < kEpsilon * std::fabs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (n != std::floor(n) || n < 0 || std::isnan(x)) return kNaN;
  if (n == 0) return Digamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * HurwitzZeta(n + 1, x);
}

double RegularizedGammaP(double a, double x) {
  if (x == 0) return std::isnan(a) ? kNaN : 0;  // before a is looked at, as in TensorFlow
  if (!(x >= 0) || !(a > 0)) return kNaN;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  if (std::isinf(x)) return 1;
  return x > 1 && x > a ? 1 - GammaFraction(a, x) : GammaSeries(a, x);
}

double RegularizedGammaQ(double a, double x) {
  if (!(x >= 0) || !(a > 0)) return kNaN;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 1;
  if (std::isinf(x)) return 0;
  if (x == 0) return 1;
  return x < 1 || x < a ? 1 - GammaSeries(a, x) : GammaFraction(a, x);
}

double RegularizedBeta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || x > 1) return kNaN;
  if (x == 0 || x == 1) return x;
  const double factor = std::exp(LogGamma(a + b) - LogGamma(a) - LogGamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * BetaFraction(a, b, x) / a;
  return 1 - factor * BetaFraction(b, a, 1 - x) / b;
}

double InverseErf(double y) {
  const double a = std::fabs(y);
  if (!(a <= 1)) return kNaN;
  if ((a + 1) / 2 == 1) return std::copysign(kInfinity, y);  // also where only this sum is 1, as in TensorFlow
  if (a < 1e-8) return y * std::sqrt(kPi) / 2;
  return std::copysign(InverseErfc(1 - a), y);
}

double InverseNormal(double p) {
  if (!(p >= 0) || p > 1) return kNaN;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  const double root2 = std::numbers::sqrt2;
  return p < 0.5 ? -root2 * InverseErfc(2 * p) : root2 * InverseErfc(2 * (1 - p));
}

double ScaledBesselI(int order, double x) {
  const double a = std::fabs(x);
  if (std::isnan(x)) return kNaN;
  if (a < kBesselSwitch) return BesselISeries(order, x) * std::exp(-a);
  const double value = BesselAsymptotic(order, a, true) / std::sqrt(2 * kPi * a);
  return order == 1 ? std::copysign(value, x) : value;
}

double BesselI(int order, double x) {
  const double a = std::fabs(x);
  if (a < kBesselSwitch) return BesselISeries(order, x);
  if (std::isinf(x)) return order == 1 ? x : kInfinity;
  return ScaledBesselI(order, x) * std::exp(a);
}

double ScaledBesselK(int order, double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  if (x < 1e-8) return order == 0 ? -std::log(x / 2) - std::numbers::egamma : 1 / x;
  if (x < 50) return std::cyl_bessel_k(static_cast<double>(order), x) * std::exp(x);
  return BesselAsymptotic(order, x, false) * std::sqrt(kPi / (2 * x));
}

double BesselK(int order, double x) {
  if (!(x >= 0)) return kNaN;
  return std::isinf(x) ? 0 : ScaledBesselK(order, x) * std::exp(-x);
}

double Dawson(double x) {
  const double a = std::fabs(x), square = x * x;
  if (std::isnan(x)) return kNaN;
  double sum = 1, term = 1;
  if (a < 6) {
    for (int k = 1; k < 300; ++k) {
      term *= square / k;
      sum += term / (2 * k + 1);
      if (term < kEpsilon * sum) break;
    }
    return x * sum * std::exp(-square);
  }
  for (int k = 1; k < 40; ++k) {
    const double next = term * (2 * k - 1) / (2 * square);
    if (next > term || next < kEpsilon) break;
    term = next;
    sum += term;
  }
  return sum / (2 * x);
}

double FresnelSine(double x) { return FresnelIntegrals(x).sine; }
double FresnelCosine(double x) { return FresnelIntegrals(x).cosine; }

double Spence(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kPi * kPi / 6;
  if (std::isinf(x)) return -kInfinity;
  if (x > 1.5) {
    const double log = std::log(x);
    return -Spence(1 / x) - 0.5 * log * log;
  }
  if (x < 0.5) return kPi * kPi / 6 - std::log(x) * std::log1p(-x) - DilogarithmSeries(x);
  return DilogarithmSeries(1 - x);
}

double ExponentialIntegral(double x) {
  if (!(x >= 0)) return kNaN;
  if (x == 0) return -kInfinity;
  if (std::isinf(x)) return kInfinity;
  return std::expint(x);
}

}  // namespace thalweg::math
