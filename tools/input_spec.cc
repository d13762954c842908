#include "thalweg/tools/input_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/archive.h"
#include "thalweg/tools/image.h"
#include "thalweg/tools/literal.h"
#include "thalweg/tools/memory.h"
#include "thalweg/tools/random.h"
#include "thalweg/tools/tensor_file.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

using Source = InputSpec::Source;

absl::Status InContext(const absl::Status& status, absl::string_view context) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

// ------------------------------------------------------------------------------------------------- parsing

absl::Status ParseTypeAndShape(absl::string_view text, InputSpec* spec) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  if (!parts.first.empty()) {
    THALWEG_ASSIGN_OR_RETURN(spec->dtype, ParseDType(parts.first));
  }
  if (absl::StrContains(text, ':')) {
    THALWEG_ASSIGN_OR_RETURN(spec->shape, ParseShape(parts.second));
  }
  return absl::OkStatus();
}

// "f32,nhwc,0..1" in any order.
absl::Status ParseImageOptions(absl::string_view text, InputSpec* spec) {
  for (absl::string_view option : absl::StrSplit(text, ',')) {
    const size_t dots = option.find("..");
    if (option == "nhwc" || option == "hwc") {
      spec->image.channels_first = false;
    } else if (option == "nchw" || option == "chw") {
      spec->image.channels_first = true;
    } else if (option == "gray" || option == "grey") {
      spec->image.channels = 1;
    } else if (option == "rgb") {
      spec->image.channels = 3;
    } else if (option == "rgba") {
      spec->image.channels = 4;
    } else if (dots != absl::string_view::npos && ParseDouble(option.substr(0, dots), &spec->image.low) &&
               ParseDouble(option.substr(dots + 2), &spec->image.high)) {
      continue;
    } else if (absl::StatusOr<DType> dtype = ParseDType(option); dtype.ok()) {
      spec->dtype = *dtype;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("'", option,
                                                     "' is no option of an image; there are an element type (f32), "
                                                     "nhwc, nchw, gray, rgb, rgba and a range (0..1, -1..1)"));
    }
  }
  return absl::OkStatus();
}

// "@path", with what follows the suffix.
absl::Status ParseFile(absl::string_view text, InputSpec* spec) {
  const auto with_options = [&](absl::string_view mark, Source source, absl::string_view* options) {
    const size_t at = text.rfind(mark);
    if (at == absl::string_view::npos) return false;
    spec->source = source;
    spec->path = std::string(text.substr(0, at + mark.size() - 1));
    *options = text.substr(at + mark.size());
    return true;
  };
  absl::string_view options;
  if (with_options(".npz#", Source::kNpzEntry, &options)) {
    spec->key = std::string(options);
    return absl::OkStatus();
  }
  if (with_options(".raw:", Source::kRaw, &options) || with_options(".bin:", Source::kRaw, &options)) {
    THALWEG_RETURN_IF_ERROR(ParseTypeAndShape(options, spec));
    if (spec->dtype && spec->shape) return absl::OkStatus();
    return absl::InvalidArgumentError("raw data needs its type and shape, as in @x.raw:f32:1x224x224x3");
  }
  if (with_options(".png:", Source::kImage, &options)) return ParseImageOptions(options, spec);
  spec->path = std::string(text);
  if (absl::EndsWith(text, ".npy")) spec->source = Source::kNpy;
  else if (absl::EndsWith(text, ".png")) spec->source = Source::kImage;
  else if (absl::EndsWith(text, ".pb")) spec->source = Source::kTensorProto;
  else if (absl::EndsWith(text, ".npz")) spec->source = spec->name.empty() ? Source::kArchive : Source::kNpzEntry;
  else {
    return absl::InvalidArgumentError(
        absl::StrCat("'@", text,
                     "': the form of the file is told by its name; there are @x.npy, @x.npz#key, "
                     "@x.raw:f32:1x3, @x.png, @x.pb (a TensorProto)"));
  }
  if (spec->source == Source::kNpzEntry) spec->key = spec->name;
  return absl::OkStatus();
}

