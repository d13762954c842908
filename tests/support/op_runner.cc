#include "thalweg/tests/support/op_runner.h"

#include <condition_variable>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/register_all.h"

namespace thalweg::testing {
namespace {

absl::StatusOr<std::shared_ptr<Device>> MakeTestDevice(const std::string& backend) {
  const std::string text = backend == "cpu" ? "CPU:0" : absl::StrCat("GPU:0=", backend);
  THALWEG_ASSIGN_OR_RETURN(std::vector<DeviceRequest> requests, ParseDeviceList(text));
  THALWEG_ASSIGN_OR_RETURN(auto devices, MakeDevices(requests, std::make_shared<MemoryBudget>(0)));
  return devices[0];
}

// How many of the `total` inputs the arguments with count attribute `counter` have between them, per tensor of N.
int InferCount(const OpSchema& schema, const std::string& counter, int total) {
  int fixed = 0, repeats = 0;
  for (const ArgDecl& arg : schema.inputs) {
    if (arg.number_attr == counter) ++repeats;
    else ++fixed;
  }
  return repeats > 0 ? (total - fixed) / repeats : 0;
}

// Sets the attributes of `schema` that the dtypes of the inputs determine and `attrs` lacks.
void InferAttrs(const OpSchema& schema, const std::vector<Tensor>& inputs, AttrMap* attrs) {
  const auto set_if_missing = [attrs](const std::string& name, Attr value) {
    if (!attrs->Find(name)) attrs->Set(name, std::move(value));
  };
  const int total = static_cast<int>(inputs.size());
  int next = 0;
  for (const ArgDecl& arg : schema.inputs) {
    int count = 1;
    if (!arg.type_list_attr.empty()) {
      count = total - next - (static_cast<int>(schema.inputs.size()) - 1 - static_cast<int>(&arg - schema.inputs.data()));
      std::vector<DType> types;
      for (int i = next; i < next + count && i < total; ++i) types.push_back(inputs[i].dtype());
      set_if_missing(arg.type_list_attr, MakeListAttr(std::move(types)));
    } else if (!arg.number_attr.empty()) {
      count = InferCount(schema, arg.number_attr, total);
      set_if_missing(arg.number_attr, static_cast<int64_t>(count));
    }
    if (!arg.type_attr.empty() && count > 0 && next < total) set_if_missing(arg.type_attr, inputs[next].dtype());
    next += count;
  }
}

absl::Status RunToEnd(Kernel& kernel, KernelContext& ctx) {
  if (!kernel.is_async()) return kernel.Compute(ctx);
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  absl::Status result;
  static_cast<AsyncKernel&>(kernel).ComputeAsync(ctx, [&](absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    result = std::move(status);
    finished = true;
    changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  if (!changed.wait_for(lock, std::chrono::seconds(20), [&] { return finished; })) {
    return absl::DeadlineExceededError("the kernel did not call done within 20 s");
  }
  return result;
}

}  // namespace

struct OpRunner::Node {
  AttrMap attrs;
  KernelSignature signature;
  KernelNode kernel_node;
  std::vector<TensorLiteralPtr> constants;  // null where an input is not one
  std::shared_ptr<Device> device;
  const KernelDef* def = nullptr;
};

OpRunner::OpRunner(std::string op, std::string backend) : op_(std::move(op)), backend_(std::move(backend)) {}

OpRunner& OpRunner::Input(Tensor tensor) {
  inputs_.push_back(std::move(tensor));
  constant_.push_back(false);
  return *this;
}

OpRunner& OpRunner::ConstantInput(Tensor tensor) {
  Input(std::move(tensor));
  constant_.back() = true;
  return *this;
}

OpRunner& OpRunner::ClearInputs() {
  inputs_.clear();
  constant_.clear();
  return *this;
}

OpRunner& OpRunner::With(absl::string_view name, Attr value) {
  attrs_.Set(name, std::move(value));
  return *this;
}

absl::Status OpRunner::Resolve(Node* node) const {
  const OpLibrary& library = BuiltinOps();
  const OpSchema* schema = library.schemas.Find(op_);
  if (schema == nullptr) return absl::NotFoundError(absl::StrCat("no op ", op_));
  node->attrs = attrs_;
  InferAttrs(*schema, inputs_, &node->attrs);
  KernelNode& k = node->kernel_node;
  k.name = "test";
  k.id = 0;
  k.schema = schema;
  k.attrs = &node->attrs;
  std::vector<DType> inputs, outputs;
  THALWEG_RETURN_IF_ERROR(ResolveInputTypes(k.node_attrs(), &inputs));
  THALWEG_RETURN_IF_ERROR(ResolveOutputTypes(k.node_attrs(), &outputs));
  node->signature = KernelSignature::OnHost(inputs, outputs);
  k.signature = &node->signature;
  if (k.input_types().size() != inputs_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(op_, " takes ", k.input_types().size(), " inputs, got ", inputs_.size()));
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (RemoveRef(k.input_types()[i]) != inputs_[i].dtype()) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " of ", op_, " is ", DTypeName(inputs_[i].dtype()),
                                                     ", not ", DTypeName(k.input_types()[i])));
    }
  }
  node->constants.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!constant_[i]) continue;
    THALWEG_ASSIGN_OR_RETURN(node->constants[i], inputs_[i].ToLiteral());
  }
  THALWEG_ASSIGN_OR_RETURN(node->device, MakeTestDevice(backend_));
  k.device = node->device.get();
  THALWEG_ASSIGN_OR_RETURN(node->def, library.kernels.Find(k.node_attrs(), backend_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> OpRunner::RunKernel(const Node& node, Kernel& kernel, bool may_overwrite, int pieces) {
  const KernelNode& k = node.kernel_node;
  const size_t num_inputs = inputs_.size();
  std::vector<Value> slots(num_inputs);
  std::vector<uint32_t> input_slots(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) {
    slots[i].tensor = may_overwrite ? DeepCopy(inputs_[i]) : inputs_[i];
    input_slots[i] = static_cast<uint32_t>(i);
  }
  std::vector<Value> outputs(k.output_types().size());
  const std::vector<uint8_t> last_use(num_inputs, may_overwrite ? 1 : 0);
  step_->set_pieces(pieces);
  KernelContext ctx;
  ctx.Bind(&k, step_.get(), slots.data(), input_slots.data(), outputs.data(), last_use.data(), nullptr);
  THALWEG_RETURN_IF_ERROR(RunToEnd(kernel, ctx));
  std::vector<Tensor> result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& value = outputs[i];
    if (value.ref == nullptr && value.tensor.initialized() && value.tensor.dtype() != RemoveRef(k.output_types()[i])) {
      return absl::InternalError(absl::StrCat("output ", i, " of ", op_, " is ", DTypeName(value.tensor.dtype()),
                                              ", declared ", DTypeName(k.output_types()[i])));
    }
    result.push_back(value.ref ? value.ref->tensor : value.tensor);
  }
  return result;
}

absl::StatusOr<std::vector<PartialShape>> OpRunner::InferShapes(const Node& node, bool shapes_known,
                                                                bool values_known) const {
  const KernelNode& k = node.kernel_node;
  const size_t n = inputs_.size();
  std::vector<PartialShape> shapes(n);
  std::vector<TensorLiteralPtr> literals(n);
  std::vector<SymbolicValue> values(n);
  std::vector<DType> types;
  for (size_t i = 0; i < n; ++i) {
    types.push_back(inputs_[i].dtype());
    if (shapes_known) shapes[i] = PartialShape::Known(inputs_[i].shape());
    if (!values_known || inputs_[i].dtype() == DType::kResource || inputs_[i].dtype() == DType::kVariant) continue;
    THALWEG_ASSIGN_OR_RETURN(literals[i], inputs_[i].ToLiteral());
  }
  int64_t next_symbol = kUnknownDim - 1;
  ShapeContext c(k.node_attrs(), types, shapes, literals, values, static_cast<int>(k.output_types().size()), &next_symbol);
  if (k.schema->shape_fn == nullptr) return absl::InternalError(absl::StrCat(op_, " has no shape function"));
  THALWEG_RETURN_IF_ERROR(k.schema->shape_fn(c));
  std::vector<PartialShape> out;
  for (int i = 0; i < c.num_outputs(); ++i) out.push_back(c.output(i));
  return out;
}

absl::StatusOr<std::vector<PartialShape>> OpRunner::InferShapes(bool values_known) const {
  Node node;
  THALWEG_RETURN_IF_ERROR(Resolve(&node));
  return InferShapes(node, /*shapes_known=*/true, values_known);
}

absl::Status OpRunner::CheckShapes(const Node& node, const std::vector<Tensor>& outputs) const {
  const struct { bool shapes, values; const char* what; } kKnowledge[] = {
      {true, true, "shapes and values"}, {true, false, "shapes only"}, {false, false, "nothing"}};
  for (const auto& known : kKnowledge) {
    absl::StatusOr<std::vector<PartialShape>> inferred = InferShapes(node, known.shapes, known.values);
    if (!inferred.ok() && may_be_refused_by_shape_) continue;
    if (!inferred.ok()) {
      return absl::InternalError(absl::StrCat("the kernel of ", op_, " succeeded but its shape function, knowing ", known.what,
                                              ", refuses: ", inferred.status().ToString()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].initialized() && !(*inferred)[i].IsCompatibleWith(outputs[i].shape())) {
        return absl::InternalError(absl::StrCat("output ", i, " of ", op_, " has shape ", outputs[i].shape().ToString(),
                                                ", inferred (knowing ", known.what, ") ", (*inferred)[i].ToString()));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> OpRunner::Run() {
  Node node;
  THALWEG_RETURN_IF_ERROR(Resolve(&node));
  std::vector<PartialShape> shapes;
  for (const Tensor& input : inputs_) shapes.push_back(PartialShape::Known(input.shape()));
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, node.def->factory(KernelInit(node.kernel_node, shapes, 1, node.constants)));
  if (node.kernel_node.schema->stateful) {
    THALWEG_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, RunKernel(node, *kernel, /*may_overwrite=*/false, /*pieces=*/1));
    THALWEG_RETURN_IF_ERROR(CheckShapes(node, outputs));
    return outputs;
  }
  std::vector<Tensor> before;
  for (const Tensor& input : inputs_) before.push_back(DeepCopy(input));
  THALWEG_ASSIGN_OR_RETURN(std::vector<Tensor> kept, RunKernel(node, *kernel, /*may_overwrite=*/false, /*pieces=*/1));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!SameTensor(before[i], inputs_[i])) return absl::InternalError(absl::StrCat(op_, " changed its input ", i));
  }
  THALWEG_RETURN_IF_ERROR(CheckShapes(node, kept));
  THALWEG_ASSIGN_OR_RETURN(std::vector<Tensor> in_place, RunKernel(node, *kernel, /*may_overwrite=*/true, /*pieces=*/4));
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!SameTensor(kept[i], in_place[i])) {
      return absl::InternalError(absl::StrCat("output ", i, " of ", op_, " depends on in-place reuse or on the split of work: ",
                                              kept[i].ToString(), " and ", in_place[i].ToString()));
    }
  }
  return kept;
}

