#include "thalweg/ops/strings/register.h"

#include "thalweg/ops/strings/string_ops.h"

namespace thalweg {

void RegisterStringOps(OpLibrary& lib) {
  strings::RegisterAsString(lib);
  strings::RegisterBase64Ops(lib);
  strings::RegisterDecodeRawOps(lib);
  strings::RegisterHashOps(lib);
  strings::RegisterJoinOps(lib);
  strings::RegisterRegexOps(lib);
  strings::RegisterSplitOps(lib);
  strings::RegisterSubstrOps(lib);
  strings::RegisterTextOps(lib);
}

}  // namespace thalweg
