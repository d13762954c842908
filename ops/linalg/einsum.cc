// Einsum of one or two operands: any equation, with repeated labels (diagonals), labels that are summed away, and ellipses
// that broadcast. Two operands are brought into the form of a batch of matrix products.
#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/linalg/batch_gemm.h"
#include "thalweg/ops/linalg/einsum_equation.h"
#include "thalweg/ops/linalg/linalg_ops.h"

namespace thalweg {
namespace {

bool Contains(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

Labels Joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// The size of each label; kUnknownDim for those that do not occur.
class LabelSizes {
 public:
  LabelSizes() { sizes_.fill(kUnknownDim); }
  int64_t operator[](int label) const { return sizes_[label]; }

  // A dimension with this label has this size. Those of an ellipsis broadcast.
  absl::Status Add(int label, int64_t size) {
    int64_t& known = sizes_[label];
    const bool broadcasts = label >= kFirstEllipsisLabel;
    if (known == kUnknownDim || (broadcasts && known == 1)) {
      known = size;
    } else if (known != size && !(broadcasts && size == 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(broadcasts ? std::string("a dimension of the ellipsis") : absl::StrCat("label '", Name(label), "'"),
                       " has two sizes, ", known, " and ", size));
    }
    return absl::OkStatus();
  }

  // InvalidArgument if a tensor with these labels would have too many elements.
  absl::StatusOr<Shape> ShapeOf(const Labels& labels) const {
    Dims dims;
    for (const int label : labels) dims.push_back(sizes_[label]);
    return Shape::Make(dims);
  }

 private:
  static std::string Name(int label) { return std::string(1, static_cast<char>(label < 26 ? 'a' + label : 'A' + label - 26)); }

  std::array<int64_t, kMaxLabels> sizes_;
};

// A tensor of the computing type whose dimensions are known by label.
struct Operand {
  Tensor tensor;
  Labels labels;  // each once
  Dims strides;   // in elements, per label: summed for a diagonal, 0 for a broadcast dimension

  int64_t StrideOf(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? 0 : strides[at - labels.begin()];
  }
};

Operand MakeOperand(Tensor tensor, const Labels& labels) {
  Operand operand;
  const Dims strides = RowMajorStrides(tensor.shape());
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t stride = tensor.dim(static_cast<int>(i)) == 1 ? 0 : strides[i];
    const auto at = std::find(operand.labels.begin(), operand.labels.end(), labels[i]);
    if (at != operand.labels.end()) {
      operand.strides[at - operand.labels.begin()] += stride;
    } else {
      operand.labels.push_back(labels[i]);
      operand.strides.push_back(stride);
    }
  }
  operand.tensor = std::move(tensor);
  return operand;
}

// True if the operand's elements lie in memory as a dense tensor with labels in this order.
bool IsDense(const Operand& operand, const LabelSizes& sizes, const Labels& order) {
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t size = sizes[order[i]];
    if (size != 1 && operand.StrideOf(order[i]) != expected) return false;
    expected *= size;
  }
  return expected == operand.tensor.num_elements();
}

// A dense tensor with labels in this order: the operand's own where it is that, else a copy.
absl::StatusOr<Tensor> Arrange(KernelContext& ctx, const Operand& operand, const LabelSizes& sizes, const Labels& order) {
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, sizes.ShapeOf(order));
  if (IsDense(operand, sizes, order)) return operand.tensor.AliasedAs(operand.tensor.dtype(), shape);
  THALWEG_ASSIGN_OR_RETURN(Tensor arranged, ctx.AllocateTemp(operand.tensor.dtype(), shape));
  if (shape.num_elements() == 0) return arranged;
  const Dims dense = RowMajorStrides(shape);
  CopyDims dims;
  for (size_t i = 0; i < order.size(); ++i) dims.push_back({sizes[order[i]], operand.StrideOf(order[i]), dense[i]});
  StridedCopy(ctx, arranged.dtype(), std::move(dims), operand.tensor.raw(), arranged.mutable_raw());
  return arranged;
}

