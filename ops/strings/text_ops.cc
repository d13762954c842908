// StringLower, StringUpper, StringStrip, StringToNumber, ShardedFilename, ShardedFilespec.
#include <locale.h>
#include <wctype.h>

#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"
#include "thalweg/ops/strings/utf8.h"

namespace thalweg::strings {
namespace {

// Unicode's simple case mappings, as the C library's own UTF-8 locale has them; made once, never freed.
locale_t UnicodeLocale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// Malformed bytes become replacement characters. The text ends at a zero byte, as in TensorFlow.
std::string ChangeUnicodeCase(absl::string_view text, bool upper) {
  constexpr int32_t kSharpS = 0xdf;
  const locale_t locale = UnicodeLocale();
  std::string changed;
  text = text.substr(0, text.find('\0'));
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = DecodeCharacter(text, at);
    at += c.bytes;
    const auto letter = static_cast<wint_t>(c.code);
    if (c.code < 0) AppendCharacter(kReplacementCharacter, &changed);
    else if (upper && c.code == kSharpS) changed += "SS";
    else if (locale == locale_t()) AppendCharacter(c.code, &changed);
    else AppendCharacter(static_cast<int32_t>(upper ? towupper_l(letter, locale) : towlower_l(letter, locale)), &changed);
  }
  return changed;
}

// ASCII letters only (the bytes of other characters stay as they are), or with encoding "utf-8" those of all scripts.
template <bool kUpper>
class ChangeCaseKernel final : public Kernel {
 public:
  explicit ChangeCaseKernel(bool unicode) : unicode_(unicode) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const std::string encoding, init.Attr<std::string>("encoding"));
    if (!encoding.empty() && encoding != "utf-8") {
      return absl::InvalidArgumentError(absl::StrCat("encoding is '", encoding, "'; it must be 'utf-8' or empty"));
    }
    return std::unique_ptr<Kernel>(std::make_unique<ChangeCaseKernel>(!encoding.empty()));
  }

  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [this](const std::string& text, std::string* changed) {
      *changed = unicode_ ? ChangeUnicodeCase(text, kUpper) : kUpper ? absl::AsciiStrToUpper(text) : absl::AsciiStrToLower(text);
      return absl::OkStatus();
    });
  }

 private:
  const bool unicode_;
};

class StringStripKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [](const std::string& text, std::string* stripped) {
      *stripped = std::string(absl::StripAsciiWhitespace(text));
      return absl::OkStatus();
    });
  }
};

inline bool ParseNumber(absl::string_view text, float* v) { return absl::SimpleAtof(text, v); }
inline bool ParseNumber(absl::string_view text, double* v) { return absl::SimpleAtod(text, v); }
template <typename T>
bool ParseNumber(absl::string_view text, T* v) { return absl::SimpleAtoi(text, v); }

template <typename T>
class StringToNumberKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<T>(ctx, [](const std::string& text, T* number) {
      if (ParseNumber(text, number)) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no ", DTypeName(DTypeOf<T>::value)));
    });
  }
};

// base-00003-of-00010, or base-?????-of-00010 for all shards.
template <bool kOneShard>
class ShardedFilenameKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    static constexpr const char* kNames[] = {"basename", kOneShard ? "shard" : "num_shards", "num_shards"};
    for (int i = 0; i < ctx.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(i), kNames[i]));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    const std::string& base = ctx.input(0).flat<std::string>()[0];
    const int32_t first = ctx.input(1).flat<int32_t>()[0];
    std::string& name = out->mutable_flat<std::string>()[0];
    if constexpr (kOneShard) {
      name = absl::StrFormat("%s-%05d-of-%05d", base, first, ctx.input(2).flat<int32_t>()[0]);
    } else {
      name = absl::StrFormat("%s-\?\?\?\?\?-of-%05d", base, first);
    }
    return absl::OkStatus();
  }
};

absl::Status ShardedFilenameShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

template <typename... Ts>
void AddStringToNumber(OpLibrary& lib) {
  (lib.kernels.Add("StringToNumber", "cpu", &MakeKernel<StringToNumberKernel<Ts>>).template Type<Ts>("out_type"), ...);
}

}  // namespace

void RegisterTextOps(OpLibrary& lib) {
  lib.schemas.Add("StringLower(input: string) -> output: string", "encoding: string = \"\"").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringLower", "cpu", &MakeFallibleKernel<ChangeCaseKernel<false>>);
  lib.schemas.Add("StringUpper(input: string) -> output: string", "encoding: string = \"\"").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringUpper", "cpu", &MakeFallibleKernel<ChangeCaseKernel<true>>);
  lib.schemas.Add("StringStrip(input: string) -> output: string").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringStrip", "cpu", &MakeKernel<StringStripKernel>);

  lib.schemas.Add("StringToNumber(string_tensor: string) -> output: out_type",
                  "out_type: {float, double, int32, int64, uint32, uint64} = float")
      .Shape(UnchangedShape).Cost(StringCost);
  AddStringToNumber<float, double, int32_t, int64_t, uint32_t, uint64_t>(lib);

  lib.schemas.Add("ShardedFilename(basename: string, shard: int32, num_shards: int32) -> filename: string")
      .Shape(ShardedFilenameShape).Cost(StringCost);
  lib.kernels.Add("ShardedFilename", "cpu", &MakeKernel<ShardedFilenameKernel<true>>);
  lib.schemas.Add("ShardedFilespec(basename: string, num_shards: int32) -> filename: string")
      .Shape(ShardedFilenameShape).Cost(StringCost);
  lib.kernels.Add("ShardedFilespec", "cpu", &MakeKernel<ShardedFilenameKernel<false>>);
}

}  // namespace thalweg::strings
