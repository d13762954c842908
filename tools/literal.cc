#include "thalweg/tools/literal.h"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

// Reads nested lists without recursion: `sizes_` is the stack of counts of the lists that are open.
class LiteralReader {
 public:
  explicit LiteralReader(absl::string_view text) : whole_(text), text_(text) {}

  absl::StatusOr<LiteralText> Read() {
    do {
      THALWEG_RETURN_IF_ERROR(Step());
    } while (!open_.empty());
    SkipSpace();
    if (!text_.empty()) return Error(absl::StrCat("something follows its end: '", text_.substr(0, 20), "'"));
    std::vector<int64_t> dims;
    for (int64_t d : dims_) dims.push_back(std::max<int64_t>(d, 0));
    THALWEG_ASSIGN_OR_RETURN(result_.shape, Shape::Make(dims));
    return std::move(result_);
  }

 private:
  static constexpr int64_t kNotYet = -1;

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("'", whole_.substr(0, 60), "' is not a value: ", what));
  }
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }

  // Takes an opening bracket, or an element or closing brackets with the comma behind them.
  absl::Status Step() {
    SkipSpace();
    if (text_.empty()) return Error("it ends too early");
    if (text_[0] == '[') return Open();
    if (text_[0] == ']') return Close();
    if (!leaf_depth_known_) {
      leaf_depth_known_ = true;
      leaf_depth_ = open_.size();
    }
    if (open_.size() != leaf_depth_ || dims_.size() != leaf_depth_) return Error("its lists are not nested evenly");
    THALWEG_RETURN_IF_ERROR(TakeElement());
    return Counted();
  }

  absl::Status Open() {
    text_.remove_prefix(1);
    if (leaf_depth_known_ && open_.size() >= leaf_depth_) return Error("its lists are not nested evenly");
    if (open_.size() >= static_cast<size_t>(kMaxRank)) return Error("too many brackets");
    open_.push_back(0);
    if (open_.size() > dims_.size()) dims_.push_back(kNotYet);
    return absl::OkStatus();
  }

  absl::Status Close() {
    if (open_.empty()) return Error("a bracket closes that was not opened");
    text_.remove_prefix(1);
    int64_t& dim = dims_[open_.size() - 1];
    if (dim != kNotYet && dim != open_.back()) {
      return Error(absl::StrCat("lists beside each other have ", dim, " and ", open_.back(), " elements"));
    }
    dim = open_.back();
    open_.pop_back();
    return open_.empty() ? absl::OkStatus() : Counted();
  }

  // An element of the innermost open list has ended: counts it and takes the comma.
  absl::Status Counted() {
    if (open_.empty()) return absl::OkStatus();
    ++open_.back();
    SkipSpace();
    if (text_.empty()) return Error("a bracket is not closed");
    if (text_[0] == ',') {
      text_.remove_prefix(1);
      return absl::OkStatus();
    }
    return text_[0] == ']' ? absl::OkStatus()
                           : Error(absl::StrCat("a comma is missing before '", text_.substr(0, 20), "'"));
  }

  absl::Status TakeElement() {
    if (text_[0] == '"' || text_[0] == '\'') return TakeQuoted(text_[0]);
    // Outside lists a bare text reaches to the end: names and sentences need no quotes.
    const size_t end = open_.empty() ? text_.size() : std::min(text_.find_first_of(",[]"), text_.size());
    const absl::string_view element = absl::StripTrailingAsciiWhitespace(text_.substr(0, end));
    if (element.empty()) return Error("an element is missing");
    result_.elements.push_back({std::string(element), false});
    text_.remove_prefix(end);
    return absl::OkStatus();
  }

  absl::Status TakeQuoted(char quote) {
    std::string value;
    size_t i = 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      const bool escape = text_[i] == '\\' && i + 1 < text_.size();
      if (escape) ++i;
      value.push_back(escape && text_[i] == 'n' ? '\n' : escape && text_[i] == 't' ? '\t' : text_[i]);
    }
    if (i == text_.size()) return Error("a quote is not closed");
    text_.remove_prefix(i + 1);
    result_.elements.push_back({std::move(value), true});
    return absl::OkStatus();
  }

  absl::string_view whole_;
  absl::string_view text_;
  std::vector<int64_t> open_;
  std::vector<int64_t> dims_;
  bool leaf_depth_known_ = false;
  size_t leaf_depth_ = 0;
  LiteralText result_;
};

