// How deep the messages of an encoded attribute, function or type hint nest: tells what is nested too deep for the parser
// from what is corrupt. Walks with a stack of its own, whatever the depth. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace thalweg {

enum class NestedMessage { kAttrValue, kFunction, kFullType };

// True if messages nest deeper than `limit` levels before the first fault of the encoding, if there is one.
bool NestsDeeperThan(absl::string_view bytes, NestedMessage message, int limit);

}  // namespace thalweg
