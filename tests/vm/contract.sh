# shellcheck shell=bash
# The contract of device managers on LVM over NVDIMMs. RUNNER=exec: with a process per command in place of LVM's shell.
# shellcheck source=tests/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

make_groups() {
	labels
	init_chain 100
}

contract() {
	PMEM_LAB_MACHINE=1 "$BUILD_DIR/tests/contract/device_lvm" ${RUNNER:+"$RUNNER"}
}

prove groups-are-made make_groups
prove contract-is-kept contract
