#include "thalweg/graph/loader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "thalweg/graph/file_kind.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph_assembler.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/mapped_file.h"
#include "thalweg/graph/shape_inference.h"
#include "thalweg/graph/validate.h"

namespace thalweg {
namespace {

absl::Status ReadGraph(const GraphBytes& source, const LoadLimits& limits, GraphSink& sink) {
  if (source.bytes.empty()) return absl::InvalidArgumentError("empty: there are no bytes in it");
  const SniffedFile file = SniffFile(source.bytes);
  switch (file.kind) {
    case FileKind::kOther:
      return absl::InvalidArgumentError(absl::StrCat("not a GraphDef: this is ", file.description,
                                                     file.advice.empty() ? "" : absl::StrCat("; ", file.advice)));
    case FileKind::kTextGraph: return ReadTextGraph(source.bytes, limits, sink);
    case FileKind::kBinaryGraph: break;
  }
  return ReadBinaryGraph(source, limits, sink);
}

// The stages of loading, in order. Shapes are judged only in a graph that is otherwise right.
absl::StatusOr<LoadResult> Load(const GraphBytes& source, const std::string& label, const LoadOptions& options) {
  // Protobuf would also print what is wrong with hostile bytes; the status says it.
  const google::protobuf::LogSilencer silencer;
  FindingList findings;
  GraphAssembler assembler(options, findings);
  if (const absl::Status status = ReadGraph(source, options.limits, assembler); !status.ok()) {
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
  THALWEG_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return Load({file->bytes(), file, file.get()}, path, options);
}

absl::StatusOr<LoadResult> LoadGraphBytes(absl::string_view bytes, std::shared_ptr<const void> owner,
                                          const std::string& label, const LoadOptions& options) {
  return Load({bytes, std::move(owner), nullptr}, label, options);
}

}  // namespace thalweg
