# Sources include each other as "thalweg/<folder>/<file>.h", in the tree as after installation:
# the build directory holds a link named thalweg to the source tree.
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/include")
file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/include/thalweg" SYMBOLIC)

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
endfunction()
