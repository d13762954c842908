// Graphs with loops of every kind, and the ways of running them: for tests of how steps end, and for measuring how soon they do.
//
// All of them are fed `x` (float32, [n,n]), `limit` (int32: so many iterations) and `fail_at` (int32: the iteration that fails, -1: none),
// and give `out`, of the type and shape of x.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace thalweg::testing {

struct LoopKind {
  std::string name;
  std::string graph;    // GraphDef text
  bool waits = false;   // each iteration takes an element of a queue; the target `put` adds one
  bool ends = true;     // false: `limit` and `fail_at` are not looked at, the step goes on or waits for ever
};
std::vector<LoopKind> LoopKinds();
inline void PrintTo(const LoopKind& kind, std::ostream* out) { *out << kind.name; }

// The same fields as in SessionOptions.
struct LoopWay {
  std::string name;
  int threads = 1;
  bool general_frames = false;
  std::string devices = "CPU:0";
  std::string policy = "default";
};
std::vector<LoopWay> LoopWays();
inline void PrintTo(const LoopWay& way, std::ostream* out) { *out << way.name; }

}  // namespace thalweg::testing
