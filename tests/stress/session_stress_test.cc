// Many threads on one session: concurrent steps, cancellations, timeouts, Close. Meant for the thread sanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

constexpr int kWidth = 12;
constexpr int kDepth = 6;

// `kWidth` chains of matrix products and sums over one input, joined at the end: work for several threads.
std::string WideGraph() {
  std::string g = "versions { producer: 1087 }\n";
  const std::string type = "attr { key: \"T\" value { type: DT_FLOAT } }";
  absl::StrAppend(&g, "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } ",
                  "attr { key: \"shape\" value { shape { dim { size: 64 } dim { size: 64 } } } } }\n");
  std::string join;
  for (int w = 0; w < kWidth; ++w) {
    std::string before = "x";
    for (int d = 0; d < kDepth; ++d) {
      const std::string name = absl::StrCat("c", w, "_", d);
      const char* op = d % 2 == 0 ? "MatMul" : "AddV2";
      absl::StrAppend(&g, "node { name: \"", name, "\" op: \"", op, "\" input: \"", before, "\" input: \"x\" ", type, " }\n");
      before = name;
    }
    absl::StrAppend(&join, "input: \"", before, "\" ");
  }
  absl::StrAppend(&g, "node { name: \"y\" op: \"AddN\" ", join, type, " attr { key: \"N\" value { i: ", kWidth, " } } }\n");
  return g;
}

Tensor Identity64(float scale) {
  Tensor t = *Tensor::Allocate(DType::kFloat32, Shape::Of({64, 64}));
  absl::Span<float> out = t.mutable_flat<float>();
  for (int i = 0; i < 64 * 64; ++i) out[i] = i % 65 == 0 ? scale : 0.0f;
  return t;
}

// With x = s * I: each even level multiplies by s, each odd level adds s; all on the diagonal.
float ExpectedDiagonal(float s) {
  float v = s;
  for (int d = 0; d < kDepth; ++d) v = d % 2 == 0 ? v * s : v + s;
  return v * kWidth;
}

std::unique_ptr<Session> MakeSession(int threads, const std::string& devices) {
  SessionOptions options;
  options.threads = threads;
  options.devices = devices;
  options.policy = devices == "CPU:0" ? "default" : "scatter~5";
  auto session = Session::FromMemory(WideGraph(), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

class SessionStress : public testing::TestWithParam<const char*> {};

TEST_P(SessionStress, ConcurrentStepsAreIndependent) {
  auto session = MakeSession(3, GetParam());
  auto callable = session->MakeCallable({"x"}, {"y"});
  ASSERT_TRUE(callable.ok()) << callable.status();
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&, c] {
      const float scale = 0.5f + 0.125f * static_cast<float>(c);
      const Tensor x = Identity64(scale);
      for (int i = 0; i < 40; ++i) {
        auto result = (*callable)->Run({x});
        if (!result.ok() || std::abs((*result)[0].flat<float>()[0] - ExpectedDiagonal(scale)) > 1e-3f) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

// D26: many callers of one session at the same time; no step sees what another was fed.
TEST(SessionStressOfManyCallers, ThirtyTwoCallersOfOneSession) {
  SessionOptions options;
  options.threads = 2;
  auto session = Session::FromMemory(R"(versions { producer: 1087 }
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "y" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } })",
                                     options);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 32; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < 1000; ++i) {
        const float value = static_cast<float>(1000 * c + i);
        auto result = (*session)->Run({{"x", *Tensor::Scalar<float>(value)}}, {"y"});
        if (!result.ok() || (*result)[0].flat<float>()[0] != 2 * value) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(SessionStress, CancelAndTimeoutLeaveTheSessionUsable) {
  auto session = MakeSession(2, GetParam());
  auto callable = *session->MakeCallable({"x"}, {"y"});
  const Tensor x = Identity64(1.0f);
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    Cancellation cancellation;
    const int delay = static_cast<int>(random() % 300);
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      cancellation.Cancel();
    });
    RunOptions options;
    if (i % 2 == 0) options.timeout = std::chrono::microseconds(1 + random() % 300);
    absl::Status status = callable->Run({x}, options, &cancellation).status();
    canceller.join();
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kCancelled || status.code() == absl::StatusCode::kDeadlineExceeded) << status;
  }
  auto result = callable->Run({x});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FLOAT_EQ((*result)[0].flat<float>()[0], ExpectedDiagonal(1.0f));
}

// D7 (as decided here): Close waits for running steps; they end as Cancelled or had finished.
TEST_P(SessionStress, CloseWaitsForRunningSteps) {
  for (int round = 0; round < 10; ++round) {
    auto session = MakeSession(2, GetParam());
    auto callable = *session->MakeCallable({"x"}, {"y"});
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; ++c) {
      callers.emplace_back([&] {
        const Tensor x = Identity64(1.0f);
        for (int i = 0; i < 1000; ++i) {
          absl::Status status = callable->Run({x}).status();
          if (status.ok()) continue;
          EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
          return;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(session->Close().ok());
    for (std::thread& t : callers) t.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SessionStress, testing::Values("CPU:0", "CPU:0,CPU:1", "CPU:0,GPU:0=sim"));

}  // namespace
}  // namespace thalweg
