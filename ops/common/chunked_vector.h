// A vector whose elements cost memory only once they are touched, in chunks: its size may come from hostile data.
//
// Threading: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thalweg {

template <typename T>
class ChunkedVector {
 public:
  // Null if the element was never touched. Requires index >= 0.
  const T* Find(int64_t index) const {
    const size_t chunk = static_cast<size_t>(index / kChunk);
    const size_t within = static_cast<size_t>(index % kChunk);
    if (chunk >= chunks_.size() || within >= chunks_[chunk].size()) return nullptr;
    return &chunks_[chunk][within];
  }

  // The element, default-constructed if it is new. Requires index in [0, 2^31), of which the last costs 50 MB.
  T& Touch(int64_t index) {
    const size_t chunk = static_cast<size_t>(index / kChunk);
    const size_t within = static_cast<size_t>(index % kChunk);
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    std::vector<T>& elements = chunks_[chunk];
    if (within >= elements.size()) elements.resize(within + 1);
    return elements[within];
  }

  // Forgets the elements from `size` on.
  void Truncate(int64_t size) {
    const size_t chunk = static_cast<size_t>(size / kChunk);
    const size_t within = static_cast<size_t>(size % kChunk);
    if (chunk >= chunks_.size()) return;
    if (chunks_[chunk].size() > within) chunks_[chunk].resize(within);
    chunks_.resize(chunk + 1);
  }

  // Calls fn(index, element) for all touched elements in order, and maybe for some that were not.
  template <typename Fn>
  void ForEach(Fn fn) const {
    for (size_t c = 0; c < chunks_.size(); ++c) {
      for (size_t i = 0; i < chunks_[c].size(); ++i) fn(static_cast<int64_t>(c) * kChunk + static_cast<int64_t>(i), chunks_[c][i]);
    }
  }

  void swap(ChunkedVector& other) { chunks_.swap(other.chunks_); }

 private:
  static constexpr int64_t kChunk = 1024;
  std::vector<std::vector<T>> chunks_;
};

}  // namespace thalweg
