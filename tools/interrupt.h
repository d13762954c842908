// Signals. Ctrl-C: the first cancels the running step, so that the program ends in order with exit code 130; the second ends it
// at once. SIGUSR1 prints to stderr what the running steps are doing, and leaves them alone.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace thalweg {
class Cancellation;
class Session;
}

namespace thalweg::tools {

// While it lives, SIGINT, SIGTERM and SIGUSR1 are taken by a sleeping thread of its own. At most one at a time, made before any
// other thread so that all of them leave the signals alone.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // The step to cancel, and the session whose steps SIGUSR1 describes; null between steps. Cancels at once if the interrupt came before.
  void Watch(Cancellation* step, const Session* session);
  bool interrupted() const { return interrupted_; }

 private:
  void WaitForSignals();
  void PrintSteps();

  std::atomic<bool> interrupted_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  Cancellation* step_ = nullptr;      // guarded by mutex_
  const Session* session_ = nullptr;  // guarded by mutex_
  std::thread thread_;
};

// Cancels what runs while it lives, once the user interrupts, and describes it when asked.
class ScopedWatch {
 public:
  ScopedWatch(InterruptGuard& interrupts, Cancellation* runs, const Session* session) : interrupts_(interrupts) {
    interrupts_.Watch(runs, session);
  }
  ~ScopedWatch() { interrupts_.Watch(nullptr, nullptr); }
  ScopedWatch(const ScopedWatch&) = delete;
  ScopedWatch& operator=(const ScopedWatch&) = delete;

 private:
  InterruptGuard& interrupts_;
};

}  // namespace thalweg::tools
