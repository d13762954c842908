#include "thalweg/tools/producer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

// Graph versions that releases wrote; the number grew with changes of ops, so those in between lie between two
// releases.
struct Anchor {
  int producer;
  const char* release;
};
constexpr Anchor kAnchors[] = {
    {21, "1.0"},    {24, "1.4"},    {26, "1.8"},    {27, "1.13"},   {38, "1.14"},   {134, "1.15"}, {440, "2.3"},
    {561, "2.4"},   {716, "2.5"},   {808, "2.6"},   {898, "2.7"},   {987, "2.8"},   {1087, "2.9"}, {1205, "2.10"},
    {1286, "2.11"}, {1395, "2.12"}, {1482, "2.13"}, {1645, "2.15"}, {2474, "2.21"},
};

}  // namespace

std::string ReleaseOfProducer(int producer) {
  if (producer <= 0) return "";
  const auto* const above = std::lower_bound(std::begin(kAnchors), std::end(kAnchors), producer,
                                             [](const Anchor& a, int p) { return a.producer < p; });
  if (above == std::end(kAnchors))
    return absl::StrCat("newer than TensorFlow ", kAnchors[std::size(kAnchors) - 1].release);
  if (above->producer == producer) return absl::StrCat("TensorFlow ", above->release);
  if (above == std::begin(kAnchors)) return absl::StrCat("before TensorFlow ", above->release);
  return absl::StrCat("TensorFlow ", (above - 1)->release, "-", above->release);
}

}  // namespace thalweg::tools
