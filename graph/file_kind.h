// What kind of file is this? Told from content, so that a wrong file is called by its name in the error.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace thalweg {

enum class FileKind {
  kBinaryGraph,  // or anything binary that nothing below recognises
  kTextGraph,    // text; whether it is a graph only parsing can tell
  kOther,        // a known kind that is not a graph
};

struct SniffedFile {
  FileKind kind = FileKind::kBinaryGraph;
  std::string description;  // of kOther: "a JPEG image"
  std::string advice;       // of kOther: what to do instead; may be empty
};

// Looks at the beginning and the end of `bytes` only.
SniffedFile SniffFile(absl::string_view bytes);

}  // namespace thalweg
