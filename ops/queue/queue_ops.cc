// The queues (FIFO, padding, priority, random) and the ops on them, each also in its first version, whose handle is a reference to the queue's name.
#include <algorithm>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/queue/tensor_queue.h"
#include "thalweg/ops/queue/register.h"

namespace thalweg {
namespace {

constexpr const char* kTypeName = "Queue";

// ---- The queue itself

// What kind of queue a node makes.
enum class QueueKind { kFifo, kPaddingFifo, kPriority, kRandomShuffle };

absl::Status CheckShapes(const QueueOptions& options, QueueKind kind) {
  for (const PartialShape& shape : options.shapes) {
    const bool good = kind == QueueKind::kPaddingFifo ? shape.has_rank() : shape.IsFullyKnown();
    if (good) continue;
    return absl::InvalidArgumentError(absl::StrCat("shapes of components must be ",
                                                   kind == QueueKind::kPaddingFifo ? "of known rank" : "fully known", ", not ",
                                                   shape.ToString()));
  }
  const bool may_be_empty = kind != QueueKind::kPaddingFifo;
  if ((options.shapes.empty() && may_be_empty) || options.shapes.size() == options.types.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", options.shapes.size(), " shapes for ", options.types.size(), " components"));
}

uint64_t RandomSeed(const NodeAttrs& attrs) {
  const int64_t seed = attrs.GetOr<int64_t>("seed", 0), seed2 = attrs.GetOr<int64_t>("seed2", 0);
  if (seed == 0 && seed2 == 0) return std::random_device()();
  return static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(seed2);
}

absl::StatusOr<QueueOptions> ReadOptions(const KernelInit& init, QueueKind kind) {
  const NodeAttrs attrs = init.node().node_attrs();
  QueueOptions options;
  options.name = attrs.GetOr<std::string>("shared_name", "");
  if (options.name.empty()) options.name = std::string(init.node().name);
  options.types = attrs.GetOr<std::vector<DType>>("component_types", {});
  options.shapes = attrs.GetOr<std::vector<PartialShape>>("shapes", {});
  options.capacity = attrs.GetOr<int64_t>("capacity", -1);
  if (kind == QueueKind::kPriority) {
    options.order = QueueOrder::kPriority;
    options.types.insert(options.types.begin(), DType::kInt64);
    options.shapes.insert(options.shapes.begin(), PartialShape::Known(Shape()));
  } else if (kind == QueueKind::kRandomShuffle) {
    options.order = QueueOrder::kRandom;
    options.min_after_dequeue = attrs.GetOr<int64_t>("min_after_dequeue", 0);
    options.seed = RandomSeed(attrs);
    if (options.min_after_dequeue < 0 || (options.capacity >= 0 && options.min_after_dequeue > options.capacity)) {
      return absl::InvalidArgumentError(absl::StrCat("min_after_dequeue is ", options.min_after_dequeue,
                                                     "; it must be >= 0 and at most the capacity, ", options.capacity));
    }
  }
  THALWEG_RETURN_IF_ERROR(CheckShapes(options, kind));
  return options;
}

// Makes the queue when it first runs and gives its handle; the first version, a reference to a vector of its container and
// name.
class QueueKernel : public Kernel {
 public:
  template <QueueKind kind>
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<QueueKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->options_, ReadOptions(init, kind));
    kernel->container_ = init.node().node_attrs().GetOr<std::string>("container", "");
    if (kernel->container_.empty()) kernel->container_ = kDefaultContainer;
    kernel->device_ = init.node().device->full_name();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_RETURN_IF_ERROR(FindOrMake(ctx));
    if (IsRef(ctx.node().output_types()[0])) return EmitReference(ctx);
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
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<Resource>> { return std::make_shared<TensorQueue>(options_); };
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<Resource> found,
                             ctx.step().resources().LookupOrCreate(container_, options_.name, make));
    const auto* queue = dynamic_cast<const TensorQueue*>(found.get());
    if (queue == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("'", options_.name, "' is shared, but elsewhere it is ", found->DebugString()));
    }
    const QueueOptions& other = queue->options();
    const bool same = other.order == options_.order && other.types == options_.types && other.shapes == options_.shapes &&
                      other.capacity == options_.capacity && other.min_after_dequeue == options_.min_after_dequeue;
    if (same) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("queue '", options_.name, "' is shared, but elsewhere it is of another kind, or has other component types, shapes or limits"));
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
  if (!IsRef(ctx.node().input_types()[0])) return ctx.input(0).scalar<ResourceHandle>();
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

absl::StatusOr<std::shared_ptr<TensorQueue>> FindQueue(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const ResourceHandle handle, QueueHandle(ctx));
  return LookupResource<TensorQueue>(ctx.step(), handle);
}

// ---- Enqueue

absl::Status CheckComponents(const TensorQueue& queue, absl::Span<const DType> types) {
  const QueueOptions& options = queue.options();
  if (absl::MakeConstSpan(options.types) == types) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("elements of queue '", options.name, "' are ",
                                                 DTypeListString(options.types), ", not ", DTypeListString(types)));
}

