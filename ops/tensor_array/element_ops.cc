// TensorArrayV3 and the ops on one element or the whole of it. The float scalar "flow" that runs through all of them only
// orders them; it is handed on as it came.
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/tensor_array/tensor_array.h"
#include "thalweg/ops/tensor_array/tensor_array_ops.h"

namespace thalweg {
namespace {

class CreateKernel : public Kernel {
 public:
  explicit CreateKernel(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    options_.name = attrs.GetOr<std::string>("tensor_array_name", "");
    if (options_.name.empty()) options_.name = std::string(init.node().name);
    options_.dtype = attrs.GetOr<DType>("dtype", DType::kInvalid);
    options_.element_shape = attrs.GetOr<PartialShape>("element_shape", PartialShape());
    options_.dynamic_size = attrs.GetOr<bool>("dynamic_size", false);
    options_.clear_after_read = attrs.GetOr<bool>("clear_after_read", true);
    options_.identical_element_shapes = attrs.GetOr<bool>("identical_element_shapes", false);
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, IntScalarArg(ctx.input(0), "size"));
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("the size must be >= 0, not ", size));
    TensorArrayOptions options = options_;
    options.size = size;
    THALWEG_ASSIGN_OR_RETURN(Tensor handle, TensorArrayHandle(ctx, std::make_shared<TensorArray>(std::move(options))));
    ctx.SetOutput(0, std::move(handle));
    THALWEG_ASSIGN_OR_RETURN(Tensor * flow, ctx.AllocateOutput(1, Shape()));
    flow->mutable_flat<float>()[0] = 0;
    return absl::OkStatus();
  }

 private:
  TensorArrayOptions options_;
};

class WriteKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t index, IntScalarArg(ctx.input(1), "index"));
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.input_dtype(2)));
    THALWEG_RETURN_IF_ERROR(array->Write(ctx, index, ctx.TakeInput(2)));
    ctx.SetOutput(0, ctx.TakeInput(3));
    return absl::OkStatus();
  }
};

class ReadKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t index, IntScalarArg(ctx.input(1), "index"));
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0, ctx.output_dtype(0)));
    THALWEG_ASSIGN_OR_RETURN(Tensor value, array->Read(ctx, index));
    ctx.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
};

class SizeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, array->Size());
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<int32_t>()[0] = static_cast<int32_t>(size);
    return absl::OkStatus();
  }
};

class GradientKernel : public Kernel {
 public:
  explicit GradientKernel(const KernelInit& init)
      : source_(init.node().node_attrs().GetOr<std::string>("source", "")) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<TensorArray> gradient, array->Gradient(source_));
    THALWEG_ASSIGN_OR_RETURN(Tensor handle, TensorArrayHandle(ctx, std::move(gradient)));
    ctx.SetOutput(0, std::move(handle));
    ctx.SetOutput(1, ctx.TakeInput(1));
    return absl::OkStatus();
  }

 private:
  const std::string source_;
};

class CloseKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const auto array, FindTensorArray(ctx, 0));
    array->Close();
    return absl::OkStatus();
  }
};

absl::Status CreateShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(0));
  return ScalarShape(c);
}

absl::Status WriteShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(3));
  return ScalarShape(c);
}

absl::Status ReadShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  return c.RequireScalar(2);
}

}  // namespace

void RegisterElementOps(OpLibrary& lib) {
  lib.schemas
      .Add("TensorArrayV3(size: int32) -> (handle: resource, flow: float)",
           "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; clear_after_read: bool = true; "
           "identical_element_shapes: bool = false; tensor_array_name: string = \"\"")
      .Shape(CreateShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas
      .Add("TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> flow_out: float", "T: type")
      .Shape(WriteShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> value: dtype", "dtype: type")
      .Shape(ReadShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("TensorArraySizeV3(handle: resource, flow_in: float) -> size: int32")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas
      .Add("TensorArrayGradV3(handle: resource, flow_in: float) -> (grad_handle: resource, flow_out: float)",
           "source: string")
      .Shape(ScalarShape)
      .Cost(NoCost)
      .Stateful();
  lib.schemas.Add("TensorArrayCloseV3(handle: resource)").Shape(NoOutputs).Cost(NoCost).Stateful();
  lib.kernels.Add("TensorArrayV3", "cpu", MakeKernel<CreateKernel>);
  lib.kernels.Add("TensorArrayWriteV3", "cpu", MakeKernel<WriteKernel>).Type("T", MovableTypes());
  lib.kernels.Add("TensorArrayReadV3", "cpu", MakeKernel<ReadKernel>).Type("dtype", MovableTypes());
  lib.kernels.Add("TensorArraySizeV3", "cpu", MakeKernel<SizeKernel>);
  lib.kernels.Add("TensorArrayGradV3", "cpu", MakeKernel<GradientKernel>);
  lib.kernels.Add("TensorArrayCloseV3", "cpu", MakeKernel<CloseKernel>);
}

}  // namespace thalweg
