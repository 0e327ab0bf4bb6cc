# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target carries every compiler and linker choice; nothing sets global flags.

option(PMEM_TESTS "Tests, and the tools that they use, as well as the programs" ON)
option(PMEM_TOOLS "The tools of scripts/bench and scripts/demo as well as the programs" OFF)
set(PMEM_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")
option(PMEM_STEPS "Points at which tests stop a program between durable actions" OFF)
option(PMEM_ANALYZE "What is written by hand goes through gcc's static analyser" OFF)
option(PMEM_COVERAGE "Programs count which lines run" OFF)
option(PMEM_HARDEN "Hardening and link-time optimisation for shipped programs" OFF)
option(PMEM_CCACHE "Compile through ccache where it is installed" OFF)

if(PMEM_CCACHE)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  endif()
endif()

# Tests replace functions with the linker's --wrap, which does not see calls that link-time optimisation has resolved.
if(PMEM_HARDEN AND PMEM_TESTS)
  message(FATAL_ERROR "PMEM_HARDEN optimises at link time, which PMEM_TESTS cannot stand: choose one of them")
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(pmem_options INTERFACE)
target_compile_features(pmem_options INTERFACE c_std_17)
target_compile_definitions(pmem_options INTERFACE _GNU_SOURCE PMEM_VERSION="${PROJECT_VERSION}")
target_include_directories(pmem_options INTERFACE "${CMAKE_SOURCE_DIR}/common")
target_compile_options(pmem_options INTERFACE
  -ffunction-sections -fdata-sections -UNDEBUG
  $<$<CONFIG:Debug>:-O1;-g;-fno-omit-frame-pointer>)
target_link_options(pmem_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)
# gold links the hundred programs of the tests in a third of the time. Debian 13 has it in a package of its own.
find_program(GOLD ld.gold)
if(GOLD)
  target_link_options(pmem_options INTERFACE $<$<CONFIG:Debug>:-fuse-ld=gold>)
endif()
target_link_libraries(pmem_options INTERFACE Threads::Threads)

# Generated code is compiled without these; everything written by hand with them.
add_library(pmem_warnings INTERFACE)
target_compile_options(pmem_warnings INTERFACE
  -Werror -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wcast-qual
  -Wundef -Wvla -Wswitch-enum -Wwrite-strings -Wpointer-arith -Wimplicit-fallthrough)

if(PMEM_ANALYZE)
  target_compile_options(pmem_warnings INTERFACE -fanalyzer)
endif()

if(PMEM_COVERAGE)
  target_compile_options(pmem_options INTERFACE --coverage -fprofile-update=atomic -O0)
  target_link_options(pmem_options INTERFACE --coverage)
endif()

if(PMEM_STEPS)
  target_compile_definitions(pmem_options INTERFACE PMEM_STEPS)
endif()

if(PMEM_SANITIZE)
  # Reports name lines only. Targets with PMEM_QUICK, tests and generated code, are worth no optimising.
  target_compile_options(pmem_options INTERFACE
    -fsanitize=${PMEM_SANITIZE} -fno-sanitize-recover=all
    $<$<CONFIG:Debug>:-g1> $<$<BOOL:$<TARGET_PROPERTY:PMEM_QUICK>>:-O0>)
  target_link_options(pmem_options INTERFACE -fsanitize=${PMEM_SANITIZE})
endif()

# What the processor checks of jumps and returns.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(branch_protection -mbranch-protection=standard)
else()
  set(branch_protection -fcf-protection)
endif()

# The same bytes wherever the sources lie: assertions name their file.
if(PMEM_HARDEN)
  target_compile_options(pmem_options INTERFACE
    "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=" -O2 -flto=auto -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong
    -fstack-clash-protection ${branch_protection} -fPIE)
  target_link_options(pmem_options INTERFACE
    -flto=auto -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -s)
endif()