// What sums of T are carried in; integers wrap.
template <typename T> struct Carrier { using type = std::make_unsigned_t<T>; };
template <> struct Carrier<float> { using type = double; };
template <> struct Carrier<double> { using type = double; };
template <typename R> struct Carrier<std::complex<R>> { using type = std::complex<double>; };

// Sums away the labels that are not in `kept`, if there are any.
template <typename T>
absl::StatusOr<Operand> SumOthers(KernelContext& ctx, Operand operand, const LabelSizes& sizes, const Labels& kept) {
  Labels stay, go;
  for (const int label : operand.labels) (Contains(kept, label) ? stay : go).push_back(label);
  if (go.empty()) return operand;
  THALWEG_ASSIGN_OR_RETURN(const Tensor arranged, Arrange(ctx, operand, sizes, Joined({&stay, &go})));
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, sizes.ShapeOf(stay));
  THALWEG_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(arranged.dtype(), shape));
  int64_t row = 1;
  for (const int label : go) row *= sizes[label];
  const T* in = static_cast<const T*>(arranged.raw());
  T* out = static_cast<T*>(sums.mutable_raw());
  ctx.ParallelFor(shape.num_elements(), 0.5 * static_cast<double>(row), [&](int64_t begin, int64_t end) {
    using Sum = typename Carrier<T>::type;
    for (int64_t i = begin; i < end; ++i) {
      Sum sum(0);
      for (int64_t k = 0; k < row; ++k) sum += static_cast<Sum>(in[i * row + k]);
      out[i] = static_cast<T>(sum);
    }
  });
  return MakeOperand(std::move(sums), stay);
}

// Writes a dense tensor with these labels as output 0, whose labels may be in another order and occur several times.
absl::Status Emit(KernelContext& ctx, const Operand& result, const LabelSizes& sizes, const Labels& labels) {
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, sizes.ShapeOf(labels));
  THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, shape));
  Tensor* out = output.mutable_tensor();
  const Dims dense = RowMajorStrides(shape);
  CopyDims dims;
  for (const int label : result.labels) {
    int64_t stride = 0;
    for (size_t i = 0; i < labels.size(); ++i) stride += labels[i] == label ? dense[i] : 0;
    dims.push_back({sizes[label], result.StrideOf(label), stride});
  }
  // Off the diagonals of repeated labels there is nothing.
  if (labels.size() > result.labels.size()) {
    std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
  }
  if (shape.num_elements() > 0) StridedCopy(ctx, out->dtype(), std::move(dims), result.tensor.raw(), out->mutable_raw());
  output.Finish(ctx);
  return absl::OkStatus();
}

// The roles of labels in a product of two operands that both have no labels of their own to be summed.
struct ProductLabels {
  Labels batch, contracted, left, right;
};

ProductLabels SortLabels(const Labels& a, const Labels& b, const Labels& output) {
  ProductLabels sorted;
  for (const int label : a) {
    if (!Contains(b, label)) sorted.left.push_back(label);
    else (Contains(output, label) ? sorted.batch : sorted.contracted).push_back(label);
  }
  for (const int label : b) {
    if (!Contains(a, label)) sorted.right.push_back(label);
  }
  return sorted;
}

