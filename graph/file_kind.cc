#include "thalweg/graph/file_kind.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/wire_reader.h"

namespace thalweg {
namespace {

constexpr size_t kSample = 8192;

struct Signature {
  size_t offset;
  absl::string_view magic;
  const char* description;
  const char* advice;
};

constexpr absl::string_view Magic(const char* text, size_t size) { return absl::string_view(text, size); }

const Signature kSignatures[] = {
    {0, Magic("\x1f\x8b", 2), "gzip-compressed data", "decompress it with gunzip first"},
    {0, Magic("PK\x03\x04", 4), "a zip archive", "unpack it and pass the graph file inside"},
    {0, Magic("BZh", 3), "bzip2-compressed data", "decompress it with bunzip2 first"},
    {0, Magic("\3757zXZ\0", 6), "xz-compressed data", "decompress it with unxz first"},
    {0, Magic("\x28\xb5\x2f\xfd", 4), "zstd-compressed data", "decompress it with unzstd first"},
    {0, Magic("\xff\xd8\xff", 3), "a JPEG image", ""},
    {0, Magic("\x89PNG\r\n\x1a\n", 8), "a PNG image", ""},
    {0, Magic("GIF8", 4), "a GIF image", ""},
    {0, Magic("%PDF", 4), "a PDF document", ""},
    {0, Magic("\177ELF", 4), "a program or shared library (ELF)", ""},
    {0, Magic("\x89HDF\r\n\x1a\n", 8), "an HDF5 file (Keras weights or model)",
     "export the model as a SavedModel or a frozen GraphDef"},
    {0, Magic("\x93NUMPY", 6), "a NumPy array (.npy)", "arrays are inputs: pass them with -i"},
    {4, Magic("TFL3", 4), "a TFLite model (FlatBuffer)", "convert from the model that the TFLite file was made of"},
};

const Signature kTextSignatures[] = {
    {0, "version https://git-lfs.github.com/", "a Git LFS pointer: the real file has not been fetched",
     "run: git lfs pull"},
    {0, "/annex/objects/", "a git-annex pointer: the real file has not been fetched", "run: git annex get"},
    {0, "<!doctype html", "an HTML page", "the download probably returned an error or login page"},
    {0, "<html", "an HTML page", "the download probably returned an error or login page"},
    {0, "<?xml", "an XML document", ""},
    {0, "{", "a JSON document", ""},
};

SniffedFile Other(const Signature& signature) { return {FileKind::kOther, signature.description, signature.advice}; }

// Text has no control characters but white space; a binary graph cannot do without (the tag of `op` is one).
bool LooksLikeText(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const unsigned char u = static_cast<unsigned char>(c);
    return u >= 0x20 ? u != 0x7f : absl::ascii_isspace(u);
  });
}

std::optional<SniffedFile> SniffText(absl::string_view bytes) {
  absl::ConsumePrefix(&bytes, "\xef\xbb\xbf");
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(bytes.substr(0, kSample));
  for (const Signature& signature : kTextSignatures) {
    if (absl::StartsWithIgnoreCase(start, signature.magic)) return Other(signature);
  }
  if (start.size() < 512 && absl::StrContains(start, "annex/objects/")) return Other(kTextSignatures[1]);
  return std::nullopt;
}

// Protobuf messages that people take for a GraphDef. The first fields of a SavedModel are a version number and meta
// graphs, those of an ONNX model a version number of 3 or more and a producer's name; a GraphDef starts with neither.
std::optional<SniffedFile> SniffMessage(absl::string_view bytes) {
  WireReader reader(bytes);
  WireField first, second;
  if (!reader.Next(&first)) return std::nullopt;
  if (first.Is(1, WireType::kVarint)) {
    if (first.value >= 3 && first.value < 100) {
      return SniffedFile{FileKind::kOther, "an ONNX model", "export the model as a SavedModel or a frozen GraphDef"};
    }
    if (reader.Next(&second) && second.Is(2, WireType::kBytes)) {
      return SniffedFile{FileKind::kOther, "a SavedModel (saved_model.pb), not a GraphDef",
                         "pass the folder that holds it"};
    }
    return std::nullopt;
  }
  if (!first.Is(1, WireType::kBytes) || !reader.Next(&second) || !second.Is(2, WireType::kBytes)) return std::nullopt;
  // A MetaGraphDef: information, with the writer's version ("2.4.0") as field 5, then one graph.
  WireReader info(first.bytes);
  for (WireField field; info.Next(&field);) {
    if (field.Is(5, WireType::kBytes) && !field.bytes.empty() && absl::ascii_isdigit(field.bytes[0])) {
      return SniffedFile{FileKind::kOther, "a MetaGraphDef (.meta), not a GraphDef",
                         "export the graph alone, or a SavedModel"};
    }
  }
  return std::nullopt;
}

}  // namespace

SniffedFile SniffFile(absl::string_view bytes) {
  for (const Signature& signature : kSignatures) {
    if (absl::StartsWith(bytes.substr(std::min(signature.offset, bytes.size())), signature.magic))
      return Other(signature);
  }
  if (absl::StartsWith(bytes, "\xff\xfe") || absl::StartsWith(bytes, "\xfe\xff")) {
    return {FileKind::kOther, "UTF-16 text", "save it as UTF-8"};
  }
  if (absl::EndsWith(bytes, "\x57\xfb\x80\x8b\x24\x75\x47\xdb")) {
    return {FileKind::kOther, "the index of a checkpoint (variables, no graph)",
            "pass the graph, and this with --restore"};
  }
  if (LooksLikeText(bytes.substr(0, kSample))) {
    if (std::optional<SniffedFile> text = SniffText(bytes)) return *std::move(text);
    return {FileKind::kTextGraph, "", ""};
  }
  if (std::optional<SniffedFile> message = SniffMessage(bytes)) return *std::move(message);
  return {FileKind::kBinaryGraph, "", ""};
}

}  // namespace thalweg
