// Findings of a graph, grouped: one line per kind with counts and first places. Include from .cc files only.
#pragma once

#include <string>

#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

// The findings of loading and shape inference, errors of frames (H16), and a warning for every op without a kernel on a
// backend. With `all` every single one is listed.
std::string FindingsText(const GraphView& view, bool all, const Console& console);
// One object per finding: severity, kind, node, op, message, advice.
OrderedJson FindingsJson(const GraphView& view);

}  // namespace thalweg::tools
