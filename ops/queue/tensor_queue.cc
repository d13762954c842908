#include "thalweg/ops/queue/tensor_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thalweg {

std::string TensorQueue::DebugString() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return absl::StrCat("queue '", options_.name, "' of ", rows_.size(), " elements", closed_ ? " (closed)" : "");
}

int64_t TensorQueue::Size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(rows_.size());
}

bool TensorQueue::IsClosed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

void TensorQueue::Enqueue(Caller caller, std::vector<Row> rows, EnqueueDone done) {
  auto operation = std::make_shared<Operation>(Kind::kEnqueue, caller);
  operation->rows.assign(std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  operation->done = [done = std::move(done)](absl::StatusOr<std::vector<Row>> result) mutable { done(result.status()); };
  Start(std::move(operation));
}

void TensorQueue::Dequeue(Caller caller, int64_t count, bool up_to, DequeueDone done) {
  auto operation = std::make_shared<Operation>(Kind::kDequeue, caller);
  operation->count = count;
  operation->up_to = up_to;
  operation->done = std::move(done);
  Start(std::move(operation));
}

void TensorQueue::Close(Caller caller, bool cancel_pending, EnqueueDone done) {
  auto operation = std::make_shared<Operation>(Kind::kClose, caller);
  operation->done = [done = std::move(done)](absl::StatusOr<std::vector<Row>> result) mutable { done(result.status()); };
  Finished ended;
  if (cancel_pending) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (OperationPtr& pending : enqueues_) {
      pending->finished = true;
      pending->status = absl::CancelledError(absl::StrCat("queue '", options_.name, "' was closed while this waited for room"));
      ended.push_back(std::move(pending));
    }
    enqueues_.clear();
  }
  Complete(std::move(ended));
  Start(std::move(operation));
}

void TensorQueue::Start(OperationPtr operation) {
  {
    // What can go on at once needs no registration.
    std::unique_lock<std::mutex> lock(mutex_);
    if (LineOf(*operation).empty() && Advance(*operation)) {
      operation->finished = true;
      Finished finished = AdvanceAll();
      finished.insert(finished.begin(), std::move(operation));
      lock.unlock();
      Complete(std::move(finished));
      return;
    }
  }
  // Registered before it stands in line, so that whoever completes it knows the token.
  operation->cancel_token = operation->caller.step->OnCancelOfWait(
      operation->caller.node, [this, operation] { return DescribeWait(*operation); }, [this, operation] { Cancel(operation); });
  Finished finished;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (operation->cancelled) {
      operation->finished = true;
      GiveBack(*operation);
      finished.push_back(operation);
    } else {
      std::list<OperationPtr>& line = LineOf(*operation);
      operation->place = line.insert(line.end(), operation);
      operation->in_line = true;
      finished = AdvanceAll();
    }
  }
  Complete(std::move(finished));
}

void TensorQueue::Cancel(const OperationPtr& operation) {
  Finished finished;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (operation->finished) return;
    operation->status = absl::CancelledError(absl::StrCat("the step ended while this waited at queue '", options_.name, "'"));
    operation->cancelled = true;
    if (!operation->in_line) return;  // Start sees the mark
    LineOf(*operation).erase(operation->place);
    operation->finished = true;
    GiveBack(*operation);
    finished = AdvanceAll();
    finished.push_back(operation);
  }
  Complete(std::move(finished));
}

std::string TensorQueue::DescribeWait(const Operation& operation) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t rows = static_cast<int64_t>(operation.rows.size());
  std::string what;
  switch (operation.kind) {
    case Kind::kEnqueue: what = absl::StrCat("room for ", rows, " elements in "); break;
    case Kind::kDequeue: what = absl::StrCat(operation.count - rows, " of ", operation.count, " elements of "); break;
    case Kind::kClose: what = "the enqueues before it to close "; break;
  }
  const std::string most = options_.capacity < 0 ? "" : absl::StrCat(" of ", options_.capacity);
  return absl::StrCat(what, "queue '", options_.name, "' (it holds ", rows_.size(), most, ", is ", closed_ ? "closed" : "open", "; ",
                      enqueues_.size(), " enqueues and ", dequeues_.size(), " dequeues wait at it)");
}

