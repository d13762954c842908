// Training rules that adapt the step of each element: Adam and its kin, Adadelta, RMSProp, Ftrl, AddSign, PowerSign.
#include <complex>

#include "thalweg/ops/training/training_kernel.h"
#include "thalweg/ops/training/training_math.h"
#include "thalweg/ops/training/training_ops.h"

namespace thalweg {
namespace {

using training::Abs;
using training::Exp;
using training::Max;
using training::Pow;
using training::Sign;
using training::Sqrt;
using training::Square;

// Scalars: beta1_power, beta2_power, lr, beta1, beta2, epsilon. Flag: use_nesterov.
struct Adam {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool nesterov, T* const* v, const T* grad, int64_t n) {
    const T beta1 = s[3], beta2 = s[4], epsilon = s[5];
    const T alpha = s[2] * Sqrt(T(1) - s[1]) / (T(1) - s[0]);
    for (int64_t i = 0; i < n; ++i) {
      const T m = v[1][i] + (grad[i] - v[1][i]) * (T(1) - beta1);
      v[1][i] = m;
      v[2][i] = v[2][i] + (Square(grad[i]) - v[2][i]) * (T(1) - beta2);
      const T step = nesterov ? grad[i] * (T(1) - beta1) + beta1 * m : m;
      v[0][i] = v[0][i] - step * alpha / (Sqrt(v[2][i]) + epsilon);
    }
  }
};

// Scalars: beta1_power, beta2_power, lr, beta1, beta2, epsilon.
struct AdamWithAmsgrad {
  static constexpr int kVariables = 4;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T beta1 = s[3], beta2 = s[4], epsilon = s[5];
    const T alpha = s[2] * Sqrt(T(1) - s[1]) / (T(1) - s[0]);
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] + (grad[i] - v[1][i]) * (T(1) - beta1);
      v[2][i] = v[2][i] + (Square(grad[i]) - v[2][i]) * (T(1) - beta2);
      v[3][i] = Max(v[3][i], v[2][i]);
      v[0][i] = v[0][i] - v[1][i] * alpha / (Sqrt(v[3][i]) + epsilon);
    }
  }
};

// Scalars: beta1_power, lr, beta1, beta2, epsilon.
struct AdaMax {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[1] / (T(1) - s[0]), beta1 = s[2], beta2 = s[3], epsilon = s[4];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] + (grad[i] - v[1][i]) * (T(1) - beta1);
      v[2][i] = Max(beta2 * v[2][i], Abs(grad[i]));
      v[0][i] = v[0][i] - lr * (v[1][i] / (v[2][i] + epsilon));
    }
  }
};

// Scalars: lr, rho, epsilon.
struct Adadelta {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], rho = s[1], epsilon = s[2];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] * rho + Square(grad[i]) * (T(1) - rho);
      const T update = Sqrt(v[2][i] + epsilon) / Sqrt(v[1][i] + epsilon) * grad[i];
      v[0][i] = v[0][i] - update * lr;
      v[2][i] = v[2][i] * rho + Square(update) * (T(1) - rho);
    }
  }
};

// Scalars: lr, rho, momentum, epsilon. Variables: var, ms, mom.
struct RMSProp {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], rho = s[1], momentum = s[2], epsilon = s[3];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] + (Square(grad[i]) - v[1][i]) * (T(1) - rho);
      v[2][i] = v[2][i] * momentum + grad[i] * lr / Sqrt(v[1][i] + epsilon);
      v[0][i] = v[0][i] - v[2][i];
    }
  }
};

// Scalars: lr, rho, momentum, epsilon. Variables: var, mg, ms, mom.
struct CenteredRMSProp {
  static constexpr int kVariables = 4;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], rho = s[1], momentum = s[2], epsilon = s[3];
    for (int64_t i = 0; i < n; ++i) {
      v[2][i] = v[2][i] + (Square(grad[i]) - v[2][i]) * (T(1) - rho);
      v[1][i] = v[1][i] + (grad[i] - v[1][i]) * (T(1) - rho);
      const T variance = v[2][i] - Square(v[1][i]) + epsilon;
      v[3][i] = v[3][i] * momentum + grad[i] * lr / Sqrt(variance);
      v[0][i] = v[0][i] - v[3][i];
    }
  }
};

// What Ftrl and FtrlV2 share: one element.
template <typename T>
void FtrlStep(T lr, T l1, T l2, T shrinkage, T power, bool multiply_by_lr, T grad, T* var, T* accum, T* linear) {
  const T shrunk = grad + T(2) * shrinkage * *var;
  const T new_accum = *accum + Square(grad);
  const bool root = power == T(-0.5f);
  const T new_power = root ? Sqrt(new_accum) : Pow(new_accum, -power);
  const T old_power = root ? Sqrt(*accum) : Pow(*accum, -power);
  T threshold = l1;
  if (multiply_by_lr) {
    *linear = *linear + (shrunk * lr - (new_power - old_power) * *var);
    threshold = l1 * lr;
  } else {
    *linear = *linear + (shrunk - (new_power - old_power) / lr * *var);
  }
  const T numerator = threshold * Sign(*linear) - *linear;
  const T denominator = multiply_by_lr ? new_power + T(2) * l2 * lr : new_power / lr + T(2) * l2;
  *var = Abs(*linear) > threshold ? numerator / denominator : T(0);
  *accum = new_accum;
}

