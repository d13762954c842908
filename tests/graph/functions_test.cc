// Function libraries and signatures.
#include "thalweg/graph/functions.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "thalweg/function.pb.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const FunctionDef> Function(const std::string& text) {
  auto function = std::make_shared<FunctionDef>();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, function.get())) << text;
  return function;
}

TEST(FunctionLibrary, SignaturesAreDeclarations) {
  FunctionLibrary library;
  ASSERT_TRUE(
      library
          .Add(Function(
              "signature { name: 'f' is_stateful: true"
              " input_arg { name: 'a' type: DT_FLOAT } input_arg { name: 'b' type_attr: 'T' number_attr: 'N' }"
              " input_arg { name: 'c' type_list_attr: 'Tc' } output_arg { name: 'o' type: DT_INT32 is_ref: true }"
              " attr { name: 'T' type: 'type' allowed_values { list { type: [DT_FLOAT, DT_INT32] } } }"
              " attr { name: 'N' type: 'int' has_minimum: true minimum: 2 default_value { i: 2 } }"
              " attr { name: 'Tc' type: 'list(type)' } }"))
          .ok());
  const OpSchema* signature = library.Signature("f");
  ASSERT_NE(signature, nullptr);
  EXPECT_TRUE(signature->stateful);
  EXPECT_EQ(signature->FindAttr("N")->minimum, 2);
  EXPECT_TRUE(signature->FindAttr("Tc")->is_list);
  EXPECT_THAT(signature->FindAttr("T")->allowed_types, ElementsAre(DType::kFloat32, DType::kInt32));

  AttrMap attrs;
  attrs.Set("T", DType::kInt32);
  attrs.Set("Tc", MakeListAttr(std::vector<DType>{DType::kBool, DType::kString}));
  std::vector<DType> types;
  ASSERT_TRUE(ResolveInputTypes(NodeAttrs(&attrs, signature), &types).ok());
  EXPECT_THAT(types, ElementsAre(DType::kFloat32, DType::kInt32, DType::kInt32, DType::kBool, DType::kString));
  ASSERT_TRUE(ResolveOutputTypes(NodeAttrs(&attrs, signature), &types).ok());
  EXPECT_THAT(types, ElementsAre(MakeRef(DType::kInt32)));
  EXPECT_EQ(library.Signature("g"), nullptr);
}

TEST(FunctionLibrary, G16EqualFunctionsMayBeAddedAgainOthersNot) {
  FunctionLibrary library;
  EXPECT_TRUE(library.Add(Function("signature { name: 'f' }")).ok());
  EXPECT_TRUE(library.Add(Function("signature { name: 'f' }")).ok());
  EXPECT_EQ(library.Add(Function("signature { name: 'f' is_stateful: true }")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(library.size(), 1u);
  EXPECT_TRUE(library.SetGradient("f", "df").ok());
  EXPECT_TRUE(library.SetGradient("f", "df").ok());
  EXPECT_FALSE(library.SetGradient("f", "other").ok());
  EXPECT_EQ(library.Gradient("f"), "df");
  EXPECT_EQ(library.Gradient("df"), "");
}

TEST(FunctionLibrary, MalformedSignaturesAreRefused) {
  for (const char* text :
       {"signature { }", "signature { name: 'f' attr { name: 'T' type: 'type' } attr { name: 'T' type: 'type' } }",
        "signature { name: 'f' attr { name: 'T' type: 'colour' } }",
        "signature { name: 'f' attr { name: 'T' type: 'list(int' } }",
        "signature { name: 'f' input_arg { name: 'a' } }",
        "signature { name: 'f' input_arg { name: 'a' type_attr: 'T' } }",
        "signature { name: 'f' input_arg { name: 'a' type: DT_INT32 number_attr: 'N' } }",
        "signature { name: 'f' input_arg { name: 'a' type: DT_INT32 } input_arg { name: 'a' type: DT_INT32 } }",
        "signature { name: 'f' attr { name: 'T' type: 'type' default_value { type: DT_INVALID } } }"}) {
    FunctionLibrary library;
    EXPECT_EQ(library.Add(Function(text)).code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace thalweg
