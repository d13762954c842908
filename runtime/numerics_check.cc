#include "thalweg/runtime/numerics_check.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

// Magnitudes (all bits but the sign) up to `largest` are finite. The next one is infinity, if the type has it, those above NaN.
template <typename W, W kLargest, bool kHasInfinity = true>
struct Format {
  using Word = W;
  static constexpr Word kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  static constexpr Word Magnitude(Word word) { return static_cast<Word>(word & ~kSign); }
  static constexpr bool IsFinite(Word word) { return Magnitude(word) <= kLargest; }
  static constexpr bool IsInfinite(Word word) { return kHasInfinity && Magnitude(word) == kLargest + 1; }
};
using Half = Format<uint16_t, 0x7bff>;
using BFloat16 = Format<uint16_t, 0x7f7f>;
using Float32 = Format<uint32_t, 0x7f7fffff>;
using Float64 = Format<uint64_t, 0x7fefffffffffffff>;
using Float8E5M2 = Format<uint8_t, 0x7b>;
using Float8E4M3FN = Format<uint8_t, 0x7e, /*kHasInfinity=*/false>;

enum class Kind { kFinite, kNaN, kInfinity, kNegativeInfinity };

struct Counts {
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t negative_infinities = 0;
  int64_t first = -1;  // flat index of the first that counts as a fault
  Kind first_kind = Kind::kFinite;
};

template <typename F>
Kind KindOf(typename F::Word word) {
  if (F::IsFinite(word)) return Kind::kFinite;
  if (!F::IsInfinite(word)) return Kind::kNaN;
  return (word & F::kSign) == 0 ? Kind::kInfinity : Kind::kNegativeInfinity;
}

// Of a complex number with a NaN in it, NaN; of one with an infinity, that.
template <typename F>
Kind KindOfElement(const typename F::Word* parts, int num_parts) {
  Kind kind = Kind::kFinite;
  for (int i = 0; i < num_parts && kind != Kind::kNaN; ++i) {
    const Kind part = KindOf<F>(parts[i]);
    if (part == Kind::kNaN || kind == Kind::kFinite) kind = part;
  }
  return kind;
}

template <typename F>
Counts Count(const Tensor& tensor, int parts, NumericsCheck check) {
  const auto* words = static_cast<const typename F::Word*>(tensor.raw());
  Counts counts;
  const int64_t num_elements = tensor.num_elements();
  // Without a branch, so that the usual case is as quick as reading.
  bool all_finite = true;
  for (int64_t i = 0; i < num_elements * parts; ++i) all_finite &= F::IsFinite(words[i]);
  if (all_finite) return counts;
  for (int64_t i = 0; i < num_elements; ++i) {
    const Kind kind = KindOfElement<F>(words + i * parts, parts);
    counts.nans += kind == Kind::kNaN;
    counts.infinities += kind == Kind::kInfinity;
    counts.negative_infinities += kind == Kind::kNegativeInfinity;
    const bool is_fault = kind == Kind::kNaN || (kind != Kind::kFinite && check == NumericsCheck::kNaNAndInf);
    if (!is_fault || counts.first >= 0) continue;
    counts.first = i;
    counts.first_kind = kind;
  }
  return counts;
}

Counts CountOf(const Tensor& tensor, NumericsCheck check) {
  switch (tensor.dtype()) {
    case DType::kFloat16: return Count<Half>(tensor, 1, check);
    case DType::kBFloat16: return Count<BFloat16>(tensor, 1, check);
    case DType::kFloat32: return Count<Float32>(tensor, 1, check);
    case DType::kFloat64: return Count<Float64>(tensor, 1, check);
    case DType::kComplex64: return Count<Float32>(tensor, 2, check);
    case DType::kComplex128: return Count<Float64>(tensor, 2, check);
    case DType::kFloat8E5M2: return Count<Float8E5M2>(tensor, 1, check);
    case DType::kFloat8E4M3FN: return Count<Float8E4M3FN>(tensor, 1, check);
    default: return {};
  }
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kNaN: return "NaN";
    case Kind::kInfinity: return "Inf";
    case Kind::kNegativeInfinity: return "-Inf";
    case Kind::kFinite: break;
  }
  return "finite";
}

