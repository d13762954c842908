// The input grammar, one for all verbs: -i NAME=VALUE, or a bare -i @all.npz that binds by key.
//
//   @x.npy   @x.npz#key   @x.raw:f32:1x224x224x3   @x.png:f32,nhwc,0..1   @x.pb (a TensorProto)
//   3.5   true   "text"   [[1,2],[3,4]]:i32
//   zeros:f32:8x128   ones:...   rand:f32:8x128[0,1)~42   randn:...~42
//
// Parsing knows no graph; BuildInput fills in dtype and shape from what the graph declares where the text leaves them
// out. Random values are made by a fixed generator: the same text gives the same numbers on every machine. Threading:
// pure functions. Errors: of parsing, InvalidArgument shows the forms (exit code 2); of building, the status says what
// the input has and what the graph wants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"

namespace thalweg::tools {

// What the graph declares of the tensor that is fed; kInvalid and unknown if it is not known.
struct WantedInput {
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

struct ImageOptions {
  std::optional<int> channels;  // 1, 3 or 4
  bool channels_first = false;  // nchw
  double low = 0, high = 255;   // what the darkest and the brightest value become
};

struct InputSpec {
  enum class Source {
    kNpy,
    kNpzEntry,
    kArchive,
    kRaw,
    kImage,
    kTensorProto,
    kLiteral,
    kZeros,
    kOnes,
    kUniform,
    kNormal
  };

  std::string name;  // "" of a bare archive
  Source source = Source::kLiteral;
  std::string path;
  std::string key;  // of a .npz
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<std::pair<double, double>> range;  // of random values: [low, high)
  uint64_t seed = 0;
  ImageOptions image;
  std::string literal;
};

// `text` is what follows -i.
absl::StatusOr<InputSpec> ParseInputSpec(absl::string_view text);
// The value part alone, for --fill and scripts.
absl::StatusOr<InputSpec> ParseInputValue(absl::string_view name, absl::string_view value);

// The tensor that `spec` means. Not for archives.
absl::StatusOr<Tensor> BuildInput(const InputSpec& spec, const WantedInput& wanted);

}  // namespace thalweg::tools
