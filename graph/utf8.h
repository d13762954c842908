// Whether text is well-formed UTF-8, as protobuf demands of its strings. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace thalweg {

bool IsUtf8(absl::string_view text);

}  // namespace thalweg
