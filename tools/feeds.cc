#include "thalweg/tools/feeds.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/archive.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

WantedInput Wanted(const Session& session, absl::string_view name) {
  const absl::StatusOr<Session::TensorInfo> info = session.Describe(name);
  return info.ok() ? WantedInput{info->dtype, info->shape} : WantedInput{};
}

// The declared shape with the dimensions that --shape gives and, if allowed, ones for those still open.
PartialShape ShapeToFill(const PartialShape& declared, const std::string& name, const FillRequest& request) {
  PartialShape shape = declared;
  for (const auto& [fixed_name, fixed] : request.fixed) {
    if (fixed_name == name || fixed_name == absl::StrCat(name, ":0")) shape = fixed;
  }
  if (!request.open_dims_as_one || !shape.has_rank()) return shape;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!IsKnownDim(shape.dim(d))) shape.set_dim(d, 1);
  }
  return shape;
}

// An argument of --shape to begin with: what is known of the shape, ones elsewhere.
std::string ExampleShape(const PartialShape& declared) {
  if (!declared.has_rank()) return "1x224x224x3";
  std::vector<std::string> dims;
  for (int d = 0; d < declared.rank(); ++d)
    dims.push_back(absl::StrCat(IsKnownDim(declared.dim(d)) ? declared.dim(d) : 1));
  return absl::StrJoin(dims, "x");
}

}  // namespace

absl::StatusOr<std::vector<InputSpec>> ParseInputFlags(const std::vector<std::string>& flags) {
  std::vector<InputSpec> inputs;
  for (const std::string& text : flags) {
    THALWEG_ASSIGN_OR_RETURN(InputSpec spec, ParseInputSpec(text));
    inputs.push_back(std::move(spec));
  }
  return inputs;
}

absl::StatusOr<Feeds> FeedsFromArchive(const Session& session, const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const TensorArchive archive, TensorArchive::Open(path));
  Feeds feeds;
  for (const std::string& key : archive.keys()) {
    THALWEG_ASSIGN_OR_RETURN(const NpyArray array, archive.Read(key));
    absl::StatusOr<Tensor> tensor = TensorFromNpy(array, Wanted(session, key).dtype);
    if (!tensor.ok())
      return absl::Status(tensor.status().code(),
                          absl::StrCat("input ", key, ": ", path, " ", tensor.status().message()));
    feeds.emplace_back(key, *std::move(tensor));
  }
  return feeds;
}

absl::StatusOr<Feeds> BuildFeeds(const Session& session, const std::vector<InputSpec>& inputs) {
  Feeds feeds;
  const auto add = [&feeds](std::string name, Tensor tensor) {
    for (auto& [known, value] : feeds) {
      if (known != name) continue;
      value = std::move(tensor);  // the later one wins, so that -i @all.npz -i x=3 replaces one of them
      return;
    }
    feeds.emplace_back(std::move(name), std::move(tensor));
  };
  for (const InputSpec& spec : inputs) {
    if (spec.source == InputSpec::Source::kArchive) {
      THALWEG_ASSIGN_OR_RETURN(Feeds all, FeedsFromArchive(session, spec.path));
      for (auto& [name, tensor] : all) add(std::move(name), std::move(tensor));
      continue;
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor tensor, BuildInput(spec, Wanted(session, spec.name)));
    add(spec.name, std::move(tensor));
  }
  return feeds;
}

absl::StatusOr<std::vector<std::string>> FillPlaceholders(const GraphView& view, const FillRequest& request,
                                                          const std::vector<std::string>& fetches,
                                                          const std::vector<std::string>& targets, Feeds* feeds) {
  std::vector<std::string> fed;
  for (const auto& [name, tensor] : *feeds) fed.push_back(name);
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> unfed, UnfedPlaceholders(view.graph(), fed, fetches, targets));
  std::vector<std::string> lines;
  for (const NodeId id : unfed) {
    const Node& node = view.graph().node(id);
    const std::string name(node.name);
    THALWEG_ASSIGN_OR_RETURN(const InputSpec spec, ParseInputValue(name, request.value));
    const PartialShape shape = ShapeToFill(view.shapes.output(id, 0), name, request);
    if (!shape.IsFullyKnown()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", name, ": the graph says ", DTypeName(node.output_types[0]), shape.ToString(),
                       "; say which shape to fill, as in --shape ", ShellQuote(name), "=", ExampleShape(shape)));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor tensor, BuildInput(spec, {node.output_types[0], shape}));
    lines.push_back(
        absl::StrCat(name, " = ", request.value, ":", DTypeName(tensor.dtype()), tensor.shape().ToString()));
    feeds->emplace_back(name, std::move(tensor));
  }
  return lines;
}

}  // namespace thalweg::tools
