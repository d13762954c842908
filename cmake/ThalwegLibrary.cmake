# libthalweg.so, and the package that find_package(thalweg) finds after installation.
#
# The library holds every folder up to runtime/. It exports what the public headers mark with THALWEG_EXPORT, nothing else:
# the folders are compiled with hidden visibility, and the version script hides what comes in with other libraries' headers.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(THALWEG_PUBLIC_HEADERS
    proto/dtype.h proto/export.h proto/numeric_types.h proto/shape.h proto/tensor_literal.h
    proto/status_macros.h graph/attrs.h graph/graph_builder.h
    devices/allocator.h devices/buffer.h devices/memory_log.h devices/object.h devices/tensor.h
    runtime/profile.h runtime/session.h runtime/trace.h runtime/trace_analysis.h)

# Every object of the folders, whether or not somebody inside the library calls it. The link to thalweg_runtime brings the
# other libraries; its archives have nothing left to add.
set(folders thalweg_protos thalweg_proto thalweg_graph thalweg_devices thalweg_ops thalweg_runtime)
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(thalweg_shared SHARED ${objects})
set_target_properties(thalweg_shared PROPERTIES OUTPUT_NAME thalweg EXPORT_NAME thalweg LINKER_LANGUAGE CXX
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
set(version_script "${PROJECT_SOURCE_DIR}/cmake/thalweg.map")
target_link_options(thalweg_shared PRIVATE "LINKER:--version-script=${version_script}")
set_target_properties(thalweg_shared PROPERTIES LINK_DEPENDS "${version_script}")
target_link_libraries(thalweg_shared PRIVATE thalweg_runtime)
target_link_libraries(thalweg_shared PUBLIC absl::status absl::statusor absl::strings absl::inlined_vector absl::span
                      absl::flat_hash_map)
target_compile_features(thalweg_shared INTERFACE cxx_std_20)
target_include_directories(thalweg_shared INTERFACE "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
                           "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

install(TARGETS thalweg_shared EXPORT thalwegTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
foreach(header IN LISTS THALWEG_PUBLIC_HEADERS)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/thalweg/${folder}")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/thalweg")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/thalweg")
install(EXPORT thalwegTargets NAMESPACE thalweg:: DESTINATION "${package_dir}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/thalwegConfig.cmake" @ONLY CONTENT
"include(CMakeFindDependencyMacro)
find_dependency(absl CONFIG)
include(\"\${CMAKE_CURRENT_LIST_DIR}/thalwegTargets.cmake\")
")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/thalwegConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/thalwegConfig.cmake" "${PROJECT_BINARY_DIR}/thalwegConfigVersion.cmake"
        DESTINATION "${package_dir}")
