// StringJoin, ReduceJoin, UnsortedSegmentJoin.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

// Room for `count` strings, of length(k) characters each. No length can overflow: its parts are in memory, and few.
template <typename Length>
absl::Status RequireTexts(KernelContext& ctx, int64_t count, const Length& length) {
  int64_t bytes = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (!CheckedAdd(bytes, TextBytes(static_cast<size_t>(length(k))), &bytes)) {
      return RequireTextMemory(ctx, std::numeric_limits<int64_t>::max());
    }
  }
  return RequireTextMemory(ctx, bytes);
}

// Element by element; scalars stand for tensors of one repeated element.
class StringJoinKernel final : public Kernel {
 public:
  explicit StringJoinKernel(const KernelInit& init)
      : separator_(init.node().node_attrs().GetOr<std::string>("separator", "")) {}

  absl::Status Compute(KernelContext& ctx) override {
    Shape shape;
    std::vector<const std::string*> texts;
    std::vector<int64_t> strides;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& own = ctx.input(i).shape();
      texts.push_back(ctx.input(i).flat<std::string>().data());
      strides.push_back(own.rank() == 0 ? 0 : 1);
      if (own.rank() == 0) continue;
      if (shape.rank() == 0) shape = own;
      if (shape != own) {
        return absl::InvalidArgumentError(absl::StrCat("inputs must be scalars or have one shape, but there are ",
                                                       shape.ToString(), " and ", own.ToString()));
      }
    }
    const auto length = [&](int64_t k) {
      int64_t characters = static_cast<int64_t>(separator_.size() * (std::max<size_t>(texts.size(), 1) - 1));
      for (size_t i = 0; i < texts.size(); ++i) characters += static_cast<int64_t>(texts[i][k * strides[i]].size());
      return characters;
    };
    THALWEG_RETURN_IF_ERROR(RequireTexts(ctx, shape.num_elements(), length));
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    std::string* out = tensor->mutable_flat<std::string>().data();
    ctx.ParallelFor(shape.num_elements(), kNanosPerString * static_cast<double>(texts.size()), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        out[k].reserve(static_cast<size_t>(length(k)));
        for (size_t i = 0; i < texts.size(); ++i) {
          if (i > 0) out[k] += separator_;
          out[k] += texts[i][k * strides[i]];
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  const std::string separator_;
};

absl::Status StringJoinShape(ShapeContext& c) {
  PartialShape shape = PartialShape::Known(Shape());
  bool all_ranks_known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& own = c.input(i);
    all_ranks_known &= own.has_rank();
    if (!own.has_rank() || own.rank() == 0) continue;
    if (shape.rank() == 0) shape = own;
    THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Merge(shape, own));
  }
  if (all_ranks_known || shape.rank() > 0) c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Which dimensions go, in the order in which they are joined: the first listed runs fastest.
struct JoinAxes {
  Dims joined;
  std::vector<bool> is_joined;
};

absl::StatusOr<JoinAxes> ResolveJoinAxes(absl::Span<const int64_t> axes, int rank) {
  JoinAxes result;
  result.is_joined.assign(rank, false);
  for (const int64_t axis : axes) {
    THALWEG_ASSIGN_OR_RETURN(const int d, NormalizeAxis(axis, rank, "reduction index"));
    if (result.is_joined[d]) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", d, " is listed twice in reduction_indices"));
    }
    result.is_joined[d] = true;
    result.joined.push_back(d);
  }
  return result;
}

template <typename ShapeType>
Dims JoinedDims(const ShapeType& in, const JoinAxes& axes, bool keep_dims) {
  Dims dims;
  for (int d = 0; d < in.rank(); ++d) {
    if (!axes.is_joined[d]) dims.push_back(in.dim(d));
    else if (keep_dims) dims.push_back(1);
  }
  return dims;
}

