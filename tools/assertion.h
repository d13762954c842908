// Bounds on figures, as `bench --assert 'p50<2ms'` gives them.
//
// All functions are pure. Errors: InvalidArgument quotes the text and says what is there to assert.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace thalweg::tools {

enum class FigureUnit { kNanos, kBytes, kNumber, kShare };  // kShare: "5%" is 0.05

struct FigureName {
  const char* name;  // "p50"
  FigureUnit unit;
};

struct Assertion {
  std::string text;    // as given
  size_t figure = 0;   // index in the list of figures
  std::string relation;  // "<", "<=", ">", ">=" or "=="
  double bound = 0;    // nanoseconds, bytes, a plain number or a share

  bool HoldsFor(double value) const;
};

// "p50<2ms", "peak_rss <= 1GiB", "throughput>=1000": a figure, a relation, a bound in the figure's unit.
absl::StatusOr<Assertion> ParseAssertion(absl::string_view text, absl::Span<const FigureName> figures);

// The value as people read it: "1.2 ms", "3.4 MiB", "1234".
std::string FigureText(FigureUnit unit, double value);

}  // namespace thalweg::tools
