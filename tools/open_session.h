// Making a session of a graph file, with the exit code that a failure means.
#pragma once

#include <memory>
#include <string>

#include "thalweg/runtime/session.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

struct OpenedSession {
  std::unique_ptr<Session> session;  // null if it failed
  Failure failure;
  int64_t load_nanos = 0;
};
OpenedSession OpenSession(const std::string& graph, const SessionOptions& options);

// OK, or Unimplemented for a folder that is a SavedModel: what to say before trying to read it as a graph.
absl::Status CheckIsGraphFile(const std::string& path);

}  // namespace thalweg::tools
