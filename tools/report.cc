#include "thalweg/tools/report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace thalweg::tools {
namespace {

const char* ColourCode(Colour colour) {
  switch (colour) {
    case Colour::kNone: return "";
    case Colour::kBold: return "\033[1m";
    case Colour::kDim: return "\033[2m";
    case Colour::kRed: return "\033[31m";
    case Colour::kYellow: return "\033[33m";
    case Colour::kGreen: return "\033[32m";
  }
  return "";
}

std::string Painted(bool on, Colour colour, absl::string_view text) {
  if (!on || colour == Colour::kNone) return std::string(text);
  return absl::StrCat(ColourCode(colour), text, "\033[0m");
}

// Characters a terminal shows: UTF-8 continuation bytes and colour codes take no room.
size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++width;
  }
  return width;
}

// The length of a colour code at the start of `text`, as Paint writes them; 0 if there is none.
size_t ColourCodeLength(absl::string_view text) {
  size_t end = 2;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  return absl::StartsWith(text, "\033[") && end < text.size() && end <= 4 && text[end] == 'm' ? end + 1 : 0;
}

// Control characters in names from a file must not reach a terminal. Colours pass; line breaks if `lines`.
std::string Printable(absl::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (const size_t length = ColourCodeLength(text.substr(i)); length > 0) {
      absl::StrAppend(&out, text.substr(i, length));
      i += length - 1;
    } else if ((c >= 0x20 && c != 0x7f) || (lines && c == '\n')) {
      out.push_back(text[i]);
    } else {
      absl::StrAppend(&out, "\\x", absl::Hex(c, absl::kZeroPad2));
    }
  }
  return out;
}

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Three significant digits: "4.56", "45.6", "456".
std::string ThreeDigits(double value) {
  return absl::StrFormat("%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
}

}  // namespace

Console::Console() : stderr_is_terminal_(isatty(STDERR_FILENO) != 0) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool allowed = no_colour == nullptr || *no_colour == '\0';
  colour_stdout_ = allowed && isatty(STDOUT_FILENO) != 0;
  colour_stderr_ = allowed && stderr_is_terminal_;
}

std::string Console::Paint(Colour colour, absl::string_view text) const {
  return Painted(colour_stdout_, colour, text);
}
std::string Console::PaintForStderr(Colour colour, absl::string_view text) const {
  return Painted(colour_stderr_, colour, text);
}

void Console::Print(absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void Console::Note(absl::string_view text) {
  if (quiet_) return;
  const std::string line = absl::StrCat(PaintForStderr(Colour::kDim, "note: "), Printable(text, true), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Console::Warn(absl::string_view text) {
  const std::string line = absl::StrCat(PaintForStderr(Colour::kYellow, "warning: "), Printable(text, true), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int Console::Fail(const Failure& failure) {
  std::fflush(stdout);
  std::string text = absl::StrCat(PaintForStderr(Colour::kRed, "error: "), CodeName(failure.status.code()), ": ",
                                  Printable(failure.status.message(), true), "\n");
  if (!failure.next.empty()) absl::StrAppend(&text, "  try: ", Printable(failure.next, true), "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
  return failure.exit_code;
}

void Table::AddRow(std::vector<std::string> cells) {
  if (cells.size() > columns_.size()) {
    const auto tail = cells.begin() + static_cast<std::ptrdiff_t>(columns_.size()) - 1;
    const std::string last = absl::StrJoin(tail, cells.end(), "  ");
    cells.resize(columns_.size());
    cells.back() = last;
  }
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = Printable(cell, false);
  rows_.push_back(std::move(cells));
}

std::string Table::ToString(absl::string_view indent) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], DisplayWidth(row[c]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - DisplayWidth(row[c]), ' ');
      if (widths[c] == 0) continue;
      absl::StrAppend(&line, columns_[c] == Align::kRight ? padding : "", row[c],
                      columns_[c] == Align::kLeft ? padding : "", "  ");
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

Progress::Progress(const Console& console, std::string what) {
  if (!console.stderr_is_terminal() || console.quiet()) return;
  thread_ = std::thread(&Progress::Tick, this, std::move(what));
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
}

void Progress::Tick(std::string what) {
  const auto start = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_signal_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; })) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "\r\033[K%s  %.0f s", what.c_str(), seconds);
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\033[K", stderr);
}

std::string FormatNanos(double nanos) {
  if (!(nanos >= 0)) return "-";
  if (nanos < 999.5) return absl::StrFormat("%.0f ns", nanos);
  if (nanos < 999.5e3) return ThreeDigits(nanos / 1e3) + " us";
  if (nanos < 999.5e6) return ThreeDigits(nanos / 1e6) + " ms";
  return ThreeDigits(nanos / 1e9) + " s";
}

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (!(bytes >= 0)) return "-";
  size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f B", bytes) : absl::StrCat(ThreeDigits(bytes), " ", kUnits[unit]);
}

std::string FormatCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ' ');
  }
  return digits;
}

std::string FormatShort(double number) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (std::fabs(number) >= 999.5 && unit + 1 < std::size(kUnits)) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%.0f", number) : absl::StrCat(ThreeDigits(number), kUnits[unit]);
}

std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

std::string Plural(int64_t count, absl::string_view word) {
  return absl::StrCat(FormatCount(count), " ", word, count == 1 ? "" : "s");
}

std::string ShellQuote(absl::string_view text) {
  const absl::string_view harmless = "_-./:=,@%+^~";
  const bool plain = !text.empty() && text[0] != '~' && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || harmless.find(c) != absl::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += "'\\''";
    else out.push_back(c);
  }
  out.push_back('\'');
  return out;
}

std::string Ellipsis(absl::string_view text, size_t limit) {
  if (text.size() <= limit || limit < 8) return std::string(text);
  const size_t head = (limit - 3) * 2 / 3;
  const size_t tail = limit - 3 - head;
  return absl::StrCat(text.substr(0, head), "...", text.substr(text.size() - tail));
}

std::vector<std::string> NearestWords(absl::string_view word, const std::vector<std::string>& candidates,
                                      size_t limit) {
  if (word.size() > 256) return {};
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size());
    const size_t allowed = longer / 3 + 1;
    if (longer - std::min(word.size(), candidate.size()) > allowed) continue;
    const size_t distance = absl::EqualsIgnoreCase(word, candidate) ? 0 : EditDistance(word, candidate);
    if (distance <= allowed) ranked.emplace_back(distance, candidate);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(limit, ranked.size()); ++i) out.push_back(std::move(ranked[i].second));
  return out;
}

}  // namespace thalweg::tools
