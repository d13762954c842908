// An exact count of events on many threads that costs no atomic read-modify-write.
//
// Each of the first kSlots threads alive adds to a cell that only it writes; further threads share one cell and pay for
// an atomic addition. Threading: all methods are thread-safe; Value sees every event that happened before it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace thalweg {

class ThreadCounter {
 public:
  static constexpr int kSlots = 31;

  void Increment() {
    const int slot = SlotOfThisThread();
    std::atomic<int64_t>& cell = cells_[slot].count;
    if (slot < kSlots) {
      cell.store(cell.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      cell.fetch_add(1, std::memory_order_relaxed);
    }
  }

  int64_t Value() const {
    int64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Cell {
    std::atomic<int64_t> count{0};
  };

  // In [0, kSlots] and, below kSlots, of no other living thread.
  static int SlotOfThisThread();

  std::array<Cell, kSlots + 1> cells_;
};

}  // namespace thalweg
