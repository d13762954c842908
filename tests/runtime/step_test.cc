// Steps of plans made by hand: what is said of a step that waits for something that does not come.
#include "thalweg/runtime/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thalweg/devices/device.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/runtime/resource_manager.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;

// Ends only when its step is cancelled, as a queue does that stays empty.
class WaitingKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.step().OnCancel([done = std::move(done)]() mutable { done(absl::CancelledError("nothing came")); });
  }
};

// A plan of one asynchronous node.
class OneAsyncNode {
 public:
  OneAsyncNode() {
    info_.name = "queue/take";
    info_.schema = BuiltinOps().schemas.Find("NoOp");
    devices_ = *MakeDevices(*ParseDeviceList("CPU:0"), std::make_shared<MemoryBudget>(int64_t{1} << 20));
    info_.device = devices_[0].get();
    plan_.nodes.resize(1);
    plan_.nodes[0].kernel = &kernel_;
    plan_.nodes[0].info = &info_;
    plan_.nodes[0].kind = NodeKind::kAsync;
    plan_.nodes[0].aux = 0;
    plan_.num_async = 1;
    plan_.execution = Execution::kSegments;
    plan_.segments.order = {0};
    plan_.segments.segments.resize(1);
    plan_.segments.segments[0].end = 1;
    plan_.segments.segments[0].asynchronous = true;
    plan_.measured_nanos = std::make_unique<std::atomic<float>[]>(1);
  }
  const Plan& plan() const { return plan_; }
  Allocator& allocator() { return devices_[0]->allocator(); }

 private:
  WaitingKernel kernel_;
  KernelNode info_;
  std::vector<std::shared_ptr<Device>> devices_;
  Plan plan_;
};

TEST(Step, ATimeLimitSaysWhatTheStepWaitsFor) {
  OneAsyncNode graph;
  ThreadPool pool(1);
  SessionResources resources;
  StepState step(graph.plan(), {&pool, &resources, &graph.allocator()});
  ScopedComputeThread compute;
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> results;
    step.Start({}, &results, std::chrono::steady_clock::now() + std::chrono::milliseconds(5), nullptr);
    ExecuteParallel(step);
    const absl::Status status = step.Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'queue/take' (NoOp on CPU:0) has begun and not ended"));
  }
}

}  // namespace
}  // namespace thalweg
