// Select and SelectV2: one of two tensors, element by element.
//
// Elements are moved, not computed with, so there is one loop per element size.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

template <typename T>
THALWEG_CLONES void SelectLoop(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const bool* condition = static_cast<const bool*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  const int64_t step = strides[0], step_a = strides[1], step_b = strides[2];
  if (step != 0 && step_a != 0 && step_b != 0) {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) o[k] = condition[k] ? a[k] : b[k];
  } else {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) o[k] = condition[k * step] ? a[k * step_a] : b[k * step_b];
  }
}

// Objects are assigned one by one.
template <typename T>
void SelectObjects(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const bool* condition = static_cast<const bool*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) {
    const T* from = condition[k * strides[0]] ? a + k * strides[1] : b + k * strides[2];
    if (from != o + k) o[k] = *from;
  }
}

struct Bytes16 {
  uint64_t words[2];
};

constexpr ElementwiseDef SelectDef(InnerLoop loop, double nanos) {
  return {.loop = loop, .num_inputs = 3, .nanos_per_element = nanos};
}
constexpr ElementwiseDef kSelect1 = SelectDef(&SelectLoop<uint8_t>, 0.2);
constexpr ElementwiseDef kSelect2 = SelectDef(&SelectLoop<uint16_t>, 0.3);
constexpr ElementwiseDef kSelect4 = SelectDef(&SelectLoop<uint32_t>, 0.4);
constexpr ElementwiseDef kSelect8 = SelectDef(&SelectLoop<uint64_t>, 0.8);
constexpr ElementwiseDef kSelect16 = SelectDef(&SelectLoop<Bytes16>, 1.6);
constexpr ElementwiseDef kSelectString = SelectDef(&SelectObjects<std::string>, 20);
constexpr ElementwiseDef kSelectResource = SelectDef(&SelectObjects<ResourceHandle>, 40);
constexpr ElementwiseDef kSelectVariant = SelectDef(&SelectObjects<Variant>, 10);

const ElementwiseDef& FindSelect(DType type) {
  switch (type) {
    case DType::kString: return kSelectString;
    case DType::kResource: return kSelectResource;
    case DType::kVariant: return kSelectVariant;
    default: break;
  }
  switch (DTypeSize(type)) {
    case 1: return kSelect1;
    case 2: return kSelect2;
    case 4: return kSelect4;
    case 8: return kSelect8;
    default: return kSelect16;
  }
}

// A scalar condition chooses a whole tensor, which is passed on uncopied.
void PassChosen(KernelContext& ctx) { ctx.SetOutput(0, ctx.TakeInput(ctx.input(0).flat<bool>()[0] ? 1 : 2)); }

// Three operands that broadcast.
class SelectV2Kernel final : public Kernel {
 public:
  explicit SelectV2Kernel(const KernelInit& init)
      : select_(FindSelect(RemoveRef(init.node().output_types()[0])), init.node()) {}

  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() == 0 && ctx.input(1).shape() == ctx.input(2).shape()) {
      PassChosen(ctx);
      return absl::OkStatus();
    }
    return select_.Compute(ctx);
  }

 private:
  ElementwiseKernel select_;
};

// Two tensors of one shape; the condition has that shape, is a scalar, or a vector that chooses rows.
class SelectKernel final : public Kernel {
 public:
  explicit SelectKernel(const KernelInit& init) : select_(FindSelect(RemoveRef(init.node().output_types()[0])), init.node()) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& condition = ctx.input(0).shape();
    const Shape& shape = ctx.input(1).shape();
    if (ctx.input(2).shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat("'t' of shape ", shape.ToString(), " and 'e' of shape ",
                                                     ctx.input(2).shape().ToString(), " must have one shape"));
    }
    if (condition == shape) return select_.Compute(ctx);
    if (condition.rank() == 0) {
      PassChosen(ctx);
      return absl::OkStatus();
    }
    if (condition.rank() != 1 || shape.rank() < 1 || condition.dim(0) != shape.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat("condition of shape ", condition.ToString(), " does not fit operands of shape ",
                                                     shape.ToString(), ": it must have their shape, be a scalar, or a vector with "
                                                     "an element for each of their rows"));
    }
    Dims dims(shape.rank(), 1);
    dims[0] = condition.dim(0);
    THALWEG_ASSIGN_OR_RETURN(const Shape rows, Shape::Make(dims));
    return select_.ComputeAs(ctx, {&rows, &shape, &shape});
  }

 private:
  ElementwiseKernel select_;
};

absl::Status SelectV2Shape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const PartialShape operands, ShapeContext::Broadcast(c.input(1), c.input(2)));
  THALWEG_ASSIGN_OR_RETURN(PartialShape all, ShapeContext::Broadcast(c.input(0), operands));
  c.set_output(0, std::move(all));
  return absl::OkStatus();
}

absl::Status SelectShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ShapeContext::Merge(c.input(1), c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.has_rank() && shape.has_rank() && condition.rank() > 0) {
    if (condition.rank() != shape.rank() && (condition.rank() != 1 || shape.rank() == 0)) {
      return absl::InvalidArgumentError(absl::StrCat("condition of shape ", condition.ToString(),
                                                     " does not fit operands of shape ", shape.ToString()));
    }
    if (condition.rank() == shape.rank()) {
      THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Merge(shape, condition));
    } else {
      THALWEG_ASSIGN_OR_RETURN(const int64_t rows, ShapeContext::MergeDim(shape.dim(0), condition.dim(0)));
      shape.set_dim(0, rows);
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void RegisterSelectOps(OpLibrary& lib) {
  lib.schemas.Add("Select(condition: bool, t: T, e: T) -> output: T", "T: type").Shape(SelectShape).Cost(ElementwiseCost<1>);
  lib.kernels.Add("Select", "cpu", &MakeKernel<SelectKernel>);

  lib.schemas.Add("SelectV2(condition: bool, t: T, e: T) -> output: T", "T: type").Shape(SelectV2Shape).Cost(ElementwiseCost<1>);
  lib.kernels.Add("SelectV2", "cpu", &MakeKernel<SelectV2Kernel>);
}

}  // namespace thalweg::math
