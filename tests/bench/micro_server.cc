// The thalweg side of tests/bench/run.py and tests/bench/limits.py: one process per thread count, driven by lines on standard
// input, so that the peers' runs can be interleaved with ours.
//
//   ready                                      nothing                                         -> "ok"
//   open PATH                                  loads a graph and keeps it                      -> "ok LOAD_NS"
//   load NAME PATH FEED FETCH TARGET THREADS [DEVICES [general]]   ("-" for none; FEED is a scalar float tensor; general: loops by
//                                              the executor for many threads)                  -> "ok LOAD_NS PLACE_NS COMPILE_NS"
//   run NAME COUNT                             COUNT steps                                     -> "ns N" (total nanoseconds)
//   trace NAME                                 one traced step        -> "trace EVENTS NODES BUSY_PLUS_GAP_NS WALL_NS"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

using Clock = std::chrono::steady_clock;

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

absl::StatusOr<std::string> Load(std::istream& in, std::map<std::string, Workload>* workloads) {
  std::string name, path, feed, fetch, target;
  SessionOptions options;
  in >> name >> path >> feed >> fetch >> target >> options.threads;
  options.optimize = false;
  std::string devices, frames;
  if (in >> devices) options.devices = devices;
  options.general_frames = static_cast<bool>(in >> frames);
  Workload w;
  const auto begin = Clock::now();
  auto session = Session::FromFile(path, options);
  if (!session.ok()) return session.status();
  const int64_t load_ns = Since(begin);
  auto callable = (*session)->MakeCallable(OneOrNone(feed), OneOrNone(fetch), OneOrNone(target));
  if (!callable.ok()) return callable.status();
  w.session = *std::move(session);
  w.callable = *std::move(callable);
  if (feed != "-") {
    auto value = Tensor::Scalar<float>(0.0f);
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

absl::StatusOr<std::string> TraceOnce(std::istream& in, std::map<std::string, Workload>& workloads) {
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
  const auto begin = Clock::now();
  absl::Status status = w.callable->RunInto(w.feeds, &w.results, options);
  const int64_t wall = Since(begin);
  if (!status.ok()) return status;
  const TraceDeviceTotals totals = trace.DeviceTotals()[0];
  return "trace " + std::to_string(trace.events.size()) + " " + std::to_string(w.callable->info().nodes) + " " +
         std::to_string(totals.busy_nanos + totals.gap_nanos) + " " + std::to_string(wall);
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
  if (verb == "trace") return TraceOnce(in, *workloads);
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