absl::StatusOr<Tensor> OpRunner::RunOne() {
  THALWEG_ASSIGN_OR_RETURN(std::vector<Tensor> outputs, Run());
  if (outputs.size() != 1) return absl::InternalError(absl::StrCat(op_, " has ", outputs.size(), " outputs"));
  return outputs[0];
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.flat<std::string>() == b.flat<std::string>();
  if (!IsPlainMemory(a.dtype())) return true;  // handles and variants have no equality
  const size_t bytes = static_cast<size_t>(a.num_elements()) * DTypeSize(a.dtype());
  return bytes == 0 || std::memcmp(a.raw(), b.raw(), bytes) == 0;
}

Tensor DeepCopy(const Tensor& tensor) {
  if (!tensor.initialized()) return tensor;
  absl::StatusOr<Tensor> made = Tensor::Allocate(tensor.dtype(), tensor.shape());
  Tensor copy = *std::move(made);
  const auto copy_objects = [&](auto zero) {
    using T = decltype(zero);
    const absl::Span<const T> from = tensor.flat<T>();
    std::copy(from.begin(), from.end(), copy.mutable_flat<T>().begin());
  };
  if (tensor.dtype() == DType::kString) copy_objects(std::string());
  else if (tensor.dtype() == DType::kResource) copy_objects(ResourceHandle());
  else if (tensor.dtype() == DType::kVariant) copy_objects(Variant());
  else if (tensor.num_elements() > 0) {
    std::memcpy(copy.mutable_raw(), tensor.raw(), static_cast<size_t>(tensor.num_elements()) * DTypeSize(tensor.dtype()));
  }
  return copy;
}

}  // namespace thalweg::testing
