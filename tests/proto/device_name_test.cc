// The rules of device names: grammar, canonical text, matching, completion, merging.
#include "thalweg/proto/device_name.h"

#include "gtest/gtest.h"

namespace thalweg {
namespace {

using MergeMode = DeviceName::MergeMode;

DeviceName Parsed(absl::string_view text) {
  absl::StatusOr<DeviceName> name = DeviceName::ParseLocalOrFull(text);
  EXPECT_TRUE(name.ok()) << name.status();
  return name.value_or(DeviceName());
}

std::string Canonical(absl::string_view text) {
  absl::StatusOr<DeviceName> name = DeviceName::Parse(text);
  return name.ok() ? name->ToString() : "error";
}

TEST(DeviceName, PartsInAnyOrderAreWrittenInOne) {
  const std::string full = "/job:worker/replica:1/task:2/device:GPU:3";
  EXPECT_EQ(Canonical(full), full);
  EXPECT_EQ(Canonical("/device:GPU:3/task:2/replica:1/job:worker"), full);
  EXPECT_TRUE(Parsed(full).IsFull());
  EXPECT_EQ(Canonical("/job:w_1/task:0"), "/job:w_1/task:0");
}

TEST(DeviceName, EveryPartIsOptional) {
  EXPECT_TRUE(Parsed("").IsEmpty());
  EXPECT_EQ(Canonical(""), "");
  EXPECT_EQ(Canonical("/"), "");
  EXPECT_FALSE(Parsed("/job:a").IsFull());
  EXPECT_FALSE(Parsed("/job:a").IsEmpty());
}

TEST(DeviceName, LaterPartsOverrideEarlierOnes) {
  EXPECT_EQ(Canonical("/job:a/job:b"), "/job:b");
  EXPECT_EQ(Canonical("/device:GPU:3/device:CPU"), "/device:CPU:*");
  EXPECT_EQ(Canonical("/device:GPU:3/cpu:1"), "/device:CPU:1");
  EXPECT_EQ(Canonical("/task:1/task:*"), "");
}

TEST(DeviceName, StarLeavesAFieldUnset) {
  EXPECT_EQ(Canonical("/job:*/replica:*/task:*/device:*:*"), "");
  EXPECT_EQ(Canonical("/device:GPU:*"), "/device:GPU:*");
  EXPECT_EQ(Canonical("/device:GPU"), "/device:GPU:*");
  EXPECT_EQ(Canonical("/device:*:3"), "") << "an id without a type is not printed";
  EXPECT_EQ(Parsed("/device:*:3").id, 3);
}

TEST(DeviceName, OldSpellings) {
  EXPECT_EQ(Canonical("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(Canonical("/GPU:7"), "/device:GPU:7");
  EXPECT_EQ(Canonical("/gpu:*"), "/device:GPU:*");
  for (const char* bad : {"/gpu", "/cpu", "/Gpu:0", "/tpu:0"}) EXPECT_EQ(Canonical(bad), "error") << bad;
}

TEST(DeviceName, WhatIsNotPartOfANameIsRefused) {
  for (const char* bad : {"x", "job:a", "/job:", "/job:1a", "/job:a b", "/replica:", "/replica:-1", "/replica:a",
                          "/task:99999999999", "/device:", "/device:9", "/device:GPU:", "/device:GPU:x",
                          "/device:GPU:0/", "//", "/job:a//task:0", "/job:a /task:0", "/device:GPU:0x", "GPU:0"}) {
    const absl::StatusOr<DeviceName> name = DeviceName::Parse(bad);
    EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_NE(name.status().message().find(bad), absl::string_view::npos) << "the message quotes the text";
  }
}

TEST(DeviceName, LocalNames) {
  EXPECT_EQ(Parsed("GPU:0").ToString(), "/device:GPU:0");
  EXPECT_EQ(Parsed("GPU:0").ToShortString(), "GPU:0");
  EXPECT_EQ(Parsed("/job:a/device:CPU:1").ToShortString(), "CPU:1");
  EXPECT_EQ(Parsed("/job:a").ToShortString(), "/job:a");
  for (const char* bad : {":0", "GPU:0:1", "GPU:0 ", "0", "GPU:"})
    EXPECT_FALSE(DeviceName::ParseLocalOrFull(bad).ok()) << bad;
}

TEST(DeviceName, MatchesAFullName) {
  const DeviceName full = Parsed("/job:a/replica:0/task:1/device:GPU:2");
  for (const char* pattern :
       {"", "/job:a", "/task:1/device:GPU", "/device:*:2", "/job:a/replica:0/task:1/device:GPU:2"}) {
    EXPECT_TRUE(Parsed(pattern).Matches(full)) << pattern;
  }
  for (const char* pattern : {"/job:b", "/task:0", "/device:CPU", "/device:GPU:1", "/replica:1"}) {
    EXPECT_FALSE(Parsed(pattern).Matches(full)) << pattern;
  }
  EXPECT_FALSE(full.Matches(Parsed("/job:a"))) << "every field that is set must be set on the other side";
}

TEST(DeviceName, CompletionCopiesUnsetFields) {
  const DeviceName base = Parsed("/job:a/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(Parsed("GPU:2").CompletedFrom(base).ToString(), "/job:a/replica:0/task:1/device:GPU:2");
  EXPECT_EQ(Parsed("/task:5").CompletedFrom(base).ToString(), "/job:a/replica:0/task:5/device:CPU:0");
  EXPECT_EQ(Parsed("").CompletedFrom(base), base);
}

struct MergeCase {
  const char* target;
  const char* other;
  const char* strict;  // "error", or the merged name
  const char* soft;
  const char* override;
};

class DeviceNameMerge : public testing::TestWithParam<MergeCase> {};

std::string Merged(const MergeCase& c, MergeMode mode) {
  DeviceName target = Parsed(c.target);
  const DeviceName before = target;
  if (target.Merge(Parsed(c.other), mode).ok()) return target.ToString();
  EXPECT_EQ(target, before) << "an error leaves the target alone";
  return "error";
}

TEST_P(DeviceNameMerge, FollowsTheRules) {
  EXPECT_EQ(Merged(GetParam(), MergeMode::kStrict), GetParam().strict);
  EXPECT_EQ(Merged(GetParam(), MergeMode::kSoft), GetParam().soft);
  EXPECT_EQ(Merged(GetParam(), MergeMode::kOverride), GetParam().override);
}

INSTANTIATE_TEST_SUITE_P(
    AllRules, DeviceNameMerge,
    testing::Values(
        // Unset on either side, or equal.
        MergeCase{"", "/device:GPU:0", "/device:GPU:0", "/device:GPU:0", "/device:GPU:0"},
        MergeCase{"/job:a/device:GPU:0", "", "/job:a/device:GPU:0", "/job:a/device:GPU:0", "/job:a/device:GPU:0"},
        MergeCase{"/job:a", "/task:1/device:GPU", "/job:a/task:1/device:GPU:*", "/job:a/task:1/device:GPU:*",
                  "/job:a/task:1/device:GPU:*"},
        MergeCase{"/device:GPU:0", "/device:GPU:0", "/device:GPU:0", "/device:GPU:0", "/device:GPU:0"},
        // Conflicts in job, replica and task are errors in every mode.
        MergeCase{"/job:a", "/job:b", "error", "error", "error"},
        MergeCase{"/replica:0", "/replica:1", "error", "error", "error"},
        MergeCase{"/task:0/device:GPU:0", "/task:1/device:CPU:0", "error", "error", "error"},
        // A conflict in type: soft clears type and id and stops.
        MergeCase{"/device:GPU:0", "/device:CPU:0", "error", "", "/device:CPU:0"},
        MergeCase{"/job:a/device:GPU:1", "/task:2/device:CPU:3", "error", "/job:a/task:2",
                  "/job:a/task:2/device:CPU:3"},
        MergeCase{"/device:GPU:1", "/device:CPU", "error", "", "/device:CPU:1"},
        // A conflict in id: soft clears the id.
        MergeCase{"/device:GPU:0", "/device:GPU:1", "error", "/device:GPU:*", "/device:GPU:1"}));

}  // namespace
}  // namespace thalweg