// "rand:f32:8x128[0,1)~42" behind the word.
absl::Status ParseGenerated(absl::string_view text, InputSpec* spec) {
  if (const size_t tilde = text.rfind('~'); tilde != absl::string_view::npos) {
    if (!absl::SimpleAtoi(text.substr(tilde + 1), &spec->seed)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text.substr(tilde), "' is no seed; write ~42"));
    }
    text = text.substr(0, tilde);
  }
  if (const size_t bracket = text.find('['); bracket != absl::string_view::npos) {
    absl::string_view range = text.substr(bracket + 1);
    const std::vector<absl::string_view> ends = absl::StrSplit(absl::StripSuffix(range, ")"), ',');
    double low = 0, high = 0;
    if (!absl::ConsumeSuffix(&range, ")") || ends.size() != 2 || !ParseDouble(ends[0], &low) ||
        !ParseDouble(ends[1], &high) || !(low < high)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text.substr(bracket), "' is no range; write [0,1)"));
    }
    spec->range = {low, high};
    text = text.substr(0, bracket);
  }
  if (text.empty()) return absl::OkStatus();
  if (!absl::ConsumePrefix(&text, ":"))
    return absl::InvalidArgumentError(absl::StrCat("a ':' is missing before '", text, "'"));
  return ParseTypeAndShape(text, spec);
}

bool ConsumeGenerator(absl::string_view* text, Source* source) {
  static constexpr std::array<std::pair<absl::string_view, Source>, 4> kWords = {
      {{"zeros", Source::kZeros}, {"ones", Source::kOnes}, {"randn", Source::kNormal}, {"rand", Source::kUniform}}};
  for (const auto& [word, meaning] : kWords) {
    absl::string_view rest = *text;
    if (!absl::ConsumePrefix(&rest, word) || (!rest.empty() && !absl::StrContains(":[~", rest[0]))) continue;
    *text = rest;
    *source = meaning;
    return true;
  }
  return false;
}

// Takes the ":i32" at the end of a literal, unless it stands inside quotes or is part of the text.
void TakeDTypeSuffix(absl::string_view* text, InputSpec* spec) {
  const size_t colon = text->rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return;
  const absl::StatusOr<DType> dtype = ParseDType(text->substr(colon + 1));
  if (!dtype.ok()) return;
  spec->dtype = *dtype;
  *text = text->substr(0, colon);
}

// ------------------------------------------------------------------------------------------------- building

DType DTypeOfInput(const InputSpec& spec, const WantedInput& wanted, DType otherwise) {
  if (spec.dtype) return *spec.dtype;
  return wanted.dtype != DType::kInvalid ? RemoveRef(wanted.dtype) : otherwise;
}

absl::StatusOr<Shape> ShapeOfInput(const InputSpec& spec, const WantedInput& wanted) {
  if (spec.shape) return *spec.shape;
  if (wanted.shape.IsFullyKnown()) return wanted.shape.ToShape();
  return absl::InvalidArgumentError(absl::StrCat("the graph says ", wanted.shape.ToString(),
                                                 ", which leaves the shape open; say it, as in ", "rand:f32:8x128"));
}

absl::StatusOr<Tensor> AllocateInput(DType dtype, const Shape& shape) {
  int64_t bytes = 0;
  if (!CheckedMul(shape.num_elements(), static_cast<int64_t>(std::max<size_t>(DTypeSize(dtype), 1)), &bytes))
    bytes = INT64_MAX;
  THALWEG_RETURN_IF_ERROR(CheckFitsMemory(bytes, absl::StrCat(DTypeName(dtype), shape.ToString())));
  return Tensor::Allocate(dtype, shape);
}

