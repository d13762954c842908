// Rules about steps, seen from outside (semantics A60 to A74, D11 to D31).
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

// A counter that is raised before a node fails, two nodes that fail, a node that remembers how often it ran, and a
// variable of one step.
constexpr char kGraph[] = R"(
versions { producer: 1087 }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: "count" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "init" op: "AssignVariableOp" input: "count" input: "one" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "raise" op: "AssignAddVariableOp" input: "count" input: "one" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "count" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "shape" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "bad_1" op: "Reshape" input: "x" input: "shape" input: "^raise" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tshape" value { type: DT_INT32 } } }
node { name: "bad_2" op: "Reshape" input: "x" input: "shape" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tshape" value { type: DT_INT32 } } }
node { name: "after" op: "Neg" input: "bad_1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "vector" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 4 } } } }
node { name: "random" op: "RandomUniform" input: "vector" attr { key: "T" value { type: DT_INT32 } }
       attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "seed" value { i: 7 } } attr { key: "seed2" value { i: 9 } } }
node { name: "random_read" op: "Neg" input: "random" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "temporary" op: "TemporaryVariable" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } }
       attr { key: "var_name" value { s: "t" } } }
node { name: "set" op: "Assign" input: "temporary" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
)";

std::unique_ptr<Session> MakeSession(const SessionOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kGraph, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

Feeds FeedsThatFail() {
  return {{"x", *Tensor::Of<float>({1, 2, 3}, Shape::Of({3}))},
          {"shape", *Tensor::Of<int32_t>({2, 2}, Shape::Of({2}))}};
}

std::vector<float> Fetch(Session& session, const std::string& name) {
  auto result = session.Run({}, {name});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const absl::Span<const float> flat = (*result)[0].flat<float>();
  return {flat.begin(), flat.end()};
}

// A60, D31: a failed step gives nothing, and what it had changed before stays changed.
TEST(StepRules, A60D31AFailedStepGivesNothingAndUndoesNothing) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  EXPECT_EQ(session->Run(FeedsThatFail(), {"one", "after"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Fetch(*session, "read"), std::vector<float>{2});
}

// A61, A62, A66: of several failures, on whatever devices and threads, the step has one as its status, never the
// cancellation that it caused elsewhere.
TEST(StepRules, A61A66TheStatusIsThatOfANodeThatFailed) {
  for (const char* devices : {"CPU:0", "CPU:0,CPU:1", "CPU:0,GPU:0=sim"}) {
    for (int seed = 0; seed < 8; ++seed) {
      SessionOptions options;
      options.devices = devices;
      options.threads = 1 + seed % 3;
      options.policy = absl::StrCat("scatter~", seed);
      auto session = MakeSession(options);
      ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
      const absl::Status status = session->Run(FeedsThatFail(), {"after", "bad_2"}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "'bad_")) << status;
    }
  }
}

// A73: a stateful node is one and the same in all steps of a session, whatever they fetch, and another in another
// session.
TEST(StepRules, A73StatefulNodesLastAcrossSignatures) {
  auto first = MakeSession(), second = MakeSession();
  const std::vector<float> draw_1 = Fetch(*first, "random"), draw_2 = Fetch(*first, "random");
  EXPECT_NE(draw_1, draw_2);
  EXPECT_EQ(Fetch(*second, "random"), draw_1);
  std::vector<float> negative = Fetch(*second, "random_read");
  for (float& value : negative) value = -value;
  EXPECT_EQ(negative, draw_2);
}

// A74: what belongs to a step goes with it, so that the next step may make it anew, after failures too.
TEST(StepRules, A74VariablesOfAStepEndWithIt) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(Fetch(*session, "set"), std::vector<float>{1});
    EXPECT_FALSE(session->Run(FeedsThatFail(), {"set", "bad_1"}).ok());
  }
}

// D11, D12: a signature in another order is another order of results, nothing else.
TEST(StepRules, D11OrderOfFetchesIsOrderOfResults) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  for (int step = 0; step < 2; ++step) {
    for (const std::vector<std::string>& fetches : {std::vector<std::string>{"one", "random"}, {"random", "one"}}) {
      auto result = session->Run({}, fetches);
      ASSERT_TRUE(result.ok()) << result.status();
      for (size_t i = 0; i < fetches.size(); ++i) EXPECT_EQ((*result)[i].shape().rank(), fetches[i] == "one" ? 0 : 1);
    }
  }
}

