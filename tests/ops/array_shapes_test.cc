// Shape functions of the array family on partly known shapes and values.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "thalweg/graph/loader.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/graph/shape_inference.h"
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
  Inference& Shaped(Dims dims, DType dtype = DType::kFloat32) { return Shaped(PartialShape::OfDims(std::move(dims)), dtype); }
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

// What TensorFlow's shape functions say where only some of the inputs are known (tests/golden/compare_shapes.py).
TEST(ShapeInference, WhatIsKnownOfOneInputCounts) {
  const PartialShape unknown;
  EXPECT_EQ(Inference("Slice").Shaped({4, 1}).Shaped(unknown, DType::kInt32).Ints({2, -1}).Run(), "[2,?]");
  EXPECT_EQ(Inference("Tile").Shaped({0, 2}).Shaped(PartialShape::OfDims({kUnknownDim}), DType::kInt32).Run(), "[0,?]");
  EXPECT_EQ(Inference("Tile").Shaped(unknown).Ints({0, 3}).Run(), "[0,?]");
  EXPECT_EQ(Inference("Transpose").Shaped(unknown).Shaped({5}, DType::kInt32).Run(), "[?,?,?,?,?]");
  EXPECT_EQ(Inference("Reshape").Shaped({4, 0}).Shaped({1}, DType::kInt32).Run(), "[0]");
  EXPECT_EQ(Inference("Reshape").Shaped({3}).Valued({kUnknownDim, 0}).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("LRN").Shaped(unknown).Run(), "[?,?,?,?]");
  EXPECT_EQ(Inference("MatrixSetDiagV3").Shaped(unknown).Shaped({4, 3}).Int(1).Run(), "[4,?,?]");
  EXPECT_EQ(Inference("MatrixSetDiagV3").Shaped(unknown).Shaped({4, 3}).Ints({0, 1}).Run(), "<unknown>");
}

Inference Conv(const char* op, std::vector<int64_t> strides = {1, 1, 1, 1}) {
  return std::move(Inference(op).With("strides", MakeListAttr(std::move(strides))).With("padding", std::string("VALID")));
}

TEST(ShapeInference, ConvolutionsAndPoolsUseEitherInput) {
  EXPECT_EQ(Conv("DepthwiseConv2dNative").Shaped({1, 6, 6, 2}).Shaped({1, 1, kUnknownDim, 3}).Run(), "[1,6,6,6]");
  EXPECT_EQ(Conv("Conv2D").Shaped({1, 6, 6, 9}).Shaped({1, 1, 4, kUnknownDim}).Run(), "INVALID_ARGUMENT");
  const Dims sizes = {kUnknownDim, 6, 5, 1}, image = {1, 2, 5, 5};
  EXPECT_EQ(Conv("Conv2DBackpropInput").Valued(sizes).Shaped({2, 2, 1, 1}).Shaped({2, 5, 4, 1}).Run(), "[2,6,5,1]");
  EXPECT_EQ(Conv("Conv2DBackpropFilter").Shaped({1, 2, 5, 5, 0}).Ints({3, 3, 1, 2}).Shaped(image).Run(), "[3,3,1,2]");
  EXPECT_EQ(Conv("Conv2DBackpropFilter").Shaped(image).Ints({3, 3, 2}).Shaped(image).Run(), "INVALID_ARGUMENT");
  const std::vector<int64_t> channels = {1, 1, 1, 3};
  EXPECT_EQ(Conv("AvgPool", channels).With("ksize", MakeListAttr(channels)).Shaped({1, 7, 3, 6}).Run(), "[1,7,3,6]");
  EXPECT_EQ(Conv("MaxPool", channels).With("ksize", MakeListAttr(channels)).Shaped({1, 7, 3, 6}).Run(), "[1,7,3,2]");
  EXPECT_EQ(Conv("MaxPool", {1, 1, 1, 0}).With("ksize", MakeListAttr<int64_t>({1, 3, 1, 1})).Shaped(image).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Conv("MaxPoolV2").Shaped(image).Shaped({3}, DType::kInt32).Shaped({4}, DType::kInt32).Run(), "INVALID_ARGUMENT");
}

