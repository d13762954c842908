// Shape functions of the array family on partly known shapes and values.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/register_all.h"

namespace thalweg {
namespace {

constexpr int64_t kS0 = kUnknownDim - 1;
constexpr int64_t kS1 = kUnknownDim - 2;

// One node whose inputs are described rather than given.
class Inference {
 public:
  explicit Inference(const char* op) : schema_(BuiltinOps().schemas.Find(op)) {}

  Inference& Shaped(PartialShape shape, DType dtype = DType::kFloat32) {
    return Add(std::move(shape), dtype, nullptr, std::nullopt);
  }
  Inference& Shaped(Dims dims) { return Shaped(PartialShape::OfDims(std::move(dims))); }
  // An integer vector of which the elements are dimensions.
  Inference& Valued(Dims value) {
    const int64_t length = static_cast<int64_t>(value.size());
    return Add(PartialShape::OfDims({length}), DType::kInt32, nullptr, std::move(value));
  }
  Inference& ValuedScalar(int64_t value) { return Add(PartialShape::OfDims({}), DType::kInt32, nullptr, Dims{value}); }
  Inference& Constant(const Tensor& tensor) {
    return Add(PartialShape::Known(tensor.shape()), tensor.dtype(), *tensor.ToLiteral(), std::nullopt);
  }
  Inference& Ints(std::vector<int32_t> values) {
    const int64_t length = static_cast<int64_t>(values.size());
    return Constant(*Tensor::Of<int32_t>(std::move(values), Shape::Of({length})));
  }
  Inference& Int(int32_t value) { return Constant(*Tensor::Scalar<int32_t>(value)); }
  Inference& With(const char* name, Attr value) {
    attrs_.Set(name, std::move(value));
    return *this;
  }

  Inference& Producer(int version) {
    producer_ = version;
    return *this;
  }

  // Output 0's shape as text, with its value behind if there is one; or the error.
  std::string Run(int outputs = 1) {
    int64_t next_symbol = kUnknownDim - 100;
    ShapeContext c(NodeAttrs(&attrs_, schema_), types_, shapes_, literals_, values_, outputs, &next_symbol);
    if (producer_) c.set_producer(*producer_);
    const absl::Status status = schema_->shape_fn(c);
    if (!status.ok()) return std::string(absl::StatusCodeToString(status.code()));
    std::string text = c.output(0).ToString();
    if (c.output_value(0)) text += " = " + PartialShape::OfDims(*c.output_value(0)).ToString();
    return text;
  }

 private:
  Inference& Add(PartialShape shape, DType dtype, TensorLiteralPtr literal, SymbolicValue value) {
    shapes_.push_back(std::move(shape));
    types_.push_back(dtype);
    literals_.push_back(std::move(literal));
    values_.push_back(std::move(value));
    return *this;
  }