// The range of random values of a type when none is given: small, so that sums and indices stay harmless.
std::pair<double, double> DefaultRange(DType dtype) {
  if (dtype == DType::kUInt8) return {0, 256};
  if (dtype == DType::kBool) return {0, 2};
  return IsInteger(dtype) ? std::pair<double, double>(0, 10) : std::pair<double, double>(0, 1);
}

template <typename T, typename Fn>
void FillWith(Tensor* tensor, Fn next) {
  for (T& element : tensor->mutable_flat<T>()) {
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      using Part = typename T::value_type;
      const Part real = static_cast<Part>(next());
      element = T(real, static_cast<Part>(next()));
    } else if constexpr (std::is_integral_v<T>) {
      element = static_cast<T>(static_cast<int64_t>(std::floor(next())));
    } else {
      element = T(static_cast<float>(next()));
    }
  }
}

template <typename Fn>
absl::Status Fill(Tensor* tensor, Fn next) {
  switch (tensor->dtype()) {
    case DType::kFloat32: FillWith<float>(tensor, next); break;
    case DType::kFloat64:
      for (double& element : tensor->mutable_flat<double>()) element = next();
      break;
    case DType::kFloat16: FillWith<half>(tensor, next); break;
    case DType::kBFloat16: FillWith<bfloat16>(tensor, next); break;
    case DType::kComplex64: FillWith<std::complex<float>>(tensor, next); break;
    case DType::kComplex128: FillWith<std::complex<double>>(tensor, next); break;
    case DType::kBool: FillWith<bool>(tensor, next); break;
    case DType::kInt8: FillWith<int8_t>(tensor, next); break;
    case DType::kInt16: FillWith<int16_t>(tensor, next); break;
    case DType::kInt32: FillWith<int32_t>(tensor, next); break;
    case DType::kInt64: FillWith<int64_t>(tensor, next); break;
    case DType::kUInt8: FillWith<uint8_t>(tensor, next); break;
    case DType::kUInt16: FillWith<uint16_t>(tensor, next); break;
    case DType::kUInt32: FillWith<uint32_t>(tensor, next); break;
    case DType::kUInt64: FillWith<uint64_t>(tensor, next); break;
    default:
      return absl::UnimplementedError(
          absl::StrCat("no generated values of type ", DTypeName(tensor->dtype()), "; use a .npy file"));
  }
  return absl::OkStatus();
}

// The values that every element of an integer type can hold.
absl::Status CheckRange(DType dtype, const std::pair<double, double>& range) {
  if (!IsInteger(dtype) && dtype != DType::kBool) return absl::OkStatus();
  const int bits = static_cast<int>(DTypeSize(dtype)) * 8;
  const bool is_unsigned =
      dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 || dtype == DType::kUInt64;
  const double low = is_unsigned || dtype == DType::kBool ? 0 : -std::ldexp(1, bits - 1);
  const double high = dtype == DType::kBool ? 2 : std::ldexp(1, std::min(is_unsigned ? bits : bits - 1, 63));
  if (range.first >= low && range.second <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("[", range.first, ",", range.second, ") is more than ", DTypeName(dtype), " can hold"));
}

absl::StatusOr<Tensor> BuildGenerated(const InputSpec& spec, const WantedInput& wanted) {
  const DType dtype = DTypeOfInput(spec, wanted, DType::kFloat32);
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeOfInput(spec, wanted));
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, AllocateInput(dtype, shape));
  const auto [low, high] = spec.range.value_or(DefaultRange(dtype));
  THALWEG_RETURN_IF_ERROR(CheckRange(dtype, {low, high}));
  RandomSource random(spec.seed);
  absl::Status status;
  if (spec.source == Source::kZeros) status = Fill(&tensor, [] { return 0.0; });
  else if (spec.source == Source::kOnes) status = Fill(&tensor, [] { return 1.0; });
  else if (spec.source == Source::kNormal) status = Fill(&tensor, [&] { return random.Normal(); });
  else status = Fill(&tensor, [&random, low = low, high = high] { return low + (high - low) * random.Uniform(); });
  if (!status.ok()) return status;
  return tensor;
}

