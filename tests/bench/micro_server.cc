// The thalweg side of tests/bench/run.py and tests/bench/limits.py: one process per thread count, driven by lines on standard
// input, so that the peers' runs can be interleaved with ours.
//
//   ready                                      nothing                                         -> "ok"
//   open PATH                                  loads a graph and keeps it                      -> "ok LOAD_NS"
//   load NAME PATH FEED FETCH TARGET THREADS [DEVICES [general]]   ("-" for none; FEED is a float tensor, a scalar 0 or, as in
//                                              x:0=1x8, of that shape; general: loops by the executor for many threads)
//                                                                                             -> "ok LOAD_NS PLACE_NS COMPILE_NS"
//   run NAME COUNT                             COUNT steps                                     -> "ns N" (total nanoseconds)
//   callers NAME CALLERS COUNT                 COUNT steps by each of CALLERS threads at once -> "ns WALL_NS PROCESSOR_NS"
//   trace NAME                                 traced steps           -> "trace EVENTS NODES BUSY_PLUS_GAP_NS WALL_NS"
//   overhead NAME COUNT                        COUNT plain and COUNT recorded steps in turn; the least and the median processor time
//                                              of this thread, so on one thread only
//                                              -> "overhead PLAIN_MIN RECORDED_MIN PLAIN_MEDIAN RECORDED_MEDIAN"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kLeastTracedNanos = 100'000;

int64_t Since(Clock::time_point begin) { return std::chrono::nanoseconds(Clock::now() - begin).count(); }

struct Workload {
  std::unique_ptr<Session> session;
  std::shared_ptr<Callable> callable;
  std::vector<Tensor> feeds;
  std::vector<Tensor> results;
};

std::vector<std::string> OneOrNone(const std::string& name) {
  return name == "-" ? std::vector<std::string>() : std::vector<std::string>{name};
}

// A scalar 0, or of "x:0=2x3" six floats of a half.
absl::StatusOr<Tensor> FeedOf(const std::string& feed) {
  const size_t equals = feed.find('=');
  if (equals == std::string::npos) return Tensor::Scalar<float>(0.0f);
  std::vector<int64_t> dims;
  std::istringstream text(feed.substr(equals + 1));
  for (std::string dim; std::getline(text, dim, 'x');) dims.push_back(std::stoll(dim));
  auto shape = Shape::Make(dims);
  if (!shape.ok()) return shape.status();
  auto tensor = Tensor::Allocate(DType::kFloat32, *std::move(shape));
  if (tensor.ok()) std::fill_n(static_cast<float*>(tensor->mutable_raw()), tensor->num_elements(), 0.5f);
  return tensor;
}

absl::StatusOr<std::string> Load(std::istream& in, std::map<std::string, Workload>* workloads) {
  std::string name, path, feed, fetch, target;
  SessionOptions options;
  in >> name >> path >> feed >> fetch >> target >> options.threads;
  const std::string feed_name = feed.substr(0, feed.find('='));
  // Graphs that take something with a shape are models, which run as users run them.
  options.optimize = feed_name != feed;
  std::string devices, frames;
  if (in >> devices) options.devices = devices;
  options.general_frames = static_cast<bool>(in >> frames);
  Workload w;
  const auto begin = Clock::now();
  auto session = Session::FromFile(path, options);
  if (!session.ok()) return session.status();
  const int64_t load_ns = Since(begin);
  auto callable = (*session)->MakeCallable(OneOrNone(feed_name), OneOrNone(fetch), OneOrNone(target));
  if (!callable.ok()) return callable.status();
  w.session = *std::move(session);
  w.callable = *std::move(callable);
  if (feed != "-") {
    auto value = FeedOf(feed);
    if (!value.ok()) return value.status();
    w.feeds.push_back(*std::move(value));
  }
  const Callable::Info info = w.callable->info();
  (*workloads)[name] = std::move(w);
  return "ok " + std::to_string(load_ns) + " " + std::to_string(info.place_nanos) + " " + std::to_string(info.compile_nanos);
}

absl::StatusOr<std::string> Run(std::istream& in, std::map<std::string, Workload>& workloads) {
  std::string name;
  int64_t count = 0;
  in >> name >> count;
  Workload& w = workloads.at(name);
  const auto begin = Clock::now();
  for (int64_t i = 0; i < count; ++i) {
    absl::Status status = w.callable->RunInto(w.feeds, &w.results);
    if (!status.ok()) return status;
  }
  return "ns " + std::to_string(Since(begin));
}

