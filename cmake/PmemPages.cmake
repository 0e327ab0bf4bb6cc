# SPDX-License-Identifier: Apache-2.0
# pmem_pages(PROGRAM...): manual pages and completions of bash, made of what the programs print for -help and installed
# with them, and the target "reference", which puts the pages of docs/reference right.
include(GNUInstallDirs)

function(pmem_pages)
  set(pages "${CMAKE_BINARY_DIR}/pages")
  set(programs)
  foreach(program IN LISTS ARGN)
    list(APPEND programs $<TARGET_FILE:${program}>)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/pages/*")
  add_custom_command(
    OUTPUT "${CMAKE_BINARY_DIR}/pages.stamp"
    COMMAND "${CMAKE_SOURCE_DIR}/cmake/pages/make" ${PROJECT_VERSION} "${pages}" ${programs}
    COMMAND ${CMAKE_COMMAND} -E touch "${CMAKE_BINARY_DIR}/pages.stamp"
    DEPENDS ${ARGN} ${sources}
    VERBATIM)
  add_custom_target(pages ALL DEPENDS "${CMAKE_BINARY_DIR}/pages.stamp")
  add_custom_target(reference
    COMMAND ${CMAKE_COMMAND} -E copy_directory "${pages}/reference" "${CMAKE_SOURCE_DIR}/docs/reference"
    DEPENDS pages)
  install(DIRECTORY "${pages}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT documents)
  install(DIRECTORY "${pages}/bash-completion" DESTINATION "${CMAKE_INSTALL_DATADIR}" COMPONENT documents)
endfunction()
