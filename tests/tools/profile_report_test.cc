#include "thalweg/tools/profile_report.h"

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace thalweg::tools {
namespace {

// Two devices, a pair of transfers between them and everything small; each test plants one fault. Nodes: a and b on CPU:0, c and d on
// CPU:1; a goes to c, b to d.
class ProfileReportTest : public testing::Test {
 protected:
  ProfileReportTest() {
    auto tables = std::make_shared<TraceTables>();
    tables->devices = {"/device:CPU:0", "/device:CPU:1"};
    const auto add = [&](const char* name, const char* op, int32_t device, int32_t transfer) {
      TraceNode node;
      node.name = name;
      node.op = op;
      node.device = device;
      node.originals = {name};
      node.transfer = transfer;
      tables->nodes.push_back(node);
    };
    add("a", "Neg", 0, -1);
    add("b", "Exp", 0, -1);
    add("a/send", "_Send", 0, 0);
    add("b/send", "_Send", 0, 1);
    add("a/recv", "_Recv", 1, 0);
    add("b/recv", "_Recv", 1, 1);
    add("c", "Abs", 1, -1);
    add("d", "Log", 1, -1);
    tables->transfers = {{"a:0", 0, 1, 64, "policy"}, {"b:0", 0, 1, 64, "policy"}};
    trace_.tables = tables;
    // By start: node, thread, start, end, iteration, frame, last arriver, bytes.
    trace_.events = {{0, 0, 10, 20, 0, 0, -1, 0}, {1, 0, 20, 30, 0, 0, -1, 0}, {2, 0, 30, 31, 0, 0, 0, 0}, {3, 0, 31, 32, 0, 0, 1, 0},
                     {4, 1, 33, 34, 0, 0, 2, 0},  {5, 1, 34, 35, 0, 0, 3, 0},  {6, 1, 35, 45, 0, 0, 4, 0}, {7, 1, 45, 55, 0, 0, 5, 0}};
    trace_.step_nanos = 60;
    trace_.memory = {{10, 8, 0, 0}, {20, 8, 1, 0}, {35, 8, 6, 1}, {45, 8, 7, 1}};
  }

  // Makes the execution at `index` take `more`, and whatever comes after it late.
  void Delay(size_t index, int64_t more, bool before) {
    for (size_t i = index; i < trace_.events.size(); ++i) {
      if (i > index || before) trace_.events[i].start_nanos += more;
      trace_.events[i].end_nanos += more;
    }
    trace_.step_nanos += more;
  }

  // The first row of the table or part whose head starts with `head`.
  std::string FirstRow(const std::string& head) {
    ProfileResult result;
    EXPECT_TRUE(result.profile.Add(trace_).ok());
    result.profile.AddMemory(trace_);
    result.has_memory = true;
    result.traced_nanos = result.untraced_nanos = {trace_.step_nanos};
    ProfileReportOptions options;
    options.views = {ProfileView::kNode, ProfileView::kOp};
    options.gaps = options.transfers = options.memory = true;
    const std::string text = ProfileText(result, options);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      if (lines[i].rfind(head, 0) == 0) return lines[i + 1];
    }
    return "no part '" + head + "' in\n" + text;
  }

  Trace trace_;
};

TEST_F(ProfileReportTest, APlantedSlowNodeComesFirst) {
  Delay(1, 1000, /*before=*/false);
  EXPECT_EQ(FirstRow("by node").rfind("b ", 0), 0u) << FirstRow("by node");
  EXPECT_EQ(FirstRow("by op").rfind("Exp ", 0), 0u) << FirstRow("by op");
}

TEST_F(ProfileReportTest, APlantedTransferComesFirst) {
  Delay(5, 1000, /*before=*/false);
  EXPECT_NE(FirstRow("transfers").find("b:0"), std::string::npos) << FirstRow("transfers");
}

TEST_F(ProfileReportTest, APlantedIdleGapComesFirst) {
  Delay(7, 1000, /*before=*/true);
  trace_.events.insert(trace_.events.begin() + 4, {0, 2, 32, trace_.step_nanos, 0, 0, -1, 0});  // CPU:0 has work all the while
  const std::string row = FirstRow("gaps on");
  EXPECT_EQ(row.rfind("CPU:1", 0), 0u) << row;
  EXPECT_NE(row.find("dispatch"), std::string::npos) << "d was ready and did not start: " << row;
  EXPECT_NE(row.find(" d"), std::string::npos) << row;
}

TEST_F(ProfileReportTest, APlantedMemoryPeakComesFirst) {
  trace_.memory[1].bytes = 1 << 20;
  EXPECT_NE(FirstRow("memory of CPU:0").find("1.00 MiB  b"), std::string::npos) << FirstRow("memory of CPU:0");
}

TEST_F(ProfileReportTest, TotalsCloseByTheMiddleOfTheSteps) {
  ProfileResult result;
  for (const int64_t clock : {60, 60, 600}) {  // the last time the thread lost its core between the two clocks
    ASSERT_TRUE(result.profile.Add(trace_).ok());
    result.traced_nanos.push_back(clock);
    result.untraced_nanos.push_back(50);
  }
  EXPECT_DOUBLE_EQ(result.Closure(), 1);
  EXPECT_DOUBLE_EQ(result.Overhead(), 0.2);
}

}  // namespace
}  // namespace thalweg::tools
