#include "thalweg/runtime/trace.h"

#include <gtest/gtest.h>

namespace thalweg {
namespace {

Trace TwoDeviceTrace() {
  auto tables = std::make_shared<TraceTables>();
  tables->devices = {"/device:CPU:0", "/device:GPU:0"};
  tables->nodes.resize(4);
  tables->nodes[0] = {"a", "Add", 0, {"a"}, "", -1, 0, 0};
  tables->nodes[1] = {"send", "_Send", 0, {}, "partition", 0, 0, 0};
  tables->nodes[2] = {"recv", "_Recv", 1, {}, "partition", 0, 0, 0};
  tables->nodes[3] = {"b\"x", "Mul", 1, {"b1", "b2"}, "", -1, 0, 0};
  tables->transfers = {{"a:0", 0, 1, 16, "policy"}};
  Trace trace;
  trace.tables = tables;
  trace.step_nanos = 1000;
  trace.events = {{0, 0, 100, 300, 0, 0, -1, 0}, {1, 0, 200, 350, 0, 0, 0, 0}, {2, 1, 400, 500, 0, 0, 1, 0}, {3, 1, 500, 700, 0, 0, 2, 64}};
  return trace;
}

TEST(Trace, BusyIsTheUnionAndTotalsClose) {
  const Trace trace = TwoDeviceTrace();
  const std::vector<TraceDeviceTotals> totals = trace.DeviceTotals();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].busy_nanos, 250) << "overlapping events count once";
  EXPECT_EQ(totals[1].busy_nanos, 300);
  for (const TraceDeviceTotals& t : totals) EXPECT_EQ(t.busy_nanos + t.gap_nanos, trace.step_nanos);
}

TEST(Trace, ChromeJsonHasRowsFlowsAndProvenance) {
  const std::string json = TwoDeviceTrace().ToChromeJson();
  EXPECT_NE(json.find("\"ph\":\"X\",\"name\":\"Add\",\"pid\":0,\"tid\":0,\"ts\":0.100,\"dur\":0.200"), std::string::npos) << json;
  EXPECT_NE(json.find("\"ph\":\"s\",\"name\":\"transfer\""), std::string::npos);
  EXPECT_NE(json.find("\"ph\":\"f\",\"bp\":\"e\",\"name\":\"transfer\""), std::string::npos);
  EXPECT_NE(json.find("\"node\":\"b\\\"x\""), std::string::npos) << "names are escaped";
  EXPECT_NE(json.find("\"stands_for\":\"b1, b2\""), std::string::npos);
  EXPECT_NE(json.find("\"cause\":\"policy\""), std::string::npos);
}

TEST(Trace, AnEmptyTraceHasNoTotals) {
  EXPECT_TRUE(Trace().DeviceTotals().empty());
  EXPECT_NE(Trace().ToChromeJson().find("traceEvents"), std::string::npos);
}

}  // namespace
}  // namespace thalweg
