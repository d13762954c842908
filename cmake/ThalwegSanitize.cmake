# Which of the kernels the sanitizers see. They take most of the time of a build, and what they share between threads is locked
# by the runtime, which is instrumented; with THALWEG_SANITIZE_KERNELS off the objects are those of the release (and come from
# the compiler cache, if that was built before).

# For the current folder: nothing is instrumented if kernels are not to be. Sets thalweg_fast_loops, the flag for inner loops.
macro(thalweg_spare_kernels)
  if(THALWEG_SANITIZE AND NOT THALWEG_SANITIZE_KERNELS)
    set_directory_properties(PROPERTIES COMPILE_OPTIONS "${THALWEG_PLAIN_OPTIONS}")
    string(TOUPPER "${CMAKE_BUILD_TYPE}" configuration)
    set(CMAKE_CXX_FLAGS_${configuration} "${CMAKE_CXX_FLAGS_RELEASE}")
    set(thalweg_fast_loops -O3)
  else()
    set(thalweg_fast_loops "$<$<CONFIG:Release>:-O3>")
  endif()
endmacro()

# thalweg_sanitize_folders(FOLDER...): what lies in these folders of the current one is instrumented all the same.
function(thalweg_sanitize_folders)
  if(NOT THALWEG_SANITIZE OR THALWEG_SANITIZE_KERNELS)
    return()
  endif()
  get_property(instrumented DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY COMPILE_OPTIONS)
  list(REMOVE_ITEM instrumented ${THALWEG_PLAIN_OPTIONS})
  list(TRANSFORM ARGN APPEND "/*.cc" OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS ${instrumented})
  set_property(SOURCE ${sources} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()
