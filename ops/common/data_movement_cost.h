// Cost functions of ops that touch only part of their inputs.
#pragma once

#include "thalweg/graph/cost.h"

namespace thalweg {

// Reads as many bytes as it writes: slices, gathers, transpositions, tilings.
inline NodeCost MovedBytesCost(const CostContext& c) {
  NodeCost cost;
  cost.bytes_read = cost.bytes_written = c.TotalOutputBytes();
  cost.known = c.AllShapesKnown();
  return cost;
}

// Only writes: fills, ranges.
inline NodeCost WrittenBytesCost(const CostContext& c) {
  NodeCost cost;
  cost.bytes_written = c.TotalOutputBytes();
  cost.known = c.AllShapesKnown();
  return cost;
}

}  // namespace thalweg