absl::StatusOr<Tensor> BuildLiteral(const InputSpec& spec, const WantedInput& wanted) {
  if (spec.dtype || wanted.dtype != DType::kInvalid) {
    const DType dtype = DTypeOfInput(spec, wanted, DType::kInvalid);
    absl::StatusOr<LiteralText> literal = ParseLiteral(spec.literal);
    if (!literal.ok() && dtype == DType::kString) return Tensor::Scalar<std::string>(spec.literal);
    if (!literal.ok()) return literal.status();
    return TensorFromLiteralText(*literal, dtype);
  }
  THALWEG_ASSIGN_OR_RETURN(const LiteralText literal, ParseLiteral(spec.literal));
  return TensorFromLiteralText(literal, NaturalDType(literal));
}

absl::StatusOr<Tensor> BuildRaw(const InputSpec& spec) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(spec.path));
  const int64_t size = static_cast<int64_t>(DTypeSize(*spec.dtype));
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat("raw data cannot be of type ", DTypeName(*spec.dtype)));
  int64_t bytes = 0;
  if (!CheckedMul(spec.shape->num_elements(), size, &bytes) || bytes != static_cast<int64_t>(file.bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("'", spec.path, "' has ", file.bytes.size(), " bytes, but ",
                                                   DTypeName(*spec.dtype), spec.shape->ToString(), " takes ", size,
                                                   " for each of ", spec.shape->num_elements(), " elements"));
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(*spec.dtype, *spec.shape));
  if (bytes > 0) std::copy(file.bytes.begin(), file.bytes.end(), static_cast<char*>(tensor.mutable_raw()));
  return tensor;
}

// How many channels an image should have: as asked, else as the graph's declared shape says, else as the file has (0).
int WantedChannels(const InputSpec& spec, const PartialShape& shape) {
  if (spec.image.channels) return *spec.image.channels;
  if (shape.rank() < 3) return 0;
  const int64_t declared = shape.dim(spec.image.channels_first ? shape.rank() - 3 : shape.rank() - 1);
  return declared == 1 || declared == 3 || declared == 4 ? static_cast<int>(declared) : 0;
}

// The shape an image takes: batch of one if the graph has four dimensions or does not say; any declared shape whose
// unknown dimensions can be 1 and that has as many elements (a flattened image).
absl::StatusOr<Shape> ImageShape(const Shape& image, const PartialShape& wanted) {
  if (wanted.rank() == 3) return image;
  std::vector<int64_t> dims(image.dims().begin(), image.dims().end());
  if (wanted.has_rank() && wanted.rank() != 4) {
    std::vector<int64_t> declared(wanted.dims().begin(), wanted.dims().end());
    for (int64_t& d : declared) d = IsKnownDim(d) ? d : 1;
    absl::StatusOr<Shape> flat = Shape::Make(declared);
    if (flat.ok() && flat->num_elements() == image.num_elements()) return flat;
  }
  dims.insert(dims.begin(), 1);
  return Shape::Make(dims);
}

absl::StatusOr<Tensor> BuildImage(const InputSpec& spec, const WantedInput& wanted) {
  THALWEG_ASSIGN_OR_RETURN(const Tensor pixels, ReadPng(spec.path, WantedChannels(spec, wanted.shape)));
  const int64_t height = pixels.dim(0), width = pixels.dim(1), channels = pixels.dim(2);
  const bool first = spec.image.channels_first;
  THALWEG_ASSIGN_OR_RETURN(const Shape image,
                           first ? Shape::Make({channels, height, width}) : Shape::Make({height, width, channels}));
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, ImageShape(image, wanted.shape));
  const DType dtype = DTypeOfInput(spec, wanted, DType::kUInt8);
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, AllocateInput(dtype, shape));
  const absl::Span<const uint8_t> source = pixels.flat<uint8_t>();
  const double scale = (spec.image.high - spec.image.low) / 255;
  int64_t i = 0;
  const auto next = [&] {
    // i counts elements of the result; with channels first it runs over rows and columns of one channel.
    const int64_t at = first ? (i % (height * width)) * channels + i / (height * width) : i;
    ++i;
    return spec.image.low + scale * source[at];
  };
  THALWEG_RETURN_IF_ERROR(Fill(&tensor, next));
  return tensor;
}

