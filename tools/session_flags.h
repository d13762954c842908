// The flags that say how a session is made, shared by run, bench and place: -d, --threads, --policy, --pin, ...
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/command_line.h"
#include "thalweg/tools/exit_codes.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

// Adds to a verb's table: -d, --pin, --policy, --placement, --[no-]soft-placement, --no-opt.
void AppendPlacementFlags(std::vector<FlagSpec>* flags);
// The same and --memory-limit and --parallel-iterations.
void AppendSessionFlags(std::vector<FlagSpec>* flags);

// Reads and checks them; SessionOptions::threads is left to the verb. A failure has exit code 2 for malformed values, 7
// for a device that is not there.
struct SessionFlagsResult {
  SessionOptions options;
  Failure failure;  // status OK if all is well
};
SessionFlagsResult ReadSessionFlags(const Arguments& arguments);

// One line for every pin that matches no node, and one for the nodes of a placement file that the graph does not have.
// None for graphs with functions, whose nodes come into being later.
std::vector<std::string> RequestsWithoutNodes(const SessionOptions& options, const Graph& graph);

// --threads, one number or a list as ParseIntegerList takes it; {0}, one per core, if the flag is absent.
absl::StatusOr<std::vector<int64_t>> ReadThreadCounts(const Arguments& arguments);

}  // namespace thalweg::tools
