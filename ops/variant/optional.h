// OptionalValue: several tensors or nothing, carried in a variant.
#pragma once

#include <string>
#include <vector>

#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"

namespace thalweg {

// Never changed once made.
class OptionalValue : public VariantValue {
 public:
  OptionalValue() = default;  // nothing
  explicit OptionalValue(std::vector<Tensor> components) : has_value_(true), components_(std::move(components)) {}

  absl::string_view type_name() const override { return "Optional"; }
  std::string DebugString() const override { return has_value_ ? "optional with a value" : "optional without a value"; }

  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  bool has_value_ = false;
  std::vector<Tensor> components_;
};

}  // namespace thalweg
