# SPDX-License-Identifier: Apache-2.0
# pmem_layer(NAME SOURCES file... [USES layer...] [PACKAGES pkg-config-module...] [LIBRARIES lib...])
#
# One layer of common/: a static library common_NAME that links the layers it may use and, with PMEM_TESTS, a test
# that each of its headers compiles alone.
function(pmem_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES;PACKAGES;LIBRARIES" ${ARGN})
  add_library(common_${name} STATIC ${arg_SOURCES})
  target_link_libraries(common_${name} PUBLIC pmem_options PRIVATE pmem_warnings)
  foreach(layer IN LISTS arg_USES)
    target_link_libraries(common_${name} PUBLIC common_${layer})
  endforeach()
  foreach(package IN LISTS arg_PACKAGES)
    string(MAKE_C_IDENTIFIER "PKG_${package}" var)
    pkg_check_modules(${var} REQUIRED IMPORTED_TARGET "${package}")
    target_link_libraries(common_${name} PUBLIC PkgConfig::${var})
  endforeach()

  # mbedtls 2.28 comes without pkg-config files.
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(LIB_${library} ${library} REQUIRED)
    target_link_libraries(common_${name} PUBLIC ${LIB_${library}})
  endforeach()

  if(NOT PMEM_TESTS)
    return()
  endif()
  # One step for the headers of a layer, each compiled alone.
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  set(units)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH base "${CMAKE_CURRENT_SOURCE_DIR}" "${header}")
    string(MAKE_C_IDENTIFIER "${base}" base)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/headertest_${base}.c")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"@header@\"\nextern int headertest_@base@;\n" @ONLY)
    list(APPEND units "${unit}")
  endforeach()
  if(units)
    set(stamp "${CMAKE_CURRENT_BINARY_DIR}/headers.stamp")
    set(folders "$<TARGET_PROPERTY:common_${name},INCLUDE_DIRECTORIES>")
    set(defines "$<TARGET_PROPERTY:common_${name},COMPILE_DEFINITIONS>")
    add_custom_command(OUTPUT "${stamp}"
      COMMAND ${CMAKE_C_COMPILER} -std=gnu17 -fsyntax-only "$<TARGET_PROPERTY:pmem_warnings,INTERFACE_COMPILE_OPTIONS>"
        "$<$<BOOL:${defines}>:-D$<JOIN:${defines},;-D>>" "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" ${units}
      COMMAND ${CMAKE_COMMAND} -E touch "${stamp}"
      DEPENDS ${headers} common_${name} COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(headertest_${name} ALL DEPENDS "${stamp}")
  endif()
endfunction()

# pmem_program(NAME SOURCES file... USES layer...): an executable in bin/ of the build folder.
function(pmem_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE pmem_options pmem_warnings)
  foreach(layer IN LISTS arg_USES)
    target_link_libraries(${name} PRIVATE common_${layer})
  endforeach()
endfunction()

# pmem_shared_sources(TARGET LAYER file...): sources of TARGET. Those in tests/ may belong to several programs and
# are compiled once, for the layer of the first of them.
function(pmem_shared_sources target layer)
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}" "${path}")
    if(NOT name MATCHES "^tests/")
      target_sources(${target} PRIVATE "${source}")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER "${name}" object)
    if(NOT TARGET ${object})
      add_library(${object} OBJECT "${source}")
      set_target_properties(${object} PROPERTIES PMEM_QUICK ON)
      target_include_directories(${object} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
      target_compile_definitions(${object} PRIVATE
        TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data" MAKE_CERTS="${CMAKE_SOURCE_DIR}/scripts/make-certs")
      target_link_libraries(${object} PRIVATE common_${layer} pmem_protos pmem_warnings PkgConfig::CHECK)
    endif()
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
endfunction()

# Tests that take minutes with sanitizers. They begin first, so that no processor is idle in the end.
set(PMEM_LONG_TESTS unit/duties/model unit/scheduler/reservations_model unit/volume/attachment/inject_stage
  unit/os/copy/inject_copy unit/duties/node_objects unit/csi/hostile_node unit/os/copy/copies)

# pmem_unit_test(LAYER MODULE [SOURCES extra...]): test_MODULE.c of the current folder, linked with its
# layer and those below it only, so that an upward call does not link. ctest name: unit/FOLDER/MODULE.
function(pmem_unit_test layer module)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
  add_executable(test_${layer}_${module} test_${module}.c)
  pmem_shared_sources(test_${layer}_${module} ${layer} ${arg_SOURCES})
  set_target_properties(test_${layer}_${module} PROPERTIES PMEM_QUICK ON)
  target_include_directories(test_${layer}_${module} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_compile_definitions(test_${layer}_${module} PRIVATE TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  target_link_libraries(test_${layer}_${module} PRIVATE common_${layer} pmem_warnings PkgConfig::CHECK)
  file(RELATIVE_PATH folder "${CMAKE_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
  add_test(NAME ${folder}/${module} COMMAND test_${layer}_${module})
  # check gives a test 4 s, which sanitizers on a busy machine can exceed. 77: it cannot run here, and says why.
  set_tests_properties(${folder}/${module} PROPERTIES
    LABELS unit TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT CK_DEFAULT_TIMEOUT=600)
  if("${folder}/${module}" IN_LIST PMEM_LONG_TESTS)
    set_tests_properties(${folder}/${module} PROPERTIES COST 100)
  endif()
endfunction()