// D1: nothing may be added, before and after there is a graph; the first nodes that are added make one.
TEST(StepRules, D1TheFirstExtensionMakesTheGraph) {
  auto session = Session::Create();
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE((*session)->ExtendFromMemory("versions { producer: 1087 }").ok());
  EXPECT_EQ((*session)->Run({}, {"one"}).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE((*session)->ExtendFromMemory(kGraph).ok());
  EXPECT_TRUE((*session)->ExtendFromMemory("versions { producer: 1087 }").ok());
  EXPECT_EQ(Fetch(**session, "one"), std::vector<float>{1});
  EXPECT_FALSE((*session)->ExtendFromMemory(kGraph).ok()) << "its nodes are there";
}

// D9: a session has a pool of its own, whatever the first session of the process asked for.
TEST(StepRules, D9EverySessionHasItsOwnThreads) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const int threads : {1, 3, 2}) {
    SessionOptions options;
    options.threads = threads;
    sessions.push_back(MakeSession(options));
  }
  for (const int expected : {1, 3, 2}) {
    Trace trace;
    RunOptions options;
    options.trace = &trace;
    auto& session = sessions[expected == 1 ? 0 : expected == 3 ? 1 : 2];
    if (kRecordingBuiltIn) {
      ASSERT_TRUE(session->Run({}, {"one"}, {}, options).ok());
      EXPECT_EQ(trace.threads, expected);
    }
  }
}

// D13: compiled signatures are kept, but not without bound; those that were forgotten are compiled again, and what a caller holds
// stays valid. State does not depend on either.
TEST(StepRules, D13ForgottenSignaturesAreCompiledAgain) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  auto held = session->MakeCallable({}, {"read", "one"});
  ASSERT_TRUE(held.ok()) << held.status();
  for (size_t k = 1; k <= 300; ++k) {
    const auto result = session->Run({}, std::vector<std::string>(k, "one"));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->size(), k);
  }
  auto again = session->MakeCallable({}, {"read", "one"});
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again->get(), held->get()) << "300 signatures ago";
  for (const auto& callable : {*held, *again}) {
    auto result = callable->Run({});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].flat<float>()[0], 1);
  }
}

// D29: what was cancelled before it began does not begin. D30: a step that fails before it begins leaves nothing to wait for.
TEST(StepRules, D29D30StepsThatDoNotBegin) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  Cancellation cancelled;
  cancelled.Cancel();
  EXPECT_EQ(session->Run({}, {}, {"raise"}, {}, &cancelled).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Fetch(*session, "read"), std::vector<float>{1}) << "nothing ran";
  EXPECT_FALSE(session->Run({{"x", *Tensor::Scalar<int32_t>(1)}}, {"after"}).ok());
  EXPECT_FALSE(session->Run({}, {"nothing"}).ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(session->Run({}, {}, {"raise"}).status().code(), absl::StatusCode::kCancelled);
}

// D20
TEST(StepRules, D20ATargetMayBeWrittenAsATensor) {
  auto session = MakeSession();
  EXPECT_TRUE(session->Run({}, {}, {"one:0", "random:5"}).ok());
  EXPECT_EQ(session->Run({}, {}, {"once:0"}).status().code(), absl::StatusCode::kNotFound);
}

// D23: number and types of what is fed are checked before anything runs.
TEST(StepRules, D23ArgumentsAreCheckedFirst) {
  auto session = MakeSession();
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  Feeds wrong = FeedsThatFail();
  wrong[1].second = *Tensor::Scalar<float>(1);
  EXPECT_EQ(session->Run(wrong, {"bad_1"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Fetch(*session, "read"), std::vector<float>{1}) << "nothing ran";
}

// D24: a handle may have outlived its session, so that none can be fed.
TEST(StepRules, D24HandlesCannotBeFed) {
  auto first = MakeSession(), second = MakeSession();
  ASSERT_TRUE(first->Run({}, {}, {"init"}).ok());
  auto handle = first->Run({}, {"count"});
  ASSERT_TRUE(handle.ok()) << handle.status();
  const absl::Status status = second->Run({{"count", (*handle)[0]}}, {"read"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "'count:0' is a resource")) << status;
}

// A variable may have no name to be called by.
TEST(StepRules, VariablesWithoutANameAreDescribed) {
  const absl::Status status = MakeSession()->Run({}, {"read"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "the variable without a shared_name does not exist yet")) << status;
}

}  // namespace
}  // namespace thalweg
