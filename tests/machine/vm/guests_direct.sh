# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Direct volumes with a guest in the machine (nested.sh) and a stand-in for Kata's shim (nested-shim): the guest mounts and writes, says how
# full its file system is, and lets it grow; pod, shim, guest and driver end in any order. FS: its file system; MODE: lvm or direct.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/nested.sh
. "$VM_TESTS/nested.sh"
# shellcheck source=tests/machine/vm/guests_steps.sh
. "$VM_TESTS/guests_steps.sh"
plan start nested-prepare "$FS"-{is-published,guest-writes,has-one-pod,statistics,pod-ends-first,shim-is-killed,guest-is-killed,is-deleted}
[ "$FS" != ext4 ] || plan driver-is-killed-at-each-step
[ "$FS-$MODE" != ext4-lvm ] || plan ext4-grows

start() {
	foreign_entry_is_made
	guests_start
}

# life FS SIZE [GROWN-SIZE]
life() {
	prove "$1-is-published" direct_is_published "$1" "$2"
	prove "$1-guest-writes" direct_guest_writes "$1" "$1" "4f0a$1"
	prove "$1-has-one-pod" direct_has_one_pod "$1"
	prove "$1-statistics" direct_statistics "$1" "$1"
	[ -z "${3:-}" ] || prove "$1-grows" direct_grows "$1" "$1" "$3"
	prove "$1-pod-ends-first" direct_pod_ends_first "$1" "$1" "4f0a$1"
	prove "$1-shim-is-killed" direct_shim_is_killed "$1" "$1"
	prove "$1-guest-is-killed" direct_guest_is_killed "$1" "$1"
	prove "$1-is-deleted" direct_is_deleted "$1"
}

# Of what the driver does to its entry, the target and the record that names both. A sandbox has left its file, and is gone.
driver_is_killed_at_each_step() {
	local id step number=0
	id=$(create direct-killed 32Mi ext4 -parameter directVolume=true)
	stage "$id"
	driver_stop
	for step in {direct-entry,direct-entry-durable,direct-sandbox,direct-entry-removed,mount-empty,unmount}.{before,after}; do
		number=$((number + 1))
		guests_driver "PMEM_KILL_AT=$step"
		if publish "$id"; then
			: >"$(entry_of "$id")/5b$number"
			fails unpublish "$id"
		fi
		await 30 is_gone "$(driver_pid)"
		guests_driver
		# after the step as kubelet keeps the pod, before it as kubelet ends it: what has lost its entry has to be unpublished first
		if [ $((number % 2)) = 0 ]; then
			publish "$id"
			equal "mounts at the target after $step" "$(mounts_of "$(target_of "$id")" | wc -l)" 1
			entries_are "$(entry_of "$id")"
		fi
		unpublish "$id"
		is_unpublished "$id"
		driver_stop
	done
	guests_driver
	unstage "$id"
	delete "$id"
}

prove start start
prove nested-prepare nested_prepare "$FS"
case $FS in
ext4)
	# namespaces do not grow
	life ext4 64Mi "$([ "$MODE" = direct ] || echo 128Mi)"
	prove driver-is-killed-at-each-step driver_is_killed_at_each_step
	;;
xfs) life xfs 320Mi ;;
esac
cat "$driver_log"
