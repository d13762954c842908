// Elements that are C++ objects: resource handles and variants.
//
// Both are reference-counted pointers to an immutable-or-internally-locked object, so tensors of them copy cheaply.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/export.h"

namespace thalweg {

// Something that outlives a node's execution: a variable, a queue, a TensorArray. Lives in containers of the resource
// manager (ops/step_services.h). Implementations lock themselves; every method may be called from any thread.
class THALWEG_EXPORT Resource {
 public:
  virtual ~Resource() = default;
  // What it is and which state it is in, for error messages: "variable 'w' float32[3,4]".
  virtual std::string DebugString() const = 0;
};

// The value of an element of a resource tensor: which resource is meant. `resource` is set for anonymous resources
// only; named ones are looked up in their container when used, so that a handle may exist before its resource.
struct ResourceHandle {
  std::string container;
  std::string name;
  std::string type_name;  // "Variable", "TensorArray", ...: a handle of another type is refused
  std::string device;     // the device that owns it
  std::shared_ptr<Resource> resource;
  DType dtype = DType::kInvalid;  // of a variable's value, if known
};

// The value of an element of a variant tensor.
class THALWEG_EXPORT VariantValue {
 public:
  virtual ~VariantValue() = default;
  virtual absl::string_view type_name() const = 0;
  virtual std::string DebugString() const = 0;
};
using Variant = std::shared_ptr<const VariantValue>;

template <>
struct DTypeOf<ResourceHandle> {
  static constexpr DType value = DType::kResource;
};
template <>
struct DTypeOf<Variant> {
  static constexpr DType value = DType::kVariant;
};

}  // namespace thalweg
