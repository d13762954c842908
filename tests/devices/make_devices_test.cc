#include <future>

#include "gtest/gtest.h"
#include "thalweg/devices/device.h"

namespace thalweg {
namespace {

absl::Status Refused(absl::string_view text) { return ParseDeviceList(text).status(); }

TEST(ParseDeviceList, NamesAreCompletedAndBackendsChosen) {
  const auto requests = ParseDeviceList("CPU:0, cpu:1,GPU:0=sim,XPU:3=cpu").value();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[0].name.ToString(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(requests[0].backend, "cpu");
  EXPECT_EQ(requests[1].name.ToShortString(), "CPU:1");
  EXPECT_EQ(requests[2].name.ToString(), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(requests[2].backend, "sim");
  EXPECT_EQ(requests[3].backend, "cpu");
  EXPECT_EQ(ParseDeviceList("/job:worker/task:2/device:CPU:0").value()[0].name.ToString(),
            "/job:worker/replica:0/task:2/device:CPU:0");
}

TEST(ParseDeviceList, NothingPretendsToBeAGpu) {
  const absl::Status status = Refused("CPU:0,GPU:0");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "this build has no GPU backend; write GPU:0=sim for the simulated accelerator");
  EXPECT_EQ(Refused("GPU:0=cuda").code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Refused("GPU:0=cuda").message().find("cpu, sim"), absl::string_view::npos) << "names what there is";
  EXPECT_EQ(Refused("GPU:0=").code(), absl::StatusCode::kNotFound);
}

TEST(ParseDeviceList, BadTextIsRefused) {
  for (const char* bad : {"", ",", "CPU:0,", "CPU", "CPU:*", "CPU:x", "CPU:0:1", ":0", "=sim", "CPU:0,CPU:0",
                          "CPU:0=sim", "/job:localhost", "CPU:99999999999"}) {
    EXPECT_EQ(Refused(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(MakeDevices, MakesEachOnce) {
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  const auto devices = MakeDevices(ParseDeviceList("CPU:0,CPU:1,GPU:0=sim").value(), budget).value();
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[1]->name().ToShortString(), "CPU:1");
  EXPECT_EQ(devices[1]->memory(), MemoryKind::kHost);
  EXPECT_EQ(devices[2]->memory(), MemoryKind::kDevice);
  const BufferRef held = devices[0]->allocator().Allocate(700000, -1).value();
  EXPECT_EQ(devices[1]->allocator().Allocate(700000, -1).status().code(), absl::StatusCode::kResourceExhausted)
      << "host devices share the session's budget";
}

TEST(MakeDevices, RefusesWhatParseDeviceListWould) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const DeviceName full = ParseDeviceList("CPU:0").value()[0].name;
  EXPECT_EQ(MakeDevices({{full, "tpu"}}, budget).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MakeDevices({{DeviceName(), "cpu"}}, budget).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuDevice, TheHostNeedsNoCopies) {
  const auto devices = MakeDevices(ParseDeviceList("CPU:0").value(), std::make_shared<MemoryBudget>(0)).value();
  Device& cpu = *devices[0];
  EXPECT_EQ(cpu.backend(), "cpu");
  EXPECT_EQ(cpu.allocator().name(), "CPU:0");
  const Tensor t = Tensor::Scalar(1.f).value();
  Tensor passed;
  cpu.CopyFromHost(t, -1, [&](absl::StatusOr<Tensor> copy) { passed = *std::move(copy); });
  EXPECT_TRUE(passed.SharesBufferWith(t));
  cpu.CopyToHost(passed, cpu.allocator(), -1, [&](absl::StatusOr<Tensor> copy) { passed = *std::move(copy); });
  EXPECT_TRUE(passed.SharesBufferWith(t));
  int runs = 0;
  cpu.Launch([&runs] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(cpu.Synchronize().ok());
  EXPECT_EQ(cpu.KernelPointer(&runs), &runs);
}

}  // namespace
}  // namespace thalweg