TEST(ShapeInference, ContradictionsThatTensorFlowRefusesToImport) {
  EXPECT_EQ(Inference("Unique").Shaped({2, 3}).Run(2), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("UniqueWithCounts").Shaped({2, 3}).Run(3), "[s99]");
  EXPECT_EQ(Inference("Select").Shaped({3}, DType::kBool).Shaped(Dims{}).Shaped(PartialShape()).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("BroadcastTo").Shaped({3}).Int(4).Run(), "INVALID_ARGUMENT");
  Inference one_hot = Inference("OneHot").Shaped(PartialShape()).Int(2).Shaped(Dims{}).Shaped(Dims{});
  EXPECT_EQ(one_hot.With("axis", int64_t{-3}).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("Roll").Shaped({3}).Ints({1, 2}).Int(0).Run(), "INVALID_ARGUMENT");
  EXPECT_EQ(Inference("UnsortedSegmentSum").Shaped({3}).Shaped({3}, DType::kInt32).Int(-2).Run(), "INVALID_ARGUMENT");
  Inference gather = Inference("GatherV2").Shaped({3, 3, 3, 4}).Shaped({3, 3, 3}).Int(-2);
  EXPECT_EQ(gather.With("batch_dims", int64_t{3}).Run(), "<unknown>") << "the kernel refuses it, as in TensorFlow";
}

// Integers that follow from shapes and constants are constants to the ops that read them: here the axes of a sum.
TEST(ShapeInference, IntegersPutTogetherAreKnown) {
  const std::string text = R"(
    node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'shape' value { shape { dim { size: 2 } dim { size: 3 } dim { size: 5 } } } } }
    node { name: 'last' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
           attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: -1 } } } }
    node { name: 'rows' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
           attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node { name: 'axes' op: 'Pack' input: 'last' input: 'rows'
           attr { key: 'N' value { i: 2 } } attr { key: 'T' value { type: DT_INT32 } } }
    node { name: 'sum' op: 'Sum' input: 'x' input: 'axes'
           attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'Tidx' value { type: DT_INT32 } } }
    node { name: 'sizes' op: 'Shape' input: 'sum'
           attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'out_type' value { type: DT_INT64 } } }
    node { name: 'zeros' op: 'Fill' input: 'sizes' input: 'zero'
           attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'index_type' value { type: DT_INT64 } } }
    node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } }
           attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
  )";
  LoadOptions options;
  options.schemas = &BuiltinOps().schemas;
  absl::StatusOr<LoadResult> loaded = LoadGraphBytes(text, nullptr, "test.pbtxt", options);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_FALSE(loaded->has_errors()) << loaded->status();
  const Graph& graph = loaded->graph;
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("sum")).ToString(), "[3]");
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("zeros")).ToString(), "[3]");
  const TensorLiteralPtr axes = shapes.literal(*graph.ParseEndpoint("axes"));
  const TensorLiteralPtr sizes = shapes.literal(*graph.ParseEndpoint("sizes"));
  ASSERT_NE(axes, nullptr);
  EXPECT_EQ(*axes->ToInt64s(), (std::vector<int64_t>{-1, 0}));
  ASSERT_NE(sizes, nullptr);
  EXPECT_EQ(sizes->dtype, DType::kInt64);
  EXPECT_EQ(*sizes->ToInt64s(), (std::vector<int64_t>{3}));
}

TEST(ShapeInference, PlaceholderOfOldProducersCannotDeclareAScalar) {
  const Attr scalar = MakeShapeAttr(PartialShape::OfDims({}));
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Run(), "[]");
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Producer(22).Run(), "[]");
  EXPECT_EQ(Inference("Placeholder").With("shape", scalar).Producer(21).Run(), "<unknown>");
}

}  // namespace
}  // namespace thalweg
