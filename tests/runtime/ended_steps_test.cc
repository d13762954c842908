// Steps with loops of every kind, in every way of running, that succeed, fail, are cancelled, or reach their time limit: they end, nothing
// of them stays alive, and the next ones run.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "thalweg/runtime/callable.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/effort.h"
#include "thalweg/tests/support/loop_kinds.h"
#include "thalweg/tests/support/loop_session.h"

namespace thalweg::testing {
namespace {

constexpr int32_t kForEver = std::numeric_limits<int32_t>::max();
constexpr int32_t kNever = -1;

Tensor Int(int32_t value) { return *Tensor::Of<int32_t>({value}, Shape()); }

Tensor Square(int64_t side) {
  Tensor x = *Tensor::Allocate(DType::kFloat32, *Shape::Make({side, side}));
  for (float& v : x.mutable_flat<float>()) v = 0.5f;
  return x;
}

std::unique_ptr<Session> Open(const LoopKind& kind, const LoopWay& way) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kind.graph, testing::OptionsFor(way));
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

class EndedSteps : public ::testing::TestWithParam<std::tuple<LoopKind, LoopWay>> {
 protected:
  void SetUp() override {
    session_ = Open(kind(), std::get<1>(GetParam()));
    ASSERT_NE(session_, nullptr);
    absl::StatusOr<std::shared_ptr<Callable>> made = session_->MakeCallable({"x", "limit", "fail_at"}, {"out"});
    ASSERT_TRUE(made.ok()) << made.status();
    callable_ = std::static_pointer_cast<CompiledCallable>(*made);
    // Kernels may keep what their first steps made.
    for (int warm = 0; warm < 2; ++warm) RunSome();
    in_use_ = callable_->BytesInUse();
  }

  const LoopKind& kind() const { return std::get<0>(GetParam()); }

  absl::Status Run(int32_t limit, int32_t fail_at, const RunOptions& options = {}, Cancellation* cancellation = nullptr) {
    return callable_->Run({x_, Int(limit), Int(fail_at)}, options, cancellation).status();
  }

  absl::Status RunLimited() {
    RunOptions options;
    options.timeout = std::chrono::milliseconds(3);
    return Run(kForEver, kNever, options);
  }

  // A step that ends by itself, or where there is none, one that has to be ended.
  void RunSome() {
    if (!kind().ends) {
      EXPECT_EQ(RunLimited().code(), absl::StatusCode::kDeadlineExceeded);
      return;
    }
    constexpr int32_t kFew = 6;
    for (int i = 0; kind().waits && i < kFew; ++i) ASSERT_TRUE(session_->Run({{"x", x_}}, {}, {"put"}).ok());
    const absl::Status status = Run(kFew, kNever);
    EXPECT_TRUE(status.ok()) << status;
  }

  // A device's own thread may let go of the last tensor after the step has ended, so some patience is needed, and what is found later may
  // be less than what was first taken for nothing.
  void ExpectNothingLeft(const char* after) {
    for (int tries = 0; tries < 5000 && callable_->BytesInUse() > in_use_; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_LE(callable_->BytesInUse(), in_use_) << after;
    in_use_ = std::min(in_use_, callable_->BytesInUse());
    EXPECT_EQ(callable_->LiveIterations(), 0) << after;
    EXPECT_EQ(session_->DescribeSteps(), "") << after;
  }

  std::unique_ptr<Session> session_;
  std::shared_ptr<CompiledCallable> callable_;
  Tensor x_ = Square(16);
  int64_t in_use_ = 0;
};

TEST_P(EndedSteps, LeaveNothingAliveAndTheNextOnesRun) {
  for (int round = 0; round < 3; ++round) {
    RunSome();
    ExpectNothingLeft("success");
    if (kind().ends && !kind().waits) {
      EXPECT_EQ(Run(kForEver, 3 + round).code(), absl::StatusCode::kInvalidArgument);
      ExpectNothingLeft("failure");
    }
    EXPECT_EQ(RunLimited().code(), absl::StatusCode::kDeadlineExceeded);
    ExpectNothingLeft("time limit");
    Cancellation cancellation;
    std::thread canceller([&] {
      while (session_->DescribeSteps().empty()) std::this_thread::yield();
      if (round > 0) std::this_thread::sleep_for(std::chrono::milliseconds(round));
      cancellation.Cancel();
    });
    EXPECT_EQ(Run(kForEver, kNever, {}, &cancellation).code(), absl::StatusCode::kCancelled);
    canceller.join();
    ExpectNothingLeft("cancellation");
  }
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<LoopKind, LoopWay>>& info) {
  const std::string name = std::get<0>(info.param).name + " by " + std::get<1>(info.param).name;
  return absl::StrReplaceAll(name, {{" ", "_"}, {",", ""}});
}

INSTANTIATE_TEST_SUITE_P(All, EndedSteps, ::testing::Combine(::testing::ValuesIn(LoopKinds()), ::testing::ValuesIn(LoopWays())), NameOf);

// A44, A77: iterations are recycled and values let go, so a loop that is a hundred times as long takes no more memory.
class LongLoops : public ::testing::TestWithParam<LoopWay> {};

TEST_P(LongLoops, RunInConstantMemory) {
  constexpr int kIterations = kSanitized ? 50'000 : 1'000'000;
  constexpr int64_t kMostTensors = 1 << 16;  // by which one run may have more iterations alive at a time than another
  constexpr int64_t kMostHeap = 1 << 20;     // of the whole process
  for (const LoopKind& kind : LoopKinds()) {
    if (kind.name != "one kernel") continue;
    const std::unique_ptr<Session> session = Open(kind, GetParam());
    ASSERT_NE(session, nullptr);
    const auto run = [&](int32_t iterations) {
      const absl::Status status = session->Run({{"x", Square(2)}, {"limit", Int(iterations)}, {"fail_at", Int(kNever)}}, {"out"}).status();
      EXPECT_TRUE(status.ok()) << status;
    };
    run(kIterations / 100);
    const int64_t peak = session->peak_memory_bytes();
    const auto heap = static_cast<int64_t>(mallinfo2().uordblks);
    run(kIterations);
    EXPECT_LT(session->peak_memory_bytes() - peak, kMostTensors);
    EXPECT_LT(static_cast<int64_t>(mallinfo2().uordblks) - heap, kMostHeap);
  }
}

std::vector<LoopWay> WaysOnOneDevice() {
  std::vector<LoopWay> ways;
  for (const LoopWay& way : LoopWays()) {
    if (way.devices == "CPU:0") ways.push_back(way);
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Ways, LongLoops, ::testing::ValuesIn(WaysOnOneDevice()),
                         [](const auto& info) { return absl::StrReplaceAll(info.param.name, {{" ", "_"}}); });

}  // namespace
}  // namespace thalweg::testing