// One traced step, or as many as fill kLeastTracedNanos: the clock may tick every 10 ns only, which is a twentieth of an empty step
// and nothing of their sum. Times are sums, events those of the last.
absl::StatusOr<std::string> TraceSteps(std::istream& in, std::map<std::string, Workload>& workloads) {
  std::string name;
  in >> name;
  Workload& w = workloads.at(name);
  Trace trace;
  RunOptions options;
  options.trace = &trace;
  for (int warm = 0; warm < 3; ++warm) {
    absl::Status status = w.callable->RunInto(w.feeds, &w.results, options);
    if (!status.ok()) return status;
  }
  int64_t accounted = 0, wall = 0;
  while (wall < kLeastTracedNanos) {
    const auto begin = Clock::now();
    absl::Status status = w.callable->RunInto(w.feeds, &w.results, options);
    wall += Since(begin);
    if (!status.ok()) return status;
    const TraceDeviceTotals totals = trace.DeviceTotals()[0];
    accounted += totals.busy_nanos + totals.gap_nanos;
  }
  return "trace " + std::to_string(trace.events.size()) + " " + std::to_string(w.callable->info().nodes) + " " + std::to_string(accounted) +
         " " + std::to_string(wall);
}

// The processor time of CLOCK_PROCESS_CPUTIME_ID, all threads, or of CLOCK_THREAD_CPUTIME_ID, this one.
int64_t ProcessorNanos(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

absl::StatusOr<std::string> RunCallers(std::istream& in, std::map<std::string, Workload>& workloads) {
  std::string name;
  size_t callers = 0;
  int64_t count = 0;
  in >> name >> callers >> count;
  Workload& w = workloads.at(name);
  std::vector<absl::Status> statuses(callers);
  std::vector<std::thread> threads;
  const int64_t processor = ProcessorNanos(CLOCK_PROCESS_CPUTIME_ID);
  const auto begin = Clock::now();
  for (size_t c = 0; c < callers; ++c) {
    threads.emplace_back([&w, &status = statuses[c], count] {
      std::vector<Tensor> results;
      for (int64_t i = 0; i < count && status.ok(); ++i) status = w.callable->RunInto(w.feeds, &results);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const int64_t wall = Since(begin);
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return "ns " + std::to_string(wall) + " " + std::to_string(ProcessorNanos(CLOCK_PROCESS_CPUTIME_ID) - processor);
}

absl::StatusOr<std::string> Overhead(std::istream& in, std::map<std::string, Workload>& workloads) {
  std::string name;
  size_t count = 0;
  in >> name >> count;
  Workload& w = workloads.at(name);
  Trace trace;
  RunOptions recorded;
  recorded.trace = &trace;
  std::vector<int64_t> nanos[2];
  for (size_t i = 0; i < count + 2; ++i) {
    for (const bool record : {false, true}) {
      const int64_t begin = ProcessorNanos(CLOCK_THREAD_CPUTIME_ID);
      absl::Status status = w.callable->RunInto(w.feeds, &w.results, record ? recorded : RunOptions());
      const int64_t took = ProcessorNanos(CLOCK_THREAD_CPUTIME_ID) - begin;
      if (!status.ok()) return status;
      if (i >= 2) nanos[record].push_back(took);  // the first ones find everything cold
    }
  }
  for (std::vector<int64_t>& times : nanos) std::sort(times.begin(), times.end());
  std::string answer = "overhead";
  for (const size_t at : {size_t{0}, count / 2}) {
    for (const std::vector<int64_t>& times : nanos) answer += " " + std::to_string(times[at]);
  }
  return answer;
}

absl::StatusOr<std::string> Open(std::istream& in, std::map<std::string, Workload>* workloads) {
  std::string path;
  in >> path;
  const auto begin = Clock::now();
  auto session = Session::FromFile(path, SessionOptions());
  if (!session.ok()) return session.status();
  (*workloads)[path].session = *std::move(session);
  return "ok " + std::to_string(Since(begin));
}

absl::StatusOr<std::string> Execute(const std::string& line, std::map<std::string, Workload>* workloads) {
  std::istringstream in(line);
  std::string verb;
  in >> verb;
  if (verb == "ready") return "ok";
  if (verb == "open") return Open(in, workloads);
  if (verb == "load") return Load(in, workloads);
  if (verb == "run") return Run(in, *workloads);
  if (verb == "callers") return RunCallers(in, *workloads);
  if (verb == "trace") return TraceSteps(in, *workloads);
  if (verb == "overhead") return Overhead(in, *workloads);
  return absl::InvalidArgumentError("unknown command: " + line);
}

int Serve() {
  std::map<std::string, Workload> workloads;
  std::string line;
  while (std::getline(std::cin, line)) {
    absl::StatusOr<std::string> answer = Execute(line, &workloads);
    std::cout << (answer.ok() ? *answer : "error " + answer.status().ToString()) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace thalweg

int main() { return thalweg::Serve(); }
