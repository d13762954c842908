// ReverseSequence: in each entry of a batch, the first elements along an axis turned round.
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

absl::Status CheckAxes(int64_t seq_dim, int64_t batch_dim, int rank) {
  for (const int64_t axis : {seq_dim, batch_dim}) {
    if (axis >= 0 && axis < rank) continue;
    return absl::InvalidArgumentError(absl::StrCat("seq_dim is ", seq_dim, " and batch_dim ", batch_dim,
                                                   "; both must be in [0,", rank, "), the dimensions of input"));
  }
  return absl::OkStatus();
}

absl::Status CheckAxesDiffer(int64_t seq_dim, int64_t batch_dim) {
  if (seq_dim != batch_dim) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("seq_dim and batch_dim are both ", seq_dim, "; they must differ"));
}

class ReverseSequenceKernel : public Kernel {
 public:
  explicit ReverseSequenceKernel(const KernelInit& init)
      : seq_dim_(init.node().node_attrs().GetOr<int64_t>("seq_dim", 0)),
        batch_dim_(init.node().node_attrs().GetOr<int64_t>("batch_dim", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& lengths = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(CheckAxes(seq_dim_, batch_dim_, in.rank()));
    THALWEG_RETURN_IF_ERROR(CheckAxesDiffer(seq_dim_, batch_dim_));
    const int seq = static_cast<int>(seq_dim_), batch = static_cast<int>(batch_dim_);
    if (lengths.shape() != Shape::Of({in.dim(batch)})) {
      return absl::InvalidArgumentError(absl::StrCat("seq_lengths must be a vector of ", in.dim(batch),
                                                     " elements, one per batch entry, but its shape is ",
                                                     lengths.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    return WithIndices(lengths, [&](auto values) {
      for (size_t b = 0; b < values.size(); ++b) {
        const int64_t length = static_cast<int64_t>(values[b]);
        if (length < 0 || length > in.dim(seq)) {
          return absl::InvalidArgumentError(
              absl::StrCat("seq_lengths[", b, "] is ", length, "; it must be in [0,", in.dim(seq), "]"));
        }
        ReverseEntry(ctx, in, seq, batch, static_cast<int64_t>(b), length, out);
      }
      return absl::OkStatus();
    });
  }

 private:
  static void ReverseEntry(KernelContext& ctx, const Tensor& in, int seq, int batch, int64_t entry, int64_t length, Tensor* out) {
    const Dims strides = RowMajorStrides(in.shape());
    CopyDims dims;
    for (int d = 0; d < in.rank(); ++d) dims.push_back({d == batch ? 1 : in.dim(d), strides[d], strides[d]});
    const int64_t start = entry * strides[batch];
    if (in.num_elements() == 0) return;
    if (length > 0) {
      CopyDims reversed = dims;
      reversed[seq] = {length, -strides[seq], strides[seq]};
      StridedCopy(ctx, in.dtype(), std::move(reversed), ElementAt(in, start + (length - 1) * strides[seq]),
                  MutableElementAt(*out, start));
    }
    if (length < in.dim(seq)) {
      dims[seq].extent = in.dim(seq) - length;
      const int64_t rest = start + length * strides[seq];
      StridedCopy(ctx, in.dtype(), std::move(dims), ElementAt(in, rest), MutableElementAt(*out, rest));
    }
  }

  const int64_t seq_dim_;
  const int64_t batch_dim_;
};

absl::Status ReverseSequenceShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  PartialShape in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  const int64_t batch = c.attrs().GetOr<int64_t>("batch_dim", 0);
  THALWEG_RETURN_IF_ERROR(CheckAxes(c.attrs().GetOr<int64_t>("seq_dim", 0), batch, in.rank()));
  if (c.input(1).has_rank()) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t entries, ShapeContext::MergeDim(in.dim(static_cast<int>(batch)), c.input(1).dim(0)));
    in.set_dim(static_cast<int>(batch), entries);
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

}  // namespace

void RegisterReverseSequence(OpLibrary& lib) {
  lib.schemas
      .Add("ReverseSequence(input: T, seq_lengths: Tlen) -> output: T",
           "seq_dim: int; batch_dim: int = 0; T: type; Tlen: {int32, int64} = int64")
      .Shape(ReverseSequenceShape)
      .Cost(CopyCost);
  lib.kernels.Add("ReverseSequence", "cpu", MakeKernel<ReverseSequenceKernel>);
}

}  // namespace thalweg