std::string Describe(const Counts& counts, const Tensor& tensor) {
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, Kind kind) {
    if (count > 0) parts.push_back(absl::StrCat(count, " ", NameOf(kind)));
  };
  add(counts.nans, Kind::kNaN);
  add(counts.infinities, Kind::kInfinity);
  add(counts.negative_infinities, Kind::kNegativeInfinity);
  std::string text = absl::StrCat(absl::StrJoin(parts, ", "), " in ", DTypeName(tensor.dtype()), tensor.shape().ToString());
  if (tensor.num_elements() > 1) {
    absl::StrAppend(&text, "; the first, ", NameOf(counts.first_kind), ", is element ", IndexText(tensor.shape(), counts.first));
  }
  return text;
}

bool MayBeChecked(DType type) { return IsFloating(RemoveRef(type)) || IsComplex(RemoveRef(type)); }

absl::Status CheckTensor(int output, const Tensor& tensor, NumericsCheck check) {
  return CheckNumerics(absl::StrCat("output ", output), tensor, check);
}

// Output `i`, which is in host memory or a reference; one that is not set is somebody else's to complain of.
absl::Status CheckOutput(KernelContext& ctx, int i, NumericsCheck check) {
  const Value& value = ctx.output_value(i);
  if (value.ref == nullptr) return CheckTensor(i, value.tensor, check);
  std::lock_guard<std::mutex> lock(value.ref->mutex);
  return CheckTensor(i, value.ref->tensor, check);
}

class NumericsCheckingKernel final : public Kernel {
 public:
  NumericsCheckingKernel(std::shared_ptr<Kernel> kernel, NumericsCheck check)
      : kernel_(std::move(kernel)), check_(check) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_RETURN_IF_ERROR(kernel_->Compute(ctx));
    for (int i = 0; i < ctx.num_outputs(); ++i) THALWEG_RETURN_IF_ERROR(CheckOutput(ctx, i, check_));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Kernel> kernel_;
  const NumericsCheck check_;
};

class NumericsCheckingAsyncKernel final : public AsyncKernel {
 public:
  NumericsCheckingAsyncKernel(std::shared_ptr<AsyncKernel> kernel, NumericsCheck check)
      : kernel_(std::move(kernel)), check_(check) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    kernel_->ComputeAsync(ctx, [this, &ctx, done = std::move(done)](absl::Status status) mutable {
      if (status.ok()) CheckFrom(0, ctx, std::move(done));
      else done(std::move(status));
    });
  }

 private:
  // Outputs `i` and on. One that is on the device is copied first, and those after it wait for the copy.
  void CheckFrom(int i, KernelContext& ctx, Done done) {
    for (; i < ctx.num_outputs(); ++i) {
      const Tensor& tensor = ctx.output_value(i).tensor;
      if (MayBeChecked(tensor.dtype()) && tensor.memory() == MemoryKind::kDevice) {
        return ctx.device().CopyToHost(tensor, ctx.host_allocator(), ctx.node().id,
                                       [this, i, &ctx, done = std::move(done)](absl::StatusOr<Tensor> copied) mutable {
                                         absl::Status status = copied.ok() ? CheckTensor(i, *copied, check_) : copied.status();
                                         if (status.ok()) CheckFrom(i + 1, ctx, std::move(done));
                                         else done(std::move(status));
                                       });
      }
      if (absl::Status status = CheckOutput(ctx, i, check_); !status.ok()) return done(std::move(status));
    }
    done(absl::OkStatus());
  }

  const std::shared_ptr<AsyncKernel> kernel_;
  const NumericsCheck check_;
};

}  // namespace

std::string IndexText(const Shape& shape, int64_t flat) {
  std::vector<int64_t> index(shape.rank());
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = flat % shape.dim(d);
    flat /= shape.dim(d);
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

absl::Status CheckNumerics(absl::string_view what, const Tensor& tensor, NumericsCheck check) {
  if (check == NumericsCheck::kOff) return absl::OkStatus();
  const Counts counts = CountOf(tensor, check);
  if (counts.first < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " has ", Describe(counts, tensor)));
}

std::shared_ptr<Kernel> WithNumericsCheck(std::shared_ptr<Kernel> kernel, const KernelNode& node, NumericsCheck check) {
  const std::vector<DType>& types = node.output_types();
  if (check == NumericsCheck::kOff || std::none_of(types.begin(), types.end(), MayBeChecked)) return kernel;
  if (!kernel->is_async()) return std::make_shared<NumericsCheckingKernel>(std::move(kernel), check);
  return std::make_shared<NumericsCheckingAsyncKernel>(std::static_pointer_cast<AsyncKernel>(std::move(kernel)), check);
}

}  // namespace thalweg
