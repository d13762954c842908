#include "thalweg/tools/interrupt.h"

#include <csignal>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <unistd.h>

#include <string>

#include "thalweg/runtime/session.h"
#include "thalweg/tools/exit_codes.h"

namespace thalweg::tools {
namespace {

// The signal that ends the waiting thread; its own, so that it cannot be mistaken for an interrupt.
const int kWake = SIGRTMIN;

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, kWake);
  return set;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread(&InterruptGuard::WaitForSignals, this);
}

InterruptGuard::~InterruptGuard() {
  stop_ = true;
  pthread_kill(thread_.native_handle(), kWake);
  thread_.join();
  const sigset_t set = WatchedSignals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void InterruptGuard::Watch(Cancellation* step, const Session* session) {
  std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
  session_ = session;
  if (step_ != nullptr && interrupted_) step_->Cancel();
}

void InterruptGuard::WaitForSignals() {
  const sigset_t set = WatchedSignals();
  for (int signal = 0; !stop_;) {
    if (sigwait(&set, &signal) != 0 || signal == kWake) continue;
    if (signal == SIGUSR1) {
      PrintSteps();
      continue;
    }
    if (interrupted_.exchange(true)) _exit(kExitInterrupted);
    std::lock_guard<std::mutex> lock(mutex_);
    if (step_ != nullptr) step_->Cancel();
  }
}

void InterruptGuard::PrintSteps() {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::string steps = session_ == nullptr ? "" : session_->DescribeSteps();
  std::fputs(steps.empty() ? "no step is running\n" : steps.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace thalweg::tools