absl::Status CheckComponentShape(const TensorQueue& queue, int component, const Shape& shape) {
  const QueueOptions& options = queue.options();
  if (options.shapes.empty() || options.shapes[component].IsCompatibleWith(shape)) return absl::OkStatus();
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
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, absl::MakeConstSpan(ctx.node().input_types()).subspan(1)));
    THALWEG_ASSIGN_OR_RETURN(std::vector<TensorQueue::Row> rows, many_ ? ManyRows(ctx, *queue) : OneRow(ctx, *queue));
    queue->Enqueue({ctx.step(), ctx.node().id}, std::move(rows), [queue, done](absl::Status status) { (*done)(std::move(status)); });
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<TensorQueue::Row>> OneRow(KernelContext& ctx, const TensorQueue& queue) {
    std::vector<TensorQueue::Row> rows(1);
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      THALWEG_RETURN_IF_ERROR(CheckComponentShape(queue, i - 1, ctx.input(i).shape()));
      rows[0].push_back(ctx.TakeInput(i));
    }
    return rows;
  }

  static absl::StatusOr<std::vector<TensorQueue::Row>> ManyRows(KernelContext& ctx, const TensorQueue& queue) {
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
    std::vector<TensorQueue::Row> rows(count);
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
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, ctx.node().output_types()));
    queue->Dequeue({ctx.step(), ctx.node().id}, 1, /*up_to=*/false, [&ctx, queue, done](absl::StatusOr<std::vector<TensorQueue::Row>> rows) {
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
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
    THALWEG_RETURN_IF_ERROR(CheckComponents(*queue, ctx.node().output_types()));
    THALWEG_ASSIGN_OR_RETURN(const int64_t count, IntScalarArg(ctx.input(1), "n"));
    if (count < 0) return absl::InvalidArgumentError(absl::StrCat("n must be >= 0, not ", count));
    if (queue->options().shapes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("several elements can only be taken from a queue that states the shapes ",
                                                     "of its components, which '", queue->options().name, "' does not"));
    }
    queue->Dequeue({ctx.step(), ctx.node().id}, count, up_to_, [&ctx, queue, done](absl::StatusOr<std::vector<TensorQueue::Row>> rows) {
      (*done)(rows.ok() ? EmitRows(ctx, *queue, *rows) : rows.status());
    });
    return absl::OkStatus();
  }

 private:
  static absl::Status EmitRows(KernelContext& ctx, const TensorQueue& queue, const std::vector<TensorQueue::Row>& rows) {
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      std::vector<Tensor> parts;
      for (const TensorQueue::Row& row : rows) parts.push_back(row[i]);
      THALWEG_ASSIGN_OR_RETURN(const Shape row, RowShape(queue.options().shapes[i], parts));
      THALWEG_ASSIGN_OR_RETURN(const Shape shape, WithLeadingDim(static_cast<int64_t>(parts.size()), row));
      THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, shape));
      if (queue.options().shapes[i].IsFullyKnown()) CopyConsecutively(ctx, parts, out);
      else CopyPadded(ctx, parts, row, out);
    }
    return absl::OkStatus();
  }

  // The stated shape, where that is open the largest that a row has.
  static absl::StatusOr<Shape> RowShape(const PartialShape& stated, const std::vector<Tensor>& rows) {
    Dims dims(stated.dims().begin(), stated.dims().end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] >= 0) continue;
      dims[d] = 0;
      for (const Tensor& row : rows) dims[d] = std::max(dims[d], row.dim(static_cast<int>(d)));
    }
    return Shape::Make(dims);
  }

  // Each row in a corner of its part of the output; the rest are zeros.
  static void CopyPadded(KernelContext& ctx, const std::vector<Tensor>& rows, const Shape& padded, Tensor* out) {
    ClearElements(out);
    const Dims to = RowMajorStrides(padded);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].num_elements() == 0) continue;
      const Dims from = RowMajorStrides(rows[r].shape());
      CopyDims dims;
      for (int d = 0; d < padded.rank(); ++d) dims.push_back({rows[r].dim(d), from[d], to[d]});
      StridedCopy(ctx, out->dtype(), std::move(dims), rows[r].raw(),
                  MutableElementAt(*out, static_cast<int64_t>(r) * padded.num_elements()));
    }
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
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
    queue->Close({ctx.step(), ctx.node().id}, cancel_pending_, [queue, done](absl::Status status) { (*done)(std::move(status)); });
    return absl::OkStatus();
  }

 private:
  const bool cancel_pending_;
};

class SizeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<int32_t>()[0] = static_cast<int32_t>(queue->Size());
    return absl::OkStatus();
  }
};

class IsClosedKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, FindQueue(ctx));
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

// Both versions of an op that makes a queue.
void RegisterQueue(OpLibrary& lib, const std::string& op, const std::string& attrs, KernelFactory factory) {
  lib.schemas.Add(op + "() -> handle: Ref(string)", attrs).Shape(UnknownShape).Cost(NoCost).Stateful();
  lib.schemas.Add(op + "V2() -> handle: resource", attrs).Shape(ScalarShape).Cost(NoCost).Stateful();
  lib.kernels.Add(op, "cpu", factory);
  lib.kernels.Add(op + "V2", "cpu", factory);
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
  const std::string types = "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; ";
  const std::string names = "container: string = \"\"; shared_name: string = \"\"";
  RegisterQueue(lib, "FIFOQueue", types + names, &QueueKernel::Create<QueueKind::kFifo>);
  RegisterQueue(lib, "PaddingFIFOQueue", types + names, &QueueKernel::Create<QueueKind::kPaddingFifo>);
  RegisterQueue(lib, "PriorityQueue",
                "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; " + names,
                &QueueKernel::Create<QueueKind::kPriority>);
  RegisterQueue(lib, "RandomShuffleQueue",
                types + "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; " + names,
                &QueueKernel::Create<QueueKind::kRandomShuffle>);

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
