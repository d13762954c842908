# Compiler flags and build options. Sanitizer builds are chosen by THALWEG_SANITIZE (see CMakePresets.json).
option(THALWEG_BUILD_TESTS "Build the tests" ON)
option(THALWEG_RECORDING "Let a step be recorded; OFF only to measure what having it costs" ON)
set(THALWEG_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined' or 'thread'")
option(THALWEG_SANITIZE_KERNELS "With THALWEG_SANITIZE: instrument ops/ too; OFF compiles it as the release does" ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-maybe-uninitialized -fno-math-errno)
get_directory_property(THALWEG_PLAIN_OPTIONS COMPILE_OPTIONS)
if(THALWEG_SANITIZE)
  add_compile_options(-fsanitize=${THALWEG_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${THALWEG_SANITIZE})
  if(THALWEG_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  # With this macro protobuf's headers add members to classes that Debian's library was built without. The one thing of the
  # standard library that hangs on it is said by its own name.
  if(THALWEG_SANITIZE STREQUAL "thread")
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()

# Paths below the source folder are hashed relative to it, so that all clones on a machine share what is cached.
find_program(THALWEG_CCACHE ccache)
if(THALWEG_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      "CCACHE_SLOPPINESS=pch_defines,time_macros" "${THALWEG_CCACHE}")
  list(APPEND THALWEG_PLAIN_OPTIONS -fpch-preprocess)
  add_compile_options(-fpch-preprocess)  # lets ccache see through precompiled headers
endif()
find_program(THALWEG_MOLD mold)
if(THALWEG_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
