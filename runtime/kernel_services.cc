#include "thalweg/runtime/kernel_services.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/devices/device.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/ops/float_environment.h"
#include "thalweg/ops/step_services.h"
#include "thalweg/runtime/resource_manager.h"
#include "thalweg/runtime/text_accounting.h"
#include "thalweg/runtime/thread_pool.h"

namespace thalweg {
namespace {

class RegistryCatalog : public KernelCatalog {
 public:
  explicit RegistryCatalog(const OpLibrary& library) : library_(library) {}

  absl::Status CanRun(const Node& node, const std::string& backend) const override {
    if (node.schema == nullptr) return absl::UnimplementedError(absl::StrCat("'", node.op, "' is a function: calls are replaced before they are placed"));
    return library_.kernels.Find(node.node_attrs(), backend).status();
  }

  int Priority(const Node& node, const std::string& backend) const override {
    if (node.schema == nullptr) return 0;
    absl::StatusOr<const KernelDef*> def = library_.kernels.Find(node.node_attrs(), backend);
    return def.ok() ? (*def)->priority : 0;
  }

  void MemoryKinds(const Node& node, const std::string& backend, std::vector<bool>* host_inputs,
                   std::vector<bool>* host_outputs) const override {
    std::vector<DType> input_types;
    if (node.schema == nullptr || !ResolveInputTypes(node.node_attrs(), &input_types).ok()) input_types.resize(node.num_data_inputs);
    absl::StatusOr<const KernelDef*> def = nullptr;
    if (node.schema != nullptr) def = library_.kernels.Find(node.node_attrs(), backend);
    absl::StatusOr<HostArguments> host = FindHostArguments(node, input_types, def.ok() ? *def : nullptr);
    if (!host.ok()) return;  // reported when the plan is built
    *host_inputs = std::move(host->inputs);
    *host_outputs = std::move(host->outputs);
  }

 private:
  const OpLibrary& library_;
};

// A step of one kernel on one thread.
class FoldingStep final : public StepServices {
 public:
  explicit FoldingStep(Allocator& allocator) : allocator_(allocator) {}
  int64_t step_id() const override { return 0; }
  bool cancelled() const override { return false; }
  uint64_t OnCancel(absl::AnyInvocable<void()>) override { return 1; }
  void RemoveOnCancel(uint64_t) override {}
  ResourceManager& resources() override { return resources_; }
  absl::string_view step_container() const override { return "folding"; }
  Allocator& host_allocator() override { return allocator_; }
  int num_threads() const override { return 1; }
  void ParallelFor(int64_t total, double, absl::FunctionRef<void(int64_t, int64_t)> fn) override {
    if (total > 0) fn(0, total);
  }

 private:
  Allocator& allocator_;
  SessionResources resources_;
};

class CpuEvaluator : public ConstantEvaluator {
 public:
  explicit CpuEvaluator(const OpLibrary& library) : library_(library) {}

  absl::StatusOr<std::vector<TensorLiteralPtr>> Evaluate(const Graph& graph, const Node& node, absl::Span<const TensorLiteralPtr> inputs,
                                                         int64_t max_bytes) const override {
    if (node.schema == nullptr) return absl::UnimplementedError("functions are not folded");
    THALWEG_ASSIGN_OR_RETURN(const KernelDef* def, library_.kernels.Find(node.node_attrs(), "cpu"));
    // Inputs and temporaries count too, so leave room for them beside the outputs.
    auto budget = std::make_shared<MemoryBudget>(16 * max_bytes);
    THALWEG_ASSIGN_OR_RETURN(std::vector<DeviceRequest> requests, ParseDeviceList("CPU:0"));
    THALWEG_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Device>> devices, MakeDevices(requests, budget));

    KernelNode info;
    info.name = node.name;
    info.schema = node.schema;
    info.attrs = &node.attrs;
    info.device = devices[0].get();
    std::vector<DType> input_types;
    THALWEG_RETURN_IF_ERROR(ResolveInputTypes(node.node_attrs(), &input_types));
    if (input_types.size() != inputs.size()) return absl::InternalError("constant folding: number of inputs");
    const KernelSignature signature = KernelSignature::OnHost(input_types, node.output_types);
    info.signature = &signature;

