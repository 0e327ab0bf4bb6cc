# SPDX-License-Identifier: Apache-2.0
# Units of systemd, which name the programs where "cmake --install" puts them, whatever its --prefix.
install(CODE "
  set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  file(READ \"${CMAKE_SOURCE_DIR}/packaging/hardening.conf\" hardening)
  string(REGEX REPLACE \"^# SPDX[^\\n]*\\n\" \"\" hardening \"\${hardening}\")
  string(STRIP \"\${hardening}\" hardening)
  foreach(unit IN ITEMS pmem-csi pmem-csi-pools)
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/\${unit}.service.in\" \"${CMAKE_BINARY_DIR}/units/\${unit}.service\" @ONLY)
    file(INSTALL \"${CMAKE_BINARY_DIR}/units/\${unit}.service\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")
  endforeach()
" COMPONENT units)
