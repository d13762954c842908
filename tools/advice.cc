#include "thalweg/tools/advice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The node that a message names first, in quotes behind the word "node".
std::string NodeNamedIn(absl::string_view message) {
  const size_t at = message.find("node '");
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = message.substr(at + 6);
  return std::string(rest.substr(0, rest.find('\'')));
}

}  // namespace

std::string AdviceForLoad(const std::string& graph, const absl::Status& status) {
  if (absl::IsNotFound(status) && absl::StrContains(status.message(), graph))
    return absl::StrCat("ls ", ShellQuote(FolderOf(graph)));
  return absl::StrCat("thalweg inspect ", ShellQuote(graph), " --check");
}

std::string AdviceForStep(absl::string_view verb, const std::string& graph, const absl::Status& status) {
  const std::string quoted = ShellQuote(graph);
  if (absl::IsResourceExhausted(status)) return absl::StrCat("thalweg ", verb, " ", quoted, " ... --memory-limit 8GiB");
  if (absl::IsDeadlineExceeded(status)) return absl::StrCat("thalweg ", verb, " ", quoted, " ... --timeout 60s");
  if (absl::StrContains(status.message(), "no kernel")) return absl::StrCat("thalweg ops --for ", quoted);
  if (absl::StrContains(status.message(), "device")) return absl::StrCat("thalweg place ", quoted);
  const std::string node = NodeNamedIn(status.message());
  if (!node.empty()) return absl::StrCat("thalweg inspect ", quoted, " --node ", ShellQuote(node));
  return absl::StrCat("thalweg inspect ", quoted);
}

}  // namespace thalweg::tools
