# Sources include each other as "thalweg/<folder>/<file>.h", in the tree as after installation:
# the build directory holds a link named thalweg to the source tree.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/include/thalweg" SYMBOLIC)

# What nearly every source includes, parsed once per library: it halves the time to compile most files. Only headers of the
# standard library and Abseil, so that a change of ours never rebuilds it; the target check_headers compiles without it.
set(THALWEG_PRECOMPILED_HEADERS
    <algorithm> <atomic> <functional> <memory> <mutex> <optional> <string> <utility> <variant> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/container/inlined_vector.h>
    <absl/functional/any_invocable.h> <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/types/span.h>)

# thalweg_layer(NAME [LINK_PUBLIC lib...] [LINK_PRIVATE lib...])
# Makes the static library thalweg_NAME of every .cc file under the current folder.
function(thalweg_layer name)
  cmake_parse_arguments(ARG "" "" "LINK_PUBLIC;LINK_PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  if(NOT sources)  # a folder that has only headers so far
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/empty.cc")
    file(TOUCH "${sources}")
  endif()
  add_library(thalweg_${name} STATIC ${sources})
  target_include_directories(thalweg_${name} PUBLIC "${PROJECT_BINARY_DIR}/include")
  target_link_libraries(thalweg_${name} PUBLIC ${ARG_LINK_PUBLIC} PRIVATE ${ARG_LINK_PRIVATE})
  target_precompile_headers(thalweg_${name} PRIVATE ${THALWEG_PRECOMPILED_HEADERS})
endfunction()
