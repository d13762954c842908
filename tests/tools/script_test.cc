// Scripts: the documented form, and what is wrong said with the step and key.
#include "thalweg/tools/script.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

absl::StatusOr<Script> Steps(absl::string_view steps) {
  return ParseScript(absl::StrCat(R"({"format": "thalweg.script/1", "steps": )", steps, "}"), "s.json");
}

void ExpectWrong(const absl::StatusOr<Script>& script, absl::string_view words) {
  ASSERT_FALSE(script.ok()) << words;
  EXPECT_TRUE(absl::StrContains(script.status().message(), words)) << script.status() << " lacks: " << words;
  EXPECT_TRUE(absl::StrContains(script.status().message(), "s.json")) << script.status();
}

TEST(ScriptTest, ReadsEveryKey) {
  const absl::StatusOr<Script> script = Steps(R"([
    {"name": "first", "inputs": "in0.npz", "fetches": ["y:0", "z"], "targets": ["train"], "timeout": 2.5},
    {"extend": "graph2.pb"}, {"new_session": true, "fetches": ["y:0"]}, {"close": true, "fetches": []}])");
  ASSERT_TRUE(script.ok()) << script.status();
  ASSERT_EQ(script->steps.size(), 4u);
  EXPECT_EQ(script->steps[0].name, "first");
  EXPECT_EQ(script->steps[0].inputs, "in0.npz");
  EXPECT_EQ(script->steps[0].fetches, (std::vector<std::string>{"y:0", "z"}));
  EXPECT_EQ(script->steps[0].targets, (std::vector<std::string>{"train"}));
  EXPECT_EQ(script->steps[0].timeout_nanos, 2'500'000'000);
  EXPECT_EQ(script->steps[1].extend, "graph2.pb");
  EXPECT_FALSE(script->steps[1].runs());
  EXPECT_TRUE(script->steps[2].new_session);
  EXPECT_TRUE(script->steps[2].runs());
  EXPECT_TRUE(script->steps[3].close);
}

TEST(ScriptTest, RemarksOnUnknownKeys) {
  const absl::StatusOr<Script> script = Steps(R"([{"fetch": ["y"]}])");
  ASSERT_TRUE(script.ok());
  ASSERT_EQ(script->unknown_keys.size(), 1u);
  EXPECT_TRUE(absl::StrContains(script->unknown_keys[0], "'fetch'"));
}

TEST(ScriptTest, SaysWhatIsWrong) {
  ExpectWrong(ParseScript("{", "s.json"), "line 1");
  ExpectWrong(ParseScript("{\n \"format\": ?}", "s.json"), "line 2");
  ExpectWrong(ParseScript("[]", "s.json"), "thalweg.script/1");
  ExpectWrong(ParseScript(R"({"format": "other"})", "s.json"), "thalweg.script/1");
  ExpectWrong(ParseScript(R"({"format": "thalweg.script/1"})", "s.json"), "steps");
  ExpectWrong(Steps("[{}, 3]"), "step 1");
  ExpectWrong(Steps(R"([{"fetches": "y"}])"), "'fetches'");
  ExpectWrong(Steps(R"([{"fetches": [1]}])"), "'fetches'");
  ExpectWrong(Steps(R"([{"timeout": "2s"}])"), "'timeout'");
  ExpectWrong(Steps(R"([{"timeout": -1}])"), "'timeout'");
  ExpectWrong(Steps(R"([{"timeout": 1e300}])"), "'timeout'");
  ExpectWrong(Steps(R"([{"close": 1}])"), "'close'");
  EXPECT_EQ(Steps(R"([{"signature": "serving_default"}])").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ScriptTest, RefusesDeepNesting) {
  ExpectWrong(ParseScript(std::string(1'000'000, '['), "s.json"), "nested");
  ExpectWrong(ParseScript(std::string(100, '['), "s.json"), "nested");
}

}  // namespace
}  // namespace thalweg::tools
