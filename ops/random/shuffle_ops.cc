// RandomShuffle: the rows of a tensor in random order.
#include <numeric>
#include <utility>
#include <vector>

#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/random/random_ops.h"

namespace thalweg::random {
namespace {

class RandomShuffleKernel final : public Kernel {
 public:
  explicit RandomShuffleKernel(const KernelInit& init) : stream_(init.node().node_attrs()) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.num_elements() <= 1 || in.dim(0) <= 1) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const int64_t rows = in.dim(0), block = in.shape().NumElements(1, in.rank());
    std::vector<int64_t> offsets(rows);
    for (int64_t i = 0; i < rows; ++i) offsets[i] = i * block;
    // From front to back, each row changes places with one that is not behind it: one word for all rows but the last.
    PhiloxWords words(stream_.Reserve(static_cast<uint64_t>(rows - 1 + Philox::kWords - 1) / Philox::kWords));
    for (int64_t i = 0; i + 1 < rows; ++i) {
      std::swap(offsets[i], offsets[i + words() % static_cast<uint32_t>(rows - i)]);
    }
    BlockGather gather;
    gather.count = rows;
    gather.block = block;
    gather.offsets = offsets.data();
    GatherBlocks(ctx, in.dtype(), gather, in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  RandomStream stream_;
};

}  // namespace

void RegisterShuffleOps(OpLibrary& lib) {
  lib.schemas.Add("RandomShuffle(value: T) -> output: T", "seed: int = 0; seed2: int = 0; T: type")
      .Stateful().Shape(UnchangedShape).Cost(MovedBytesCost);
  lib.kernels.Add("RandomShuffle", "cpu", &MakeKernel<RandomShuffleKernel>);
}

}  // namespace thalweg::random
