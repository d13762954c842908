#include "thalweg/runtime/trace_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thalweg/runtime/profile.h"

namespace thalweg {
namespace {

// CPU:0 computes `slow`, sends it; CPU:1 waits for it. Times in nanoseconds, a step of 1000.
Trace TwoDevices() {
  auto tables = std::make_shared<TraceTables>();
  tables->devices = {"/device:CPU:0", "/device:CPU:1"};
  tables->nodes = {{"slow", "MatMul", 0, {"slow"}, "", -1, 1000, 0},
                   {"slow/_send", "_Send", 0, {}, "partition", 0, 0, 0},
                   {"slow/_recv", "_Recv", 1, {}, "partition", 0, 0, 0},
                   {"reader", "Add", 1, {"reader"}, "", -1, 10, 0}};
  tables->transfers = {{"slow:0", 0, 1, 64, "policy"}};
  Trace trace;
  trace.tables = tables;
  trace.step_nanos = 1000;
  //               node thread start end iteration frame last_arriver bytes
  trace.events = {{0, 0, 50, 600, 0, 0, -1, 64},
                  {1, 0, 600, 610, 0, 0, 0, 0},
                  {2, 1, 650, 700, 0, 0, 1, 64},
                  {3, 1, 720, 900, 0, 0, 2, 0}};
  return trace;
}

int64_t Sum(const std::vector<TraceGap>& gaps, int32_t device) {
  int64_t sum = 0;
  for (const TraceGap& gap : gaps) sum += gap.device == device ? gap.end_nanos - gap.begin_nanos : 0;
  return sum;
}

TEST(CriticalPath, FollowsLastArriversAndAddsUpToTheStep) {
  const CriticalPath path = FindCriticalPath(TwoDevices());
  ASSERT_EQ(path.entries.size(), 4u);
  EXPECT_EQ(path.entries[0].wait_nanos, 50);
  EXPECT_FALSE(path.entries[3].for_thread);
  EXPECT_EQ(path.compute_nanos, 550 + 180);
  EXPECT_EQ(path.transfer_nanos, 10 + 50);
  EXPECT_EQ(path.wait_nanos, 50 + 0 + 40 + 20);
  EXPECT_EQ(path.tail_nanos, 100);
  EXPECT_EQ(path.compute_nanos + path.transfer_nanos + path.wait_nanos + path.tail_nanos, 1000);
}

TEST(CriticalPath, AThreadThatWasBusyIsAReasonToo) {
  Trace trace = TwoDevices();
  trace.events.insert(trace.events.begin() + 3, TraceEvent{1, 1, 705, 715, 0, 0, 0, 0});
  const CriticalPath path = FindCriticalPath(trace);
  ASSERT_EQ(path.entries.size(), 5u);
  EXPECT_TRUE(path.entries[4].for_thread) << "its input was there before its thread was free";
  EXPECT_EQ(path.entries[4].wait_nanos, 5);
}

TEST(CriticalPath, InALoopTakesTheExecutionThatCameBefore) {
  Trace trace;
  auto tables = std::make_shared<TraceTables>();
  tables->devices = {"/device:CPU:0"};
  tables->nodes = {{"a", "Add", 0, {}, "", -1, 0, 0}, {"next", "NextIteration", 0, {}, "", -1, 0, 0}};
  trace.tables = tables;
  trace.step_nanos = 100;
  trace.events = {{0, 0, 10, 20, 0, 1, 1, 0}, {1, 0, 20, 30, 0, 1, 0, 0}, {0, 0, 30, 40, 1, 1, 1, 0}, {1, 0, 45, 50, 1, 1, 0, 0}};
  const CriticalPath path = FindCriticalPath(trace);
  EXPECT_EQ(path.entries.size(), 4u) << "and ends, although the nodes read each other";
  EXPECT_EQ(path.compute_nanos, 35);
  EXPECT_EQ(path.wait_nanos, 15);
}

TEST(Gaps, AddUpWithBusyTimeAndNameWhatWasAwaited) {
  const Trace trace = TwoDevices();
  const std::vector<TraceGap> gaps = FindGaps(trace);
  const std::vector<TraceDeviceTotals> totals = trace.DeviceTotals();
  for (int d = 0; d < 2; ++d) EXPECT_EQ(Sum(gaps, d), totals[d].gap_nanos) << "device " << d;
  // CPU:1 stood still for `slow`, through its transfer, until the Recv had started.
  const auto wait = std::find_if(gaps.begin(), gaps.end(), [](const TraceGap& g) { return g.cause == GapCause::kTransfer; });
  ASSERT_NE(wait, gaps.end());
  EXPECT_EQ(wait->device, 1);
  EXPECT_EQ(wait->begin_nanos, 50);
  EXPECT_EQ(wait->end_nanos, 610);
  EXPECT_EQ(wait->node, 1);
  const auto dispatch = std::find_if(gaps.begin(), gaps.end(), [](const TraceGap& g) { return g.cause == GapCause::kDispatch; });
  ASSERT_NE(dispatch, gaps.end());
  EXPECT_EQ(dispatch->end_nanos - dispatch->begin_nanos, 40);
}

TEST(Gaps, OfAnEmptyStepAreTheStep) {
  Trace trace;
  auto tables = std::make_shared<TraceTables>();
  tables->devices = {"/device:CPU:0"};
  trace.tables = tables;
  trace.step_nanos = 70;
  EXPECT_EQ(Sum(FindGaps(trace), 0), 70);
  EXPECT_EQ(FindCriticalPath(trace).tail_nanos, 70);
}

TEST(MemoryPeaks, SayWhenAndWho) {
  Trace trace = TwoDevices();
  trace.memory = {{10, 100, 0, 0}, {20, 1000, 3, 0}, {30, -1000, 3, 0}, {40, 500, 1, 0}, {50, 8, 2, 1}};
  const std::vector<MemoryTimeline> peaks = FindMemoryPeaks(trace);
  ASSERT_EQ(peaks.size(), 2u);
  EXPECT_EQ(peaks[0].peak_bytes, 1100);
  EXPECT_EQ(peaks[0].peak_nanos, 20);
  EXPECT_EQ(peaks[0].left_bytes, 600);
  ASSERT_EQ(peaks[0].holders.size(), 2u);
  EXPECT_EQ(peaks[0].holders[0].node, 3) << "the largest comes first";
  EXPECT_EQ(peaks[0].holders[0].bytes, 1000);
  EXPECT_EQ(peaks[1].peak_bytes, 8);
}

TEST(MemoryPeaks, TheCurveKeepsThePeakOfManyChanges) {
  Trace trace = TwoDevices();
  trace.memory = {{10, 100, 0, 0}, {20, 1000, 3, 0}, {30, -1000, 3, 0}};
  const std::vector<MemoryTimeline::Point> few = FindMemoryPeaks(trace)[0].curve;
  ASSERT_EQ(few.size(), 3u);
  EXPECT_EQ(few[1].nanos, 20);
  EXPECT_EQ(few[1].bytes, 1100);
  for (int64_t i = 0; i < 10'000; ++i) {
    trace.memory.push_back({100 + 2 * i, i == 7777 ? 5000 : 10, 0, 0});
    trace.memory.push_back({101 + 2 * i, i == 7777 ? -5000 : -10, 0, 0});
  }
  const MemoryTimeline many = FindMemoryPeaks(trace)[0];
  EXPECT_LE(many.curve.size(), 1000u);
  const auto largest = std::max_element(many.curve.begin(), many.curve.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  EXPECT_EQ(largest->bytes, many.peak_bytes);
  EXPECT_EQ(largest->nanos, many.peak_nanos);
}

TEST(Profile, AddsUpSteps) {
  const Trace trace = TwoDevices();
  Profile profile;
  ASSERT_TRUE(profile.Add(trace).ok());
  ASSERT_TRUE(profile.Add(trace).ok());
  EXPECT_EQ(profile.steps(), 2);
  EXPECT_EQ(profile.nodes()[0].busy_nanos, 1100);
  EXPECT_THAT(profile.nodes()[0].per_step, testing::ElementsAre(550, 550));
  EXPECT_EQ(profile.nodes()[3].critical_nanos, 360);
  EXPECT_EQ(profile.transfers()[0].count, 2);
  EXPECT_EQ(profile.transfers()[0].bytes, 128);
  EXPECT_EQ(profile.transfers()[0].exposed_nanos, 2 * 560);
  for (const DeviceProfile& device : profile.devices()) EXPECT_EQ(device.busy_nanos + device.gap_nanos, 2000);
  EXPECT_EQ(profile.Gaps().front().cause, GapCause::kTransfer) << "longest first";
  EXPECT_EQ(profile.Gaps().front().count, 2);
}

TEST(Profile, RefusesTracesOfAnotherCallable) {
  Profile profile;
  EXPECT_FALSE(profile.Add(Trace()).ok());
  ASSERT_TRUE(profile.Add(TwoDevices()).ok());
  EXPECT_FALSE(profile.Add(TwoDevices()).ok()) << "tables of their own";
}

}  // namespace
}  // namespace thalweg
