// How the program speaks: results to stdout, messages to stderr, tables, numbers with units, colour on terminals only.
//
// Threading: Console is used by one thread at a time, Progress has its own thread. Errors: writing never fails visibly.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "thalweg/tools/exit_codes.h"

namespace thalweg::tools {

enum class Colour { kNone, kBold, kDim, kRed, kYellow, kGreen };

// What went wrong, as one thing: the status, the exit code it means, and a command that helps further.
struct Failure {
  absl::Status status;
  ExitCode exit_code = kExitRunFailed;
  std::string next;  // "thalweg inspect g.pb --check"; never empty
};

class Console {
 public:
  // Colour is used on a stream that is a terminal, unless NO_COLOR is set to something.
  Console();

  void Print(absl::string_view text);  // to stdout, as it is
  void Note(absl::string_view text);   // "note: ..." to stderr, unless quiet
  void Warn(absl::string_view text);   // "warning: ..." to stderr, also when quiet
  // Prints "error: CODE: message" and the next command to stderr; returns the exit code.
  int Fail(const Failure& failure);

  std::string Paint(Colour colour, absl::string_view text) const;  // for stdout
  bool stderr_is_terminal() const { return stderr_is_terminal_; }
  bool quiet() const { return quiet_; }
  void set_quiet(bool quiet) { quiet_ = quiet; }

 private:
  std::string PaintForStderr(Colour colour, absl::string_view text) const;

  bool stderr_is_terminal_;
  bool colour_stdout_;
  bool colour_stderr_;
  bool quiet_ = false;
};

// Columns of text, aligned, two spaces apart. Numbers go to the right.
class Table {
 public:
  enum class Align { kLeft, kRight };
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}
  // Missing cells are empty; cells beyond the columns are joined to the last one.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string ToString(absl::string_view indent = "") const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A line on stderr for work that takes more than a second; silent if stderr is no terminal or the console is quiet.
class Progress {
 public:
  Progress(const Console& console, std::string what);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Tick(std::string what);

  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

std::string FormatNanos(double nanos);   // "850 ns", "12.3 us", "4.56 ms", "1.23 s"
std::string FormatBytes(double bytes);   // "12 B", "28.4 MiB"
std::string FormatCount(int64_t count);  // "1 841": thousands apart
std::string FormatShort(double number);  // "6.8 M"
// "INVALID_ARGUMENT"; the spelling that scripts look for.
std::string CodeName(absl::StatusCode code);
// `word` for one, `word` + "s" otherwise, with the number before it.
std::string Plural(int64_t count, absl::string_view word);
// The text between single quotes if a shell would not take it as one word.
std::string ShellQuote(absl::string_view text);
// Shortened to `limit` characters with "..." in the middle.
std::string Ellipsis(absl::string_view text, size_t limit);
// Up to `limit` candidates nearest to `word` by edit distance, only plausible ones (at most a third of its length + 1).
std::vector<std::string> NearestWords(absl::string_view word, const std::vector<std::string>& candidates,
                                      size_t limit = 3);

}  // namespace thalweg::tools
