// Fuzz target: any bytes, loaded as a graph. Whatever comes, the loader returns; a graph without errors can then be
// ordered, printed and summarised. (libFuzzer's entry point; run_corpus.cc drives it where there is no libFuzzer.)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "thalweg/graph/loader.h"
#include "thalweg/graph/summary.h"
#include "thalweg/ops/register_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  thalweg::LoadOptions options;
  options.schemas = &thalweg::BuiltinOps().schemas;
  options.limits.max_literal_bytes = int64_t{1} << 30;
  const auto bytes = std::make_shared<std::string>(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<thalweg::LoadResult> loaded = thalweg::LoadGraphBytes(*bytes, bytes, "fuzz", options);
  if (!loaded.ok() || loaded->has_errors()) return 0;
  const thalweg::Graph& graph = loaded->graph;
  thalweg::SummarizeGraph(graph, thalweg::InferShapes(graph, {}, nullptr));
  if (!graph.Compacted().ok() || graph.ToString().empty() != (graph.num_nodes() == 0)) __builtin_trap();
  return 0;
}
