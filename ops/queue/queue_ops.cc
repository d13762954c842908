// FIFOQueueV2 and the ops on queues, each also in its first version, whose handle is a reference to the queue's name.
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/queue/fifo_queue.h"
#include "thalweg/ops/queue/register.h"

namespace thalweg {
namespace {

constexpr const char* kTypeName = "Queue";

// ---- The queue itself

absl::StatusOr<QueueOptions> ReadOptions(const KernelInit& init) {
  const NodeAttrs attrs = init.node().node_attrs();
  QueueOptions options;
  options.name = attrs.GetOr<std::string>("shared_name", "");
  if (options.name.empty()) options.name = init.node().name;
  options.types = attrs.GetOr<std::vector<DType>>("component_types", {});
  options.capacity = attrs.GetOr<int64_t>("capacity", -1);
  for (const PartialShape& shape : attrs.GetOr<std::vector<PartialShape>>("shapes", {})) {
    if (!shape.IsFullyKnown()) {
      return absl::InvalidArgumentError(absl::StrCat("shapes of components must be fully known, not ", shape.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Shape known, shape.ToShape());
    options.shapes.push_back(std::move(known));
  }
  if (!options.shapes.empty() && options.shapes.size() != options.types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", options.shapes.size(), " shapes for ", options.types.size(), " components"));
  }
  return options;
}

// Makes the queue when it first runs and gives its handle; the first version, a reference to a vector of its container and
// name.
class QueueKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<QueueKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->options_, ReadOptions(init));
    kernel->container_ = init.node().node_attrs().GetOr<std::string>("container", "");
    if (kernel->container_.empty()) kernel->container_ = kDefaultContainer;
    kernel->device_ = init.node().device->full_name();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_RETURN_IF_ERROR(FindOrMake(ctx));
    if (IsRef(ctx.node().output_types[0])) return EmitReference(ctx);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    ResourceHandle& handle = out->mutable_flat<ResourceHandle>()[0];
    handle.container = container_;
    handle.name = options_.name;
    handle.type_name = kTypeName;
    handle.device = device_;
    return absl::OkStatus();
  }

 private:
  absl::Status FindOrMake(KernelContext& ctx) const {
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> { return std::make_shared<FifoQueue>(options_); };
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Resource> found,
                             ctx.step().resources().LookupOrCreate(container_, options_.name, make));
    const auto* queue = dynamic_cast<const FifoQueue*>(found.get());
    if (queue == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("'", options_.name, "' is shared, but elsewhere it is ", found->DebugString()));
    }
    const QueueOptions& other = queue->options();
    if (other.types == options_.types && other.shapes == options_.shapes && other.capacity == options_.capacity) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", options_.name, "' is shared, but elsewhere it has other component types, shapes or capacity"));
  }

  absl::Status EmitReference(KernelContext& ctx) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reference_ == nullptr) {
      THALWEG_ASSIGN_OR_RETURN(Tensor names, Tensor::Of<std::string>({container_, options_.name}, Shape::Of({2})));
      auto reference = std::make_unique<Variable>(options_.name, DType::kString);
      THALWEG_RETURN_IF_ERROR(reference->Assign(std::move(names)));
      reference_ = std::move(reference);
    }
    ctx.output_value(0).ref = &reference_->storage();
    return absl::OkStatus();
  }

  QueueOptions options_;
  std::string container_;
  std::string device_;
  std::mutex mutex_;
  std::unique_ptr<Variable> reference_;  // guarded by mutex_
};

absl::StatusOr<ResourceHandle> QueueHandle(KernelContext& ctx) {
  if (!IsRef(ctx.node().input_types[0])) return ctx.input(0).scalar<ResourceHandle>();
  THALWEG_ASSIGN_OR_RETURN(const VariableInput reference, FindVariableInput(ctx, 0));
  std::lock_guard<std::mutex> lock(reference.storage->mutex);
  const Tensor& names = reference.storage->tensor;
  if (names.dtype() != DType::kString || names.num_elements() != 2) {
    return absl::InvalidArgumentError("the handle of a queue must be a vector of its container and name");
  }
  ResourceHandle handle;
  handle.container = names.flat<std::string>()[0];
  handle.name = names.flat<std::string>()[1];
  return handle;
}

absl::StatusOr<std::shared_ptr<FifoQueue>> FindQueue(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, QueueHandle(ctx));
  return LookupResource<FifoQueue>(ctx.step(), handle);
}

// ---- Enqueue

absl::Status CheckComponents(const FifoQueue& queue, absl::Span<const DType> types) {
  const QueueOptions& options = queue.options();
  if (absl::MakeConstSpan(options.types) == types) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("elements of queue '", options.name, "' are ",
                                                 DTypeListString(options.types), ", not ", DTypeListString(types)));
}

