# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A guest with both kinds of volumes at once: an image that it mounts with DAX, and a disk. It outlives its pod, and is killed.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/nested.sh
. "$VM_TESTS/nested.sh"
# shellcheck source=tests/machine/vm/guests_steps.sh
. "$VM_TESTS/guests_steps.sh"
plan_whole_script

start() {
	foreign_entry_is_made
	guests_start
	nested_prepare ext4
}

guest_has_both() {
	local image device
	image_is_published ext4 64Mi
	direct_is_published ext4 32Mi
	image=$(image_of "$(id_of image-ext4)")
	shim_start guest 4f0a "$(id_of direct-ext4)"
	device=$(device_in_entry guest "$(id_of direct-ext4)")
	nested_start guest nvdimm "$image" disk "$device"
	is_mapped_with_sync "$(nested_pid guest)" "$image"
}

guest_writes() {
	nested_do guest 'mkdir /disk && mount -o dax /dev/pmem0 /volume && mount -t ext4 /dev/vda /disk'
	nested_do guest 'dax-check -size 2Mi -seed 2 write /volume/mapped && dax-check -plain -size 1Mi -seed 5 write /disk/file'
}

guest_outlives_its_pod() {
	local image direct
	image=$(id_of image-ext4)
	direct=$(id_of direct-ext4)
	refused FAILED_PRECONDITION unpublish "$image" "$(target_of "$image")"
	unpublish "$direct"
	is_unpublished "$direct"
	driver_kill
	guests_driver
	publish_is_refused "$image"
	refused FAILED_PRECONDITION delete "$image"
	refuses_all "$direct" 'sandbox 4f0a'
}

guest_is_killed() {
	nested_kill guest
	shim_end guest TERM
	unpublish "$(id_of image-ext4)"
	on_loop "$(staging_of "$(id_of image-ext4)")/$image_name" has_files ext4 mapped:2:2Mi
	unstage "$(id_of image-ext4)"
	unstage "$(id_of direct-ext4)"
	has_files ext4 file:5:1Mi "$(<"$nested/guest.device")"
}

both_are_deleted() {
	delete "$(id_of image-ext4)"
	delete "$(id_of direct-ext4)"
	await 60 has_all_space
	entries_are
}

prove start start
prove guest-has-both guest_has_both
prove guest-writes guest_writes
prove guest-outlives-its-pod guest_outlives_its_pod
prove guest-is-killed guest_is_killed
prove both-are-deleted both_are_deleted
cat "$driver_log"
