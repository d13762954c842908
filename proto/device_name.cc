#include "thalweg/proto/device_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace thalweg {
namespace {

// Takes a name [A-Za-z][A-Za-z0-9_]* off the front of `s`.
bool TakeWord(absl::string_view* s, std::string* word) {
  size_t n = 0;
  while (n < s->size() && (n == 0 ? absl::ascii_isalpha((*s)[n]) : absl::ascii_isalnum((*s)[n]) || (*s)[n] == '_')) ++n;
  if (n == 0) return false;
  *word = std::string(s->substr(0, n));
  s->remove_prefix(n);
  return true;
}

bool TakeNumber(absl::string_view* s, int* number) {
  size_t n = 0;
  while (n < s->size() && absl::ascii_isdigit((*s)[n])) ++n;
  if (n == 0 || !absl::SimpleAtoi(s->substr(0, n), number)) return false;
  s->remove_prefix(n);
  return true;
}

bool TakeNumberOrStar(absl::string_view* s, std::optional<int>* field) {
  if (absl::ConsumePrefix(s, "*")) {
    field->reset();
    return true;
  }
  int number;
  if (!TakeNumber(s, &number)) return false;
  *field = number;
  return true;
}

bool TakeWordOrStar(absl::string_view* s, std::optional<std::string>* field) {
  if (absl::ConsumePrefix(s, "*")) {
    field->reset();
    return true;
  }
  std::string word;
  if (!TakeWord(s, &word)) return false;
  *field = std::move(word);
  return true;
}

// TYPE[:ID]; the rest of a /device: part or a local name.
bool TakeTypeAndId(absl::string_view* s, DeviceName* name) {
  if (!TakeWordOrStar(s, &name->type)) return false;
  if (name->type && (*name->type == "cpu" || *name->type == "gpu")) name->type = absl::AsciiStrToUpper(*name->type);
  name->id.reset();
  return !absl::ConsumePrefix(s, ":") || TakeNumberOrStar(s, &name->id);
}

bool TakePart(absl::string_view* s, DeviceName* name) {
  if (absl::ConsumePrefix(s, "/job:")) return TakeWordOrStar(s, &name->job);
  if (absl::ConsumePrefix(s, "/replica:")) return TakeNumberOrStar(s, &name->replica);
  if (absl::ConsumePrefix(s, "/task:")) return TakeNumberOrStar(s, &name->task);
  if (absl::ConsumePrefix(s, "/device:")) return TakeTypeAndId(s, name);
  for (absl::string_view old : {"/cpu:", "/CPU:", "/gpu:", "/GPU:"}) {
    if (absl::ConsumePrefix(s, old)) {
      name->type = absl::AsciiStrToUpper(old.substr(1, 3));
      return TakeNumberOrStar(s, &name->id);
    }
  }
  return false;
}

template <typename T>
bool Conflict(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

}  // namespace

absl::StatusOr<DeviceName> DeviceName::Parse(absl::string_view text) {
  DeviceName name;
  absl::string_view rest = text;
  if (rest == "/") return name;
  while (!rest.empty()) {
    if (!TakePart(&rest, &name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("malformed device name '", text, "' at '", rest, "'; write for example /device:CPU:0"));
    }
  }
  return name;
}

absl::StatusOr<DeviceName> DeviceName::ParseLocalOrFull(absl::string_view text) {
  if (text.empty() || text[0] == '/') return Parse(text);
  DeviceName name;
  absl::string_view rest = text;
  if (!TakeTypeAndId(&rest, &name) || !rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("malformed device '", text, "'; write for example CPU:0 or GPU:0"));
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string out;
  if (job) absl::StrAppend(&out, "/job:", *job);
  if (replica) absl::StrAppend(&out, "/replica:", *replica);
  if (task) absl::StrAppend(&out, "/task:", *task);
  if (type) {
    absl::StrAppend(&out, "/device:", *type, ":");
    if (id)
      absl::StrAppend(&out, *id);
    else
      out += '*';
  }
  return out;
}

std::string DeviceName::ToShortString() const { return type && id ? absl::StrCat(*type, ":", *id) : ToString(); }

bool DeviceName::Matches(const DeviceName& full) const {
  return (!job || job == full.job) && (!replica || replica == full.replica) && (!task || task == full.task) &&
         (!type || type == full.type) && (!id || id == full.id);
}

DeviceName DeviceName::CompletedFrom(const DeviceName& base) const {
  DeviceName out = *this;
  if (!out.job) out.job = base.job;
  if (!out.replica) out.replica = base.replica;
  if (!out.task) out.task = base.task;
  if (!out.type) out.type = base.type;
  if (!out.id) out.id = base.id;
  return out;
}

absl::Status DeviceName::Merge(const DeviceName& other, MergeMode mode) {
  if (Conflict(job, other.job) || Conflict(replica, other.replica) || Conflict(task, other.task)) {
    return absl::InvalidArgumentError(absl::StrCat("device names '", ToString(), "' and '", other.ToString(),
                                                   "' name different jobs, replicas or tasks"));
  }
  const bool type_conflict = Conflict(type, other.type);
  const bool id_conflict = Conflict(id, other.id);
  if (mode == MergeMode::kStrict && (type_conflict || id_conflict)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device names '", ToString(), "' and '", other.ToString(), "' contradict each other"));
  }
  if (other.job) job = other.job;
  if (other.replica) replica = other.replica;
  if (other.task) task = other.task;
  if (mode == MergeMode::kSoft && type_conflict) {
    type.reset();
    id.reset();
    return absl::OkStatus();
  }
  if (other.type) type = other.type;
  if (mode == MergeMode::kSoft && id_conflict) {
    id.reset();
    return absl::OkStatus();
  }
  if (other.id) id = other.id;
  return absl::OkStatus();
}

}  // namespace thalweg