// Scalars: lr, l1, l2, lr_power. Flag: multiply_linear_by_lr. Variables: var, accum, linear.
struct Ftrl {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool flag, T* const* v, const T* grad, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      FtrlStep(s[0], s[1], s[2], T(0), s[3], flag, grad[i], &v[0][i], &v[1][i], &v[2][i]);
    }
  }
};

// Scalars: lr, l1, l2, l2_shrinkage, lr_power.
struct FtrlV2 {
  static constexpr int kVariables = 3;
  template <typename T>
  static void Run(const T* s, bool flag, T* const* v, const T* grad, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      FtrlStep(s[0], s[1], s[2], s[3], s[4], flag, grad[i], &v[0][i], &v[1][i], &v[2][i]);
    }
  }
};

// Scalars: lr, alpha, sign_decay, beta.
struct AddSign {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], alpha = s[1], sign_decay = s[2], beta = s[3];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] * beta + grad[i] * (T(1) - beta);
      const T agreement = Sign(grad[i]) * Sign(v[1][i]);
      v[0][i] = v[0][i] - lr * (alpha + sign_decay * agreement) * grad[i];
    }
  }
};

// Scalars: lr, logbase, sign_decay, beta.
struct PowerSign {
  static constexpr int kVariables = 2;
  template <typename T>
  static void Run(const T* s, bool, T* const* v, const T* grad, int64_t n) {
    const T lr = s[0], logbase = s[1], sign_decay = s[2], beta = s[3];
    for (int64_t i = 0; i < n; ++i) {
      v[1][i] = v[1][i] * beta + grad[i] * (T(1) - beta);
      const T agreement = Sign(grad[i]) * Sign(v[1][i]);
      v[0][i] = v[0][i] - lr * Exp(logbase * sign_decay * agreement) * grad[i];
    }
  }
};

}  // namespace

void RegisterAdaptiveTrainingOps(OpLibrary& lib) {
  using c64 = std::complex<float>;
  using c128 = std::complex<double>;
  const std::vector<std::string> adam = {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"};
  RegisterTrainingRule<Adam, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "Adam",
            .variables = {"var", "m", "v"},
            .dense_arguments = adam,
            .sparse_arguments = {},
            .flag = "use_nesterov"});
  RegisterTrainingRule<AdamWithAmsgrad, float, double, half, bfloat16>(
      lib, {.name = "AdamWithAmsgrad",
            .variables = {"var", "m", "v", "vhat"},
            .dense_arguments = adam,
            .sparse_arguments = {},
            .has_reference_form = false});
  RegisterTrainingRule<AdaMax, float, double, half>(lib, {.name = "AdaMax",
                                                          .variables = {"var", "m", "v"},
                                                          .dense_arguments = {"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"},
                                                          .sparse_arguments = {}});
  RegisterTrainingRule<Adadelta, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "Adadelta",
            .variables = {"var", "accum", "accum_update"},
            .dense_arguments = {"lr", "rho", "epsilon", "grad"},
            .sparse_arguments = {"lr", "rho", "epsilon", "grad", "indices"}});
  const std::vector<std::string> rms_prop = {"lr", "rho", "momentum", "epsilon", "grad"};
  const std::vector<std::string> sparse_rms_prop = {"lr", "rho", "momentum", "epsilon", "grad", "indices"};
  RegisterTrainingRule<RMSProp, float, double, half, bfloat16, c64, c128>(lib, {.name = "RMSProp",
                                                                                .variables = {"var", "ms", "mom"},
                                                                                .dense_arguments = rms_prop,
                                                                                .sparse_arguments = sparse_rms_prop,
                                                                                .no_sparse_types = {DType::kBFloat16}});
  RegisterTrainingRule<CenteredRMSProp, float, double, half, bfloat16, c64, c128>(
      lib, {.name = "CenteredRMSProp",
            .variables = {"var", "mg", "ms", "mom"},
            .dense_arguments = rms_prop,
            .sparse_arguments = sparse_rms_prop,
            .no_sparse_types = {DType::kBFloat16}});
  RegisterTrainingRule<Ftrl, float, double, half, bfloat16>(
      lib, {.name = "Ftrl",
            .variables = {"var", "accum", "linear"},
            .dense_arguments = {"grad", "lr", "l1", "l2", "lr_power"},
            .sparse_arguments = {"grad", "indices", "lr", "l1", "l2", "lr_power"},
            .flag = "multiply_linear_by_lr"});
  RegisterTrainingRule<FtrlV2, float, double, half, bfloat16>(
      lib, {.name = "FtrlV2",
            .variables = {"var", "accum", "linear"},
            .dense_arguments = {"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
            .sparse_arguments = {"grad", "indices", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
            .flag = "multiply_linear_by_lr"});
  RegisterTrainingRule<AddSign, float, double, half, bfloat16>(lib, {.name = "AddSign",
                                                                     .variables = {"var", "m"},
                                                                     .dense_arguments = {"lr", "alpha", "sign_decay", "beta", "grad"},
                                                                     .sparse_arguments = {}});
  RegisterTrainingRule<PowerSign, float, double, half, bfloat16>(
      lib, {.name = "PowerSign",
            .variables = {"var", "m"},
            .dense_arguments = {"lr", "logbase", "sign_decay", "beta", "grad"},
            .sparse_arguments = {}});
}

}  // namespace thalweg