absl::Status CheckComponentShape(const FifoQueue& queue, int component, const Shape& shape) {
  const QueueOptions& options = queue.options();
  if (options.shapes.empty() || options.shapes[component] == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("component ", component, " of queue '", options.name, "' has shape ",
                                                 options.shapes[component].ToString(), ", not ", shape.ToString()));
}

absl::Status CheckTimeout(const KernelInit& init) {
  const int64_t timeout = init.node().node_attrs().GetOr<int64_t>("timeout_ms", -1);
  if (timeout == -1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("timeout_ms must be -1 (none), not ", timeout));
}

// An operation on a queue that may have to wait.
class QueueOperationKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) final {
    // Shared, so that it is still there where starting fails.
    auto shared = std::make_shared<Done>(std::move(done));
    const absl::Status started = Start(ctx, shared);
    if (!started.ok()) (*shared)(started);
  }

 protected:
  // Starts the operation, which then calls `done`; if it cannot even start, returns why and leaves `done` alone.
  virtual absl::Status Start(KernelContext& ctx, std::shared_ptr<Done> done) = 0;
};

class EnqueueKernel : public QueueOperationKernel {
 public:
  explicit EnqueueKernel(bool many) : many_(many) {}

 protected:
  absl::Status Start(KernelContext& ctx, std::shared_ptr<Done> done) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, absl::MakeConstSpan(ctx.node().input_types).subspan(1)));
    THALWEG_ASSIGN_OR_RETURN(std::vector<FifoQueue::Row> rows, many_ ? ManyRows(ctx, *queue) : OneRow(ctx, *queue));
    queue->Enqueue(ctx.step(), std::move(rows), [queue, done](absl::Status status) { (*done)(std::move(status)); });
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<FifoQueue::Row>> OneRow(KernelContext& ctx, const FifoQueue& queue) {
    std::vector<FifoQueue::Row> rows(1);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      THALWEG_RETURN_IF_ERROR(CheckComponentShape(queue, i - 1, ctx.input(i).shape()));
      rows[0].push_back(ctx.TakeInput(i));
    }
    return rows;
  }

  static absl::StatusOr<std::vector<FifoQueue::Row>> ManyRows(KernelContext& ctx, const FifoQueue& queue) {
    const int64_t count = ctx.input(1).rank() > 0 ? ctx.input(1).dim(0) : 0;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      if (shape.rank() == 0 || shape.dim(0) != count) {
        return absl::InvalidArgumentError(absl::StrCat("components must have rows, and equally many; component 0 is ",
                                                       ctx.input(1).shape().ToString(), ", component ", i - 1, " is ",
                                                       shape.ToString()));
      }
      THALWEG_RETURN_IF_ERROR(CheckComponentShape(queue, i - 1, WithoutLeadingDim(shape)));
    }
    std::vector<FifoQueue::Row> rows(count);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      const Shape row = WithoutLeadingDim(ctx.input(i).shape());
      for (int64_t r = 0; r < count; ++r) rows[r].push_back(RowsAs(ctx.input(i), r, r + 1, row));
    }
    return rows;
  }

  const bool many_;
};

// ---- Dequeue

class DequeueKernel : public QueueOperationKernel {
 protected:
  absl::Status Start(KernelContext& ctx, std::shared_ptr<Done> done) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, ctx.node().output_types));
    queue->Dequeue(ctx.step(), 1, /*up_to=*/false, [&ctx, queue, done](absl::StatusOr<std::vector<FifoQueue::Row>> rows) {
      if (!rows.ok()) return (*done)(rows.status());
      for (int i = 0; i < ctx.num_outputs(); ++i) ctx.SetOutput(i, std::move((*rows)[0][i]));
      (*done)(absl::OkStatus());
    });
    return absl::OkStatus();
  }
};

class DequeueManyKernel : public QueueOperationKernel {
 public:
  explicit DequeueManyKernel(bool up_to) : up_to_(up_to) {}

 protected:
  absl::Status Start(KernelContext& ctx, std::shared_ptr<Done> done) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, ctx.node().output_types));
    THALWEG_ASSIGN_OR_RETURN(const int64_t count, IntScalarArg(ctx.input(1), "n"));
    if (count < 0) return absl::InvalidArgumentError(absl::StrCat("n must be >= 0, not ", count));
    if (queue->options().shapes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("several elements can only be taken from a queue that states the shapes ",
                                                     "of its components, which '", queue->options().name, "' does not"));
    }
    queue->Dequeue(ctx.step(), count, up_to_, [&ctx, queue, done](absl::StatusOr<std::vector<FifoQueue::Row>> rows) {
      (*done)(rows.ok() ? EmitRows(ctx, *queue, *rows) : rows.status());
    });
    return absl::OkStatus();
  }

 private:
  static absl::Status EmitRows(KernelContext& ctx, const FifoQueue& queue, const std::vector<FifoQueue::Row>& rows) {
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(const Shape shape,
                               WithLeadingDim(static_cast<int64_t>(rows.size()), queue.options().shapes[i]));
      std::vector<Tensor> parts;
      for (const FifoQueue::Row& row : rows) parts.push_back(row[i]);
      THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, shape));
      CopyConsecutively(ctx, parts, out);
    }
    return absl::OkStatus();
  }

  const bool up_to_;
};

