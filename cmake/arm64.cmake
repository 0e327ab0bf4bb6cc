# SPDX-License-Identifier: Apache-2.0
# Toolchain for arm64 on another architecture: Debian's cross compiler, headers and libraries from a folder that scripts/sysroot makes
# (PMEM_SYSROOT, also from the environment), and QEMU for what ctest runs. Programs such as protoc are those of this machine.
set(PMEM_SYSROOT "$ENV{PMEM_SYSROOT}" CACHE PATH "Root folder of the target, made by scripts/sysroot")
if(NOT PMEM_SYSROOT)
  message(FATAL_ERROR "PMEM_SYSROOT is not set: PMEM_SYSROOT=$(scripts/build-root --architecture arm64)/sysroot cmake --preset arm64")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PMEM_SYSROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${PMEM_SYSROOT}")
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# The compiler would take the C library of its own packages, which may be older than what the other libraries need.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${PMEM_SYSROOT}/usr/lib/aarch64-linux-gnu")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH) # protoc's own files come from this machine
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L "${PMEM_SYSROOT}")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${PMEM_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${PMEM_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${PMEM_SYSROOT}/usr/share/pkgconfig")