class ReduceJoinKernel final : public Kernel {
 public:
  explicit ReduceJoinKernel(const KernelInit& init)
      : keep_dims_(init.node().node_attrs().GetOr<bool>("keep_dims", false)),
        separator_(init.node().node_attrs().GetOr<std::string>("separator", "")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Dims listed, IntElementsArg(ctx.input(1), "reduction_indices"));
    THALWEG_ASSIGN_OR_RETURN(const JoinAxes axes, ResolveJoinAxes(listed, in.rank()));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(JoinedDims(in.shape(), axes, keep_dims_)));
    const Dims strides = RowMajorStrides(in.shape());
    Positions outer, inner;
    for (int d = 0; d < in.rank(); ++d) {
      if (!axes.is_joined[d]) outer.Add(in.dim(d), strides[d]);
    }
    for (size_t i = axes.joined.size(); i-- > 0;) inner.Add(in.dim(axes.joined[i]), strides[axes.joined[i]]);
    const std::string* texts = in.flat<std::string>().data();
    const auto length = [&](int64_t k) {
      int64_t characters = static_cast<int64_t>(separator_.size()) * (std::max<int64_t>(inner.count, 1) - 1);
      const int64_t base = outer[k];
      for (int64_t i = 0; i < inner.count; ++i) characters += static_cast<int64_t>(texts[base + inner[i]].size());
      return characters;
    };
    THALWEG_RETURN_IF_ERROR(RequireTexts(ctx, shape.num_elements(), length));
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    std::string* out = tensor->mutable_flat<std::string>().data();
    ctx.ParallelFor(shape.num_elements(), kNanosPerString * static_cast<double>(inner.count), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t base = outer[k];
        out[k].reserve(static_cast<size_t>(length(k)));
        for (int64_t i = 0; i < inner.count; ++i) {
          if (i > 0) out[k] += separator_;
          out[k] += texts[base + inner[i]];
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // The offsets of an index space, row by row.
  struct Positions {
    Dims extents, strides;
    int64_t count = 1;  // at most the element count of the input or the output

    void Add(int64_t extent, int64_t stride) {
      extents.push_back(extent);
      strides.push_back(stride);
      count *= extent;
    }
    int64_t operator[](int64_t k) const {
      int64_t offset = 0;
      for (size_t d = extents.size(); d-- > 0;) {
        offset += k % extents[d] * strides[d];
        k /= extents[d];
      }
      return offset;
    }
  };

  const bool keep_dims_;
  const std::string separator_;
};

absl::Status ReduceJoinShape(ShapeContext& c) {
  const std::optional<std::vector<int64_t>> axes = c.input_ints(1);
  const PartialShape& in = c.input(0);
  if (!axes || !in.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const JoinAxes resolved, ResolveJoinAxes(*axes, in.rank()));
  c.set_output(0, PartialShape::OfDims(JoinedDims(in, resolved, c.attrs().GetOr<bool>("keep_dims", false))));
  return absl::OkStatus();
}

// segment_ids names the output of each leading coordinate of the inputs.
absl::Status CheckSegments(const Shape& inputs, const Shape& ids) {
  const int rank = ids.rank();
  if (rank > inputs.rank()) {
    return absl::OutOfRangeError(absl::StrCat("segment_ids of shape ", ids.ToString(), " has more dimensions than inputs of shape ", inputs.ToString()));
  }
  if (std::equal(ids.dims().begin(), ids.dims().end(), inputs.dims().begin())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the shape of segment_ids, ", ids.ToString(),
                                                 ", must be a prefix of the shape of inputs, ", inputs.ToString()));
}

class UnsortedSegmentJoinKernel final : public Kernel {
 public:
  explicit UnsortedSegmentJoinKernel(const KernelInit& init)
      : separator_(init.node().node_attrs().GetOr<std::string>("separator", "")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    THALWEG_ASSIGN_OR_RETURN(const int64_t segments, IntScalarArg(ctx.input(2), "num_segments"));
    if (segments < 0) return absl::InvalidArgumentError(absl::StrCat("num_segments is ", segments, "; it must not be negative"));
    THALWEG_RETURN_IF_ERROR(CheckSegments(in.shape(), ids.shape()));
    Dims dims = {segments};
    dims.insert(dims.end(), in.shape().dims().begin() + ids.rank(), in.shape().dims().end());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    std::string* out = tensor->mutable_flat<std::string>().data();
    const std::string* texts = in.flat<std::string>().data();
    const int64_t block = in.shape().NumElements(ids.rank(), in.rank());
    // Each text goes to one output, with a separator before it.
    const int64_t separators = static_cast<int64_t>(separator_.size()) * in.num_elements();
    THALWEG_RETURN_IF_ERROR(RequireTextMemory(ctx, TextBytes(in.flat<std::string>()) + separators));
    return WithIndices(ids, [&](auto values) {
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t id = static_cast<int64_t>(values[i]);
        if (!IndexInRange(id, segments)) {
          return absl::InvalidArgumentError(absl::StrCat("segment_ids", CoordinateString(ids.shape(), static_cast<int64_t>(i)),
                                                         " is ", id, "; it must be in [0,", segments, ")"));
        }
        for (int64_t k = 0; k < block; ++k) {
          std::string& joined = out[id * block + k];
          if (!joined.empty()) joined += separator_;
          joined += texts[static_cast<int64_t>(i) * block + k];
        }
      }
      return absl::OkStatus();
    });
  }

 private:
  const std::string separator_;
};

absl::Status UnsortedSegmentJoinShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  const PartialShape& in = c.input(0);
  const PartialShape& ids = c.input(1);
  if (!in.has_rank() || !ids.has_rank() || ids.rank() > in.rank()) return absl::OkStatus();
  const std::optional<int64_t> segments = c.input_int(2);
  Dims dims = {segments && *segments >= 0 ? *segments : kUnknownDim};
  dims.insert(dims.end(), in.dims().begin() + ids.rank(), in.dims().end());
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

}  // namespace

void RegisterJoinOps(OpLibrary& lib) {
  lib.schemas.Add("StringJoin(inputs: N*string) -> output: string", "N: int >= 0; separator: string = \"\"")
      .Shape(StringJoinShape).Cost(StringCost);
  lib.kernels.Add("StringJoin", "cpu", &MakeKernel<StringJoinKernel>);

  lib.schemas.Add("ReduceJoin(inputs: string, reduction_indices: int32) -> output: string",
                  "keep_dims: bool = false; separator: string = \"\"")
      .Shape(ReduceJoinShape).Cost(ReductionCost);
  lib.kernels.Add("ReduceJoin", "cpu", &MakeKernel<ReduceJoinKernel>).HostMemory("reduction_indices");

  lib.schemas.Add("UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) -> output: string",
                  "separator: string = \"\"; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32")
      .Shape(UnsortedSegmentJoinShape).Cost(ReductionCost);
  lib.kernels.Add("UnsortedSegmentJoin", "cpu", &MakeKernel<UnsortedSegmentJoinKernel>).HostMemory("num_segments");
}

}  // namespace thalweg::strings
