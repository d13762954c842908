#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// y = (x + 1) * 2 on float vectors, a counter variable, and a node that fails when it runs.
constexpr char kGraph[] = R"(
versions { producer: 1087 }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 2 } } } }
node { name: "sum" op: "AddV2" input: "x" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Mul" input: "sum" input: "two" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape {} } } }
node { name: "init" op: "AssignVariableOp" input: "v" input: "one" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "read" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "bad" op: "Reshape" input: "x" input: "shape" attr { key: "T" value { type: DT_FLOAT } }
       attr { key: "Tshape" value { type: DT_INT32 } } }
node { name: "shape" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "target" op: "NoOp" input: "^y" }
)";

Tensor Floats(std::vector<float> values) {
  const int64_t n = static_cast<int64_t>(values.size());
  return *Tensor::Of<float>(std::move(values), *Shape::Make({n}));
}

std::vector<float> Values(const Tensor& t) {
  absl::Span<const float> flat = t.flat<float>();
  return {flat.begin(), flat.end()};
}

std::unique_ptr<Session> MakeSession(SessionOptions options = {}) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(kGraph, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

TEST(Session, FetchesInTheOrderAskedFor) {
  auto session = MakeSession();
  auto result = session->Run({{"x", Floats({1, 2})}}, {"y", "sum:0", "y:0"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[0]), (std::vector<float>{4, 6}));
  EXPECT_EQ(Values((*result)[1]), (std::vector<float>{2, 3}));
  EXPECT_EQ(Values((*result)[2]), (std::vector<float>{4, 6})) << "D22: a tensor fetched twice";
}

TEST(Session, AnyTensorMayBeFed) {
  auto session = MakeSession();
  auto result = session->Run({{"sum", Floats({10})}}, {"y"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[0]), (std::vector<float>{20}));
}

// D21
TEST(Session, WhatIsFedMayBeFetched) {
  auto session = MakeSession();
  auto result = session->Run({{"x", Floats({1, 2})}}, {"x", "y", "x:0"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(Values((*result)[1]), (std::vector<float>{4, 6}));
  EXPECT_EQ(Values((*result)[2]), (std::vector<float>{1, 2}));
}

TEST(Session, ThreadsAreHonouredOrRefused) {
  SessionOptions options;
  for (const int threads : {-1, SessionOptions::kMaxThreads + 1}) {
    options.threads = threads;
    EXPECT_EQ(Session::Create(options).status().code(), absl::StatusCode::kInvalidArgument) << threads;
  }
  options.threads = 100;
  EXPECT_TRUE(MakeSession(options)->Run({{"x", Floats({1})}}, {"y"}).ok());
}

TEST(Session, FedTensorsAreNotOverwritten) {
  auto session = MakeSession();
  Tensor x = Floats({1, 2, 3});
  ASSERT_TRUE(session->Run({{"x", x}}, {"y"}).ok());
  EXPECT_EQ(Values(x), (std::vector<float>{1, 2, 3}));
}

// Part G, rows 33-36.
TEST(Session, MistakesInASignatureHaveTheirCodes) {
  auto session = MakeSession();
  const Tensor x = Floats({1});
  const auto code = [&](const Feeds& feeds, const std::vector<std::string>& fetches) { return session->Run(feeds, fetches).status().code(); };
  EXPECT_EQ(code({{"x", x}}, {}), absl::StatusCode::kInvalidArgument) << "nothing to do";
  EXPECT_EQ(code({{"x", x}, {"x:0", x}}, {"y"}), absl::StatusCode::kInvalidArgument) << "fed twice";
  EXPECT_EQ(code({{"x", x}}, {"yy"}), absl::StatusCode::kNotFound);
  EXPECT_EQ(code({{"x", x}}, {"y:1"}), absl::StatusCode::kInvalidArgument) << "port";
  EXPECT_EQ(code({{"x", x}}, {"target"}), absl::StatusCode::kInvalidArgument) << "no outputs";
  EXPECT_EQ(code({{"x", *Tensor::Scalar<int32_t>(1)}}, {"y"}), absl::StatusCode::kInvalidArgument) << "dtype";
  EXPECT_EQ(code({{"x", *Tensor::Scalar<float>(1)}}, {"y"}), absl::StatusCode::kInvalidArgument) << "rank";
  EXPECT_EQ(code({}, {"y"}), absl::StatusCode::kInvalidArgument) << "unfed placeholder";
  EXPECT_TRUE(session->Run({{"x", x}}, {"y"}).ok()) << "the session still works";
}

TEST(Session, AFailureNamesNodeOpDeviceAndShapes) {
  auto session = MakeSession();
  absl::Status status = session->Run({{"x", Floats({1, 2, 3})}, {"shape", *Tensor::Of<int32_t>({2, 2}, Shape::Of({2}))}}, {"bad"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* word : {"bad", "Reshape", "CPU:0", "[3]"}) EXPECT_NE(status.message().find(word), absl::string_view::npos) << status;
}

TEST(Session, VariablesLiveFromStepToStep) {
  auto session = MakeSession();
  EXPECT_FALSE(session->Run({}, {"read"}).ok()) << "not initialised yet";
  ASSERT_TRUE(session->Run({}, {}, {"init"}).ok());
  auto result = session->Run({}, {"read"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].flat<float>()[0], 1.0f);
}

// D2, D3: Extend adds to the graph; a failing one adds nothing.
TEST(Session, ExtendAddsOrChangesNothing) {
  auto session = MakeSession();
  ASSERT_TRUE(session->ExtendFromMemory(R"(versions { producer: 1087 }
      node { name: "z" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } })").ok());
  auto result = session->Run({{"x", Floats({0})}}, {"z"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[0]), (std::vector<float>{-2}));
  EXPECT_EQ(session->ExtendFromMemory(R"(versions { producer: 1087 } node { name: "fresh" op: "NoOp" } node { name: "y" op: "NoOp" })").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Run({}, {}, {"fresh"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(session->Run({{"x", Floats({0})}}, {"z"}).ok());
}

// D4: a callable made before Extend stays valid.
TEST(Session, CallablesOutliveExtend) {
  auto session = MakeSession();
  auto callable = session->MakeCallable({"x"}, {"y"});
  ASSERT_TRUE(callable.ok()) << callable.status();
  ASSERT_TRUE(session->ExtendFromMemory(R"(versions { producer: 1087 } node { name: "n" op: "NoOp" })").ok());
  auto result = (*callable)->Run({Floats({1})});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Values((*result)[0]), (std::vector<float>{4}));
  EXPECT_EQ((*callable)->Run({}).status().code(), absl::StatusCode::kInvalidArgument) << "number of feeds";
}

// D6: after Close every call fails with Cancelled; Close is idempotent.
TEST(Session, D39ConnectionsUseOneTensorInPlaceOfAnother) {
  for (const char* devices : {"CPU:0", "CPU:0,CPU:1", "CPU:0,GPU:0=sim"}) {
    SessionOptions options;
    options.devices = devices;
    options.policy = "scatter~3";
    auto session = MakeSession(options);
    // y = (x + 1) * 2, with -x in place of the sum.
    ASSERT_TRUE(session->ExtendFromMemory(R"(versions { producer: 1087 } node { name: "other" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })").ok());
    auto callable = session->MakeCallable({"x"}, {"y", "sum"}, {}, {{"other:0", "sum"}});
    ASSERT_TRUE(callable.ok()) << callable.status();
    auto result = (*callable)->Run({Floats({1, 2})});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Values((*result)[0]), (std::vector<float>{-2, -4}));
    EXPECT_EQ(Values((*result)[1]), (std::vector<float>{-1, -2})) << "what is fetched is replaced, too";
    // Without connections it is another callable.
    auto plain = session->MakeCallable({"x"}, {"y", "sum"});
    ASSERT_TRUE(plain.ok());
    EXPECT_EQ(Values((*(*plain)->Run({Floats({1, 2})}))[0]), (std::vector<float>{4, 6}));
    const auto code = [&](const char* from, const char* to) { return session->MakeCallable({"x"}, {"y"}, {}, {{from, to}}).status().code(); };
    EXPECT_EQ(code("y", "sum"), absl::StatusCode::kInvalidArgument) << "a cycle";
    EXPECT_EQ(code("shape", "sum"), absl::StatusCode::kInvalidArgument) << "another type";
    EXPECT_EQ(code("other:1", "sum"), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(code("other", "summ"), absl::StatusCode::kNotFound);
  }
}

TEST(Session, CloseEndsTheSession) {
  auto session = MakeSession();
  auto callable = session->MakeCallable({"x"}, {"y"});
  EXPECT_TRUE(session->Close().ok());
  EXPECT_TRUE(session->Close().ok());
  EXPECT_EQ(session->Run({{"x", Floats({1})}}, {"y"}).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ((*callable)->Run({Floats({1})}).status().code(), absl::StatusCode::kCancelled);
}

TEST(Session, ACancelledTokenStopsItsRunOnly) {
  auto session = MakeSession();
  auto callable = *session->MakeCallable({"x"}, {"y"});
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_EQ(callable->Run({Floats({1})}, {}, &cancellation).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(callable->Run({Floats({1})}).ok());
}

// H11: one step's timeout is its own.
TEST(Session, ATimeoutEndsOneStep) {
  auto session = MakeSession();
  RunOptions options;
  options.timeout = std::chrono::nanoseconds(1);
  EXPECT_EQ(session->Run({{"x", Floats({1})}}, {"y"}, {}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(session->Run({{"x", Floats({1})}}, {"y"}).ok());
}

TEST(Session, TheMemoryLimitIsAStatus) {
  SessionOptions options;
  options.memory_limit_bytes = 1 << 20;
  auto session = MakeSession(options);
  EXPECT_EQ(session->Run({{"x", Floats(std::vector<float>(1 << 20))}}, {"y"}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(session->Run({{"x", Floats({1})}}, {"y"}).ok());
}

TEST(Session, NoGraphAndBadDevicesAreErrors) {
  auto session = Session::Create();
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->Run({}, {"y"}).status().code(), absl::StatusCode::kInvalidArgument) << "D10";
  SessionOptions options;
  options.devices = "GPU:0=sim";
  EXPECT_FALSE(Session::Create(options).ok()) << "the client device must be a CPU";
}

// The trace has one event per node, and busy time and gaps add up to the step.
TEST(Session, ATraceHasEveryNodeAndCloses) {
  if (!kRecordingBuiltIn) GTEST_SKIP() << "this build cannot record steps";
  for (const char* devices : {"CPU:0", "CPU:0,CPU:1", "CPU:0,GPU:0=sim"}) {
    SessionOptions options;
    options.devices = devices;
    options.optimize = false;
    options.policy = absl::StrCat(devices).find(',') == std::string::npos ? "default" : "scatter~3";
    auto session = MakeSession(options);
    auto callable = session->MakeCallable({"x"}, {"y"});
    ASSERT_TRUE(callable.ok()) << callable.status();
    Trace trace;
    RunOptions run;
    run.trace = &trace;
    ASSERT_TRUE((*callable)->Run({Floats({1, 2})}, run).ok());
    EXPECT_EQ(static_cast<int64_t>(trace.events.size()), (*callable)->info().nodes);
    EXPECT_EQ(trace.dropped_events, 0);
    for (const TraceDeviceTotals& t : trace.DeviceTotals()) EXPECT_EQ(t.busy_nanos + t.gap_nanos, trace.step_nanos);
    for (const TraceEvent& e : trace.events) {
      EXPECT_LE(e.start_nanos, e.end_nanos);
      if (e.last_arriver >= 0) {
        EXPECT_LT(e.last_arriver, static_cast<int32_t>(trace.tables->nodes.size()));
      }
    }
  }
}

// The same answers wherever nodes are, and on any number of threads.
TEST(Session, PlacementDoesNotChangeAnswers) {
  for (const char* devices : {"CPU:0", "CPU:0,CPU:1,CPU:2", "CPU:0,GPU:0=sim"}) {
    for (int seed = 0; seed < 6; ++seed) {
      for (int threads : {1, 3}) {
        SessionOptions options;
        options.devices = devices;
        options.threads = threads;
        options.policy = absl::StrCat("scatter~", seed);
        auto session = MakeSession(options);
        auto result = session->Run({{"x", Floats({1, -2, 0.5f})}}, {"y", "sum"});
        ASSERT_TRUE(result.ok()) << devices << ": " << result.status();
        EXPECT_EQ(Values((*result)[0]), (std::vector<float>{4, -2, 3}));
        EXPECT_EQ(Values((*result)[1]), (std::vector<float>{2, -1, 1.5f}));
      }
    }
  }
}

TEST(Session, WrappedMemoryIsReleasedOnce) {
  int released = 0;
  std::vector<float> data = {1, 2, 3};
  {
    auto session = MakeSession();
    Tensor x = *Tensor::Wrap(data.data(), DType::kFloat32, Shape::Of({3}), [&] { ++released; });
    auto result = session->Run({{"x", x}}, {"y"});
    ASSERT_TRUE(result.ok()) << result.status();
    x = Tensor();
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3}));
}

TEST(Session, DescribeTellsDtypeAndShape) {
  auto session = MakeSession();
  auto info = session->Describe("x");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->dtype, DType::kFloat32);
  EXPECT_EQ(info->shape.ToString(), "[?]");
  EXPECT_FALSE(session->Describe("nowhere").ok());
}

}  // namespace
}  // namespace thalweg
