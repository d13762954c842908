// StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong, Fingerprint.
#include <complex>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_hash.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

// What the hash of StringToHashBucket starts from.
constexpr uint64_t kSeed = 0xDECAFCAFFE;

uint64_t SeededHash(absl::string_view text) { return MurmurHash64(text, kSeed); }

// The hash modulo the number of buckets, which the declaration keeps positive.
template <uint64_t (*kHash)(absl::string_view)>
class HashBucketKernel final : public Kernel {
 public:
  explicit HashBucketKernel(int64_t buckets) : buckets_(static_cast<uint64_t>(buckets)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t buckets, init.Attr<int64_t>("num_buckets"));
    if (buckets < 1) return absl::InvalidArgumentError(absl::StrCat("num_buckets is ", buckets, "; it must be positive"));
    return std::unique_ptr<Kernel>(std::make_unique<HashBucketKernel>(buckets));
  }

  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<int64_t>(ctx, [this](const std::string& text, int64_t* bucket) {
      *bucket = static_cast<int64_t>(kHash(text) % buckets_);
      return absl::OkStatus();
    });
  }

 private:
  const uint64_t buckets_;
};

class StrongHashBucketKernel final : public Kernel {
 public:
  StrongHashBucketKernel(int64_t buckets, uint64_t key0, uint64_t key1)
      : buckets_(static_cast<uint64_t>(buckets)), key0_(key0), key1_(key1) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t buckets, init.Attr<int64_t>("num_buckets"));
    THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> key, init.Attr<std::vector<int64_t>>("key"));
    if (buckets < 1 || key.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("num_buckets is ", buckets, " and key has ", key.size(), " elements; it must be positive, and have two"));
    }
    return std::unique_ptr<Kernel>(
        std::make_unique<StrongHashBucketKernel>(buckets, static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])));
  }

  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<int64_t>(ctx, [this](const std::string& text, int64_t* bucket) {
      *bucket = static_cast<int64_t>(SipHash(text, key0_, key1_) % buckets_);
      return absl::OkStatus();
    });
  }

 private:
  const uint64_t buckets_, key0_, key1_;
};

// Eight bytes for each row of the data.
class FingerprintKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(1), "method"));
    const std::string& method = ctx.input(1).flat<std::string>()[0];
    if (method != "farmhash64") {
      return absl::InvalidArgumentError(absl::StrCat("method is '", method, "'; it must be 'farmhash64'"));
    }
    if (data.rank() == 0) return absl::InvalidArgumentError("data must have at least rank 1, but it is a scalar");
    const int64_t rows = data.dim(0), row = data.shape().NumElements(1, data.rank());
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Of({rows, 8})));
    char* bytes = static_cast<char*>(out->mutable_raw());
    const int64_t row_bytes = row * static_cast<int64_t>(DTypeSize(data.dtype()));
    for (int64_t r = 0; r < rows; ++r, bytes += 8) {
      const uint64_t print = data.dtype() == DType::kString
                                 ? PrintOfStrings(data.flat<std::string>().subspan(r * row, row))
                                 : Fingerprint64(absl::string_view(static_cast<const char*>(data.raw()) + r * row_bytes, row_bytes));
      std::memcpy(bytes, &print, 8);
    }
    return absl::OkStatus();
  }

 private:
  // Of one string its own, of several that of their fingerprints.
  static uint64_t PrintOfStrings(absl::Span<const std::string> texts) {
    if (texts.size() == 1) return Fingerprint64(texts[0]);
    std::string prints;
    for (const std::string& text : texts) {
      const uint64_t print = Fingerprint64(text);
      prints.append(reinterpret_cast<const char*>(&print), sizeof(print));
    }
    return Fingerprint64(prints);
  }
};

absl::Status FingerprintShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(0, PartialShape::OfDims({c.input(0).has_rank() ? c.input(0).dim(0) : kUnknownDim, 8}));
  return absl::OkStatus();
}

}  // namespace

void RegisterHashOps(OpLibrary& lib) {
  lib.schemas.Add("StringToHashBucket(string_tensor: string) -> output: int64", "num_buckets: int >= 1")
      .Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringToHashBucket", "cpu", &MakeFallibleKernel<HashBucketKernel<SeededHash>>);
  lib.schemas.Add("StringToHashBucketFast(input: string) -> output: int64", "num_buckets: int >= 1")
      .Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringToHashBucketFast", "cpu", &MakeFallibleKernel<HashBucketKernel<Fingerprint64>>);
  lib.schemas.Add("StringToHashBucketStrong(input: string) -> output: int64", "num_buckets: int >= 1; key: list(int)")
      .Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringToHashBucketStrong", "cpu", &MakeFallibleKernel<StrongHashBucketKernel>);
  lib.schemas.Add("Fingerprint(data: T, method: string) -> fingerprint: uint8", "T: type").Shape(FingerprintShape).Cost(CopyCost);
  lib.kernels.Add("Fingerprint", "cpu", &MakeKernel<FingerprintKernel>)
      .Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool,
            std::complex<float>, std::complex<double>, std::string>("T");
}

}  // namespace thalweg::strings