// ---- Close, size

class CloseKernel : public QueueOperationKernel {
 public:
  explicit CloseKernel(const KernelInit& init)
      : cancel_pending_(init.node().node_attrs().GetOr<bool>("cancel_pending_enqueues", false)) {}

 protected:
  absl::Status Start(KernelContext& ctx, std::shared_ptr<Done> done) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    queue->Close(ctx.step(), cancel_pending_, [queue, done](absl::Status status) { (*done)(std::move(status)); });
    return absl::OkStatus();
  }

 private:
  const bool cancel_pending_;
};

class SizeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<int32_t>()[0] = static_cast<int32_t>(queue->Size());
    return absl::OkStatus();
  }
};

class IsClosedKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<FifoQueue> queue, FindQueue(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<bool>()[0] = queue->IsClosed();
    return absl::OkStatus();
  }
};

template <typename K, bool argument>
absl::StatusOr<std::unique_ptr<Kernel>> MakeWaitingKernel(const KernelInit& init) {
  THALWEG_RETURN_IF_ERROR(CheckTimeout(init));
  return std::unique_ptr<Kernel>(std::make_unique<K>(argument));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDequeueKernel(const KernelInit& init) {
  THALWEG_RETURN_IF_ERROR(CheckTimeout(init));
  return std::unique_ptr<Kernel>(std::make_unique<DequeueKernel>());
}

// Both versions of an op on a queue: `op` with a reference to a string, `op`V2 with a resource.
void RegisterOnQueue(OpLibrary& lib, const std::string& op, const std::string& more_inputs, const std::string& outputs,
                     const std::string& attrs, ShapeFn shape, KernelFactory factory) {
  lib.schemas.Add(absl::StrCat(op, "(handle: Ref(string)", more_inputs, ")", outputs), attrs).Shape(shape).Cost(MovedBytesCost);
  lib.schemas.Add(absl::StrCat(op, "V2(handle: resource", more_inputs, ")", outputs), attrs)
      .Shape(shape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.kernels.Add(op, "cpu", factory);
  lib.kernels.Add(op + "V2", "cpu", factory);
}

}  // namespace

void RegisterQueueOps(OpLibrary& lib) {
  const char* const queue_attrs =
      "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = \"\"; "
      "shared_name: string = \"\"";
  lib.schemas.Add("FIFOQueue() -> handle: Ref(string)", queue_attrs).Shape(UnknownShape).Cost(NoCost).Stateful();
  lib.schemas.Add("FIFOQueueV2() -> handle: resource", queue_attrs).Shape(ScalarShape).Cost(NoCost).Stateful();
  lib.kernels.Add("FIFOQueue", "cpu", MakeFallibleKernel<QueueKernel>);
  lib.kernels.Add("FIFOQueueV2", "cpu", MakeFallibleKernel<QueueKernel>);

  const char* const in_attrs = "Tcomponents: list(type) >= 1; timeout_ms: int = -1";
  const char* const out_attrs = "component_types: list(type) >= 1; timeout_ms: int = -1";
  const char* const in = ", components: Tcomponents";
  const char* const out = " -> components: component_types";
  RegisterOnQueue(lib, "QueueEnqueue", in, "", in_attrs, NoOutputs, &MakeWaitingKernel<EnqueueKernel, false>);
  RegisterOnQueue(lib, "QueueEnqueueMany", in, "", in_attrs, NoOutputs, &MakeWaitingKernel<EnqueueKernel, true>);
  RegisterOnQueue(lib, "QueueDequeue", "", out, out_attrs, UnknownShape, &MakeDequeueKernel);
  RegisterOnQueue(lib, "QueueDequeueMany", ", n: int32", out, out_attrs, UnknownShape,
                  &MakeWaitingKernel<DequeueManyKernel, false>);
  RegisterOnQueue(lib, "QueueDequeueUpTo", ", n: int32", out, out_attrs, UnknownShape,
                  &MakeWaitingKernel<DequeueManyKernel, true>);
  RegisterOnQueue(lib, "QueueClose", "", "", "cancel_pending_enqueues: bool = false", NoOutputs, MakeKernel<CloseKernel>);
  RegisterOnQueue(lib, "QueueSize", "", " -> size: int32", "", ScalarShape, MakeKernel<SizeKernel>);
  RegisterOnQueue(lib, "QueueIsClosed", "", " -> is_closed: bool", "", ScalarShape, MakeKernel<IsClosedKernel>);
}

}  // namespace thalweg
