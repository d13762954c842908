#include "thalweg/runtime/trace.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session.h"

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
  trace.threads = 2;
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

// A batch that the graph leaves open counts with the size that was fed.
TEST(Trace, CostsFollowTheShapesOfFeeds) {
  if (!kRecordingBuiltIn) GTEST_SKIP() << "this build cannot record steps";
  constexpr char kProduct[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 3 } } } } }
node { name: 'w' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 5 } } float_val: 1 } } } }
node { name: 'y' op: 'MatMul' input: 'x' input: 'w' attr { key: 'T' value { type: DT_FLOAT } } }
versions { producer: 1395 }
)";
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kProduct, {});
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int64_t rows : {4, 8, 4}) {
    Trace trace;
    RunOptions options;
    options.trace = &trace;
    const Tensor x = *Tensor::Of<float>(std::vector<float>(rows * 3), Shape::Of({rows, 3}));
    ASSERT_TRUE((*session)->Run({{"x", x}}, {"y"}, {}, options).ok());
    double flops = 0;
    for (const TraceNode& node : trace.tables->nodes) flops += node.flops;
    EXPECT_EQ(flops, 2.0 * static_cast<double>(rows) * 3 * 5);
  }
}

// A thread's events, a device's stream and each kind of copy would overlap in one row.
TEST(Trace, RowsAreNamed) {
  Trace trace = TwoDeviceTrace();
  trace.events[2].thread = trace.events[3].thread = trace.threads;  // by the device's own engine
  const std::string json = trace.ToChromeJson();
  const auto row = [](int device, int row, const char* name) {
    return absl::StrCat("\"name\":\"thread_name\",\"pid\":", device, ",\"tid\":", row, ",\"args\":{\"name\":\"", name, "\"}");
  };
  EXPECT_NE(json.find(row(0, 0, "caller")), std::string::npos) << json;
  EXPECT_NE(json.find(row(1, 2, "compute stream")), std::string::npos);
  EXPECT_NE(json.find(row(1, 3, "copies from /device:CPU:0")), std::string::npos);
  EXPECT_NE(json.find("\"name\":\"_Recv\",\"pid\":1,\"tid\":3"), std::string::npos);
  EXPECT_NE(json.find("\"name\":\"Mul\",\"pid\":1,\"tid\":2"), std::string::npos);
  EXPECT_NE(TwoDeviceTrace().ToChromeJson().find(row(1, 1, "worker 1")), std::string::npos);
}

TEST(Trace, LiveBytesAreCounted) {
  Trace trace = TwoDeviceTrace();
  EXPECT_EQ(trace.ToChromeJson().find("live bytes"), std::string::npos);
  trace.memory = {{100, 64, 0, 0}, {200, 16, 3, 1}, {300, -64, 0, 0}};
  const std::string json = trace.ToChromeJson();
  for (const char* counter : {"\"pid\":0,\"ts\":0.100,\"args\":{\"bytes\":64}", "\"pid\":1,\"ts\":0.200,\"args\":{\"bytes\":16}",
                              "\"pid\":0,\"ts\":0.300,\"args\":{\"bytes\":0}"}) {
    EXPECT_NE(json.find(absl::StrCat("{\"ph\":\"C\",\"name\":\"live bytes\",", counter)), std::string::npos) << counter;
  }
}

TEST(Trace, AnEmptyTraceHasNoTotals) {
  EXPECT_TRUE(Trace().DeviceTotals().empty());
  EXPECT_NE(Trace().ToChromeJson().find("traceEvents"), std::string::npos);
}

}  // namespace
}  // namespace thalweg
