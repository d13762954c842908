# Target check_headers: every header compiles alone, without the precompiled ones. Not part of the default build.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
     proto/*.h graph/*.h devices/*.h ops/*.h runtime/*.h tools/*.h tests/support/*.h)

set(check_sources)
foreach(header IN LISTS headers)
  string(REPLACE "/" "_" name "${header}")
  set(check_source "${PROJECT_BINARY_DIR}/check_headers/${name}.cc")
  file(CONFIGURE OUTPUT "${check_source}" CONTENT "#include \"thalweg/${header}\"\n")
  list(APPEND check_sources "${check_source}")
endforeach()

add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${check_sources})
target_compile_options(check_headers PRIVATE -fsyntax-only)
target_link_libraries(check_headers PRIVATE thalweg_runtime DNNL::dnnl Eigen3::Eigen nlohmann_json::nlohmann_json
                      CLI11::CLI11 TBB::tbb PkgConfig::RE2)