  const OpSchema* schema_;
  AttrMap attrs_;
  std::optional<int> producer_;
  std::vector<DType> types_;
  std::vector<PartialShape> shapes_;
  std::vector<TensorLiteralPtr> literals_;
  std::vector<SymbolicValue> values_;
};

TEST(ShapeInference, FollowsABatchThroughShapeSlicePackReshape) {
  EXPECT_EQ(Inference("Shape").Shaped({kS0, 2, 6}).Run(), "[3] = [s0,2,6]");
  EXPECT_EQ(Inference("StridedSlice")
                .Valued({kS0, 2, 6})
                .Ints({0})
                .Ints({1})
                .Ints({1})
                .With("shrink_axis_mask", int64_t{1})
                .Run(),
            "[] = [s0]");
  EXPECT_EQ(Inference("Pack").ValuedScalar(kS0).Int(-1).Run(), "[2] = [s0,?]");
  EXPECT_EQ(Inference("Reshape").Shaped({kS0, 2, 6}).Valued({kS0, kUnknownDim}).Run(), "[s0,12]");
}

TEST(ShapeInference, ReshapeUsesWhatCancels) {
  EXPECT_EQ(Inference("Reshape").Shaped({kS0, 4}).Ints({-1, 4}).Run(), "[s0,4]");
  EXPECT_EQ(Inference("Reshape").Shaped({kS0, 4}).Ints({-1, 2}).Run(), "[?,2]");
  EXPECT_EQ(Inference("Reshape").Shaped({kS0, kS1}).Valued({kS1, kUnknownDim}).Run(), "[s1,s0]");
  EXPECT_EQ(Inference("Reshape").Shaped({2, 6}).Ints({5, -1}).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("Reshape").Shaped({kS0, 6}).Valued({kS0, 5}).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("Reshape").Shaped(PartialShape()).Ints({3, -1}).Run(), "[3,?]");
}

TEST(ShapeInference, ConcatenatesDimensionsAndValues) {
  EXPECT_EQ(Inference("ConcatV2").Shaped({kS0, 2}).Shaped({kUnknownDim, 3}).Int(1).Run(), "[s0,5]");
  EXPECT_EQ(Inference("ConcatV2").Shaped({1, 2}).Shaped(PartialShape()).Int(1).Run(), "[1,?]");
  EXPECT_EQ(Inference("ConcatV2").Shaped({1, 2}).Shaped({2, 2}).Int(1).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("ConcatV2").Valued({kS0}).Ints({7, 8}).Int(0).Run(), "[3] = [s0,7,8]");
  EXPECT_EQ(Inference("ConcatV2").Shaped({1, 2}).Shaped({1, 3}).ValuedScalar(kUnknownDim).Run(), "[?,?]");
}

TEST(ShapeInference, SlicesKeepSymbolsAndValues) {
  EXPECT_EQ(Inference("Slice").Shaped({kS0, 5}).Ints({0, 1}).Ints({-1, 3}).Run(), "[s0,3]");
  EXPECT_EQ(Inference("Slice").Valued({kS0, 5, 7}).Ints({1}).Ints({-1}).Run(), "[2] = [5,7]");
  EXPECT_EQ(Inference("Slice").Shaped({4}).Ints({5}).Ints({-1}).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("Slice").Shaped(PartialShape()).Shaped({3}).Shaped({3}).Run(), "[?,?,?]");
  EXPECT_EQ(Inference("Slice").Shaped({9, 9}).Ints({0, 0}).Valued({kS0, 2}).Run(), "[s0,2]");
}

TEST(ShapeInference, GatherPicksDimensions) {
  EXPECT_EQ(Inference("GatherV2").Valued({kS0, 5, 7}).Ints({2, 0}).Int(0).Run(), "[2] = [7,s0]");
  EXPECT_EQ(Inference("GatherV2").Shaped({kS0, 5, 7}).Shaped({3, 4}).Int(1).Run(), "[s0,3,4,7]");
  EXPECT_EQ(Inference("GatherV2").Shaped({kS0, 5}).Shaped({3, 4}).Int(2).Run(), "INVALID_ARGUMENT");
}

TEST(ShapeInference, OthersUsePartialValues) {
  EXPECT_EQ(Inference("Fill").Valued({kS0, 3}).Shaped(Dims{}).Run(), "[s0,3]");
  EXPECT_EQ(Inference("Range").Int(0).ValuedScalar(kS0).Int(1).Run(), "[s0]");
  EXPECT_EQ(Inference("Range").Int(0).Int(10).Int(3).Run(), "[4]");
  EXPECT_EQ(Inference("Size").Shaped({1, kS0, 1}).Run(), "[] = [s0]");
  EXPECT_EQ(Inference("Tile").Shaped({kS0, 3}).Ints({1, 2}).Run(), "[s0,6]");
  EXPECT_EQ(Inference("Transpose").Shaped({kS0, 3}).Ints({1, 0}).Run(), "[3,s0]");
  EXPECT_EQ(Inference("ExpandDims").ValuedScalar(kS0).Int(0).Run(), "[1] = [s0]");
  EXPECT_EQ(Inference("Squeeze").Shaped({kS0, 1}).Run(), "<unknown>");
  EXPECT_EQ(Inference("Pad").Shaped({kS0, 3}).Constant(*Tensor::Of<int32_t>({0, 0, 1, 2}, Shape::Of({2, 2}))).Run(),
            "[s0,6]");
  EXPECT_EQ(Inference("BroadcastTo").Shaped({kS0, 3}).Ints({2, -1, 3}).Run(), "[2,?,3]");
  EXPECT_EQ(Inference("OneHot").Shaped({kS0}).Int(10).Shaped(Dims{}).Shaped(Dims{}).Run(), "[s0,10]");
  EXPECT_EQ(Inference("Unpack").Valued({kS0, 4}).Run(2), "[] = [s0]");
}

TEST(ShapeInference, PlaceholderOfOldProducersCannotDeclareAScalar) {
  const Attr scalar = MakeShapeAttr(PartialShape::OfDims({}));
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Run(), "[]");
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Producer(22).Run(), "[]");
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Producer(21).Run(), "<unknown>");
}

}  // namespace
}  // namespace thalweg
