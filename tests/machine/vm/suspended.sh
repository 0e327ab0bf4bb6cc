# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A volume's device is suspended in device-mapper, before a call and below one: it is refused, or answered at its deadline with what
# is slow, other calls do not wait, and when the device is resumed all calls succeed. The driver ends meanwhile, too.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

start() {
	init_chain 75
	driver_start
	create slow 64Mi ext4 >"$scratch/slow"
	create other 16Mi ext4 >"$scratch/other"
}

# device_of ID
device_of() {
	local path
	for path in /dev/ndbus*/"$1"; do
		readlink -f "$path"
	done
}

everything_else_works() {
	local id
	is_ready
	available
	csi-client -timeout 5s node-info >/dev/null
	id=$(create another 16Mi ext4)
	delete "$id"
	id=$(<"$scratch/other")
	stage "$id"
	unstage "$id"
}

suspended_before() {
	local id
	id=$(<"$scratch/slow")
	dmsetup suspend --nolockfs "$(device_of "$id")"
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	refused UNAVAILABLE "${flags[@]}" stage "$id" "$(staging_of "$id")" | tee "$scratch/text"
	grep -q 'is suspended in device-mapper' "$scratch/text"
	refused UNAVAILABLE delete "$id"
	everything_else_works
	dmsetup resume "$(device_of "$id")"
	stage "$id"
}

# Unmounting has to write, and waits in the kernel.
suspended_below() {
	local id text
	id=$(<"$scratch/slow")
	dmsetup suspend --nolockfs "$(device_of "$id")"
	if text=$(csi-client -timeout 4s unstage "$id" "$(staging_of "$id")" 2>&1); then
		echo 'unstaged a suspended device'
		return 1
	fi
	echo "$text"
	[[ $text == "DEADLINE_EXCEEDED: lab: no answer before the deadline; the operation continues: volume $id: unmounting for "* ]]
	refused ABORTED unstage "$id" "$(staging_of "$id")" | grep "in progress: unmounting for"
	everything_else_works
	dmsetup resume "$(device_of "$id")"
	await 60 csi unstage "$id" "$(staging_of "$id")"
	delete "$id"
	delete "$(<"$scratch/other")"
}

prove started start
prove suspended-before-a-call suspended_before
prove suspended-below-a-call suspended_below
prove ended driver_stop
cat "$driver_log"
