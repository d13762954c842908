// Training rules with a fixed or accumulated step size: gradient descent, momentum, Adagrad, and their proximal forms.
#include <algorithm>
#include <complex>

#include "thalweg/ops/training/training_kernel.h"
#include "thalweg/ops/training/training_math.h"
#include "thalweg/ops/training/training_ops.h"

namespace thalweg {
namespace {

using training::Abs;
using training::Max;
using training::Sign;
using training::Sqrt;
using training::Square;

// Scalars: alpha.
struct GradientDescent {
  static constexpr int kVariables = 1;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    for (int64_t i = 0; i < n; ++i) v[0][i] = v[0][i] - grad[i] * s[0];
  }
};

// Moves x towards zero by `step`, and not beyond.
template <typename T>
T Shrink(T x, T step) {
  return Sign(x) * Max(Abs(x) - step, T(0));
}

// Scalars: alpha, l1, l2.
struct ProximalGradientDescent {
  static constexpr int kVariables = 1;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T alpha = s[0], l1 = s[1], l2 = s[2];
    for (int64_t i = 0; i < n; ++i) {
      const T moved = v[0][i] - grad[i] * alpha;
      v[0][i] = (l1 > T(0) ? Shrink(moved, alpha * l1) : moved) / (T(1) + l2 * alpha);
    }
  }
};

// Scalars: lr, momentum. Flag: use_nesterov.
struct Momentum {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool nesterov, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], momentum = s[1];
    for (int64_t i = 0; i < n; ++i) {
      const T accum = v[1][i] * momentum + grad[i];
      v[1][i] = accum;
      v[0][i] = v[0][i] - (nesterov ? grad[i] * lr + accum * momentum * lr : accum * lr);
    }
  }
};

// Scalars: lr, momentum. Flag: use_nesterov.
struct KerasMomentum {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool nesterov, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], momentum = s[1];
    for (int64_t i = 0; i < n; ++i) {
      const T accum = v[1][i] * momentum - grad[i] * lr;
      v[1][i] = accum;
      v[0][i] = v[0][i] + (nesterov ? accum * momentum - grad[i] * lr : accum);
    }
  }
};

// Scalars: lr. Flag: update_slots.
struct Adagrad {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool update_slots, T* const* v, const T* grad, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (update_slots) v[1][i] = v[1][i] + Square(grad[i]);
      v[0][i] = v[0][i] - grad[i] * s[0] / Sqrt(v[1][i]);
    }
  }
};

// Scalars: lr, epsilon. Flag: update_slots.
struct AdagradV2 {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool update_slots, T* const* v, const T* grad, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (update_slots) v[1][i] = v[1][i] + Square(grad[i]);
      v[0][i] = v[0][i] - grad[i] * s[0] / (Sqrt(v[1][i]) + s[1]);
    }
  }
};

// Scalars: lr, l1, l2.
struct ProximalAdagrad {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T l1 = s[1], l2 = s[2];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] + Square(grad[i]);
      const T lr = s[0] / Sqrt(v[1][i]);
      const T moved = v[0][i] - grad[i] * lr;
      v[0][i] = (l1 > T(0) ? Shrink(moved, lr * l1) : moved) / (T(1) + l2 * lr);
    }
  }
};

// Dual averaging. Scalars: lr, l1, l2, global_step.
struct AdagradDA {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], l1 = s[1], l2 = s[2], step = s[3];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] + grad[i];
      v[2][i] = v[2][i] + Square(grad[i]);
      const T sum = l1 > T(0) ? Shrink(v[1][i], l1 * step) : v[1][i];
      v[0][i] = -(lr * sum) / (l2 * step * lr + Sqrt(v[2][i]));
    }
  }
};

}  // namespace

void RegisterGradientDescentOps(OpLibrary& lib) {
  using c64 = std::complex<float>;
  using c128 = std::complex<double>;
  RegisterTrainingRule<GradientDescent, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "GradientDescent", .variables = {"var"}, .dense_arguments = {"alpha", "delta"}, .sparse_arguments = {}});
  RegisterTrainingRule<ProximalGradientDescent, float, double>(
      lib, {.name = "ProximalGradientDescent",
            .variables = {"var"},
            .dense_arguments = {"alpha", "l1", "l2", "delta"},
            .sparse_arguments = {"alpha", "l1", "l2", "grad", "indices"}});
  RegisterTrainingRule<Momentum, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "Momentum",
            .variables = {"var", "accum"},
            .dense_arguments = {"lr", "grad", "momentum"},
            .sparse_arguments = {"lr", "grad", "indices", "momentum"},
            .flag = "use_nesterov"});
  RegisterTrainingRule<KerasMomentum, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "KerasMomentum",
            .variables = {"var", "accum"},
            .dense_arguments = {"lr", "grad", "momentum"},
            .sparse_arguments = {"lr", "grad", "indices", "momentum"},
            .flag = "use_nesterov",
            .has_reference_form = false});
  RegisterTrainingRule<Adagrad, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "Adagrad",
            .variables = {"var", "accum"},
            .dense_arguments = {"lr", "grad"},
            .sparse_arguments = {"lr", "grad", "indices"},
            .flag = "update_slots",
            .flag_default = true});
  RegisterTrainingRule<AdagradV2, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "AdagradV2",
            .variables = {"var", "accum"},
            .dense_arguments = {"lr", "epsilon", "grad"},
            .sparse_arguments = {"lr", "epsilon", "grad", "indices"},
            .flag = "update_slots",
            .flag_default = true});
  RegisterTrainingRule<ProximalAdagrad, float, double>(
      lib, {.name = "ProximalAdagrad",
            .variables = {"var", "accum"},
            .dense_arguments = {"lr", "l1", "l2", "grad"},
            .sparse_arguments = {"lr", "l1", "l2", "grad", "indices"}});
  RegisterTrainingRule<AdagradDA, float, double>(
      lib, {.name = "AdagradDA",
            .variables = {"var", "gradient_accumulator", "gradient_squared_accumulator"},
            .dense_arguments = {"grad", "lr", "l1", "l2", "global_step"},
            .sparse_arguments = {"grad", "indices", "lr", "l1", "l2", "global_step"}});
}

}  // namespace thalweg
