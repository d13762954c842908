// Reference variables in sessions: how values are read, replaced and updated through references.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

// A variable of two floats, ops that change it in every way, and one that reads it after a change.
constexpr char kGraph[] = R"(
versions { producer: 1087 }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "assign" op: "Assign" input: "v" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "force" op: "Assign" input: "v" input: "x" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "validate_shape" value { b: false } } }
node { name: "add" op: "AssignAdd" input: "v" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "read" op: "Identity" input: "v" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "after" op: "Neg" input: "v" input: "^add" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "late" op: "Neg" input: "read" input: "^add" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "ready" op: "IsVariableInitialized" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } } } }
node { name: "scatter" op: "ScatterAdd" input: "v" input: "zero" input: "x" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tindices" value { type: DT_INT32 } } }
)";

using V = std::vector<float>;

class ReferenceVariables : public ::testing::Test {
 protected:
  ReferenceVariables() {
    absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kGraph, SessionOptions());
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }
  absl::StatusOr<V> Run(const char* fetch, V x = {0, 0}) {
    const int64_t n = static_cast<int64_t>(x.size());
    const Tensor fed = n == 1 ? *Tensor::Scalar<float>(x[0]) : *Tensor::Of<float>(std::move(x), Shape::Of({n}));
    absl::StatusOr<std::vector<Tensor>> out = session_->Run({{"x", fed}}, {fetch});
    if (!out.ok()) return out.status();
    return V((*out)[0].flat<float>().begin(), (*out)[0].flat<float>().end());
  }
  absl::StatusCode CodeOf(const char* fetch, V x = {0, 0}) { return Run(fetch, std::move(x)).status().code(); }

  std::unique_ptr<Session> session_;
};

TEST_F(ReferenceVariables, A71UninitialisedReadsAreFailedPrecondition) {
  for (const char* fetch : {"v", "read", "add", "after", "scatter"}) {
    EXPECT_EQ(CodeOf(fetch), absl::StatusCode::kFailedPrecondition) << fetch;
  }
  const absl::StatusOr<std::vector<Tensor>> ready = session_->Run({}, {"ready"});
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_FALSE((*ready)[0].flat<bool>()[0]);
}

TEST(ReferenceVariablesWithoutValue, A71TheMessageNamesTheVariable) {
  constexpr char kVariable[] = R"( op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { dim { size: 2 } } } } }
)";
  constexpr char kFloat[] = R"( attr { key: "T" value { type: DT_FLOAT } } )";
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(
      absl::StrCat("node { name: 'v'", kVariable, "node { name: 'w'", kVariable, "node { name: 'reader' op: 'Neg' input: 'v'", kFloat, "}\n",
                   "node { name: 'assign' op: 'Assign' input: 'w' input: 'v'", kFloat, "}\n",
                   "node { name: 'unchecked' op: 'Assign' input: 'w' input: 'v'", kFloat, "attr { key: 'validate_shape' value { b: false } } }\n"), {});
  ASSERT_TRUE(session.ok()) << session.status();
  for (const auto& [fetch, words] : {std::pair{"v", "'v"}, {"reader", "'v:0'"}, {"assign", "assigned to 'w'"}, {"unchecked", "assigned to 'w'"}}) {
    const absl::Status status = (*session)->Run({}, {fetch}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find(words), std::string::npos) << status;
  }
}

// The value is sent to another device; the message names the node that wants it, not only the transfer.
TEST(ReferenceVariablesAcrossDevices, A71TheMessageNamesTheReader) {
  SessionOptions options;
  options.devices = "CPU:0,CPU:1";
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(R"(
node { name: "v" op: "VariableV2" device: "/device:CPU:0" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "reader" op: "Neg" input: "v" device: "/device:CPU:1" attr { key: "T" value { type: DT_FLOAT } } }
)", options);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = (*session)->Run({}, {"reader"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("'v:0' to node 'reader' (Neg)"), std::string::npos) << status;
}

TEST_F(ReferenceVariables, ValuesLastFromStepToStep) {
  EXPECT_EQ(*Run("assign", {1, 2}), V({1, 2}));
  EXPECT_EQ(*Run("read"), V({1, 2}));
  EXPECT_EQ(*Run("add", {10, 10}), V({11, 12}));
  EXPECT_EQ(*Run("scatter", {5}), V({16, 12}));
  EXPECT_EQ(*Run("v"), V({16, 12}));
}

TEST_F(ReferenceVariables, A70ValuesAreReadWhenTheirReaderStarts) {
  ASSERT_TRUE(Run("assign", {1, 2}).ok());
  EXPECT_EQ(*Run("after", {10, 10}), V({-11, -12}));
}

// Moving averages in graphs of TensorFlow 1 count on this.
TEST_F(ReferenceVariables, H19AnIdentityShowsLaterUpdates) {
  ASSERT_TRUE(Run("assign", {1, 2}).ok());
  EXPECT_EQ(*Run("late", {10, 10}), V({-11, -12}));
}

TEST_F(ReferenceVariables, AssignChecksTheShapeUnlessToldNotTo) {
  EXPECT_EQ(CodeOf("assign", {1, 2, 3}), absl::StatusCode::kInvalidArgument) << "the declared shape counts at first";
  EXPECT_EQ(*Run("force", {1, 2, 3}), V({1, 2, 3}));
  EXPECT_EQ(CodeOf("assign", {1, 2}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf("add", {1, 2}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*Run("v"), V({1, 2, 3}));
}

TEST_F(ReferenceVariables, A69APlainValueIsNoReference) {
  const absl::StatusOr<std::vector<Tensor>> out =
      session_->Run({{"v", *Tensor::Of<float>({7, 8}, Shape::Of({2}))}, {"x", *Tensor::Scalar<float>(1)}}, {"add"});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<std::vector<Tensor>> read = session_->Run({{"v", *Tensor::Of<float>({7, 8}, Shape::Of({2}))}}, {"read"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].flat<float>()[1], 8);
}

TEST_F(ReferenceVariables, WhatWasFetchedStaysAsItWas) {
  ASSERT_TRUE(Run("assign", {1, 2}).ok());
  const absl::StatusOr<std::vector<Tensor>> before = session_->Run({}, {"read"});
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_TRUE(Run("add", {1, 1}).ok());
  EXPECT_EQ((*before)[0].flat<float>()[0], 1);
}

}  // namespace
}  // namespace thalweg
