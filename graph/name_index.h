// The hash table behind Graph::Find: node ids by name, eight bytes per slot. Names stay in the nodes; the table keeps
// parts of their hashes, so that a look-up touches a node only when it most likely is the one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace thalweg {

class NameIndex {
 public:
  // The id stored under `name`, or -1. `name_of(id)` gives the name of a stored id.
  template <typename NameOf>
  int32_t Find(absl::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return kEmpty;
    const uint32_t hash = HashOf(name);
    for (size_t i = hash & mask();; i = (i + 1) & mask()) {
      const Slot& slot = slots_[i];
      if (slot.id == kEmpty) return kEmpty;
      if (slot.hash == hash && slot.id >= 0 && name_of(slot.id) == name) return slot.id;
    }
  }

  // Stores `id` under `name` unless the name is taken already.
  template <typename NameOf>
  void InsertIfNew(absl::string_view name, int32_t id, const NameOf& name_of) {
    if ((used_ + 1) * 4 > slots_.size() * 3) Rehash((live_ + 1) * 2);
    const uint32_t hash = HashOf(name);
    size_t i = hash & mask();
    for (; slots_[i].id != kEmpty; i = (i + 1) & mask()) {
      if (slots_[i].hash == hash && slots_[i].id >= 0 && name_of(slots_[i].id) == name) return;
    }
    slots_[i] = {hash, id};
    ++used_;
    ++live_;
  }

  // Forgets `id`, stored under `name`; does nothing if it is not.
  void Erase(absl::string_view name, int32_t id) {
    if (slots_.empty()) return;
    for (size_t i = HashOf(name) & mask(); slots_[i].id != kEmpty; i = (i + 1) & mask()) {
      if (slots_[i].id != id) continue;
      slots_[i].id = kErased;
      --live_;
      return;
    }
  }

  // Room for `count` ids in all.
  void Reserve(size_t count) {
    if (count * 4 > slots_.size() * 3) Rehash(count);
  }

 private:
  static constexpr int32_t kEmpty = -1;
  static constexpr int32_t kErased = -2;
  struct Slot {
    uint32_t hash = 0;
    int32_t id = kEmpty;
  };

  static uint32_t HashOf(absl::string_view name) {
    const size_t hash = absl::HashOf(name);
    return static_cast<uint32_t>(hash ^ (hash >> 32));
  }
  size_t mask() const { return slots_.size() - 1; }

  void Place(Slot slot) {
    size_t i = slot.hash & mask();
    while (slots_[i].id >= 0) i = (i + 1) & mask();
    slots_[i] = slot;
  }

  // At least 4/3 of `count` slots, a power of two; erased ones are dropped.
  void Rehash(size_t count) {
    size_t size = 16;
    while (size * 3 < count * 4) size *= 2;
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.id >= 0) Place(slot);
    }
    used_ = live_;
  }

  std::vector<Slot> slots_;  // size is a power of two, or zero
  size_t used_ = 0;          // slots that are not empty
  size_t live_ = 0;          // slots that hold an id
};

}  // namespace thalweg
