# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A DIMM that does not appear at boot: boots of one machine, the second (BOOT=2) without NVDIMM 0, the third (BOOT=unarmed) with
# its flag that it would not save anything. Nothing may be lost, and nothing may leak. What is left gets other numbers: the group of the second DIMM is then found on region0.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
[ "${BOOT:-1}" = 3 ] || volumes_are_left

absent=ndbus0region0fsdax
present=ndbus0region1fsdax
notes=$LAB_STATE_DIR/notes
mkdir -p "$notes"

group_of() {
	lvm lvs --noheadings -o vg_name --select "lv_name=\"$1\"" | tr -d ' '
}

# note_down NAME ID: for the other boots, with what stage and publish need.
note_down() {
	echo "$2" >"$notes/$1.id"
	cp "$scratch/context/$2" "$notes/$1.context"
}

# recall NAME: prints the ID.
recall() {
	local id
	id=$(<"$notes/$1.id")
	cp "$notes/$1.context" "$scratch/context/$id"
	echo "$id"
}

write_into() {
	stage "$1"
	dax-check -size 4Mi -seed "$2" write "$(staging_of "$1")/mapped"
	unstage "$1"
}

verify_in() {
	stage "$1"
	publish "$1"
	dax-check -size 4Mi -seed "$2" verify "$(target_of "$1")/mapped"
	unpublish "$1"
	unstage "$1"
}

# Each is larger than half of a group, so that one comes to lie in each.
make_volumes() {
	local id name group
	init_chain 100
	driver_start
	for name in a b; do
		id=$(create "$name" 300Mi ext4)
		group=$(group_of "$id")
		write_into "$id" 31
		note_down "in-$group" "$id"
		echo "$name" >"$notes/in-$group.name"
	done
	test -e "$notes/in-$absent.id"
	test -e "$notes/in-$present.id"
	nothing_leaked
}

# Full groups leave only the one with the DIMM that will be absent; what is made there is never finished.
interrupt_in_absent() {
	local id
	id=$(create fill-1 172Mi ext4)
	if [ "$(group_of "$id")" = "$absent" ]; then
		echo "$id" >"$scratch/fill"
		id=$(create fill-2 172Mi ext4)
		delete "$(<"$scratch/fill")"
		await 60 nothing_leaked
	fi
	equal 'group of the filler' "$(group_of "$id")" "$present"
	note_down filler "$id"
	id=$(create dying 40Mi ext4)
	equal 'group of the one to delete' "$(group_of "$id")" "$absent"
	note_down dying "$id"
	driver_stop
	driver_start_with PMEM_STOP_AT=delete-recorded
	delete "$id" &
	await 60 is_stopped "$(driver_pid)"
	driver_kill
	test -e "$state/$id.erasing"
}

boot_1() {
	prove make-volumes make_volumes
	prove interrupt-in-absent interrupt_in_absent
	sync
}

states_of() {
	local file
	for file in "$state"/*; do
		echo "${file##*/}"
	done | sort
}

present_works() {
	local id
	states_of >"$notes/states"
	init_chain 100
	equal 'groups' "$(lvm vgs --noheadings -o vg_name | tr -d ' ')" "$present"
	driver_start
	verify_in "$(recall "in-$present")" 31
	id=$(create new 16Mi ext4)
	delete "$id"
	await 60 lv_is_gone "$id"
}

lv_is_gone() {
	! lv_exists "$1"
}

absent_is_unavailable() {
	local id name flags
	id=$(recall "in-$absent")
	name=$(<"$notes/in-$absent.name")
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	refused UNAVAILABLE -size 300Mi -fs ext4 create "$name"
	refused UNAVAILABLE "${flags[@]}" stage "$id" "$(staging_of "$id")"
	refused UNAVAILABLE "${flags[@]}" publish "$id" "$(staging_of "$id")" "$(target_of "$id")"
	refused UNAVAILABLE delete "$id"
	csi unstage "$id" "$(staging_of "$id")"
	grep -qx "$id" <<<"$(listed_ids)"
}

capacity_is_of_what_is_there() {
	local volumes free_bytes
	look_at_pools
	equal 'the capacity' "$(available)" "$free_bytes"
}

# Housekeeping, a restart and the end of the driver leave the files of absent volumes as they are.
state_is_kept() {
	driver_crash_and_start
	absent_is_unavailable
	driver_stop
	states_of | diff "$notes/states" -
}

boot_2() {
	prove present-works present_works
	prove absent-is-unavailable absent_is_unavailable
	prove capacity-is-of-what-is-there capacity_is_of_what_is_there
	prove state-is-kept state_is_kept
	sync
}

has_logged() {
	grep -q "something is wrong with a volume.*volume=$1.*reason=$2.*$3" "$driver_log"
}

# The kernel makes the region read-only, so that pmem-ns-init refuses it.
flag_is_shown() {
	driver_start
	await 30 has_logged "$(recall "in-$absent")" DimmDegraded not_armed
	if has_logged "$(recall "in-$present")" DimmDegraded ''; then
		echo 'the volume on the other module has a status'
		return 1
	fi
	pmem-csi-driver doctor "-statePath=$state" >"$scratch/doctor" || true
	cat "$scratch/doctor"
	grep -q '^problem  dimm .*reports not_armed' "$scratch/doctor"
	equal 'the number of modules with trouble' "$(grep -c '^problem  dimm ' "$scratch/doctor")" 1
	driver_stop
}

boot_unarmed() {
	prove flag-is-shown flag_is_shown
	sync
}

all_is_back() {
	init_chain 100
	driver_start
	verify_in "$(recall "in-$absent")" 31
	verify_in "$(recall "in-$present")" 31
}

interrupted_deletion_is_finished() {
	local id
	id=$(recall dying)
	delete "$id"
	await 60 lv_is_gone "$id"
	await 30 nothing_leaked
}

delete_all() {
	local id
	for id in $(listed_ids); do
		delete "$id"
	done
	await 60 nothing_leaked
	equal 'what is left' "$(listed_ids)" ''
	driver_stop
}

boot_3() {
	prove all-is-back all_is_back
	prove interrupted-deletion-is-finished interrupted_deletion_is_finished
	prove delete-all delete_all
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
cat "$driver_log"
