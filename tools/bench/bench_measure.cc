#include "thalweg/tools/bench/bench_measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

// --until-stable: medians of windows are compared; the longest that is waited for them.
constexpr int64_t kWindowNanos = 250'000'000;
constexpr int kWindows = 4;
constexpr int64_t kLongestNanos = 60'000'000'000;
// An interrupt cancels runs from this length on; shorter ones are not slowed by it, and it is seen between them.
constexpr int64_t kWorthCancellingNanos = 10'000'000;
// A sleeping caller looks for an interrupt this often, and wakes this long before its step is due: a sleep ends late by about
// half of that, which would be counted as waiting.
constexpr std::chrono::milliseconds kLongestSleep(100);
constexpr std::chrono::microseconds kEarly(120);

// Says whether there should be another run; shared by all callers of a row.
class StopRule {
 public:
  StopRule(const BenchRequest& request, double rate, const InterruptGuard& interrupts)
      : request_(request), rate_(rate), interrupts_(interrupts), window_end_(kWindowNanos) {}

  // Takes the next run and its number; false if measuring is over.
  bool Begin(int64_t* number) {
    if (over_ || interrupted()) return false;
    *number = started_.fetch_add(1);
    if (request_.runs > 0) return *number < request_.runs;
    return rate_ == 0 || request_.duration_nanos == 0 || DueNanos(*number) < request_.duration_nanos;
  }
  void End(int64_t latency, int64_t since_start) {
    if (request_.duration_nanos > 0 && since_start >= request_.duration_nanos) over_ = true;
    if (request_.stable_within > 0) AddToWindow(latency, since_start);
  }
  // When the run of this number is due, after the start; only with a rate.
  int64_t DueNanos(int64_t number) const { return static_cast<int64_t>(static_cast<double>(number) * 1e9 / rate_); }
  bool has_rate() const { return rate_ > 0; }
  bool stable() const { return stable_; }
  bool interrupted() const { return interrupts_.interrupted(); }

 private:
  void AddToWindow(int64_t latency, int64_t since_start) {
    std::lock_guard<std::mutex> lock(mutex_);
    window_.Add(latency);
    if (since_start < window_end_) return;
    medians_.push_back(window_.Percentile(0.5));
    window_ = LatencyHistogram();
    window_end_ = since_start + kWindowNanos;
    stable_ = medians_.size() >= kWindows && Spread() <= request_.stable_within;
    if (stable_ || since_start >= kLongestNanos) over_ = true;
  }
  // How far the last medians lie apart, as a share of the smallest.
  double Spread() const {
    const auto [low, high] = std::minmax_element(medians_.end() - kWindows, medians_.end());
    return static_cast<double>(*high - *low) / static_cast<double>(std::max<int64_t>(*low, 1));
  }

  const BenchRequest& request_;
  const double rate_;
  const InterruptGuard& interrupts_;
  std::atomic<int64_t> started_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  LatencyHistogram window_;
  std::vector<int64_t> medians_;
  int64_t window_end_;
  std::atomic<bool> stable_{false};
};

int64_t Nanos(Clock::duration time) { return std::chrono::nanoseconds(time).count(); }

// Returns at `due`, or earlier after an interrupt.
void WaitUntil(Clock::time_point due, const StopRule& rule) {
  for (Clock::time_point now = Clock::now(); now + kEarly < due && !rule.interrupted(); now = Clock::now()) {
    std::this_thread::sleep_until(std::min(due - kEarly, now + kLongestSleep));
  }
  while (Clock::now() < due && !rule.interrupted()) {
  }
}

// One run; long ones are cancelled by an interrupt.
absl::Status RunOnce(const PreparedStep& prepared, Cancellation& cancellation, std::vector<Tensor>* results) {
  const bool long_runs = prepared.first_run_nanos >= kWorthCancellingNanos;
  return prepared.callable->RunInto(prepared.feeds, results, RunOptions(), long_runs ? &cancellation : nullptr);
}

struct CallerResult {
  absl::Status status;
  LatencyHistogram latency, waiting, execution;
};

// One caller's loop.
absl::Status Call(const PreparedStep& prepared, Cancellation& cancellation, Clock::time_point start, StopRule& rule,
                  CallerResult* result) {
  std::vector<Tensor> results;
  int64_t number = 0;
  while (rule.Begin(&number)) {
    const Clock::time_point due = rule.has_rate() ? start + std::chrono::nanoseconds(rule.DueNanos(number)) : Clock::time_point();
    if (rule.has_rate()) WaitUntil(due, rule);
    const Clock::time_point before = Clock::now();
    const absl::Status status = RunOnce(prepared, cancellation, &results);
    if (absl::IsCancelled(status) && rule.interrupted()) return absl::OkStatus();
    THALWEG_RETURN_IF_ERROR(status);
    const Clock::time_point after = Clock::now();
    const int64_t latency = Nanos(after - (rule.has_rate() ? due : before));
    result->latency.Add(latency);
    if (rule.has_rate()) {
      result->waiting.Add(Nanos(before - due));
      result->execution.Add(Nanos(after - before));
    }
    rule.End(latency, Nanos(after - start));
  }
  return absl::OkStatus();
}

}  // namespace

double BenchRow::throughput() const {
  const double runs = static_cast<double>(latency.count());
  const double nanos = std::max(static_cast<double>(wall_nanos), rate > 0 ? runs * 1e9 / rate : 0);
  return nanos > 0 ? runs * 1e9 / nanos : 0;
}

std::string BenchRow::Name() const {
  return absl::StrCat(shapes, shapes.empty() ? "" : ", ", "threads ", threads, ", callers ", concurrency,
                      rate > 0 ? absl::StrCat(", rate ", rate) : "");
}

absl::Status MeasureRow(const BenchRequest& request, const PreparedStep& prepared, Cancellation& cancellation,
                        const InterruptGuard& interrupts, BenchRow* row) {
  std::vector<Tensor> results;
  for (int64_t i = 0; i < request.warmup && !interrupts.interrupted(); ++i)
    THALWEG_RETURN_IF_ERROR(RunOnce(prepared, cancellation, &results));
  StopRule rule(request, row->rate, interrupts);
  std::vector<CallerResult> callers(static_cast<size_t>(row->concurrency));
  std::vector<std::thread> threads;
  const Clock::time_point start = Clock::now();
  const auto call = [&](CallerResult& caller) { caller.status = Call(prepared, cancellation, start, rule, &caller); };
  for (size_t c = 1; c < callers.size(); ++c) threads.emplace_back([&, c] { call(callers[c]); });
  call(callers[0]);
  for (std::thread& thread : threads) thread.join();
  row->wall_nanos = Nanos(Clock::now() - start);
  row->stable = request.stable_within == 0 || rule.stable();
  for (const CallerResult& caller : callers) {
    THALWEG_RETURN_IF_ERROR(caller.status);
    row->latency.Add(caller.latency);
    row->waiting.Add(caller.waiting);
    row->execution.Add(caller.execution);
  }
  return absl::OkStatus();
}

}  // namespace thalweg::tools
