// NodeLists: a list of node numbers per node, all in two arrays, so that a graph of millions of nodes costs a few bytes
// each. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace thalweg {

class NodeLists {
 public:
  void Reserve(size_t lists) { ends_.reserve(lists); }
  // The list of the next node.
  void Append(absl::Span<const int32_t> list) {
    items_.insert(items_.end(), list.begin(), list.end());
    ends_.push_back(items_.size());
  }

  size_t size() const { return ends_.size(); }
  size_t num_items() const { return items_.size(); }
  absl::Span<const int32_t> operator[](size_t node) const {
    const size_t begin = node == 0 ? 0 : ends_[node - 1];
    return absl::MakeConstSpan(items_.data() + begin, ends_[node] - begin);
  }

  // The lists in another order: `order[i]` is the node that comes i-th, `position` its inverse, which entries are
  // mapped by.
  NodeLists Permuted(absl::Span<const int32_t> order, absl::Span<const int32_t> position) const {
    NodeLists out;
    out.Reserve(size());
    out.items_.reserve(items_.size());
    for (const int32_t node : order) {
      for (const int32_t item : (*this)[node]) out.items_.push_back(position[item]);
      out.ends_.push_back(out.items_.size());
    }
    return out;
  }

  // For every node the nodes in whose lists it stands, in ascending order. Entries must be numbers of lists.
  NodeLists Reversed() const {
    NodeLists out;
    out.items_.resize(items_.size());
    std::vector<size_t> next(size() + 1, 0);
    for (const int32_t item : items_) ++next[item + 1];
    for (size_t node = 0; node < size(); ++node) next[node + 1] += next[node];
    out.ends_.assign(next.begin() + 1, next.end());
    for (size_t node = 0; node < size(); ++node) {
      for (const int32_t item : (*this)[node]) out.items_[next[item]++] = static_cast<int32_t>(node);
    }
    return out;
  }

 private:
  std::vector<int32_t> items_;
  std::vector<size_t> ends_;
};

}  // namespace thalweg
