// How soon steps that would go on for ever end: milliseconds from Cancel (or from the time limit) until Run has returned, least, median and
// worst, for loops of every kind in every way of running them.
//
//   bench_cancel [ROUNDS [KIND]]     30 rounds of all kinds without arguments; KIND: a part of the name

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/loop_kinds.h"
#include "thalweg/tests/support/loop_session.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSide = 512;  // of the matrices that the kind "long kernel" multiplies
constexpr double kAsked = 50;   // milliseconds

double MillisSince(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

struct Latencies {
  std::vector<double> cancel;
  std::vector<double> limit;
};

absl::StatusOr<Latencies> Measure(const testing::LoopKind& kind, const testing::LoopWay& way, int rounds) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kind.graph, testing::OptionsFor(way));
  if (!session.ok()) return session.status();
  absl::StatusOr<std::shared_ptr<Callable>> callable = (*session)->MakeCallable({"x", "limit", "fail_at"}, {"out"});
  if (!callable.ok()) return callable.status();
  Tensor x = *Tensor::Allocate(DType::kFloat32, *Shape::Make({kSide, kSide}));
  std::fill_n(static_cast<float*>(x.mutable_raw()), x.num_elements(), 0.0f);
  const std::vector<Tensor> feeds = {x, *Tensor::Scalar<int32_t>(std::numeric_limits<int32_t>::max()), *Tensor::Scalar<int32_t>(-1)};
  std::mt19937 random(1);
  Latencies latencies;
  for (int round = 0; round < rounds; ++round) {
    const auto before = std::chrono::microseconds(3000 + random() % 10000);
    RunOptions limited;
    limited.timeout = before;
    auto begin = Clock::now();
    absl::Status status = (*callable)->Run(feeds, limited).status();
    latencies.limit.push_back(MillisSince(begin + before));
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return absl::InternalError("not ended by its time limit: " + status.ToString());

    Cancellation cancellation;
    std::thread canceller([&] {
      std::this_thread::sleep_for(before);
      begin = Clock::now();
      cancellation.Cancel();
    });
    status = (*callable)->Run(feeds, {}, &cancellation).status();
    const auto end = Clock::now();
    canceller.join();
    latencies.cancel.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
    if (status.code() != absl::StatusCode::kCancelled) return absl::InternalError("not ended by cancellation: " + status.ToString());
  }
  for (std::vector<double>* times : {&latencies.cancel, &latencies.limit}) std::sort(times->begin(), times->end());
  return latencies;
}

int Main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 30;
  const std::string only = argc > 2 ? argv[2] : "";
  std::printf("%-14s %-24s %27s %27s\n", "loop", "run by", "cancel: least median worst", "limit: least median worst");
  double worst = 0;
  for (const testing::LoopKind& kind : testing::LoopKinds()) {
    if (kind.name.find(only) == std::string::npos) continue;
    for (const testing::LoopWay& way : testing::LoopWays()) {
      const absl::StatusOr<Latencies> times = Measure(kind, way, rounds);
      if (!times.ok()) {
        std::printf("%-14s %-24s %s\n", kind.name.c_str(), way.name.c_str(), times.status().ToString().c_str());
        return 1;
      }
      std::printf("%-14s %-24s", kind.name.c_str(), way.name.c_str());
      for (const std::vector<double>* t : {&times->cancel, &times->limit}) {
        std::printf("    %7.2f %7.2f %7.2f", t->front(), (*t)[t->size() / 2], t->back());
        worst = std::max(worst, t->back());
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  std::printf("worst %.2f ms, asked %.0f ms\n", worst, kAsked);
  return worst <= kAsked ? 0 : 2;
}

}  // namespace
}  // namespace thalweg

int main(int argc, char** argv) { return thalweg::Main(argc, argv); }
