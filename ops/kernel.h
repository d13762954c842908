// Kernels: what a node does on one kind of device.
//
// A Kernel is created once per node of a plan (stateful ops: once per session) and then runs in many steps, from several
// threads at the same time, so Compute must not change the kernel without its own locking.
// Errors: return a status that says what is wrong with which values; the executor adds node, op, device and input shapes.
// Before a kernel runs, the executor has checked number and dtypes of its inputs, so typed access with the declared types
// is safe; ranks, element counts and values are the kernel's to check. No kernel may block a thread: whatever waits
// derives from AsyncKernel.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/device.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/graph/op_schema.h"
#include "thalweg/ops/value.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {

class StepServices;

// Types and memory of the inputs and outputs of like nodes: one object for all of a plan.
struct KernelSignature {
  std::vector<DType> input_types;
  std::vector<DType> output_types;
  std::vector<MemoryKind> input_memory;
  std::vector<MemoryKind> output_memory;

  // Everything in host memory.
  static KernelSignature OnHost(absl::Span<const DType> inputs, absl::Span<const DType> outputs);

  friend bool operator==(const KernelSignature& a, const KernelSignature& b) {
    return a.input_types == b.input_types && a.output_types == b.output_types && a.input_memory == b.input_memory &&
           a.output_memory == b.output_memory;
  }
  template <typename H>
  friend H AbslHashValue(H h, const KernelSignature& s) {
    return H::combine(std::move(h), s.input_types, s.output_types, s.input_memory, s.output_memory);
  }
};
inline const KernelSignature kNoArguments{};

// What stays the same about a node over all its executions. Owned by the plan (or session), outlives its kernel; so does what it
// points at.
struct KernelNode {
  absl::string_view name;
  const OpSchema* schema = nullptr;
  const AttrMap* attrs = nullptr;
  Device* device = nullptr;
  const KernelSignature* signature = &kNoArguments;  // never null
  int32_t id = -1;                                   // the plan's id of the node, -1 outside a plan

  NodeAttrs node_attrs() const { return NodeAttrs(attrs, schema); }
  const std::vector<DType>& input_types() const { return signature->input_types; }
  const std::vector<DType>& output_types() const { return signature->output_types; }
  const std::vector<MemoryKind>& input_memory() const { return signature->input_memory; }
  const std::vector<MemoryKind>& output_memory() const { return signature->output_memory; }
};

class KernelContext;

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual absl::Status Compute(KernelContext& ctx) = 0;
  // True for AsyncKernel only.
  virtual bool is_async() const { return false; }
  // True if the kernel is the same for all nodes of one definition, device, signature and attributes: a plan makes it once for them.
  virtual bool suits_like_nodes() const { return false; }
};

// A kernel that finishes later. The context stays valid until `done` has been called, which must happen exactly once, on
// any thread, possibly before ComputeAsync returns.
class AsyncKernel : public Kernel {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  virtual void ComputeAsync(KernelContext& ctx, Done done) = 0;
  absl::Status Compute(KernelContext&) final { return absl::InternalError("asynchronous kernel run synchronously"); }
  bool is_async() const final { return true; }
};

// What a kernel factory may read. `attr` helpers: KernelInit::Attr<int64_t>("axis").
class KernelInit {
 public:
  // `input_shapes`: what shape inference knows of the inputs, or nothing. `threads`: how many a step will have. `constants`: the
  // inputs that are known now (null where not), or nothing; they let a kernel pack weights once.
  explicit KernelInit(const KernelNode& node, absl::Span<const PartialShape> input_shapes = {}, int threads = 1,
                      absl::Span<const TensorLiteralPtr> constants = {})
      : node_(node), input_shapes_(input_shapes), threads_(threads), constants_(constants) {}
  const KernelNode& node() const { return node_; }
  int threads() const { return threads_; }
  // Input i as far as its shape is known before anything runs.
  PartialShape input_shape(size_t i) const {
    if (i < input_shapes_.size()) return input_shapes_[i];
    const TensorLiteralPtr constant = constant_input(i);
    return constant != nullptr ? PartialShape::Known(constant->shape) : PartialShape();
  }
  // Null if the value is not known now.
  TensorLiteralPtr constant_input(size_t i) const { return i < constants_.size() ? constants_[i] : nullptr; }
  template <typename T>
  absl::StatusOr<T> Attr(absl::string_view name) const { return node_.node_attrs().Get<T>(name); }

