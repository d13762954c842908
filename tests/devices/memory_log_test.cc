#include "thalweg/devices/memory_log.h"

#include <gtest/gtest.h>

#include "thalweg/devices/allocator.h"
#include "thalweg/devices/device.h"

namespace thalweg {
namespace {

int64_t Sum(const std::vector<MemoryLogEvent>& events) {
  int64_t sum = 0;
  for (const MemoryLogEvent& e : events) sum += e.bytes;
  return sum;
}

// Both kinds of buffer (small ones have their header in the block) and the simulated device's.
class MemoryLogOf : public testing::TestWithParam<const char*> {
 protected:
  MemoryLogOf() {
    auto devices = MakeDevices(*ParseDeviceList(GetParam()), std::make_shared<MemoryBudget>(0));
    EXPECT_TRUE(devices.ok());
    devices_ = *std::move(devices);
  }
  Allocator& allocator() { return devices_.back()->allocator(); }

  std::vector<std::shared_ptr<Device>> devices_;
};

TEST_P(MemoryLogOf, TellsWhoseBytesCameAndWent) {
  MemoryLog& log = allocator().memory_log();
  BufferRef before = *allocator().Allocate(100, 1);
  ASSERT_TRUE(log.TryStart());
  EXPECT_FALSE(log.TryStart()) << "one reader at a time";
  {
    BufferRef small = *allocator().Allocate(64, 2);
    BufferRef large = *allocator().Allocate(1 << 20, 3);
    before = BufferRef();
  }
  const std::vector<MemoryLogEvent> events = log.Stop();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].node_id, 2);
  EXPECT_EQ(events[0].bytes, 64);
  EXPECT_EQ(events[1].bytes, 1 << 20);
  EXPECT_EQ(events[2].node_id, 1) << "a buffer of before may be freed while it logs";
  EXPECT_EQ(Sum(events), -100);
  for (size_t i = 1; i < events.size(); ++i) EXPECT_LE(events[i - 1].time, events[i].time);
}

TEST_P(MemoryLogOf, IsSilentWhenOff) {
  MemoryLog& log = allocator().memory_log();
  ASSERT_TRUE(log.TryStart());
  EXPECT_TRUE(log.Stop().empty());
  EXPECT_TRUE(allocator().Allocate(64, 1).ok());
  ASSERT_TRUE(log.TryStart());
  EXPECT_TRUE(log.Stop().empty());
}

INSTANTIATE_TEST_SUITE_P(Backends, MemoryLogOf, testing::Values("CPU:0", "CPU:0,GPU:0=sim"));

}  // namespace
}  // namespace thalweg