absl::StatusOr<Tensor> BuildFromNpy(absl::StatusOr<NpyArray> array, const WantedInput& wanted) {
  if (!array.ok()) return array.status();
  return TensorFromNpy(*array, wanted.dtype);
}

absl::StatusOr<Tensor> BuildByKind(const InputSpec& spec, const WantedInput& wanted) {
  switch (spec.source) {
    case Source::kNpy: return BuildFromNpy(ReadNpyFile(spec.path), wanted);
    case Source::kNpzEntry: {
      THALWEG_ASSIGN_OR_RETURN(const TensorArchive archive, TensorArchive::Open(spec.path));
      return BuildFromNpy(archive.Read(spec.key), wanted);
    }
    case Source::kRaw: return BuildRaw(spec);
    case Source::kImage: return BuildImage(spec, wanted);
    case Source::kTensorProto: return ReadTensorProtoFile(spec.path);
    case Source::kLiteral: return BuildLiteral(spec, wanted);
    case Source::kZeros:
    case Source::kOnes:
    case Source::kUniform:
    case Source::kNormal: return BuildGenerated(spec, wanted);
    case Source::kArchive: break;
  }
  return absl::InternalError("an archive is bound by key, not built");
}

}  // namespace

absl::StatusOr<InputSpec> ParseInputValue(absl::string_view name, absl::string_view value) {
  InputSpec spec;
  spec.name = std::string(name);
  const std::string context = absl::StrCat("input ", name);
  if (absl::string_view path = value; absl::ConsumePrefix(&path, "@")) {
    THALWEG_RETURN_IF_ERROR(InContext(ParseFile(path, &spec), context));
    return spec;
  }
  absl::string_view rest = value;
  if (ConsumeGenerator(&rest, &spec.source)) {
    THALWEG_RETURN_IF_ERROR(InContext(ParseGenerated(rest, &spec), context));
    return spec;
  }
  TakeDTypeSuffix(&rest, &spec);
  spec.literal = std::string(rest);
  // Of a text the graph may want a string; anything else must be well formed now.
  const bool structured = !rest.empty() && absl::StrContains("[\"'", rest[0]);
  if (rest.empty() || structured) THALWEG_RETURN_IF_ERROR(InContext(ParseLiteral(rest).status(), context));
  return spec;
}

absl::StatusOr<InputSpec> ParseInputSpec(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos || (absl::StartsWith(text, "@") && absl::EndsWith(text, ".npz"))) {
    InputSpec spec;
    if (absl::string_view path = text; absl::ConsumePrefix(&path, "@") && absl::EndsWith(path, ".npz")) {
      THALWEG_RETURN_IF_ERROR(ParseFile(path, &spec));
      return spec;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is no input; write NAME=VALUE, as in x=@x.npy or x=3.5, or @all.npz"));
  }
  const absl::string_view name = text.substr(0, equals);
  if (absl::StripAsciiWhitespace(name).empty())
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' has no name before the '='"));
  return ParseInputValue(name, text.substr(equals + 1));
}

absl::StatusOr<Tensor> BuildInput(const InputSpec& spec, const WantedInput& wanted) {
  absl::StatusOr<Tensor> tensor = BuildByKind(spec, wanted);
  if (!tensor.ok()) return InContext(tensor.status(), absl::StrCat("input ", spec.name));
  return tensor;
}

}  // namespace thalweg::tools
