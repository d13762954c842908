#include "thalweg/ops/common/emit_ints.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace thalweg {

absl::Status EmitInts(KernelContext& ctx, int i, absl::Span<const int64_t> values) {
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, Shape::Of({static_cast<int64_t>(values.size())})));
  if (out->dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), out->mutable_flat<int64_t>().begin());
    return absl::OkStatus();
  }
  int32_t* to = out->mutable_flat<int32_t>().data();
  for (const int64_t v : values) {
    if (v != static_cast<int32_t>(v)) {
      return absl::InvalidArgumentError(absl::StrCat(v, " does not fit output ", i, ", which is int32; ask for int64"));
    }
    *to++ = static_cast<int32_t>(v);
  }
  return absl::OkStatus();
}

}  // namespace thalweg
