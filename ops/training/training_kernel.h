// The driver of all training ops: gets at variables, gradient and hyperparameters, checks them, and runs a rule over the
// elements (dense) or over the rows that indices name (sparse). One kernel serves references and resource variables.
//
// Threading: the variables of a call are locked together while the rule runs, whatever use_locking says; so the rule runs on
// one thread (a helping thread might want the very locks).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

constexpr int kMaxTrainedVariables = 4;

// Updates n consecutive elements. `scalars` are the hyperparameters in the order of the op's arguments, `flag` is the
// rule's attribute, `variables` the start of each variable's elements; all of the kernel's element type.
using TrainingLoop = void (*)(const void* scalars, bool flag, void* const* variables, const void* gradient, int64_t n);

// A kernel of the node that `init` describes, whatever form of a rule that is.
absl::StatusOr<std::unique_ptr<Kernel>> MakeTrainingKernel(const KernelInit& init, TrainingLoop loop);

// A rule, from which up to four ops are declared: Apply<name>, ResourceApply<name>, SparseApply<name> and
// ResourceSparseApply<name>.
struct TrainingRule {
  std::string name;
  std::vector<std::string> variables;  // "var" first
  // The other arguments in order: hyperparameters, the gradient ("grad" or "delta"), and "indices" in the sparse form.
  std::vector<std::string> dense_arguments;
  std::vector<std::string> sparse_arguments;  // empty: there is no sparse form
  std::string flag = "";                      // a bool attribute that the rule looks at, if any
  bool flag_default = false;
  bool has_reference_form = true;
  std::vector<DType> no_sparse_types = {};    // types without sparse kernels
  // Set by RegisterTrainingRule.
  KernelFactory factory = nullptr;
  std::vector<DType> types = {};
};

// Registers the forms of `rule`, whose arithmetic is the static function
//   Update::Run(const T* scalars, bool flag, T* const* variables, const T* gradient, int64_t n)
// for the element types Ts.
template <typename Update, typename... Ts>
void RegisterTrainingRule(OpLibrary& lib, TrainingRule rule);

// ---- Below here: how.

template <typename Update, typename T>
void RunTrainingLoop(const void* scalars, bool flag, void* const* variables, const void* gradient, int64_t n) {
  T* typed[kMaxTrainedVariables] = {};
  for (int i = 0; i < Update::kVariables; ++i) typed[i] = static_cast<T*>(variables[i]);
  Update::Run(static_cast<const T*>(scalars), flag, typed, static_cast<const T*>(gradient), n);
}

template <typename Update, typename... Ts>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTrainingKernelOf(const KernelInit& init) {
  const DType dtype = init.node().node_attrs().GetOr<DType>("T", DType::kInvalid);
  TrainingLoop loop = nullptr;
  ((dtype == DTypeOf<Ts>::value ? void(loop = &RunTrainingLoop<Update, Ts>) : void()), ...);
  return MakeTrainingKernel(init, loop);
}

void RegisterTrainingForms(OpLibrary& lib, const TrainingRule& rule);

template <typename Update, typename... Ts>
void RegisterTrainingRule(OpLibrary& lib, TrainingRule rule) {
  rule.factory = &MakeTrainingKernelOf<Update, Ts...>;
  rule.types = {DTypeOf<Ts>::value...};
  RegisterTrainingForms(lib, rule);
}

}  // namespace thalweg