 private:
  const KernelNode& node_;
  const absl::Span<const PartialShape> input_shapes_;
  const int threads_;
  const absl::Span<const TensorLiteralPtr> constants_;
};

// One execution of a node. Made by the executor; a kernel uses it only until it returns (or calls done).
class KernelContext {
 public:
  const KernelNode& node() const { return *node_; }
  Device& device() const { return *node_->device; }
  StepServices& step() const { return *step_; }

  int num_inputs() const { return static_cast<int>(node_->input_types().size()); }
  int num_outputs() const { return static_cast<int>(node_->output_types().size()); }
  DType input_dtype(int i) const { return RemoveRef(node_->input_types()[i]); }
  DType output_dtype(int i) const { return RemoveRef(node_->output_types()[i]); }

  // The value of input i. Requires that it is present, which holds for every op but Merge-like ones.
  const Tensor& input(int i) const { return slots_[input_slots_[i]].tensor; }
  const Value& input_value(int i) const { return slots_[input_slots_[i]]; }
  Value& mutable_input_value(int i) { return slots_[input_slots_[i]]; }
  // False if no consumer reads output i; the kernel may then leave it unset.
  bool output_required(int i) const { return outputs_required_ == nullptr || outputs_required_[i]; }

  // A fresh buffer for output i, in the memory that the kernel declared for it.
  absl::StatusOr<Tensor*> AllocateOutput(int i, const Shape& shape);
  // Reuses the buffer of the first input among `candidates` that may be overwritten (A79: same dtype, element count and
  // memory, this node is its last user, nobody else holds the buffer), else allocates. The contents are the input's or
  // unspecified: an elementwise kernel reads element k before it writes element k.
  absl::StatusOr<Tensor*> ForwardOrAllocateOutput(std::initializer_list<int> candidates, int output, const Shape& shape);
  // Sets output i to a tensor made elsewhere (an input passed on, a reshape). The dtype must be the declared one.
  void SetOutput(int i, Tensor tensor) { outputs_[i].tensor = std::move(tensor); }
  Value& output_value(int i) { return outputs_[i]; }
  // Moves input i out if this node is its last user, otherwise copies the handle.
  Tensor TakeInput(int i);

  // Scratch memory on the device, freed with the tensor.
  absl::StatusOr<Tensor> AllocateTemp(DType dtype, const Shape& shape);
  Allocator& host_allocator() const;

  // Runs fn(begin, end) over disjoint ranges that cover [0, total), possibly on several threads of the session, and returns
  // when all are done. `nanos_per_item` decides whether splitting pays; `fn` must not block or throw.
  void ParallelFor(int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn);

  // Tells executions of this node within one step apart: the frame instance and iteration it runs in, 0 outside loops.
  uint64_t iteration_key() const { return iteration_key_; }

  // Executor side: prepares the context for one execution.
  void Bind(const KernelNode* node, StepServices* step, Value* slots, const uint32_t* input_slots, Value* outputs,
            const uint8_t* last_use, const bool* outputs_required) {
    node_ = node;
    step_ = step;
    slots_ = slots;
    input_slots_ = input_slots;
    outputs_ = outputs;
    last_use_ = last_use;
    outputs_required_ = outputs_required;
  }
  void set_iteration_key(uint64_t key) { iteration_key_ = key; }

 private:
  const KernelNode* node_ = nullptr;
  StepServices* step_ = nullptr;
  Value* slots_ = nullptr;                // all values of the step (or iteration)
  const uint32_t* input_slots_ = nullptr; // index of each input in slots_
  Value* outputs_ = nullptr;              // this node's outputs, contiguous
  const uint8_t* last_use_ = nullptr;     // per input: 1 if this execution is the value's last user
  const bool* outputs_required_ = nullptr;
  uint64_t iteration_key_ = 0;
};

}  // namespace thalweg
