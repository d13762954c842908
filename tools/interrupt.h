// Ctrl-C: the first cancels the running step, so that the program ends in order with exit code 130; the second ends it
// at once.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace thalweg {
class Cancellation;
}

namespace thalweg::tools {

// While it lives, SIGINT and SIGTERM are taken by a sleeping thread of its own. At most one at a time, made before any
// other thread so that all of them leave the signals alone.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // The step to cancel; null between steps. Cancels at once if the interrupt came before.
  void Watch(Cancellation* step);
  bool interrupted() const { return interrupted_; }

 private:
  void WaitForSignals();

  std::atomic<bool> interrupted_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  Cancellation* step_ = nullptr;
  std::thread thread_;
};

// Cancels what runs while it lives, once the user interrupts.
class ScopedWatch {
 public:
  ScopedWatch(InterruptGuard& interrupts, Cancellation* runs) : interrupts_(interrupts) { interrupts_.Watch(runs); }
  ~ScopedWatch() { interrupts_.Watch(nullptr); }
  ScopedWatch(const ScopedWatch&) = delete;
  ScopedWatch& operator=(const ScopedWatch&) = delete;

 private:
  InterruptGuard& interrupts_;
};

}  // namespace thalweg::tools
