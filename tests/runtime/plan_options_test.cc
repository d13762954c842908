// What can be left out of a plan: taking over the buffers of inputs, packing constant weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/callable.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

constexpr char kType[] = " attr { key: 'T' value { type: DT_FLOAT } }";

std::string NegText(const char* name, const char* input) {
  return absl::StrCat("node { name: '", name, "' op: 'Neg' input: '", input, "'", kType, " }\n");
}

// Four negations, one after the other, as they are and in a branch of a conditional.
std::string Chains() {
  return absl::StrCat("versions { producer: 1087 }\n"
                      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n",
                      NegText("a", "x"), NegText("b", "a"), NegText("c", "b"), NegText("y", "c"),
                      "node { name: 'yes' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }\n"
                      "node { name: 'sw' op: 'Switch' input: 'x' input: 'yes'", kType, " }\n",
                      NegText("d", "sw:1"), NegText("e", "d"), NegText("f", "e"), NegText("g", "f"),
                      "node { name: 'z' op: 'Merge' input: 'sw' input: 'g'", kType, " attr { key: 'N' value { i: 2 } } }\n");
}

constexpr int64_t kElements = 1 << 18;
constexpr int64_t kBytes = 4 * kElements;

// The most that a step held, which fetches `fetch` of a megabyte of ones.
int64_t PeakOf(const char* fetch, SessionOptions options) {
  options.optimize = false;
  auto session = Session::FromMemory(Chains(), options);
  EXPECT_TRUE(session.ok()) << session.status();
  Feeds feeds = {{"x", *Tensor::Of<float>(std::vector<float>(kElements, 1), Shape::Of({kElements}))}};
  if (std::string(fetch) == "z") feeds.emplace_back("yes", *Tensor::Scalar<bool>(true));
  auto result = (*session)->Run(feeds, {fetch});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return 0;
  const absl::Span<const float> values = (*result)[0].flat<float>();
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v == 1; }));
  EXPECT_EQ(feeds[0].second.flat<float>()[0], 1) << "what is fed is never written";
  return (*session)->peak_memory_bytes();
}

TEST(PlanOptions, ForwardingOfInputs) {
  for (const int threads : {1, 2}) {
    for (const bool general_frames : {false, true}) {
      for (const char* fetch : {"y", "z"}) {
        SessionOptions options;
        options.threads = threads;
        options.general_frames = general_frames;
        SCOPED_TRACE(absl::StrCat(threads, " threads, general frames ", general_frames, ", ", fetch));
        EXPECT_LT(PeakOf(fetch, options), 2 * kBytes) << "three of four negations in place";
        options.disabled_passes = {SessionOptions::kForwardInputs};
        EXPECT_GE(PeakOf(fetch, options), 2 * kBytes);
      }
    }
  }
}

// Bytes in use once a convolution with a constant filter of 64 x 64 x 3 x 3 has run, beyond those of the session's start.
int64_t KeptByConvolution(const std::vector<std::string>& disabled, std::vector<float>* values) {
  std::string filter(4 * 64 * 64 * 9, '\0');
  std::string escaped;
  for (size_t i = 0; i < filter.size(); i += 4) absl::StrAppend(&escaped, "\\000\\000\\", i % 12 == 0 ? "200\\077" : "000\\100");  // 1, 2, 2, 1 ...
  SessionOptions options;
  options.threads = 1;
  options.disabled_passes = disabled;
  auto session = Session::FromMemory(
      absl::StrCat("versions { producer: 1087 }\n"
                   "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { shape { "
                   "dim { size: 1 } dim { size: 8 } dim { size: 8 } dim { size: 64 } } } } }\n"
                   "node { name: 'w' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { "
                   "dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: 3 } dim { size: 64 } dim { size: 64 } } tensor_content: '",
                   escaped, "' } } } }\n",
                   "node { name: 'y' op: 'Conv2D' input: 'x' input: 'w'", kType,
                   " attr { key: 'strides' value { list { i: 1 i: 1 i: 1 i: 1 } } } attr { key: 'padding' value { s: 'SAME' } } }\n"),
      options);
  EXPECT_TRUE(session.ok()) << session.status();
  auto callable = (*session)->MakeCallable({"x"}, {"y"});
  EXPECT_TRUE(callable.ok()) << callable.status();
  auto result = (*callable)->Run({*Tensor::Of<float>(std::vector<float>(64 * 64, 1), Shape::Of({1, 8, 8, 64}))});
  EXPECT_TRUE(result.ok()) << result.status();
  const absl::Span<const float> flat = (*result)[0].flat<float>();
  values->assign(flat.begin(), flat.end());
  result->clear();
  return static_cast<CompiledCallable*>(callable->get())->BytesInUse();
}

TEST(PlanOptions, PackingOfConstants) {
  std::vector<float> packed, unpacked;
  const int64_t with = KeptByConvolution({}, &packed), without = KeptByConvolution({SessionOptions::kPackConstants}, &unpacked);
  EXPECT_GE(with - without, 4 * 64 * 64 * 9) << "the packed filter is kept";
  EXPECT_EQ(packed, unpacked);
}

}  // namespace
}  // namespace thalweg
