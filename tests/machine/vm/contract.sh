# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The contract of device managers on LVM over NVDIMMs. RUNNER=exec: with a process per command in place of LVM's shell.
# MODE=direct: on namespaces, and what nd.h promises, which that stands on; with CXL=1 in a region of two devices.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

export PMEM_LAB_MACHINE=1

make_groups() {
	init_chain 100
	note_kept
}

make_regions() {
	if [ -n "${CXL:-}" ]; then
		cxl_region
	else
		prepare_memory
	fi
}

contract() {
	"$BUILD_DIR/tests/contract/device_lvm" ${RUNNER:+"$RUNNER"}
}

direct_contract() {
	"$BUILD_DIR/tests/contract/device_direct" kernel
	equal 'namespaces that are left' "$(ndctl list -N)" ''
}

namespaces_contract() {
	"$BUILD_DIR/tests/unit/pmem/nd/test_pmem_nd_real"
	equal 'namespaces that are left' "$(ndctl list -N)" ''
}

if [ "${MODE:-lvm}" = direct ]; then
	plan regions-are-there namespaces-keep-theirs direct-contract-is-kept
	prove regions-are-there make_regions
	prove namespaces-keep-theirs namespaces_contract
	prove direct-contract-is-kept direct_contract
else
	plan groups-are-made contract-is-kept
	prove groups-are-made make_groups
	prove contract-is-kept contract
fi