// T is the computing type.
template <typename T>
class EinsumKernel final : public Kernel {
 public:
  explicit EinsumKernel(EinsumEquation equation) : equation_(std::move(equation)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const std::string text, init.Attr<std::string>("equation"));
    THALWEG_ASSIGN_OR_RETURN(EinsumEquation equation, ParseEinsum(text, static_cast<int>(init.node().input_types().size())));
    PrepareGemm(DTypeOf<T>::value);
    return std::unique_ptr<Kernel>(std::make_unique<EinsumKernel>(std::move(equation)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    LabelSizes sizes;
    std::vector<Labels> labels;
    int ellipsis = 0;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& shape = ctx.input(i).shape();
      THALWEG_ASSIGN_OR_RETURN(Labels own, LabelsOfOperand(equation_.inputs[i], shape.rank()));
      for (int d = 0; d < shape.rank(); ++d) THALWEG_RETURN_IF_ERROR(sizes.Add(own[d], shape.dim(d)));
      ellipsis = std::max(ellipsis, EllipsisRank(equation_.inputs[i], shape.rank()));
      labels.push_back(std::move(own));
    }
    const Labels output = LabelsOfOutput(equation_.output, ellipsis);
    std::vector<Operand> operands;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(Tensor tensor, ToComputing(ctx, ctx.input(i)));
      const Labels kept = i + 1 < ctx.num_inputs() ? Joined({&output, &labels[1]}) : i > 0 ? Joined({&output, &labels[0]}) : output;
      THALWEG_ASSIGN_OR_RETURN(Operand operand, SumOthers<T>(ctx, MakeOperand(std::move(tensor), labels[i]), sizes, kept));
      operands.push_back(std::move(operand));
    }
    if (operands.size() == 1) return Emit(ctx, operands[0], sizes, output);
    THALWEG_ASSIGN_OR_RETURN(const Operand product, Multiply(ctx, operands[0], operands[1], sizes, output));
    return Emit(ctx, product, sizes, output);
  }

 private:
  static absl::StatusOr<Operand> Multiply(KernelContext& ctx, const Operand& a, const Operand& b, const LabelSizes& sizes,
                                          const Labels& output) {
    const ProductLabels roles = SortLabels(a.labels, b.labels, output);
    const Labels a_as_is = Joined({&roles.batch, &roles.left, &roles.contracted}),
                 a_transposed = Joined({&roles.batch, &roles.contracted, &roles.left}),
                 b_as_is = Joined({&roles.batch, &roles.contracted, &roles.right}),
                 b_transposed = Joined({&roles.batch, &roles.right, &roles.contracted});
    GemmArgs<T> gemm;
    gemm.transpose_a = IsDense(a, sizes, a_transposed) && !IsDense(a, sizes, a_as_is);
    gemm.transpose_b = IsDense(b, sizes, b_transposed) && !IsDense(b, sizes, b_as_is);
    THALWEG_ASSIGN_OR_RETURN(const Tensor left, Arrange(ctx, a, sizes, gemm.transpose_a ? a_transposed : a_as_is));
    THALWEG_ASSIGN_OR_RETURN(const Tensor right, Arrange(ctx, b, sizes, gemm.transpose_b ? b_transposed : b_as_is));
    const Labels labels = Joined({&roles.batch, &roles.left, &roles.right});
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, sizes.ShapeOf(labels));
    THALWEG_ASSIGN_OR_RETURN(Tensor product, ctx.AllocateTemp(left.dtype(), shape));
    if (shape.num_elements() > 0) {
      const auto count = [&](const Labels& part) {
        int64_t n = 1;
        for (const int label : part) n *= sizes[label];
        return n;
      };
      gemm.m = count(roles.left);
      gemm.n = count(roles.right);
      gemm.k = count(roles.contracted);
      gemm.lda = gemm.transpose_a ? gemm.m : gemm.k;
      gemm.ldb = gemm.transpose_b ? gemm.k : gemm.n;
      gemm.ldc = gemm.n;
      gemm.a = static_cast<const T*>(left.raw());
      gemm.b = static_cast<const T*>(right.raw());
      gemm.c = static_cast<T*>(product.mutable_raw());
      const auto same = [](int64_t i) { return i; };
      THALWEG_RETURN_IF_ERROR(BatchGemm(ctx, gemm, count(roles.batch), same, same));
    }
    return MakeOperand(std::move(product), labels);
  }

  const EinsumEquation equation_;
};

// ---- shapes

