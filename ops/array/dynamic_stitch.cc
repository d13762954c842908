// DynamicPartition: slices of a tensor dealt out to several outputs. DynamicStitch, ParallelDynamicStitch: slices of several
// tensors put together in one.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/index_args.h"

namespace thalweg {
namespace {

bool IsPrefix(const Shape& prefix, const Shape& shape) {
  return prefix.rank() <= shape.rank() && std::equal(prefix.dims().begin(), prefix.dims().end(), shape.dims().begin());
}

// ---- DynamicPartition

class DynamicPartitionKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& partitions = ctx.input(1);
    if (!IsPrefix(partitions.shape(), data.shape())) {
      return absl::InvalidArgumentError(absl::StrCat("the shape of partitions, ", partitions.shape().ToString(),
                                                     ", must be a prefix of the shape of data, ", data.shape().ToString()));
    }
    const int64_t block = data.shape().NumElements(partitions.rank(), data.rank());
    std::vector<std::vector<int64_t>> offsets(ctx.num_outputs());
    const absl::Span<const int32_t> numbers = partitions.flat<int32_t>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!IndexInRange(numbers[i], ctx.num_outputs())) {
        return absl::InvalidArgumentError(absl::StrCat("partitions", CoordinateString(partitions.shape(), static_cast<int64_t>(i)),
                                                       " is ", numbers[i], "; it must be in [0,", ctx.num_outputs(), ")"));
      }
      offsets[numbers[i]].push_back(static_cast<int64_t>(i) * block);
    }
    for (int p = 0; p < ctx.num_outputs(); ++p) {
      Dims dims = {static_cast<int64_t>(offsets[p].size())};
      dims.insert(dims.end(), data.shape().dims().begin() + partitions.rank(), data.shape().dims().end());
      THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
      THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(p, shape));
      BlockGather gather;
      gather.count = dims[0];
      gather.block = block;
      gather.offsets = offsets[p].data();
      GatherBlocks(ctx, data.dtype(), gather, data.raw(), out->mutable_raw());
    }
    return absl::OkStatus();
  }
};

absl::Status DynamicPartitionShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& partitions = c.input(1);
  if (!data.has_rank() || !partitions.has_rank()) return absl::OkStatus();
  if (partitions.rank() > data.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("the shape of partitions, ", partitions.ToString(),
                                                   ", must be a prefix of the shape of data, ", data.ToString()));
  }
  for (int i = 0; i < partitions.rank(); ++i) THALWEG_RETURN_IF_ERROR(ShapeContext::MergeDim(data.dim(i), partitions.dim(i)).status());
  for (int p = 0; p < c.num_outputs(); ++p) {
    Dims dims = {c.NewSymbol()};
    dims.insert(dims.end(), data.dims().begin() + partitions.rank(), data.dims().end());
    c.set_output(p, PartialShape::OfDims(std::move(dims)));
  }
  return absl::OkStatus();
}

// ---- DynamicStitch: inputs are n tensors of indices, then n of data

// Where a slice goes is named by its index; of several with one index, the last counts. What no index names is zero.
class DynamicStitchKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const int n = ctx.num_inputs() / 2;
    THALWEG_ASSIGN_OR_RETURN(const Dims slice, SliceDims(ctx, n));
    THALWEG_ASSIGN_OR_RETURN(const int64_t rows, CountRows(ctx, n));
    Dims dims = {rows};
    dims.insert(dims.end(), slice.begin(), slice.end());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (IsPlainMemory(out->dtype())) {
      std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
    }
    const int64_t block = shape.NumElements(1, shape.rank());
    if (block == 0) return absl::OkStatus();
    WithCell(out->dtype(), [&](auto cell) {
      using Cell = decltype(cell);
      char* target = static_cast<char*>(out->mutable_raw());
      for (int i = 0; i < n; ++i) {
        const char* from = static_cast<const char*>(ctx.input(n + i).raw());
        for (const int32_t index : ctx.input(i).flat<int32_t>()) {
          Cell::CopyRun(target + index * block * Cell::kBytes, from, block);
          from += block * Cell::kBytes;
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // The dimensions of one slice, which all pairs of inputs must agree on.
  static absl::StatusOr<Dims> SliceDims(KernelContext& ctx, int n) {
    Dims slice;
    for (int i = 0; i < n; ++i) {
      const Shape& indices = ctx.input(i).shape();
      const Shape& data = ctx.input(n + i).shape();
      if (!IsPrefix(indices, data)) {
        return absl::InvalidArgumentError(absl::StrCat("the shape of indices[", i, "], ", indices.ToString(),
                                                       ", must be a prefix of the shape of data[", i, "], ", data.ToString()));
      }
      Dims own(data.dims().begin() + indices.rank(), data.dims().end());
      if (i > 0 && own != slice) {
        return absl::InvalidArgumentError(absl::StrCat("slices must have one shape, but those of data[0] have ",
                                                       PartialShape::OfDims(slice).ToString(), " and those of data[", i, "] ",
                                                       PartialShape::OfDims(own).ToString()));
      }
      slice = std::move(own);
    }
    return slice;
  }

  static absl::StatusOr<int64_t> CountRows(KernelContext& ctx, int n) {
    int64_t rows = 0;
    for (int i = 0; i < n; ++i) {
      for (const int32_t index : ctx.input(i).flat<int32_t>()) {
        if (index < 0) {
          return absl::InvalidArgumentError(absl::StrCat("indices[", i, "] has ", index, "; indices must not be negative"));
        }
        rows = std::max<int64_t>(rows, int64_t{index} + 1);
      }
    }
    return rows;
  }
};

absl::Status DynamicStitchShape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape slice;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const std::optional<std::vector<int64_t>> values = c.input_ints(i);
    if (!values) rows = kUnknownDim;
    for (size_t k = 0; values && rows != kUnknownDim && k < values->size(); ++k) rows = std::max(rows, (*values)[k] + 1);
    const PartialShape& indices = c.input(i);
    const PartialShape& data = c.input(n + i);
    if (!indices.has_rank() || !data.has_rank()) continue;
    if (indices.rank() > data.rank()) {
      return absl::InvalidArgumentError(absl::StrCat("the shape of indices[", i, "], ", indices.ToString(),
                                                     ", must be a prefix of the shape of data[", i, "], ", data.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(
        slice, ShapeContext::Merge(slice, PartialShape::OfDims(Dims(data.dims().begin() + indices.rank(), data.dims().end()))));
  }
  if (!slice.has_rank()) return absl::OkStatus();
  Dims dims = {rows};
  dims.insert(dims.end(), slice.dims().begin(), slice.dims().end());
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterDynamicStitchOps(OpLibrary& lib) {
  lib.schemas
      .Add("DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions*T", "num_partitions: int >= 1; T: type")
      .Shape(DynamicPartitionShape)
      .Cost(CopyCost);
  lib.kernels.Add("DynamicPartition", "cpu", MakeKernel<DynamicPartitionKernel>);
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    lib.schemas.Add(absl::StrCat(op, "(indices: N*int32, data: N*T) -> merged: T"), "N: int >= 1; T: type")
        .Shape(DynamicStitchShape)
        .Cost(CopyCost);
    lib.kernels.Add(op, "cpu", MakeKernel<DynamicStitchKernel>);
  }
}

}  // namespace thalweg
