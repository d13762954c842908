#include "thalweg/graph/loader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "thalweg/graph/file_kind.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph_assembler.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/input_file.h"
#include "thalweg/graph/shape_inference.h"
#include "thalweg/graph/validate.h"

namespace thalweg {
namespace {

// As much as telling the kind of a file takes.
constexpr size_t kHeadBytes = 64 << 10;

absl::Status NotAGraph(absl::string_view label, const SniffedFile& file) {
  return absl::InvalidArgumentError(absl::StrCat(label, ": not a GraphDef: this is ", file.description,
                                                 file.advice.empty() ? "" : absl::StrCat("; ", file.advice)));
}

absl::Status ReadGraph(const GraphBytes& source, const std::string& label, const LoadLimits& limits, GraphSink& sink) {
  if (source.bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(label, ": empty: there are no bytes in it"));
  const SniffedFile file = SniffFile(source.bytes);
  if (file.kind == FileKind::kOther) return NotAGraph(label, file);
  const absl::Status status = file.kind == FileKind::kTextGraph ? ReadTextGraph(source.bytes, limits, sink)
                                                                : ReadBinaryGraph(source, limits, sink);
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(label, ": ", status.message()));
}

// The stages of loading, in order. Shapes are judged only in a graph that is otherwise right.
absl::StatusOr<LoadResult> Load(const GraphBytes& source, const std::string& label, const LoadOptions& options) {
  // Protobuf would also print what is wrong with hostile bytes; the status says it.
  const google::protobuf::LogSilencer silencer;
  FindingList findings;
  GraphAssembler assembler(options, findings);
  THALWEG_RETURN_IF_ERROR(ReadGraph(source, label, options.limits, assembler));
  GraphAssembler::Result assembled = assembler.Finish();
  LoadResult result;
  result.graph = std::move(assembled.graph);

  ValidateInput input;
  input.schemas = options.schemas;
  input.limits = options.limits;
  input.first = assembled.first_new;
  input.faulty = &assembled.faulty;
  ValidateGraph(input, result.graph, findings);
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
  THALWEG_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  // Something else than a graph is told by its start; it may be large, and need not be read.
  THALWEG_ASSIGN_OR_RETURN(const absl::string_view head, file.Head(kHeadBytes));
  if (head.size() == kHeadBytes) {
    if (const SniffedFile file_kind = SniffFile(head); file_kind.kind == FileKind::kOther) return NotAGraph(path, file_kind);
  }
  THALWEG_ASSIGN_OR_RETURN(FileContents contents, file.ReadAll());
  return Load({contents.bytes, std::move(contents.owner)}, path, options);
}

absl::StatusOr<LoadResult> LoadGraphBytes(absl::string_view bytes, std::shared_ptr<const void> owner,
                                          const std::string& label, const LoadOptions& options) {
  return Load({bytes, std::move(owner)}, label, options);
}

}  // namespace thalweg
