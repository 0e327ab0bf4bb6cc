# SPDX-License-Identifier: Apache-2.0
# pmem_proto(TARGET file.proto... [IMPORTS google/protobuf/file.proto...])
#
# Library of C code for protobuf files, generated into the build folder. IMPORTS are files of protobuf's own
# include folder that the others import: protobuf-c ships no code for them, so that it is generated too.
function(pmem_proto target)
  cmake_parse_arguments(arg "" "" "IMPORTS" ${ARGN})
  find_program(PROTOC_C protoc-c REQUIRED)
  pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
  find_path(PROTOBUF_INCLUDE google/protobuf/wrappers.proto REQUIRED)

  set(outputs)
  foreach(proto IN LISTS arg_UNPARSED_ARGUMENTS arg_IMPORTS)
    if(proto IN_LIST arg_IMPORTS)
      set(root "${PROTOBUF_INCLUDE}")
    else()
      set(root "${CMAKE_CURRENT_SOURCE_DIR}")
    endif()
    string(REGEX REPLACE "\\.proto$" ".pb-c" base "${CMAKE_CURRENT_BINARY_DIR}/${proto}")
    add_custom_command(
      OUTPUT "${base}.c" "${base}.h"
      COMMAND ${PROTOC_C} --c_out=${CMAKE_CURRENT_BINARY_DIR} -I ${root} -I ${PROTOBUF_INCLUDE} ${root}/${proto}
      DEPENDS ${root}/${proto}
      VERBATIM)
    list(APPEND outputs "${base}.c" "${base}.h")
  endforeach()
  add_library(${target} STATIC ${outputs})
  set_target_properties(${target} PROPERTIES PMEM_QUICK ON)
  target_include_directories(${target} SYSTEM PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${target} PUBLIC pmem_options PkgConfig::PROTOBUF_C)
endfunction()
