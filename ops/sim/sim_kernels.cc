#include "thalweg/ops/sim/sim_kernels.h"

#include <memory>
#include <utility>
#include <vector>

#include "thalweg/ops/float_environment.h"
#include "thalweg/ops/register_all.h"

namespace thalweg {
namespace {

// Moves a device tensor between the two addresses of its memory: the one tensors carry (which faults on the host) and the
// one that code on the device uses.
Tensor AsDeviceSees(const Device& device, const Tensor& t) {
  if (t.memory() == MemoryKind::kHost) return t;
  return Tensor::FromBuffer(t.dtype(), t.shape(), t.buffer(), device.KernelPointer(const_cast<void*>(t.raw())));
}
Tensor AsHostCarries(const Device& device, const Tensor& t) {
  if (t.memory() == MemoryKind::kHost) return t;
  char* start = static_cast<char*>(t.buffer()->data());
  const ptrdiff_t offset = static_cast<const char*>(t.raw()) - static_cast<char*>(device.KernelPointer(start));
  return Tensor::FromBuffer(t.dtype(), t.shape(), t.buffer(), start + offset);
}

// Runs a CPU kernel on the device's stream. Its completion makes the node's consumers ready.
class SimKernel : public AsyncKernel {
 public:
  explicit SimKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.device().Launch([this, &ctx, done = std::move(done)]() mutable { done(RunOnDevice(ctx)); });
  }

 private:
  absl::Status RunOnDevice(KernelContext& ctx) {
    const int inputs = ctx.num_inputs();
    const int outputs = ctx.num_outputs();
    Device& device = ctx.device();
    // The inner kernel sees slots of its own: inputs first, then outputs.
    std::vector<Value> slots(inputs + outputs);
    std::vector<uint32_t> input_slots(inputs);
    const std::vector<uint8_t> last_use(inputs, 1);
    for (int i = 0; i < inputs; ++i) {
      input_slots[i] = i;
      slots[i].tensor = AsDeviceSees(device, ctx.TakeInput(i));
    }
    KernelContext inner;
    inner.Bind(&ctx.node(), &ctx.step(), slots.data(), input_slots.data(), slots.data() + inputs, last_use.data(), nullptr);
    ScopedFlushDenormals flush;
    THALWEG_RETURN_IF_ERROR(inner_->Compute(inner));
    for (int i = 0; i < outputs; ++i) {
      Value& out = slots[inputs + i];
      if (out.present()) ctx.SetOutput(i, AsHostCarries(device, out.tensor));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<Kernel> inner_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeSimKernel(const KernelInit& init) {
  THALWEG_ASSIGN_OR_RETURN(const KernelDef* def, BuiltinOps().kernels.Find(init.node().node_attrs(), "cpu"));
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> inner, def->factory(init));
  return std::unique_ptr<Kernel>(std::make_unique<SimKernel>(std::move(inner)));
}

// The core ops that compute elementwise, move data, multiply matrices or convolve. What is missing here (Unique, Where, TopK,
// string ops, variables ...) shows placement and transfers at work, as on a real accelerator.
constexpr const char* kSimOps[] = {
    "Abs", "Add", "AddN", "AddV2", "AvgPool", "BatchMatMul", "BatchMatMulV2", "BiasAdd", "BroadcastTo", "Cast",
    "Ceil", "Concat", "ConcatV2", "Const", "Conv2D", "Conv2DBackpropInput", "Conv3D", "DepthToSpace",
    "DepthwiseConv2dNative", "Div", "Elu", "Equal", "Erf", "Exp", "ExpandDims", "Fill", "Floor", "FloorDiv",
    "FloorMod", "FusedBatchNorm", "FusedBatchNormV3", "GatherNd", "GatherV2", "Greater", "GreaterEqual", "Identity",
    "IdentityN", "IsNan", "LeakyRelu", "Less", "LessEqual", "Log", "LogSoftmax", "LogicalAnd", "LogicalNot",
    "LogicalOr", "MatMul", "Max", "MaxPool", "Maximum", "Mean", "Min", "Minimum", "Mul", "Neg", "NotEqual", "OneHot",
    "OnesLike", "Pack", "Pad", "PadV2", "Pow", "RealDiv", "Relu", "Relu6", "Reshape", "ReverseV2", "Rsqrt", "Select",
    "SelectV2", "Selu", "Sigmoid", "Sign", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split",
    "Sqrt", "Square", "SquaredDifference", "Squeeze", "StopGradient", "StridedSlice", "Sub", "Sum", "Tanh", "Tile",
    "Transpose", "Unpack", "ZerosLike"};

}  // namespace

void RegisterSimKernels(OpLibrary& lib) {
  for (const char* op : kSimOps) {
    for (const KernelDef* cpu : lib.kernels.ForOp(op)) {
      if (cpu->backend != "cpu") continue;
      KernelDef copy = *cpu;
      KernelDef& def = lib.kernels.Add(op, "sim", MakeSimKernel);
      copy.backend = def.backend;
      copy.factory = def.factory;
      def = std::move(copy);
    }
  }
  lib.kernels.Add("NoOp", "sim", [](const KernelInit&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return absl::InternalError("NoOp has no kernel");
  });
}

}  // namespace thalweg
