# Every external library, found once. All come from Debian 12 (tools/setup.sh installs them).
find_package(absl REQUIRED CONFIG)
find_package(Protobuf REQUIRED)
find_package(TBB REQUIRED CONFIG)
if(THALWEG_SANITIZE MATCHES "thread" AND NOT TBB_DIR MATCHES "/tsan/")
  set(found "${TBB_DIR}")
  unset(TBB_DIR CACHE)  # so that the next try looks again
  message(FATAL_ERROR "The thread sanitizer needs an instrumented oneTBB, or it reports races that are none: "
                      "run tools/build_tsan_tbb.sh first, and configure with the preset tsan (found: ${found}).")
endif()
find_package(CLI11 REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)

# oneDNN's package asks for OpenCL, which thalweg does not use: point it at the loader that is there.
set(OpenCL_INCLUDE_DIR /usr/include CACHE PATH "only to satisfy dnnl-config.cmake")
find_library(OpenCL_LIBRARY NAMES OpenCL libOpenCL.so.1)
find_package(dnnl REQUIRED CONFIG)
find_package(OpenMP REQUIRED COMPONENTS CXX)
