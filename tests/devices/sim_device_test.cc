// The simulated accelerator: memory that the host cannot touch, and asynchronous work in order.
#include "thalweg/devices/sim/sim_device.h"

#include <pthread.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "thalweg/devices/sim/sim_engine.h"
#include "thalweg/devices/sim/sim_memory.h"

namespace thalweg {
namespace {

DeviceName Gpu0() { return DeviceName::Parse("/job:localhost/replica:0/task:0/device:GPU:0").value(); }

std::shared_ptr<Device> NewDevice(int64_t memory_bytes = 1 << 24) {
  return MakeSimDevice(Gpu0(), {.memory_bytes = memory_bytes}).value();
}

absl::StatusOr<Tensor> ToDevice(Device& device, Tensor host, int32_t node_id = -1) {
  std::promise<absl::StatusOr<Tensor>> result;
  device.CopyFromHost(std::move(host), node_id, [&](absl::StatusOr<Tensor> t) { result.set_value(std::move(t)); });
  return result.get_future().get();
}

absl::StatusOr<Tensor> ToHost(Device& device, Tensor tensor, Allocator& allocator = DefaultHostAllocator(),
                              int32_t node_id = -1) {
  std::promise<absl::StatusOr<Tensor>> result;
  device.CopyToHost(std::move(tensor), allocator, node_id,
                    [&](absl::StatusOr<Tensor> t) { result.set_value(std::move(t)); });
  return result.get_future().get();
}

TEST(SimDevice, SaysWhatItIs) {
  const auto device = NewDevice();
  EXPECT_EQ(device->backend(), "sim");
  EXPECT_EQ(device->memory(), MemoryKind::kDevice);
  EXPECT_EQ(device->full_name(), "/job:localhost/replica:0/task:0/device:GPU:0");
  EXPECT_EQ(device->allocator().memory(), MemoryKind::kDevice);
}

TEST(SimDevice, CopiesRoundTrip) {
  const auto device = NewDevice();
  std::vector<float> values(10000);
  std::iota(values.begin(), values.end(), 0.f);
  const Tensor host = Tensor::Of<float>(values, Shape::Of({100, 100})).value();
  const Tensor there = ToDevice(*device, host, 7).value();
  EXPECT_EQ(there.memory(), MemoryKind::kDevice);
  EXPECT_EQ(there.shape(), host.shape());
  EXPECT_EQ(there.buffer()->node_id(), 7);
  const Tensor back = ToHost(*device, there, DefaultHostAllocator(), 8).value();
  EXPECT_EQ(back.memory(), MemoryKind::kHost);
  EXPECT_EQ(back.buffer()->node_id(), 8);
  EXPECT_EQ(back.flat<float>(), host.flat<float>());
  const Tensor rows = ToHost(*device, there.Rows(99, 100)).value();
  EXPECT_EQ(rows.flat<float>()[0], 9900);
}

TEST(SimDevice, EmptyTensorsTravelToo) {
  const auto device = NewDevice();
  const Tensor there = ToDevice(*device, Tensor::Of<float>({}, Shape::Of({0, 3})).value()).value();
  EXPECT_EQ(ToHost(*device, there)->shape(), Shape::Of({0, 3}));
}

TEST(SimDevice, OnlyPlainMemoryIsCopied) {
  const auto device = NewDevice();
  for (DType dtype : {DType::kString, DType::kResource, DType::kVariant}) {
    const Tensor t = Tensor::Allocate(dtype, Shape()).value();
    for (const absl::Status& status : {ToDevice(*device, t).status(), ToHost(*device, t).status()}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(DTypeName(dtype)), absl::string_view::npos) << status;
    }
  }
}

TEST(SimDevice, CopiesCheckWhereTheTensorIs) {
  const auto device = NewDevice();
  const auto other = NewDevice();
  const Tensor host = Tensor::Scalar(1.f).value();
  const Tensor there = ToDevice(*device, host).value();
  EXPECT_EQ(ToDevice(*device, there).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToHost(*device, host).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToHost(*other, there).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SimDeviceDeathTest, TheHostCannotTouchDeviceMemory) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto device = NewDevice();
  Tensor there = ToDevice(*device, Tensor::Of<float>({1, 2}, Shape::Of({2})).value()).value();
#if defined(__SANITIZE_ADDRESS__) || defined(_GLIBCXX_TSAN)
  const auto died = [](int status) { return status != 0; };  // sanitizers catch the signal and exit
#else
  const auto died = testing::KilledBySignal(SIGSEGV);
#endif
  EXPECT_EXIT((static_cast<void>(static_cast<const volatile float*>(there.raw())[0]), std::exit(0)), died, "");
  EXPECT_EXIT(static_cast<volatile float*>(there.mutable_raw())[0] = 1, died, "");
}

TEST(SimDevice, CodeOnTheDeviceGoesThroughKernelPointer) {
  const auto device = NewDevice();
  Tensor there = ToDevice(*device, Tensor::Of<float>({1, 2}, Shape::Of({2})).value()).value();
  device->Launch([&] { static_cast<float*>(device->KernelPointer(there.mutable_raw()))[1] = 7; });
  const Tensor back = ToHost(*device, there).value();
  EXPECT_EQ(back.flat<float>()[1], 7) << "the copy waits for the work launched before it";
  float on_host = 0;
  EXPECT_EQ(device->KernelPointer(&on_host), &on_host);
  EXPECT_EQ(device->KernelPointer(nullptr), nullptr);
  void* alias = device->KernelPointer(there.mutable_raw());
  EXPECT_EQ(device->KernelPointer(alias), alias);
}

TEST(SimDevice, ItsMemoryHasALimit) {
  const auto device = NewDevice(1 << 20);
  Allocator& allocator = device->allocator();
  BufferRef most = allocator.Allocate(900000, 1).value();
  EXPECT_EQ(allocator.stats().bytes_in_use, 900000);
  const absl::Status refused = allocator.Allocate(200000, 1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("on GPU:0: 900000 of its 1048576 bytes are in use"), absl::string_view::npos)
      << refused;
  most = BufferRef();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
  EXPECT_EQ(allocator.stats().peak_bytes, 900000);
  EXPECT_EQ(allocator.stats().allocations, 1);
  EXPECT_TRUE(allocator.Allocate(1 << 20, 1).ok());
  EXPECT_EQ(allocator.Allocate(-1, 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator.Allocate(INT64_MAX, 1).status().code(), absl::StatusCode::kResourceExhausted);
  const Tensor big = Tensor::Allocate(DType::kUInt8, Shape::Of({2 << 20})).value();
  EXPECT_EQ(ToDevice(*device, big).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(SimDevice, ItsMemoryCountsForTheSession) {
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  const auto host = MakeHostAllocator("CPU:0", budget);
  const auto device = MakeSimDevice(Gpu0(), {.memory_bytes = 1 << 24}, budget).value();
  BufferRef on_host = host->Allocate(600 << 10, -1).value();
  EXPECT_EQ(device->allocator().Allocate(600 << 10, -1).status().code(), absl::StatusCode::kResourceExhausted);
  on_host = BufferRef();
  BufferRef on_device = device->allocator().Allocate(600 << 10, -1).value();
  EXPECT_EQ(host->Allocate(600 << 10, -1).status().code(), absl::StatusCode::kResourceExhausted);
  on_device = BufferRef();
  EXPECT_EQ(budget->in_use(), 0);
}

TEST(SimDevice, SynchronizeWaitsForAllWork) {
  const auto device = NewDevice();
  int done = 0;
  for (int i = 0; i < 1000; ++i) device->Launch([&done] { ++done; });
  EXPECT_TRUE(device->Synchronize().ok());
  EXPECT_EQ(done, 1000);
}

TEST(SimDevice, MayBeDroppedByItsOwnCompletion) {
  std::promise<void> finished;
  {
    auto device = NewDevice();
    Device* raw = device.get();
    std::promise<void> go;
    device->Launch([gate = go.get_future().share()] { gate.wait(); });
    raw->Launch([owner = std::move(device)] {});
    raw->Launch([&finished] { finished.set_value(); });  // still runs
    go.set_value();
  }
  finished.get_future().wait();
}

TEST(SimEngine, RunsItemsInOrderOnOneNamedThread) {
  SimEngine engine("sim:GPU:0");
  std::vector<int> order;
  std::string name(16, '\0');
  std::thread::id id;
  for (int i = 0; i < 100; ++i) {
    engine.Submit([&, i] {
      order.push_back(i);
      if (i == 0) id = std::this_thread::get_id();
      EXPECT_EQ(id, std::this_thread::get_id());
      pthread_getname_np(pthread_self(), name.data(), name.size());
    });
  }
  ASSERT_TRUE(engine.Synchronize().ok());
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_STREQ(name.c_str(), "sim:GPU:0");
}

TEST(SimEngine, DestructionRunsWhatIsQueued) {
  int done = 0;
  {
    SimEngine engine("sim");
    for (int i = 0; i < 100; ++i) engine.Submit([&done] { ++done; });
  }
  EXPECT_EQ(done, 100);
  SimEngine unused("sim");  // never starts a thread
}

TEST(SimEngine, CannotWaitForItself) {
  SimEngine engine("sim");
  absl::Status status;
  engine.Submit([&] { status = engine.Synchronize(); });
  ASSERT_TRUE(engine.Synchronize().ok());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

uint8_t ByteAt(const SimMemory& memory, const void* address) {
  return *static_cast<const uint8_t*>(memory.Alias(address));
}

TEST(SimMemory, WhatHoldsNoValueIsPoisoned) {
  const auto memory = SimMemory::Make(1 << 16).value();
  void* block = memory->Allocate(1000);
  EXPECT_EQ(ByteAt(*memory, block), SimMemory::kPoison) << "never written";
  *static_cast<uint8_t*>(memory->Alias(block)) = 1;
  memory->Free(block, 1000);
  EXPECT_EQ(ByteAt(*memory, block), SimMemory::kPoison) << "freed";
}

TEST(SimMemory, LargeBlocksAreHandedOutPoisonedAgain) {
  const auto memory = SimMemory::Make(1 << 23).value();
  constexpr int64_t kBytes = (int64_t{3} << 20) + 512;
  void* block = memory->Allocate(kBytes);
  auto* bytes = static_cast<char*>(memory->Alias(block));
  std::fill(bytes, bytes + kBytes, 'x');
  memory->Free(block, kBytes);
  block = memory->Allocate(kBytes);
  for (const int64_t at : {int64_t{0}, kBytes / 2, kBytes - 1}) {
    EXPECT_EQ(ByteAt(*memory, static_cast<char*>(block) + at), SimMemory::kPoison) << at;
  }
}

TEST(SimMemory, FreeRangesAreJoined) {
  const int64_t capacity = 1 << 16;
  const auto memory = SimMemory::Make(capacity).value();
  std::vector<void*> blocks;
  while (void* block = memory->Allocate(1000)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), static_cast<size_t>(capacity / 1024));
  EXPECT_EQ(memory->LargestFreeRange(), 0);
  for (size_t i = 0; i < blocks.size(); i += 2) memory->Free(blocks[i], 1000);
  EXPECT_EQ(memory->LargestFreeRange(), 1024);
  for (size_t i = 1; i < blocks.size(); i += 2) memory->Free(blocks[i], 1000);
  EXPECT_EQ(memory->LargestFreeRange(), capacity);
}

TEST(SimMemory, EmptyBlocksHaveAddressesOfTheirOwn) {
  const auto memory = SimMemory::Make(1 << 16).value();
  EXPECT_NE(memory->Allocate(0), memory->Allocate(0));
}

TEST(SimMemory, RefusesSizesThatMakeNoSense) {
  for (int64_t bad : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(SimMemory::Make(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(SimMemory, ManyThreads) {
  const auto memory = SimMemory::Make(1 << 20).value();
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const int64_t bytes = 1 + (i * 37 + t * 101) % 5000;
        void* block = memory->Allocate(bytes);
        if (block == nullptr) continue;
        auto* alias = static_cast<uint8_t*>(memory->Alias(block));
        if (alias[0] != SimMemory::kPoison || alias[bytes - 1] != SimMemory::kPoison) ++damaged;
        alias[0] = alias[bytes - 1] = static_cast<uint8_t>(t);
        memory->Free(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(memory->LargestFreeRange(), memory->capacity());
}

}  // namespace
}  // namespace thalweg
