// Session: a graph, the devices it runs on, and its state (variables) across steps. The main entry of the library.
//
//   auto session = thalweg::Session::FromFile("model.pb");
//   auto result = (*session)->Run({{"x", tensor}}, {"prob"});
//
// Threading: every method may be called from several threads at the same time; concurrent Runs are independent steps that
// share variables only. Ownership: Close and the destructor wait for running steps.
// Errors: statuses name the node, op, device and shapes; after a failed call the session is as it was before it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/export.h"
#include "thalweg/runtime/trace.h"

namespace thalweg {

// What SessionOptions::check_numerics looks for. Infinities alone are often meant: a mask of -Inf, the start of a maximum.
enum class NumericsCheck : uint8_t { kOff, kNaN, kNaNAndInf };

struct SessionOptions {
  static constexpr int kMaxThreads = 1024;
  // Compute threads in all; the calling thread is one of them. 0: one per core, at most kMaxThreads.
  int threads = 0;
  // "CPU:0", "CPU:0,CPU:1,GPU:0=sim"; the first must be a CPU.
  std::string devices = "CPU:0";
  bool soft_placement = true;
  std::string policy = "default";
  // Pairs of a regular expression (whole node name) and a device.
  std::vector<std::pair<std::string, std::string>> pins;
  // A placement file to obey exactly; "" for none.
  std::string placement_file;
  // The most that the session's allocators may hold; 0: 80% of RAM or of the control group.
  int64_t memory_limit_bytes = 0;
  bool optimize = true;
  // Names of passes over the graph (docs/architecture.md), kForwardInputs and kPackConstants. Others mean nothing.
  std::vector<std::string> disabled_passes;
  // Kernels compute in the buffer of an input that they are the last to read.
  static constexpr char kForwardInputs[] = "forward_inputs";
  // Kernels bring constant weights into the order in which they read them, once, when a signature is compiled.
  static constexpr char kPackConstants[] = "pack_constants";
  // Overrides the attribute of every loop; 0: as written.
  int parallel_iterations = 0;
  // Fail a step with InvalidArgument at the first node with such values in a floating-point or complex output; constants and
  // feeds are looked at too. Without passes over the graph, so that the node is one of the file's. On several threads "first"
  // means that everything the node read was good. Costs a look at every output; nothing when off.
  NumericsCheck check_numerics = NumericsCheck::kOff;
  // Whether the passes over the graph are on.
  bool optimizes() const { return optimize && check_numerics == NumericsCheck::kOff; }
  // Run conditionals and loops by the executor for any number of threads even where the one for a single thread would do. The results
  // are the same; for tests.
  bool general_frames = false;
};

struct RunOptions {
  // 0: no limit. On expiry the step fails with DeadlineExceeded; the session stays usable.
  std::chrono::nanoseconds timeout{0};
  // Record every execution into this trace (overwritten); null: recording off.
  Trace* trace = nullptr;
  // Also record every buffer that comes and goes. Memory is the session's: steps that run at the same time are mixed in,
  // and only one step at a time can record it (others leave Trace::memory empty). Costs a lock per allocation.
  bool record_memory = false;
};

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// Cancels the Run it was passed to, from any thread, any number of times, also before that Run starts.
class THALWEG_EXPORT Cancellation {
 public:
  Cancellation();
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  void Cancel();

  struct State;
  State* state() const { return state_.get(); }

 private:
  std::shared_ptr<State> state_;
};

// A prepared signature: feeds, fetches and targets resolved and compiled once. Stays valid after Extend. Thread-safe.
class THALWEG_EXPORT Callable {
 public:
  virtual ~Callable() = default;
  // Feeds and results are positional. InvalidArgument for a wrong number, dtype or shape of feeds.
  virtual absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds, const RunOptions& options = {},
                                                  Cancellation* cancellation = nullptr) = 0;
  // The same into a vector that is reused between calls.
  virtual absl::Status RunInto(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options = {},
                               Cancellation* cancellation = nullptr) = 0;
  // What compiling it took and produced.
  struct Info {
    int64_t place_nanos = 0;    // pruning, optimizing, placing, partitioning
    int64_t compile_nanos = 0;  // kernels and plan
    int64_t nodes = 0;          // executed per step
    int64_t transfers = 0;
  };
  virtual Info info() const = 0;
};

struct TensorConnection {
  std::string from;  // "node:port"
  std::string to;
};

class THALWEG_EXPORT Session {
 public:
  // An empty session; Extend gives it a graph.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const SessionOptions& options = {});
  // Loads a graph file (.pb or .pbtxt, told apart by content).
  static absl::StatusOr<std::unique_ptr<Session>> FromFile(const std::string& path, const SessionOptions& options = {});
  // A serialized GraphDef (binary or text); the bytes are copied where needed.
  static absl::StatusOr<std::unique_ptr<Session>> FromMemory(absl::string_view graph, const SessionOptions& options = {});
  virtual ~Session() = default;

  // Adds the nodes of another GraphDef. On error nothing is added.
  virtual absl::Status ExtendFromFile(const std::string& path) = 0;
  virtual absl::Status ExtendFromMemory(absl::string_view graph) = 0;

  // Runs one step. Names are "node" or "node:port". Returns the fetched tensors in the order asked for.
  virtual absl::StatusOr<std::vector<Tensor>> Run(const Feeds& feeds, const std::vector<std::string>& fetches,
                                                  const std::vector<std::string>& targets = {}, const RunOptions& options = {},
                                                  Cancellation* cancellation = nullptr) = 0;
  // Tensors named in `connections` take others of the graph in place of their own value: whatever reads `to` reads `from`, and `to` itself is
  // not computed for it. InvalidArgument if their types differ, one is fed as well, or they make a cycle; NotFound for unknown ones.
  virtual absl::StatusOr<std::shared_ptr<Callable>> MakeCallable(const std::vector<std::string>& feeds,
                                                                 const std::vector<std::string>& fetches,
                                                                 const std::vector<std::string>& targets = {},
                                                                 const std::vector<TensorConnection>& connections = {}) = 0;

  // dtype and declared shape of a tensor of the graph, for checking inputs before feeding them.
  struct TensorInfo {
    DType dtype = DType::kInvalid;
    PartialShape shape;
  };
  virtual absl::StatusOr<TensorInfo> Describe(absl::string_view tensor) const = 0;

  // A table of every node's device and why, one line per (device, op, reason); and for one node the full record.
  virtual absl::StatusOr<std::string> PlacementSummary(const std::vector<std::string>& fetches = {}) = 0;

  // What every running step is doing, in lines of text: which kernel each thread runs, which nodes wait for what, frames and iterations,
  // devices, how long it has been running. From any thread, also while steps run; disturbs none of them. "" if no step runs.
  virtual std::string DescribeSteps() const = 0;

  // Peak bytes that the session's allocators held.
  virtual int64_t peak_memory_bytes() const = 0;
  // Cancels running steps, waits for them, frees the session's resources. Later calls fail with Cancelled. Idempotent.
  virtual absl::Status Close() = 0;
};

}  // namespace thalweg
