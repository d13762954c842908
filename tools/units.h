// Reading quantities as people write them on a command line. All functions are pure.
// Errors: InvalidArgument quotes the text and shows a form that works.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/proto/shape.h"

namespace thalweg::tools {

// "5s", "250ms", "1.5m", "30us", "100ns"; a bare number means seconds. Not negative; at most about 290 years.
absl::StatusOr<int64_t> ParseNanos(absl::string_view text);
// "2GiB", "512MiB", "1.5G", "4096"; K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024, KB, MB, GB, TB of 1000.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// An integer within [low, high].
absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t low, int64_t high);
// "2%" or "0.02" as 0.02; in (0, 1].
absl::StatusOr<double> ParseFraction(absl::string_view text);
// "1,2,8" or "1:8" or "1:8:2" (first, last, step), at most 64 numbers in [low, high].
absl::StatusOr<std::vector<int64_t>> ParseIntegerList(absl::string_view text, int64_t low, int64_t high);
// "50,99.9": at most 64 numbers above 0, up to `high`.
absl::StatusOr<std::vector<double>> ParseNumberList(absl::string_view text, double high);
// "8x224x224x3"; "" or "scalar" is a scalar. A partial shape may have "?" as a dimension.
absl::StatusOr<Shape> ParseShape(absl::string_view text);
absl::StatusOr<PartialShape> ParsePartialShape(absl::string_view text);
// A finite or infinite number in full; false if anything is left over.
bool ParseDouble(absl::string_view text, double* out);

}  // namespace thalweg::tools
