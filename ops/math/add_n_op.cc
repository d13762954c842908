// AddN: the sum of any number of tensors of one shape, tile by tile, so that partial sums stay in cache.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

constexpr int64_t kTile = 1024;
constexpr int64_t kMaxElementBytes = 16;

class AddNKernel final : public Kernel {
 public:
  AddNKernel(const ElementwiseDef& add, const KernelNode& node)
      : add_(add),
        element_bytes_(static_cast<int64_t>(DTypeSize(RemoveRef(node.output_types()[0])))),
        load_(LoadConversion(RemoveRef(node.output_types()[0]), add.output_type)),
        store_(StoreConversion(add.output_type, RemoveRef(node.output_types()[0]))) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == shape) continue;
      return absl::InvalidArgumentError(absl::StrCat("inputs must have one shape: input 0 has ", shape.ToString(), ", input ", i,
                                                     " has ", ctx.input(i).shape().ToString()));
    }
    if (ctx.num_inputs() == 1) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0, 1}, 0, shape));
    char* to = static_cast<char*>(out->mutable_raw());
    ctx.ParallelFor(shape.num_elements(), add_.nanos_per_element * ctx.num_inputs(), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kTile) SumTile(ctx, at, std::min(kTile, end - at), to + at * element_bytes_);
    });
    return absl::OkStatus();
  }

 private:
  void SumTile(const KernelContext& ctx, int64_t at, int64_t n, char* to) const {
    alignas(64) char sum[kTile * kMaxElementBytes];
    alignas(64) char loaded[2][kTile * kMaxElementBytes];
    static constexpr int64_t kStrides[] = {1, 1};
    LoopState state;
    const auto operand = [&](int i, int buffer) -> const void* {
      const char* from = static_cast<const char*>(ctx.input(i).raw()) + at * element_bytes_;
      if (load_ == nullptr) return from;
      load_(from, loaded[buffer], n);
      return loaded[buffer];
    };
    const void* in[] = {operand(0, 0), operand(1, 1)};
    // Everything but the last sum stays in the tile: `to` may be the memory of input 0 or 1.
    for (int i = 2; i < ctx.num_inputs(); ++i) {
      add_.loop(in, kStrides, sum, n, state);
      in[0] = sum;
      in[1] = operand(i, 1);
    }
    add_.loop(in, kStrides, store_ ? sum : to, n, state);
    if (store_) store_(sum, to, n);
  }

  const ElementwiseDef& add_;
  const int64_t element_bytes_;
  const ConvertLoop load_;
  const ConvertLoop store_;
};

template <const ElementwiseDef& add>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAddN(const KernelInit& init) {
  return std::unique_ptr<Kernel>(std::make_unique<AddNKernel>(add, init.node()));
}

template <typename... Ts>
void RegisterAddN(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("AddN", "cpu", &MakeAddN<kElementwise<AddOp, Ts>>).template Type<Ts>("T"), ...);
}

NodeCost AddNCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  cost.flops = (c.num_inputs() - 1) * c.OutputElements(0);
  return cost;
}

}  // namespace

void RegisterAddNOp(OpLibrary& lib) {
  lib.schemas.Add("AddN(inputs: N*T) -> sum: T",
                  "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
                  "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
      .Commutative().Shape(MergedShape).Cost(AddNCost);
  RegisterAddN(lib, FloatTypes());
  RegisterAddN(lib, SignedTypes());
  RegisterAddN(lib, UnsignedTypes());
  RegisterAddN(lib, ComplexTypes());
}

}  // namespace thalweg::math
