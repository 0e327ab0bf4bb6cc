# pmem_layer(NAME SOURCES file... [USES layer...] [PACKAGES pkg-config-module...] [LIBRARIES lib...])
#
# One layer of common/: a static library common_NAME that links the layers it may use, and a test that
# each of its headers compiles alone.
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

  # mbedtls 2.28 and http-parser come without pkg-config files.
  foreach(library IN LISTS arg_LIBRARIES)
    find_library(LIB_${library} ${library} REQUIRED)
    target_link_libraries(common_${name} PUBLIC ${LIB_${library}})
  endforeach()

  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  set(units)
  foreach(header IN LISTS headers)
    get_filename_component(base "${header}" NAME_WE)
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/headertest_${base}.c")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"@header@\"\nextern int headertest_@base@;\n" @ONLY)
    list(APPEND units "${unit}")
  endforeach()
  if(units)
    add_library(headertest_${name} OBJECT ${units})
    target_link_libraries(headertest_${name} PRIVATE common_${name} pmem_warnings)
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

# pmem_unit_test(LAYER MODULE [SOURCES extra...]): test_MODULE.c of the current folder, linked with its
# layer and those below it only, so that an upward call does not link. ctest name: unit/LAYER/MODULE.
function(pmem_unit_test layer module)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
  add_executable(test_${layer}_${module} test_${module}.c ${arg_SOURCES})
  target_include_directories(test_${layer}_${module} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_compile_definitions(test_${layer}_${module} PRIVATE TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  target_link_libraries(test_${layer}_${module} PRIVATE common_${layer} pmem_warnings PkgConfig::CHECK)
  add_test(NAME unit/${layer}/${module} COMMAND test_${layer}_${module})
  # check gives a test 4 s, which sanitizers on a busy machine can exceed.
  set_tests_properties(unit/${layer}/${module} PROPERTIES LABELS unit TIMEOUT 120 ENVIRONMENT CK_DEFAULT_TIMEOUT=100)
endfunction()
