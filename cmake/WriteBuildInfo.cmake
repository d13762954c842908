# Writes build_info.h (OUTPUT) of the state of SOURCE_DIR; leaves the file alone if nothing has changed.
set(COMMIT "unknown")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT "${described}")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[// Made by cmake/WriteBuildInfo.cmake.
#pragma once

namespace thalweg::tools {
inline constexpr char kVersion[] = "@VERSION@";
inline constexpr char kCommit[] = "@COMMIT@";
inline constexpr char kBuildType[] = "@BUILD_TYPE@";
inline constexpr char kSanitizers[] = "@SANITIZE@";
}  // namespace thalweg::tools
]])
