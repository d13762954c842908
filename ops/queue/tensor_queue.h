// TensorQueue: the resource behind the queue ops, a bounded queue of tuples of tensors (rows), in order of arrival, of
// priority, or of chance.
//
// An operation that cannot go on yet waits in line, in the order of arrival, without holding a thread: enqueues for room,
// dequeues for elements. Whoever changes the queue completes those that can go on now.
//
// Threading: every method locks; none blocks. Callbacks run without the lock, on whichever thread made their operation
// complete, exactly once, possibly before the call that started it returns.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/step_services.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

enum class QueueOrder : uint8_t {
  kArrival,
  kPriority,  // smallest int64 in component 0 first; of equals, the first that came
  kRandom,
};

struct QueueOptions {
  std::string name;
  QueueOrder order = QueueOrder::kArrival;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;  // one per component, or empty: any
  int64_t capacity = -1;             // negative: unbounded
  int64_t min_after_dequeue = 0;     // so many rows stay, to be mixed with others, until the queue is closed
  uint64_t seed = 0;                 // of kRandom
};

class TensorQueue : public Resource {
 public:
  using Row = std::vector<Tensor>;  // one element: a tensor per component

  explicit TensorQueue(QueueOptions options) : options_(std::move(options)), random_(options_.seed) {}

  const QueueOptions& options() const { return options_; }
  std::string DebugString() const override;
  int64_t Size() const;
  bool IsClosed() const;

  // Who asks for an operation: a node (KernelNode::id, -1: none) of a step.
  struct Caller {
    Caller(StepServices& of, int32_t id = -1) : step(&of), node(id) {}
    StepServices* step;
    int32_t node;
  };
  // Appends the rows, waiting for room as needed. Cancelled if the queue is or gets closed.
  using EnqueueDone = absl::AnyInvocable<void(absl::Status)>;
  void Enqueue(Caller caller, std::vector<Row> rows, EnqueueDone done);
  // Takes `count` rows, waiting for them as needed. OutOfRange once the queue is closed and there are not that many; with
  // `up_to`, a closed queue gives what it has, if anything.
  using DequeueDone = absl::AnyInvocable<void(absl::StatusOr<std::vector<Row>>)>;
  void Dequeue(Caller caller, int64_t count, bool up_to, DequeueDone done);
  // Refuses further enqueues. Those in line are let through first, and `done` waits for them, unless `cancel_pending`,
  // which ends them with Cancelled.
  void Close(Caller caller, bool cancel_pending, EnqueueDone done);

 private:
  enum class Kind : uint8_t { kEnqueue, kDequeue, kClose };
  // An operation in line.
  struct Operation {
    Operation(Kind what, Caller by) : kind(what), caller(by) {}
    const Kind kind;
    std::deque<Row> rows;  // still to be enqueued, or dequeued so far
    int64_t count = 0;     // of a dequeue: how many it wants
    bool up_to = false;
    Caller caller;
    uint64_t cancel_token = 0;
    bool cancelled = false;  // guarded by the queue's mutex_
    bool finished = false;   // guarded by the queue's mutex_
    bool in_line = false;    // guarded by the queue's mutex_; then
    std::list<std::shared_ptr<Operation>>::iterator place;  // is where: many may wait, and leave in any order
    absl::Status status;
    DequeueDone done;
  };
  using OperationPtr = std::shared_ptr<Operation>;
  using Finished = std::vector<OperationPtr>;

  void Start(OperationPtr operation);
  void Cancel(const OperationPtr& operation);
  // For what `operation` stands in line, in words.
  std::string DescribeWait(const Operation& operation) const;
  // All below require mutex_.
  bool Advance(Operation& operation);
  bool AdvanceEnqueue(Operation& operation);
  bool AdvanceDequeue(Operation& operation);
  void GiveBack(Operation& operation);
  void PutRow(Row row);
  bool MayTakeRow() const;
  Row TakeRow();
  void AdvanceLine(std::list<OperationPtr>& line, Finished* finished, bool* progress);
  Finished AdvanceAll();
  std::list<OperationPtr>& LineOf(const Operation& operation) {
    return operation.kind == Kind::kDequeue ? dequeues_ : enqueues_;
  }

  // Without the lock: deregisters from cancellation and calls back.
  static void Complete(Finished finished);

  const QueueOptions options_;
  mutable std::mutex mutex_;
  std::deque<Row> rows_;              // guarded by mutex_; of kPriority: sorted
  std::mt19937_64 random_;            // guarded by mutex_
  std::list<OperationPtr> enqueues_;  // guarded by mutex_; closing waits here too
  std::list<OperationPtr> dequeues_;  // guarded by mutex_
  bool closed_ = false;               // guarded by mutex_
  int64_t rows_moved_ = 0;            // guarded by mutex_; tells whether anything happened
};

}  // namespace thalweg
