#include "thalweg/graph/loader.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "thalweg/graph/file_kind.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph_assembler.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/input_file.h"
#include "thalweg/graph/lowering/check_functions.h"
#include "thalweg/graph/shape_inference.h"
#include "thalweg/graph/validate.h"

namespace thalweg {
namespace {

// What a large file's kind is told by: its start and its end.
constexpr size_t kSampleBytes = 64 << 10;
constexpr size_t kTailBytes = 16;

absl::Status NotAGraph(const SniffedFile& file) {
  return absl::InvalidArgumentError(absl::StrCat("not a GraphDef: this is ", file.description,
                                                 file.advice.empty() ? "" : absl::StrCat("; ", file.advice)));
}

// Reads a graph into a sink, of whatever form it is.
using ReadInto = absl::FunctionRef<absl::Status(GraphSink&)>;

absl::Status ReadBytes(absl::string_view bytes, std::shared_ptr<const void> owner, const LoadLimits& limits,
                       GraphSink& sink) {
  if (bytes.empty()) return absl::InvalidArgumentError("empty: there are no bytes in it");
  const SniffedFile file = SniffFile(bytes);
  if (file.kind == FileKind::kOther) return NotAGraph(file);
  if (file.kind == FileKind::kTextGraph) return ReadTextGraph(bytes, limits, sink);
  FieldStream stream(bytes, std::move(owner));
  return ReadBinaryGraph(stream, limits, sink);
}

// A binary graph is read field by field; everything else is small, or no graph.
absl::Status ReadFile(const InputFile& file, const LoadLimits& limits, GraphSink& sink) {
  if (file.size() && *file.size() > kSampleBytes) {
    std::string sample(kSampleBytes, '\0');
    constexpr size_t kHead = kSampleBytes - kTailBytes;
    THALWEG_RETURN_IF_ERROR(file.ReadAt(0, sample.data(), kHead));
    THALWEG_RETURN_IF_ERROR(file.ReadAt(*file.size() - kTailBytes, sample.data() + kHead, kTailBytes));
    const SniffedFile sniffed = SniffFile(sample);
    if (sniffed.kind == FileKind::kOther) return NotAGraph(sniffed);
    if (sniffed.kind == FileKind::kBinaryGraph) {
      FieldStream stream(file);
      return ReadBinaryGraph(stream, limits, sink);
    }
  }
  THALWEG_ASSIGN_OR_RETURN(FileContents contents, file.ReadAll());
  return ReadBytes(contents.bytes, std::move(contents.owner), limits, sink);
}

// The stages of loading, in order. Shapes are judged only in a graph that is otherwise right.
absl::StatusOr<LoadResult> Load(ReadInto read, const std::string& label, const LoadOptions& options) {
  // Protobuf would also print what is wrong with hostile bytes; the status says it.
  const google::protobuf::LogSilencer silencer;
  FindingList findings;
  GraphAssembler assembler(options, findings);
  if (const absl::Status status = read(assembler); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(label, ": ", status.message()));
  }
  GraphAssembler::Result assembled = assembler.Finish();
  LoadResult result;
  result.graph = std::move(assembled.graph);

  ValidateInput input;
  input.schemas = options.schemas;
  input.limits = options.limits;
  input.first = assembled.first_new;
  input.faulty = &assembled.faulty;
  ValidateGraph(input, result.graph, findings);
  if (!findings.has_errors()) CheckCalledFunctions(result.graph, input.first, findings);
  if (!findings.has_errors()) {
    std::vector<Finding> shape_findings;
    InferShapes(result.graph, ShapeInferenceOptions(), &shape_findings);
    for (Finding& finding : shape_findings) findings.Add(std::move(finding));
  }
  result.findings = findings.Take();
  return result;
}

}  // namespace

bool LoadResult::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Finding::Severity::kError; });
}

absl::Status LoadResult::status() const { return StatusOfFindings(findings); }

absl::StatusOr<LoadResult> LoadGraphFile(const std::string& path, const LoadOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  return Load([&](GraphSink& sink) { return ReadFile(file, options.limits, sink); }, path, options);
}

absl::StatusOr<LoadResult> LoadGraphBytes(absl::string_view bytes, std::shared_ptr<const void> owner,
                                          const std::string& label, const LoadOptions& options) {
  return Load([&](GraphSink& sink) { return ReadBytes(bytes, owner, options.limits, sink); }, label, options);
}

}  // namespace thalweg
