// The parts of RegisterStringOps, one per file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg::strings {

void RegisterAsString(OpLibrary& lib);
void RegisterBase64Ops(OpLibrary& lib);
void RegisterDecodeRawOps(OpLibrary& lib);
void RegisterHashOps(OpLibrary& lib);
void RegisterJoinOps(OpLibrary& lib);    // StringJoin, ReduceJoin, UnsortedSegmentJoin
void RegisterRegexOps(OpLibrary& lib);
void RegisterSplitOps(OpLibrary& lib);   // StringSplit, StringSplitV2
void RegisterSubstrOps(OpLibrary& lib);  // StringLength, Substr
void RegisterTextOps(OpLibrary& lib);    // StringLower, StringUpper, StringStrip, StringToNumber, ShardedFilename ...

}  // namespace thalweg::strings
