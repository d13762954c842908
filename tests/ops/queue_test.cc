// Queues: order, waiting, closing, cancellation.
#include "thalweg/ops/queue/tensor_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "thalweg/tests/support/fake_step.h"

namespace thalweg {
namespace {

using testing::FakeStep;
using Rows = std::vector<TensorQueue::Row>;

std::shared_ptr<TensorQueue> MakeQueue(int64_t capacity = -1) {
  QueueOptions options;
  options.name = "q";
  options.types = {DType::kInt32};
  options.shapes = {PartialShape::Known(Shape())};
  options.capacity = capacity;
  return std::make_shared<TensorQueue>(std::move(options));
}

// What became of an operation; empty while it waits.
struct Outcome {
  std::optional<absl::Status> status;
  std::vector<int32_t> values;
};

std::shared_ptr<Outcome> Enqueue(TensorQueue& queue, FakeStep& step, std::vector<int32_t> values) {
  Rows rows;
  for (const int32_t value : values) rows.push_back({*Tensor::Scalar<int32_t>(value)});
  auto outcome = std::make_shared<Outcome>();
  queue.Enqueue(step, std::move(rows), [outcome](absl::Status status) { outcome->status = std::move(status); });
  return outcome;
}

std::shared_ptr<Outcome> Dequeue(TensorQueue& queue, FakeStep& step, int64_t count = 1, bool up_to = false) {
  auto outcome = std::make_shared<Outcome>();
  queue.Dequeue(step, count, up_to, [outcome](absl::StatusOr<Rows> rows) {
    outcome->status = rows.status();
    if (!rows.ok()) return;
    for (const TensorQueue::Row& row : *rows) outcome->values.push_back(row[0].flat<int32_t>()[0]);
  });
  return outcome;
}

std::shared_ptr<Outcome> Close(TensorQueue& queue, FakeStep& step, bool cancel_pending = false) {
  auto outcome = std::make_shared<Outcome>();
  queue.Close(step, cancel_pending, [outcome](absl::Status status) { outcome->status = std::move(status); });
  return outcome;
}

absl::StatusCode CodeOf(const std::shared_ptr<Outcome>& outcome) {
  return outcome->status ? outcome->status->code() : absl::StatusCode::kUnknown;
}
constexpr absl::StatusCode kWaits = absl::StatusCode::kUnknown;
constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
using Ints = std::vector<int32_t>;

TEST(TensorQueue, GivesElementsInOrder) {
  FakeStep step;
  const auto queue = MakeQueue();
  EXPECT_EQ(CodeOf(Enqueue(*queue, step, {1, 2, 3})), kOk);
  EXPECT_EQ(Dequeue(*queue, step)->values, Ints({1}));
  EXPECT_EQ(Dequeue(*queue, step, 2)->values, Ints({2, 3}));
  EXPECT_EQ(queue->Size(), 0);
}

TEST(TensorQueue, DequeueWaitsForElements) {
  FakeStep step;
  const auto queue = MakeQueue();
  const auto first = Dequeue(*queue, step, 2);
  const auto second = Dequeue(*queue, step);
  EXPECT_EQ(CodeOf(first), kWaits);
  Enqueue(*queue, step, {1});
  EXPECT_EQ(CodeOf(first), kWaits);
  EXPECT_EQ(CodeOf(second), kWaits) << "who came first is served first";
  Enqueue(*queue, step, {2, 3});
  EXPECT_EQ(first->values, Ints({1, 2}));
  EXPECT_EQ(second->values, Ints({3}));
}

TEST(TensorQueue, EnqueueWaitsForRoom) {
  FakeStep step;
  const auto queue = MakeQueue(/*capacity=*/1);
  const auto many = Enqueue(*queue, step, {1, 2, 3});
  EXPECT_EQ(CodeOf(many), kWaits);
  EXPECT_EQ(Dequeue(*queue, step, 3)->values, Ints({1, 2, 3})) << "more than it has room for at once";
  EXPECT_EQ(CodeOf(many), kOk);
}

TEST(TensorQueue, AClosedQueueGivesWhatItHas) {
  FakeStep step;
  const auto queue = MakeQueue();
  Enqueue(*queue, step, {1, 2, 3});
  EXPECT_EQ(CodeOf(Close(*queue, step)), kOk);
  EXPECT_TRUE(queue->IsClosed());
  EXPECT_EQ(CodeOf(Enqueue(*queue, step, {4})), absl::StatusCode::kCancelled);
  EXPECT_EQ(CodeOf(Dequeue(*queue, step, 4)), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(queue->Size(), 3) << "what it took in vain is back";
  EXPECT_EQ(Dequeue(*queue, step, 2, /*up_to=*/true)->values, Ints({1, 2}));
  EXPECT_EQ(Dequeue(*queue, step, 2, /*up_to=*/true)->values, Ints({3}));
  EXPECT_EQ(CodeOf(Dequeue(*queue, step, 2, /*up_to=*/true)), absl::StatusCode::kOutOfRange);
}

TEST(TensorQueue, ClosingLetsPendingEnqueuesThroughOrCancelsThem) {
  FakeStep step;
  for (const bool cancel : {false, true}) {
    const auto queue = MakeQueue(/*capacity=*/1);
    Enqueue(*queue, step, {1});
    const auto pending = Enqueue(*queue, step, {2});
    const auto closed = Close(*queue, step, cancel);
    EXPECT_EQ(CodeOf(pending), cancel ? absl::StatusCode::kCancelled : kWaits);
    EXPECT_EQ(Dequeue(*queue, step)->values, Ints({1}));
    EXPECT_EQ(CodeOf(closed), kOk);
    EXPECT_EQ(CodeOf(pending), cancel ? absl::StatusCode::kCancelled : kOk);
    EXPECT_EQ(queue->Size(), cancel ? 0 : 1);
  }
}

TEST(TensorQueue, CancellationEndsWhoWaitsAndLosesNothing) {
  FakeStep step, other;
  const auto queue = MakeQueue();
  const auto waiting = Dequeue(*queue, step, 3);
  Enqueue(*queue, other, {1, 2});
  EXPECT_EQ(CodeOf(waiting), kWaits);
  step.Cancel();
  EXPECT_EQ(CodeOf(waiting), absl::StatusCode::kCancelled);
  EXPECT_EQ(queue->Size(), 2);
  EXPECT_EQ(CodeOf(Dequeue(*queue, step, 3)), absl::StatusCode::kCancelled) << "a step that has ended already";
  EXPECT_EQ(Dequeue(*queue, other, 2)->values, Ints({1, 2}));
}

TEST(TensorQueue, PriorityComesFirst) {
  FakeStep step;
  QueueOptions options;
  options.types = {DType::kInt64, DType::kInt32};
  options.order = QueueOrder::kPriority;
  TensorQueue queue(std::move(options));
  Rows rows;
  for (const auto& [priority, value] : std::vector<std::pair<int64_t, int32_t>>{{5, 1}, {-2, 2}, {5, 3}, {3, 4}}) {
    rows.push_back({*Tensor::Scalar<int64_t>(priority), *Tensor::Scalar<int32_t>(value)});
  }
  queue.Enqueue(step, std::move(rows), [](absl::Status) {});
  Ints values;
  queue.Dequeue(step, 4, /*up_to=*/false, [&](absl::StatusOr<Rows> taken) {
    ASSERT_TRUE(taken.ok()) << taken.status();
    for (const TensorQueue::Row& row : *taken) values.push_back(row[1].flat<int32_t>()[0]);
  });
  EXPECT_EQ(values, Ints({2, 4, 1, 3}));
}

TEST(TensorQueue, RandomOrderLosesNothingAndKeepsSomeToMix) {
  FakeStep step;
  QueueOptions options;
  options.types = {DType::kInt32};
  options.order = QueueOrder::kRandom;
  options.min_after_dequeue = 2;
  TensorQueue queue(std::move(options));
  Enqueue(queue, step, {0, 1, 2, 3, 4, 5});
  const auto some = Dequeue(queue, step, 4);
  const auto more = Dequeue(queue, step);
  EXPECT_EQ(some->values.size(), 4u);
  EXPECT_EQ(CodeOf(more), kWaits);
  Close(queue, step);
  Ints all = some->values;
  all.insert(all.end(), more->values.begin(), more->values.end());
  const Ints last = Dequeue(queue, step)->values;
  all.insert(all.end(), last.begin(), last.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, Ints({0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace thalweg
