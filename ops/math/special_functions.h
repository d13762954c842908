// Special functions in double precision: gamma and its kin, Bessel functions, integrals of Gaussians and Fresnel, dilogarithm.
//
// Relative errors are below 1e-12 over most of the range, which serves float and double kernels; functions that are not
// declared here come from the C library. Pure, thread-safe, bounded time; outside of their domain the result is NaN.
#pragma once

namespace thalweg::math {

double LogGamma(double x);  // of |gamma(x)|; +infinity at its poles (L19)
double Digamma(double x);
double HurwitzZeta(double s, double q);
double Polygamma(double n, double x);
double RegularizedGammaP(double a, double x);  // lower incomplete gamma over gamma
double RegularizedGammaQ(double a, double x);  // upper
double RegularizedBeta(double a, double b, double x);

double InverseErf(double y);
double InverseNormal(double p);  // the quantile of the standard normal distribution

// Modified Bessel functions of order 0 and 1; the scaled ones are multiplied by exp(-|x|) (I) or exp(x) (K).
double BesselI(int order, double x);
double ScaledBesselI(int order, double x);
double BesselK(int order, double x);
double ScaledBesselK(int order, double x);

double Dawson(double x);
double FresnelSine(double x);
double FresnelCosine(double x);
double Spence(double x);  // the dilogarithm of 1 - x
double ExponentialIntegral(double x);

}  // namespace thalweg::math