// Dimensions by label as far as known; nullopt where the rank of an operand with an ellipsis is not.
struct PartialSizes {
  std::array<int64_t, kMaxLabels> dims;
  bool ranks_known = true;
  int ellipsis = 0;
};

absl::StatusOr<PartialSizes> CollectSizes(absl::Span<const PartialShape> shapes, const EinsumEquation& equation) {
  PartialSizes sizes;
  sizes.dims.fill(kUnknownDim);
  std::array<bool, kMaxLabels> seen{};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const PartialShape& shape = shapes[i];
    if (!shape.has_rank()) {
      sizes.ranks_known = false;
      continue;
    }
    THALWEG_ASSIGN_OR_RETURN(const Labels labels, LabelsOfOperand(equation.inputs[i], shape.rank()));
    sizes.ellipsis = std::max(sizes.ellipsis, EllipsisRank(equation.inputs[i], shape.rank()));
    for (int d = 0; d < shape.rank(); ++d) {
      int64_t& known = sizes.dims[labels[d]];
      if (!seen[labels[d]]) {
        known = shape.dim(d);
      } else if (labels[d] < kFirstEllipsisLabel) {
        THALWEG_ASSIGN_OR_RETURN(known, ShapeContext::MergeDim(known, shape.dim(d)));
      } else {
        THALWEG_ASSIGN_OR_RETURN(const PartialShape both, ShapeContext::Broadcast(PartialShape::OfDims({known}),
                                                                                 PartialShape::OfDims({shape.dim(d)})));
        known = both.dim(0);
      }
      seen[labels[d]] = true;
    }
  }
  return sizes;
}

absl::StatusOr<EinsumEquation> EquationOf(const NodeAttrs& attrs, int num_inputs) {
  THALWEG_ASSIGN_OR_RETURN(const std::string text, attrs.Get<std::string>("equation"));
  return ParseEinsum(text, num_inputs);
}

absl::Status EinsumShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const EinsumEquation equation, EquationOf(c.attrs(), c.num_inputs()));
  std::vector<PartialShape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  THALWEG_ASSIGN_OR_RETURN(const PartialSizes sizes, CollectSizes(shapes, equation));
  if (!sizes.ranks_known && Contains(equation.output, kEllipsis)) return absl::OkStatus();
  Dims dims;
  for (const int label : LabelsOfOutput(equation.output, sizes.ellipsis)) dims.push_back(sizes.dims[label]);
  if (dims.size() <= kMaxRank) c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// A multiply-add for each combination of labels.
NodeCost EinsumCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  const absl::StatusOr<EinsumEquation> equation = EquationOf(c.attrs(), c.num_inputs());
  if (!equation.ok()) return cost;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  const absl::StatusOr<PartialSizes> sizes = CollectSizes(shapes, *equation);
  if (!sizes.ok()) return cost;
  cost.flops = c.num_inputs() > 1 ? 2 : 1;
  for (const int64_t dim : sizes->dims) cost.flops *= dim > 1 ? static_cast<double>(dim) : 1;
  return cost;
}

template <typename T, typename... Storage>
void AddEinsum(OpLibrary& lib) {
  lib.kernels.Add("Einsum", "cpu", MakeFallibleKernel<EinsumKernel<T>>).template Type<Storage...>("T");
}

}  // namespace

void RegisterEinsum(OpLibrary& lib) {
  lib.schemas.Add("Einsum(inputs: N*T) -> output: T", "equation: string; N: int >= 1; T: type").Shape(EinsumShape).Cost(EinsumCost);
  AddEinsum<float, float, half, bfloat16>(lib);
  AddEinsum<double, double>(lib);
  AddEinsum<int32_t, int32_t>(lib);
  AddEinsum<int64_t, int64_t>(lib);
  AddEinsum<std::complex<float>, std::complex<float>>(lib);
  AddEinsum<std::complex<double>, std::complex<double>>(lib);
}

}  // namespace thalweg
