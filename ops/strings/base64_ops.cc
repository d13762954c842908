// EncodeBase64, DecodeBase64: the alphabet that is safe in web addresses.
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

class EncodeBase64Kernel final : public Kernel {
 public:
  explicit EncodeBase64Kernel(const KernelInit& init) : pad_(init.node().node_attrs().GetOr<bool>("pad", false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<std::string>(ctx, [this](const std::string& in, std::string* out) {
      absl::WebSafeBase64Escape(in, out);
      if (pad_) out->append((4 - out->size() % 4) % 4, '=');
      return absl::OkStatus();
    });
  }

 private:
  const bool pad_;
};

// The six bits that a character stands for, or -1.
constexpr std::array<int8_t, 256> MakeDigits() {
  std::array<int8_t, 256> digits{};
  for (int8_t& d : digits) d = -1;
  for (int i = 0; i < 26; ++i) {
    digits['A' + i] = static_cast<int8_t>(i);
    digits['a' + i] = static_cast<int8_t>(26 + i);
  }
  for (int i = 0; i < 10; ++i) digits['0' + i] = static_cast<int8_t>(52 + i);
  digits['-'] = 62;
  digits['_'] = 63;
  return digits;
}
constexpr std::array<int8_t, 256> kDigits = MakeDigits();

// Padding may be left out, but what is there must fill the last group of four. Bits beyond the last byte are dropped.
absl::Status Decode(const std::string& in, std::string* out) {
  absl::string_view text = in;
  if (!text.empty() && text.size() % 4 == 0) {
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) {
    return absl::InvalidArgumentError(absl::StrCat("base64 text of ", in.size(), " characters ends in the middle of a byte"));
  }
  out->clear();
  out->reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    const int digit = kDigits[static_cast<uint8_t>(c)];
    if (digit < 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", absl::CEscape(absl::string_view(&c, 1)), "' is no base64 digit"));
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out->push_back(static_cast<char>(bits >> have));
  }
  return absl::OkStatus();
}

class DecodeBase64Kernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override { return MapStrings<std::string>(ctx, Decode); }
};

}  // namespace

void RegisterBase64Ops(OpLibrary& lib) {
  lib.schemas.Add("EncodeBase64(input: string) -> output: string", "pad: bool = false").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("EncodeBase64", "cpu", &MakeKernel<EncodeBase64Kernel>);
  lib.schemas.Add("DecodeBase64(input: string) -> output: string").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("DecodeBase64", "cpu", &MakeKernel<DecodeBase64Kernel>);
}

}  // namespace thalweg::strings