bool ParseBool(absl::string_view text, bool* out) {
  *out = text == "true" || text == "True" || text == "1";
  return *out || text == "false" || text == "False" || text == "0";
}

// "1+2j", "2j", "-1.5", "(1-2j)". The imaginary part begins at the last sign that does not belong to an exponent.
bool ParseComplex(absl::string_view text, std::complex<double>* out) {
  if (text.size() > 2 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
  double real = 0, imaginary = 0;
  if (text.empty() || (text.back() != 'j' && text.back() != 'i')) {
    if (!ParseDouble(text, &real)) return false;
    *out = real;
    return true;
  }
  text.remove_suffix(1);
  size_t split = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if ((text[i] == '+' || text[i] == '-') && text[i - 1] != 'e' && text[i - 1] != 'E') split = i;
  }
  if (split > 0 && !ParseDouble(text.substr(0, split), &real)) return false;
  const absl::string_view tail = text.substr(split);
  if (tail.empty() || tail == "+" || tail == "-") imaginary = tail == "-" ? -1 : 1;
  else if (!ParseDouble(tail, &imaginary)) return false;
  *out = {real, imaginary};
  return true;
}

template <typename T>
bool ParseValue(absl::string_view text, T* out) {
  if constexpr (std::is_same_v<T, bool>) {
    return ParseBool(text, out);
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    std::complex<double> value;
    if (!ParseComplex(text, &value)) return false;
    *out = T(static_cast<typename T::value_type>(value.real()), static_cast<typename T::value_type>(value.imag()));
    return true;
  } else if constexpr (std::is_same_v<T, double>) {
    return ParseDouble(text, out);
  } else if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, out);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return absl::SimpleAtoi(text, out);
  } else if constexpr (std::is_integral_v<T>) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
        value > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      return false;
    }
    *out = static_cast<T>(value);
    return true;
  } else {  // half, bfloat16, float8
    float value = 0;
    if (!absl::SimpleAtof(text, &value)) return false;
    *out = T(value);
    return true;
  }
}

bool ParseValue(absl::string_view text, int low, int high, int* out) {
  return absl::SimpleAtoi(text, out) && *out >= low && *out <= high;
}
bool ParseValue(absl::string_view text, int4* out) {
  int value = 0;
  if (!ParseValue(text, -8, 7, &value)) return false;
  *out = int4(value);
  return true;
}
bool ParseValue(absl::string_view text, uint4* out) {
  int value = 0;
  if (!ParseValue(text, 0, 15, &value)) return false;
  *out = uint4(value);
  return true;
}
template <typename Q, typename Storage>
bool ParseQuantized(absl::string_view text, Q* out) {
  Storage value = 0;
  if (!ParseValue<Storage>(text, &value)) return false;
  *out = Q(value);
  return true;
}
bool ParseValue(absl::string_view text, qint8* out) { return ParseQuantized<qint8, int8_t>(text, out); }
bool ParseValue(absl::string_view text, quint8* out) { return ParseQuantized<quint8, uint8_t>(text, out); }
bool ParseValue(absl::string_view text, qint16* out) { return ParseQuantized<qint16, int16_t>(text, out); }
bool ParseValue(absl::string_view text, quint16* out) { return ParseQuantized<quint16, uint16_t>(text, out); }
bool ParseValue(absl::string_view text, qint32* out) { return ParseQuantized<qint32, int32_t>(text, out); }

