// Graphs that multiply text are stopped by the memory limit, whichever op does it.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

constexpr char kConst[] = R"(
node { name: "$0" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { $1 } int_val: $2 } } } })";

std::string IntConst(const std::string& name, const std::string& dims, int value) {
  std::string text = kConst;
  text.replace(text.find("$0"), 2, name);
  text.replace(text.find("$1"), 2, dims);
  text.replace(text.find("$2"), 2, absl::StrCat(value));
  return text;
}

// The status of fetching "y" with a text of `characters` fed to the vector "x", under a limit of 8 MiB.
absl::Status RunLimited(const std::string& nodes, size_t characters) {
  SessionOptions options;
  options.memory_limit_bytes = 8 << 20;
  const std::string x = R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } })";
  auto session = Session::FromMemory(absl::StrCat("versions { producer: 1087 }", x, nodes), options);
  if (!session.ok()) return session.status();
  return (*session)->Run({{"x", *Tensor::Of<std::string>({std::string(characters, 'a')}, Shape::Of({1}))}}, {"y"}).status();
}

std::string Doubled(int times) {
  std::string text, last = "x";
  for (int i = 1; i <= times; ++i) {
    const std::string name = i == times ? "y" : absl::StrCat("d", i);
    absl::StrAppend(&text, "node { name: '", name, "' op: 'StringJoin' input: '", last, "' input: '", last,
                    "' attr { key: 'N' value { i: 2 } } }");
    last = name;
  }
  return text;
}

TEST(TextAccounting, RepeatedJoiningEndsAtTheLimit) {  // robustness: a billion laughs in text
  EXPECT_EQ(RunLimited(Doubled(45), 10).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RunLimited(Doubled(10), 10).ok());
}

TEST(TextAccounting, RepeatedElementsEndAtTheLimit) {
  const std::string tile = absl::StrCat(IntConst("n", "dim { size: 1 }", 1000),
                                        "node { name: 'y' op: 'Tile' input: 'x' input: 'n' attr { key: 'T' value { type: DT_STRING } } }");
  EXPECT_EQ(RunLimited(tile, 100000).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RunLimited(tile, 1000).ok());
  const std::string fill = absl::StrCat(
      IntConst("n", "dim { size: 1 }", 1000), IntConst("none", "dim { size: 0 }", 0),
      "node { name: 's' op: 'Reshape' input: 'x' input: 'none' attr { key: 'T' value { type: DT_STRING } } }",
      "node { name: 'y' op: 'Fill' input: 'n' input: 's' attr { key: 'T' value { type: DT_STRING } } }");
  EXPECT_EQ(RunLimited(fill, 100000).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RunLimited(fill, 1000).ok());
}

TEST(TextAccounting, WhatAStepKeptIsGivenBack) {
  const std::string join = Doubled(1);
  SessionOptions options;
  options.memory_limit_bytes = 8 << 20;
  const std::string x = R"(node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } })";
  auto session = Session::FromMemory(absl::StrCat("versions { producer: 1087 }", x, join), options);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 10; ++i) {  // 3 MiB each
    const Tensor text = *Tensor::Of<std::string>({std::string((3 << 20) / 2, 'a')}, Shape::Of({1}));
    EXPECT_TRUE((*session)->Run({{"x", text}}, {"y"}).ok()) << i;
  }
}

}  // namespace
}  // namespace thalweg
