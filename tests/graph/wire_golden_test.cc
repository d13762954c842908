// Our messages against bytes and texts that TensorFlow wrote (tests/golden/wire).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "thalweg/graph.pb.h"
#include "thalweg/meta_graph.pb.h"
#include "thalweg/saved_model.pb.h"
#include "thalweg/config.pb.h"
#include "thalweg/tests/graph/test_ops.h"
#include "thalweg/tests/support/tests_dir.h"

namespace thalweg {
namespace {

using google::protobuf::Message;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Maps in an order that is always the same (though not TensorFlow's).
std::string SerializeInOrder(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream output(&stream);
    output.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&output);
  }
  return bytes;
}

// The same bytes in any order. Entries of maps have none, so equal messages may be serialized in different ones.
std::string Sorted(std::string bytes) {
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

std::unique_ptr<Message> NewMessageFor(const std::string& stem) {
  if (stem == "meta_graph") return std::make_unique<MetaGraphDef>();
  if (stem == "saved_model") return std::make_unique<SavedModel>();
  if (stem == "run_metadata") return std::make_unique<RunMetadata>();
  return std::make_unique<GraphDef>();
}

std::vector<std::filesystem::path> WireFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(testing::TestsDir()) / "golden/wire")) {
    if (entry.path().extension() == ".pb") files.push_back(entry.path());
  }
  return files;
}

TEST(WireGolden, WhatTensorFlowWroteEqualsItselfAfterUs) {
  ASSERT_GE(WireFiles().size(), 16u);
  for (const auto& path : WireFiles()) {
    const std::string bytes = ReadFile(path);
    const std::unique_ptr<Message> message = NewMessageFor(path.stem().string());
    ASSERT_TRUE(message->ParseFromString(bytes)) << path;
    EXPECT_EQ(Sorted(SerializeInOrder(*message)), Sorted(bytes)) << path;
  }
}

TEST(WireGolden, SerializingAgainChangesNothing) {
  for (const auto& path : WireFiles()) {
    const std::unique_ptr<Message> once = NewMessageFor(path.stem().string());
    ASSERT_TRUE(once->ParseFromString(ReadFile(path))) << path;
    const std::unique_ptr<Message> twice = NewMessageFor(path.stem().string());
    ASSERT_TRUE(twice->ParseFromString(once->SerializeAsString())) << path;
    EXPECT_EQ(SerializeInOrder(*once), SerializeInOrder(*twice)) << path;
  }
}

TEST(WireGolden, TextAndBinarySayTheSame) {
  for (const auto& path : WireFiles()) {
    std::filesystem::path text_path = path;
    text_path.replace_extension(".pbtxt");
    if (!std::filesystem::exists(text_path)) continue;
    const std::unique_ptr<Message> from_binary = NewMessageFor(path.stem().string());
    const std::unique_ptr<Message> from_text = NewMessageFor(path.stem().string());
    ASSERT_TRUE(from_binary->ParseFromString(ReadFile(path))) << path;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadFile(text_path), from_text.get())) << text_path;
    EXPECT_EQ(SerializeInOrder(*from_binary), SerializeInOrder(*from_text)) << path;
  }
}

TEST(WireGolden, UnknownFieldsSurvive) {
  for (const char* name : {"unknown_top", "unknown_nested"}) {
    const std::string bytes =
        ReadFile(std::filesystem::path(testing::TestsDir()) / "golden/wire" / (std::string(name) + ".pb"));
    GraphDef graph;
    ASSERT_TRUE(graph.ParseFromString(bytes)) << name;
    EXPECT_EQ(Sorted(SerializeInOrder(graph)), Sorted(bytes)) << name;
    graph.DiscardUnknownFields();
    EXPECT_LT(SerializeInOrder(graph).size(), bytes.size()) << name << " has unknown fields";
  }
}

// The loader reads nodes by itself: it must see the same nodes as the generated classes do.
TEST(WireGolden, TheLoaderSeesTheSameNodes) {
  LoadOptions options;
  options.schemas = &TestOps();
  for (const auto& path : WireFiles()) {
    GraphDef graph;
    if (NewMessageFor(path.stem().string())->GetTypeName() != graph.GetTypeName()) continue;
    ASSERT_TRUE(graph.ParseFromString(ReadFile(path)));
    const absl::StatusOr<LoadResult> loaded = LoadGraphFile(path.string(), options);
    if (graph.ByteSizeLong() == 0) {
      EXPECT_FALSE(loaded.ok());
      continue;
    }
    ASSERT_TRUE(loaded.ok()) << path << loaded.status();
    ASSERT_EQ(loaded->graph.num_nodes(), graph.node_size()) << path;
    EXPECT_EQ(loaded->graph.versions.producer, graph.versions().producer()) << path;
    for (int i = 0; i < graph.node_size(); ++i) {
      const Node& node = loaded->graph.node(i);
      EXPECT_EQ(node.name, graph.node(i).name());
      EXPECT_EQ(node.op, graph.node(i).op());
      EXPECT_EQ(node.requested_device, graph.node(i).device());
    }
  }
}

}  // namespace
}  // namespace thalweg
