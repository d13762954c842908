#include "thalweg/devices/sim/sim_engine.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace thalweg {

// What the engine and its thread share; the thread keeps it alive until it ends.
class SimEngine::Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(std::string thread_name) : thread_name_(std::move(thread_name)) {}

  void Push(Item item) {
    std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(std::move(item));
    if (!thread_.joinable()) thread_ = std::thread([self = shared_from_this()] { self->Run(); });
    // Notified under the lock: after it is released, the item may run, end its step, and the device may be gone.
    changed_.notify_one();
  }

  bool OnEngineThread() {
    std::lock_guard<std::mutex> lock(mutex_);
    return thread_.get_id() == std::this_thread::get_id();
  }

  void FinishAndJoin() {
    std::thread thread;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      finishing_ = true;
      thread = std::move(thread_);
    }
    changed_.notify_one();
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
      RunItems();  // called by an item: the ones behind it still need what the owner is about to destroy
      thread.detach();
    } else {
      thread.join();
    }
  }

 private:
  void Run() {
    constexpr size_t kLongestThreadName = 15;
    pthread_setname_np(pthread_self(), thread_name_.substr(0, kLongestThreadName).c_str());
    RunItems();
  }

  // Runs items in order until there are none and finishing_ is set.
  void RunItems() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return finishing_ || !items_.empty(); });
      if (items_.empty()) return;
      {
        Item item = std::move(items_.front());
        items_.pop_front();
        lock.unlock();
        item();
      }  // what the item holds (tensors, the device) is let go without the lock
      lock.lock();
    }
  }

  const std::string thread_name_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::thread thread_;
  bool finishing_ = false;
};

SimEngine::SimEngine(std::string thread_name) : queue_(std::make_shared<Queue>(std::move(thread_name))) {}

SimEngine::~SimEngine() { queue_->FinishAndJoin(); }

void SimEngine::Submit(Item item) { queue_->Push(std::move(item)); }

absl::Status SimEngine::Synchronize() {
  if (queue_->OnEngineThread()) {
    return absl::FailedPreconditionError(
        "a device cannot wait for itself: Synchronize was called on its engine thread");
  }
  std::promise<void> reached;
  std::future<void> done = reached.get_future();
  Submit([reached = std::move(reached)]() mutable { reached.set_value(); });
  done.wait();
  return absl::OkStatus();
}

}  // namespace thalweg
