// Which kernels exist, keyed by op, backend ("cpu", "sim") and dtype constraints.
//
// Filled by one explicit Register<Family>() function per op family (ops/register_all.cc lists them), then read-only and
// thread-safe. Two registrations that match one node on one backend with equal priority are an error at look-up.
//
//   lib.kernels.Add("Neg", "cpu", MakeKernel<NegKernel<float>>).Type<float>("T");
//   lib.kernels.Add("Reshape", "cpu", MakeKernel<ReshapeKernel>).HostMemory("shape");
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/op_schema.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

using KernelFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelInit& init);

struct KernelDef {
  std::string op;
  std::string backend;
  // Each: an attribute (of kind type, or list(type): every element) and the types it may have.
  std::vector<std::pair<std::string, std::vector<DType>>> constraints;
  std::vector<std::string> host_memory;  // arguments that live in host memory
  int priority = 0;
  KernelFactory factory = nullptr;

  KernelDef& Type(std::string attr, std::vector<DType> types) {
    constraints.emplace_back(std::move(attr), std::move(types));
    return *this;
  }
  template <typename... Ts>
  KernelDef& Type(std::string attr) { return Type(std::move(attr), {DTypeOf<Ts>::value...}); }
  KernelDef& HostMemory(std::string arg) {
    host_memory.push_back(std::move(arg));
    return *this;
  }
  KernelDef& Priority(int p) {
    priority = p;
    return *this;
  }
};

// A factory for kernels whose constructor takes `const KernelInit&` and cannot fail (MakeKernel), or that have
// `static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit&)` (MakeFallibleKernel).
template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelInit& init) {
  if constexpr (std::is_constructible_v<K, const KernelInit&>) return std::unique_ptr<Kernel>(std::make_unique<K>(init));
  else return std::unique_ptr<Kernel>(std::make_unique<K>());
}
template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeFallibleKernel(const KernelInit& init) { return K::Create(init); }

class KernelRegistry {
 public:
  // The reference is valid until the next Add.
  KernelDef& Add(absl::string_view op, absl::string_view backend, KernelFactory factory);
  // The kernel for a node with these attributes; NotFound listing what there is, InvalidArgument if two match.
  absl::StatusOr<const KernelDef*> Find(const NodeAttrs& attrs, absl::string_view backend) const;
  // Every definition of an op, in order of registration.
  std::vector<const KernelDef*> ForOp(absl::string_view op) const;
  std::vector<const KernelDef*> All() const;

 private:
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<KernelDef>>> defs_;  // by op
};

// Everything that a Register<Family>() function adds to.
struct OpLibrary {
  OpRegistry schemas;
  KernelRegistry kernels;
};

}  // namespace thalweg