// Rows that a dequeue took in vain go back to where they came from.
void TensorQueue::GiveBack(Operation& operation) {
  if (operation.kind != Kind::kDequeue) return;
  rows_.insert(rows_.begin(), std::make_move_iterator(operation.rows.begin()), std::make_move_iterator(operation.rows.end()));
  operation.rows.clear();
}

void TensorQueue::PutRow(Row row) {
  ++rows_moved_;
  if (options_.order != QueueOrder::kPriority) return rows_.push_back(std::move(row));
  const auto priority = [](const Row& r) { return r[0].flat<int64_t>()[0]; };
  const auto place = std::upper_bound(rows_.begin(), rows_.end(), priority(row),
                                      [&](int64_t value, const Row& r) { return value < priority(r); });
  rows_.insert(place, std::move(row));
}

bool TensorQueue::MayTakeRow() const {
  return !rows_.empty() && (closed_ || static_cast<int64_t>(rows_.size()) > options_.min_after_dequeue);
}

TensorQueue::Row TensorQueue::TakeRow() {
  ++rows_moved_;
  if (options_.order == QueueOrder::kRandom) {
    std::uniform_int_distribution<size_t> any(0, rows_.size() - 1);
    std::swap(rows_.front(), rows_[any(random_)]);
  }
  Row row = std::move(rows_.front());
  rows_.pop_front();
  return row;
}

bool TensorQueue::Advance(Operation& operation) {
  switch (operation.kind) {
    case Kind::kEnqueue: return AdvanceEnqueue(operation);
    case Kind::kDequeue: return AdvanceDequeue(operation);
    case Kind::kClose: break;
  }
  if (closed_) operation.status = absl::CancelledError(absl::StrCat("queue '", options_.name, "' is closed already"));
  closed_ = true;
  return true;
}

bool TensorQueue::AdvanceEnqueue(Operation& operation) {
  if (closed_) {
    operation.status = absl::CancelledError(absl::StrCat("queue '", options_.name, "' is closed"));
    return true;
  }
  while (!operation.rows.empty() && (options_.capacity < 0 || static_cast<int64_t>(rows_.size()) < options_.capacity)) {
    PutRow(std::move(operation.rows.front()));
    operation.rows.pop_front();
  }
  return operation.rows.empty();
}

bool TensorQueue::AdvanceDequeue(Operation& operation) {
  while (static_cast<int64_t>(operation.rows.size()) < operation.count && MayTakeRow()) operation.rows.push_back(TakeRow());
  if (static_cast<int64_t>(operation.rows.size()) == operation.count) return true;
  if (!closed_ || !enqueues_.empty()) return false;
  if (operation.up_to && !operation.rows.empty()) return true;
  operation.status = absl::OutOfRangeError(absl::StrCat("queue '", options_.name, "' is closed and has ", operation.rows.size(),
                                                        " of the ", operation.count, " elements that are wanted"));
  GiveBack(operation);
  return true;
}

void TensorQueue::AdvanceLine(std::list<OperationPtr>& line, Finished* finished, bool* progress) {
  while (!line.empty() && Advance(*line.front())) {
    line.front()->finished = true;
    finished->push_back(std::move(line.front()));
    line.pop_front();
    *progress = true;
  }
}

TensorQueue::Finished TensorQueue::AdvanceAll() {
  Finished finished;
  // An operation may take or give some rows without being done, which lets the other side go on.
  for (bool progress = true; progress;) {
    const int64_t moved_before = rows_moved_;
    progress = false;
    AdvanceLine(enqueues_, &finished, &progress);
    AdvanceLine(dequeues_, &finished, &progress);
    progress |= rows_moved_ != moved_before;
  }
  return finished;
}

void TensorQueue::Complete(Finished finished) {
  for (OperationPtr& operation : finished) {
    operation->caller.step->RemoveOnCancel(operation->cancel_token);
    if (!operation->status.ok()) {
      operation->done(operation->status);
    } else {
      operation->done(std::vector<Row>(std::make_move_iterator(operation->rows.begin()),
                                       std::make_move_iterator(operation->rows.end())));
    }
  }
}

}  // namespace thalweg
