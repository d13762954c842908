#include "thalweg/devices/thread_counter.h"

#include <bit>

namespace thalweg {
namespace {

constexpr int kUnassigned = -1;

// Slots in use, one bit each. Acquire and release hand a slot's cells from one thread to the next.
constinit std::atomic<uint32_t> used_slots{0};

__attribute__((tls_model("initial-exec"))) thread_local constinit int slot_of_thread = kUnassigned;

int TakeSlot() {
  constexpr uint32_t kAllUsed = (uint32_t{1} << ThreadCounter::kSlots) - 1;
  uint32_t used = used_slots.load(std::memory_order_relaxed);
  while (used != kAllUsed) {
    const int slot = std::countr_one(used);
    if (used_slots.compare_exchange_weak(used, used | uint32_t{1} << slot, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
      return slot;
    }
  }
  return ThreadCounter::kSlots;
}

// Frees the slot when its thread ends; what that thread counts afterwards goes to the shared cell.
struct SlotHolder {
  SlotHolder() { slot_of_thread = TakeSlot(); }
  ~SlotHolder() {
    const int slot = slot_of_thread;
    slot_of_thread = ThreadCounter::kSlots;
    if (slot < ThreadCounter::kSlots) used_slots.fetch_and(~(uint32_t{1} << slot), std::memory_order_release);
  }
};

__attribute__((noinline)) int AssignSlot() {
  thread_local SlotHolder holder;
  return slot_of_thread;
}

}  // namespace

int ThreadCounter::SlotOfThisThread() { return slot_of_thread != kUnassigned ? slot_of_thread : AssignSlot(); }

}  // namespace thalweg