template <typename T>
absl::StatusOr<Tensor> Build(const LiteralText& literal) {
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DTypeOf<T>::value, literal.shape));
  absl::Span<T> out = tensor.mutable_flat<T>();
  for (size_t i = 0; i < literal.elements.size(); ++i) {
    const LiteralText::Element& element = literal.elements[i];
    if (element.quoted || !ParseValue(element.text, &out[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", element.text.substr(0, 60), "' is no value of type ", DTypeName(DTypeOf<T>::value)));
    }
  }
  return tensor;
}

absl::StatusOr<Tensor> BuildStrings(const LiteralText& literal) {
  std::vector<std::string> values;
  for (const LiteralText::Element& element : literal.elements) values.push_back(element.text);
  return Tensor::Of<std::string>(std::move(values), literal.shape);
}

}  // namespace

absl::StatusOr<LiteralText> ParseLiteral(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty())
    return absl::InvalidArgumentError("the value is empty; write \"\" for an empty text");
  return LiteralReader(text).Read();
}

DType NaturalDType(const LiteralText& literal) {
  bool all_bool = !literal.elements.empty(), all_int32 = true, all_int64 = true, all_double = true, all_complex = true;
  for (const LiteralText::Element& element : literal.elements) {
    if (element.quoted) return DType::kString;
    bool flag;
    int32_t i32;
    int64_t i64;
    double number;
    std::complex<double> z;
    all_bool = all_bool && ParseBool(element.text, &flag) && absl::ascii_isalpha(element.text[0]);
    all_int32 = all_int32 && absl::SimpleAtoi(element.text, &i32);
    all_int64 = all_int64 && absl::SimpleAtoi(element.text, &i64);
    all_double = all_double && ParseDouble(element.text, &number);
    all_complex = all_complex && ParseComplex(element.text, &z);
  }
  if (all_bool) return DType::kBool;
  if (literal.elements.empty()) return DType::kFloat32;
  if (all_int32) return DType::kInt32;
  if (all_int64) return DType::kInt64;
  if (all_double) return DType::kFloat32;
  return all_complex ? DType::kComplex64 : DType::kString;
}

absl::StatusOr<Tensor> TensorFromLiteralText(const LiteralText& literal, DType dtype) {
  switch (RemoveRef(dtype)) {
#define THALWEG_BUILD_(T) \
  case DTypeOf<T>::value: return Build<T>(literal);
    THALWEG_BUILD_(float)
    THALWEG_BUILD_(double)
    THALWEG_BUILD_(half)
    THALWEG_BUILD_(bfloat16)
    THALWEG_BUILD_(float8_e5m2)
    THALWEG_BUILD_(float8_e4m3fn)
    THALWEG_BUILD_(bool)
    THALWEG_BUILD_(int8_t)
    THALWEG_BUILD_(int16_t)
    THALWEG_BUILD_(int32_t)
    THALWEG_BUILD_(int64_t)
    THALWEG_BUILD_(uint8_t)
    THALWEG_BUILD_(uint16_t)
    THALWEG_BUILD_(uint32_t)
    THALWEG_BUILD_(uint64_t)
    THALWEG_BUILD_(std::complex<float>)
    THALWEG_BUILD_(std::complex<double>)
    THALWEG_BUILD_(int4)
    THALWEG_BUILD_(uint4)
    THALWEG_BUILD_(qint8)
    THALWEG_BUILD_(quint8)
    THALWEG_BUILD_(qint16)
    THALWEG_BUILD_(quint16)
    THALWEG_BUILD_(qint32)
#undef THALWEG_BUILD_
    case DType::kString: return BuildStrings(literal);
    default:
      return absl::UnimplementedError(
          absl::StrCat("values of type ", DTypeName(dtype), " cannot be written out; use a .npy file"));
  }
}

}  // namespace thalweg::tools