    ScopedComputeThread compute;
    THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, def->factory(KernelInit(info, {}, 1, inputs)));
    if (kernel->is_async()) return absl::UnimplementedError("asynchronous kernels are not folded");
    kernel = WithTextAccounting(std::move(kernel), info);

    std::vector<Value> values(inputs.size() + node.output_types.size());
    std::vector<uint32_t> slots(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      slots[i] = static_cast<uint32_t>(i);
      THALWEG_ASSIGN_OR_RETURN(values[i].tensor, Tensor::FromLiteral(inputs[i], devices[0]->allocator()));
    }
    const std::vector<uint8_t> last_use(inputs.size(), 0);
    FoldingStep step(devices[0]->allocator());
    KernelContext context;
    context.Bind(&info, &step, values.data(), slots.data(), values.data() + inputs.size(), last_use.data(), nullptr);
    THALWEG_RETURN_IF_ERROR(kernel->Compute(context));
    return ToLiterals(absl::MakeSpan(values).subspan(inputs.size()), max_bytes);
  }

 private:
  static absl::StatusOr<std::vector<TensorLiteralPtr>> ToLiterals(absl::Span<Value> outputs, int64_t max_bytes) {
    std::vector<TensorLiteralPtr> literals;
    for (Value& out : outputs) {
      if (!out.tensor.initialized()) return absl::InternalError("constant folding: an output was not set");
      if (out.tensor.bytes() > max_bytes) return absl::ResourceExhaustedError("constant folding: the result is too large to keep");
      // Into memory that does not belong to this evaluation's device.
      THALWEG_ASSIGN_OR_RETURN(Tensor kept, Tensor::Allocate(out.tensor.dtype(), out.tensor.shape()));
      if (IsPlainMemory(kept.dtype())) {
        std::copy_n(static_cast<const char*>(out.tensor.raw()), kept.num_elements() * DTypeSize(kept.dtype()),
                    static_cast<char*>(kept.mutable_raw()));
      } else {
        absl::Span<const std::string> strings = out.tensor.flat<std::string>();
        if (kept.dtype() != DType::kString) return absl::UnimplementedError("constant folding: handles are not folded");
        std::copy(strings.begin(), strings.end(), kept.mutable_flat<std::string>().begin());
      }
      THALWEG_ASSIGN_OR_RETURN(TensorLiteralPtr literal, kept.ToLiteral());
      literals.push_back(std::move(literal));
    }
    return literals;
  }

  const OpLibrary& library_;
};

}  // namespace

absl::StatusOr<HostArguments> FindHostArguments(const Node& node, absl::Span<const DType> input_types, const KernelDef* def) {
  const auto always_host = [](DType t) { return !IsPlainMemory(RemoveRef(t)); };
  HostArguments host;
  host.inputs.resize(input_types.size());
  host.outputs.resize(node.output_types.size());
  std::transform(input_types.begin(), input_types.end(), host.inputs.begin(), always_host);
  std::transform(node.output_types.begin(), node.output_types.end(), host.outputs.begin(), always_host);
  if (def == nullptr) return host;
  for (const std::string& arg : def->host_memory) {
    absl::StatusOr<ArgRange> range = InputRange(node.node_attrs(), arg);
    std::vector<bool>* marked = &host.inputs;
    if (!range.ok()) {
      THALWEG_ASSIGN_OR_RETURN(range, OutputRange(node.node_attrs(), arg));
      marked = &host.outputs;
    }
    std::fill_n(marked->begin() + range->begin, range->count, true);
  }
  if (HasRole(node, OpRole::kConstant) && node.attrs.Find(kOutputHostMemoryAttr) != nullptr) host.outputs.assign(1, true);
  return host;
}

std::unique_ptr<KernelCatalog> MakeKernelCatalog(const OpLibrary& library) { return std::make_unique<RegistryCatalog>(library); }
std::unique_ptr<ConstantEvaluator> MakeConstantEvaluator(const OpLibrary& library) { return std::make_unique<CpuEvaluator>(library); }

}  // namespace thalweg
