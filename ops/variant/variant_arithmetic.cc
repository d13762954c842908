// ZerosLike and AddN of variants: of the tensors inside, which may be variants again (lists of lists).
//
// Nesting is bounded, since these two functions recurse once per level.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/variant/optional.h"
#include "thalweg/ops/variant/tensor_list.h"
#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {
namespace {

constexpr int kMaxNesting = 64;

absl::Status CheckNesting(int depth) {
  if (depth <= kMaxNesting) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("lists are nested more than ", kMaxNesting, " deep"));
}

absl::Status NoArithmetic(const Variant& value) {
  return absl::InvalidArgumentError(absl::StrCat("only tensor lists and optionals can be used here, not ",
                                                 value != nullptr ? value->DebugString() : "an empty variant"));
}

// ---- ZerosLike

absl::StatusOr<Tensor> ZerosLikeTensor(KernelContext& ctx, const Tensor& like, int depth);

absl::StatusOr<Variant> ZerosLikeList(KernelContext& ctx, const TensorList& list, int depth) {
  auto zeros = std::make_shared<TensorList>(list.dtype(), list.element_shape(), list.size());
  zeros->set_max_size(list.max_size());
  absl::Status status;
  list.ForEachSet([&](int64_t index, const Tensor& element) {
    if (!status.ok()) return;
    absl::StatusOr<Tensor> zero = ZerosLikeTensor(ctx, element, depth);
    if (zero.ok()) zeros->Set(index, *std::move(zero));
    else status = zero.status();
  });
  if (!status.ok()) return status;
  return Variant(std::move(zeros));
}

absl::StatusOr<Variant> ZerosLikeOptional(KernelContext& ctx, const OptionalValue& optional, int depth) {
  if (!optional.has_value()) return Variant(std::make_shared<OptionalValue>());
  std::vector<Tensor> zeros;
  for (const Tensor& component : optional.components()) {
    THALWEG_ASSIGN_OR_RETURN(Tensor zero, ZerosLikeTensor(ctx, component, depth));
    zeros.push_back(std::move(zero));
  }
  return Variant(std::make_shared<OptionalValue>(std::move(zeros)));
}

absl::StatusOr<Variant> ZerosLikeVariant(KernelContext& ctx, const Variant& like, int depth) {
  THALWEG_RETURN_IF_ERROR(CheckNesting(depth));
  if (const auto* list = dynamic_cast<const TensorList*>(like.get())) return ZerosLikeList(ctx, *list, depth);
  if (const auto* optional = dynamic_cast<const OptionalValue*>(like.get())) return ZerosLikeOptional(ctx, *optional, depth);
  return NoArithmetic(like);
}

absl::StatusOr<Tensor> ZerosLikeTensor(KernelContext& ctx, const Tensor& like, int depth) {
  THALWEG_ASSIGN_OR_RETURN(Tensor zeros, ZeroTensor(ctx, like.dtype(), like.shape()));
  if (like.dtype() != DType::kVariant) return zeros;
  for (int64_t i = 0; i < like.num_elements(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(zeros.mutable_flat<Variant>()[i], ZerosLikeVariant(ctx, like.flat<Variant>()[i], depth + 1));
  }
  return zeros;
}

class ZerosLikeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(Tensor zeros, ZerosLikeTensor(ctx, ctx.input(0), 0));
    ctx.SetOutput(0, std::move(zeros));
    return absl::OkStatus();
  }
};

// ---- AddN

absl::StatusOr<Tensor> AddTensors(KernelContext& ctx, const Tensor& a, const Tensor& b, int depth);

absl::StatusOr<Variant> AddLists(KernelContext& ctx, const TensorList& a, const TensorList& b, int depth) {
  if (a.dtype() != b.dtype() || a.size() != b.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a ", a.DebugString(), " and a ", b.DebugString(), " cannot be added up"));
  }
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ShapeContext::Merge(a.element_shape(), b.element_shape()));
  auto sum = std::make_shared<TensorList>(a.dtype(), std::move(shape), a.size());
  absl::Status status;
  // What was never set counts as zero.
  a.ForEachSet([&](int64_t index, const Tensor& element) { sum->Set(index, element); });
  b.ForEachSet([&](int64_t index, const Tensor& element) {
    if (!status.ok()) return;
    absl::StatusOr<Tensor> added = element;
    if (a.element(index).initialized()) added = AddTensors(ctx, a.element(index), element, depth);
    if (added.ok()) sum->Set(index, *std::move(added));
    else status = added.status();
  });
  if (!status.ok()) return status;
  return Variant(std::move(sum));
}

absl::StatusOr<Variant> AddOptionals(KernelContext& ctx, const OptionalValue& a, const OptionalValue& b, int depth) {
  if (a.has_value() != b.has_value()) {
    return absl::InvalidArgumentError("optionals cannot be added up if only one of them has a value");
  }
  if (a.components().size() != b.components().size()) {
    return absl::InvalidArgumentError(absl::StrCat("optionals of ", a.components().size(), " and ", b.components().size(),
                                                   " components cannot be added up"));
  }
  if (!a.has_value()) return Variant(std::make_shared<OptionalValue>());
  std::vector<Tensor> sums;
  for (size_t i = 0; i < a.components().size(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(Tensor sum, AddTensors(ctx, a.components()[i], b.components()[i], depth));
    sums.push_back(std::move(sum));
  }
  return Variant(std::make_shared<OptionalValue>(std::move(sums)));
}

absl::StatusOr<Variant> AddVariants(KernelContext& ctx, const Variant& a, const Variant& b, int depth) {
  THALWEG_RETURN_IF_ERROR(CheckNesting(depth));
  const auto* list_a = dynamic_cast<const TensorList*>(a.get());
  const auto* list_b = dynamic_cast<const TensorList*>(b.get());
  if (list_a != nullptr && list_b != nullptr) return AddLists(ctx, *list_a, *list_b, depth);
  const auto* optional_a = dynamic_cast<const OptionalValue*>(a.get());
  const auto* optional_b = dynamic_cast<const OptionalValue*>(b.get());
  if (optional_a != nullptr && optional_b != nullptr) return AddOptionals(ctx, *optional_a, *optional_b, depth);
  return NoArithmetic(list_a == nullptr && optional_a == nullptr ? a : b);
}

absl::StatusOr<Tensor> AddTensors(KernelContext& ctx, const Tensor& a, const Tensor& b, int depth) {
  if (a.dtype() != DType::kVariant || b.dtype() != DType::kVariant) return SumOfTensors(ctx, a, b);
  if (a.shape() != b.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("variants of shapes ", a.shape().ToString(), " and ",
                                                   b.shape().ToString(), " cannot be added up"));
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor sum, ZeroTensor(ctx, DType::kVariant, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(sum.mutable_flat<Variant>()[i],
                             AddVariants(ctx, a.flat<Variant>()[i], b.flat<Variant>()[i], depth + 1));
  }
  return sum;
}

class AddNKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    Tensor sum = ctx.input(0);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(sum, AddTensors(ctx, sum, ctx.input(i), 0));
    }
    ctx.SetOutput(0, std::move(sum));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterVariantArithmetic(OpLibrary& lib) {
  lib.kernels.Add("ZerosLike", "cpu", MakeKernel<ZerosLikeKernel>).Type<Variant>("T");
  lib.kernels.Add("AddN", "cpu", MakeKernel<AddNKernel>).Type<Variant>("T");
}

}  // namespace thalweg
