#include "thalweg/tools/advice.h"

#include <re2/re2.h>
#include <unistd.h>

#include <cstdint>

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

// The memory limit with which the allocation that failed would have succeeded, in MiB; -1 if the message does not say,
// or this machine has not as much.
int64_t MebibytesWanted(absl::string_view message) {
  static const RE2* const pattern = new RE2(R"(cannot allocate (\d+) bytes on \S+: (\d+) of the memory limit)");
  int64_t wanted = 0, in_use = 0;
  if (!RE2::PartialMatch(re2::StringPiece(message.data(), message.size()), *pattern, &wanted, &in_use)) return -1;
  constexpr int64_t kMebibyte = int64_t{1} << 20;
  const int64_t there = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  if (wanted > there || in_use > there - wanted) return -1;
  constexpr int64_t kPerBuffer = 128;  // what a buffer is charged beyond its bytes, at most
  int64_t mebibytes = 1;
  while (mebibytes * kMebibyte < wanted + in_use + kPerBuffer) mebibytes *= 2;
  return mebibytes;
}

std::string AdviceForMemory(absl::string_view verb, const std::string& quoted_graph, absl::string_view message) {
  const int64_t mebibytes = MebibytesWanted(message);
  if (mebibytes > 0) return absl::StrCat("thalweg ", verb, " ", quoted_graph, " ... --memory-limit ", mebibytes, "MiB");
  const std::string node = NodeNamedIn(message);
  return absl::StrCat("thalweg inspect ", quoted_graph, node.empty() ? "" : " --node ",
                      node.empty() ? "" : ShellQuote(node));
}

}  // namespace

std::string AdviceForLoad(const std::string& graph, const absl::Status& status) {
  if (absl::IsNotFound(status) && absl::StrContains(status.message(), graph))
    return absl::StrCat("ls ", ShellQuote(FolderOf(graph)));
  if (absl::IsPermissionDenied(status)) return absl::StrCat("ls -l ", ShellQuote(graph));
  // The file is no graph, or not a whole one: its size and date say more than another look inside.
  if (absl::StartsWith(status.message(), absl::StrCat(graph, ": "))) return absl::StrCat("ls -l ", ShellQuote(graph));
  return absl::StrCat("thalweg inspect ", ShellQuote(graph), " --check");
}

std::string AdviceForStep(absl::string_view verb, const std::string& graph, const absl::Status& status) {
  const std::string quoted = ShellQuote(graph);
  if (absl::IsResourceExhausted(status)) return AdviceForMemory(verb, quoted, status.message());
  if (absl::IsDeadlineExceeded(status)) return absl::StrCat("thalweg ", verb, " ", quoted, " ... --timeout 60s");
  if (absl::StrContains(status.message(), "no kernel")) return absl::StrCat("thalweg ops --for ", quoted);
  if (absl::StrContains(status.message(), "device")) {
    return verb == "place" ? "thalweg devices" : absl::StrCat("thalweg place ", quoted);
  }
  const std::string node = NodeNamedIn(status.message());
  if (!node.empty() && !absl::StrContains(status.message(), "has no node"))
    return absl::StrCat("thalweg inspect ", quoted, " --node ", ShellQuote(node));
  return absl::StrCat("thalweg inspect ", quoted);
}

bool LacksDevice(const absl::Status& status) {
  return absl::StrContains(status.message(), "which does not exist (devices: ");
}

}  // namespace thalweg::tools
