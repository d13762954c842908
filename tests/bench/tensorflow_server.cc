// TensorFlow's Session, driven through its C API, for tests/bench/run.py: no Python time is in what it measures. Compiled by
// tests/bench/peers.py against the wheel of TensorFlow; no part of the project's build.
//
//   tensorflow_server CONFIG      CONFIG is a ConfigProto in hexadecimal digits
//
// Lines on standard input, as tests/bench/micro_server.cc takes them:
//   load NAME PATH FEED FETCH TARGET THREADS   ("-" for none; FEED is a scalar float; THREADS is in CONFIG)  -> "ok LOAD_NS"
//   run NAME COUNT                             COUNT steps                                     -> "ns N"
//   callers NAME CALLERS COUNT                 COUNT steps by each of CALLERS threads at once -> "ns WALL_NS PROCESSOR_NS"
#include <time.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/c/c_api.h"

namespace {

using Clock = std::chrono::steady_clock;

int64_t Since(Clock::time_point begin) { return std::chrono::nanoseconds(Clock::now() - begin).count(); }

int64_t ProcessorNanos() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// A status that throws what it holds.
class Status {
 public:
  Status() : status_(TF_NewStatus()) {}
  ~Status() { TF_DeleteStatus(status_); }
  TF_Status* get() { return status_; }
  void Check() {
    if (TF_GetCode(status_) != TF_OK) throw std::runtime_error(TF_Message(status_));
  }

 private:
  TF_Status* const status_;
};

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

// A graph with its session and one way of running it. Lives as long as the process.
class Workload {
 public:
  Workload(const std::string& path, const std::string& config, const std::string& feed, const std::string& fetch, const std::string& target) {
    Import(path);
    Status status;
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, config.data(), config.size(), status.get());
    status.Check();
    session_ = TF_NewSession(graph_, options, status.get());
    status.Check();
    TF_DeleteSessionOptions(options);
    if (feed != "-") feeds_.push_back(Output(feed));
    if (fetch != "-") fetches_.push_back(Output(fetch));
    if (target != "-") targets_.push_back(Operation(target));
    if (!feeds_.empty()) {
      value_ = TF_AllocateTensor(TF_FLOAT, nullptr, 0, sizeof(float));
      *static_cast<float*>(TF_TensorData(value_)) = 0;
    }
  }

  void Step() const {
    TF_Tensor* results[1] = {nullptr};
    Status status;
    TF_SessionRun(session_, nullptr, feeds_.data(), &value_, static_cast<int>(feeds_.size()), fetches_.data(), results,
                  static_cast<int>(fetches_.size()), targets_.data(), static_cast<int>(targets_.size()), nullptr, status.get());
    if (results[0] != nullptr) TF_DeleteTensor(results[0]);
    status.Check();
  }

 private:
  void Import(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    TF_Buffer* buffer = TF_NewBufferFromString(bytes.data(), bytes.size());
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    Status status;
    TF_GraphImportGraphDef(graph_, buffer, options, status.get());
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
    status.Check();
  }

  TF_Operation* Operation(const std::string& name) {
    TF_Operation* operation = TF_GraphOperationByName(graph_, name.c_str());
    if (operation == nullptr) throw std::runtime_error("no node " + name);
    return operation;
  }

  TF_Output Output(const std::string& tensor) {
    const size_t colon = tensor.rfind(':');
    return {Operation(tensor.substr(0, colon)), std::stoi(tensor.substr(colon + 1))};
  }

  TF_Graph* const graph_ = TF_NewGraph();
  TF_Session* session_ = nullptr;
  std::vector<TF_Output> feeds_, fetches_;
  std::vector<TF_Operation*> targets_;
  TF_Tensor* value_ = nullptr;
};

std::string Call(const Workload& workload, int callers, int64_t count) {
  std::vector<std::thread> threads;
  const int64_t processor = ProcessorNanos();
  const auto begin = Clock::now();
  for (int c = 0; c < callers; ++c) {
    threads.emplace_back([&workload, count] {
      for (int64_t i = 0; i < count; ++i) workload.Step();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return "ns " + std::to_string(Since(begin)) + " " + std::to_string(ProcessorNanos() - processor);
}

std::string Execute(const std::string& line, const std::string& config, std::map<std::string, Workload>* workloads) {
  std::istringstream in(line);
  std::string verb, name;
  in >> verb >> name;
  const auto begin = Clock::now();
  if (verb == "load") {
    std::string path, feed, fetch, target;
    in >> path >> feed >> fetch >> target;
    workloads->try_emplace(name, path, config, feed, fetch, target);
    return "ok " + std::to_string(Since(begin));
  }
  const Workload& workload = workloads->at(name);
  if (verb == "callers") {
    int callers = 0;
    int64_t count = 0;
    in >> callers >> count;
    return Call(workload, callers, count);
  }
  if (verb != "run") throw std::runtime_error("unknown command: " + line);
  int64_t count = 0;
  in >> count;
  for (int64_t i = 0; i < count; ++i) workload.Step();
  return "ns " + std::to_string(Since(begin));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string config = FromHex(argc > 1 ? argv[1] : "");
  std::map<std::string, Workload> workloads;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string answer;
    try {
      answer = Execute(line, config, &workloads);
    } catch (const std::exception& e) {
      answer = std::string("error ") + e.what();
    }
    std::cout << answer << std::endl;
  }
}
