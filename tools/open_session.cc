#include "thalweg/tools/open_session.h"

#include <sys/stat.h>

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/tools/advice.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

}  // namespace

absl::Status CheckIsGraphFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return absl::OkStatus();
  if (Exists(path + "/saved_model.pb") || Exists(path + "/saved_model.pbtxt")) {
    return absl::UnimplementedError(
        absl::StrCat("'", path, "' is a SavedModel; this version loads GraphDef files (.pb, .pbtxt) only"));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, not a graph"));
}

OpenedSession OpenSession(const std::string& graph, const SessionOptions& options) {
  OpenedSession opened;
  const Clock::time_point start = Clock::now();
  if (absl::Status status = CheckIsGraphFile(graph); !status.ok()) {
    opened.failure = {status, kExitGraphUnusable, absl::StrCat("ls ", ShellQuote(graph))};
    return opened;
  }
  // Two steps, so that faults of the options and faults of the graph can be told apart.
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(options);
  if (!session.ok()) {
    const ExitCode code = absl::IsNotFound(session.status())            ? kExitDeviceMissing
                          : absl::IsResourceExhausted(session.status()) ? kExitOutOfMemory
                                                                        : kExitUsage;
    opened.failure = {session.status(), code, "thalweg devices"};
    return opened;
  }
  if (absl::Status status = (*session)->ExtendFromFile(graph); !status.ok()) {
    opened.failure = {status, ExitCodeOfLoad(status), AdviceForLoad(graph, status)};
    return opened;
  }
  opened.session = *std::move(session);
  opened.load_nanos = std::chrono::nanoseconds(Clock::now() - start).count();
  return opened;
}

}  // namespace thalweg::tools
