# shellcheck shell=bash
# The contract of device managers on LVM over NVDIMMs, with both ways of running LVM's commands.
# shellcheck source=tests/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

make_groups() {
	labels
	init_chain 100
}

contract() {
	PMEM_LAB_MACHINE=1 "$BUILD_DIR/tests/contract/device_lvm" "$@"
}

prove groups-are-made make_groups
prove lvm-shell-keeps-the-contract contract
prove lvm-commands-keep-the-contract contract exec
