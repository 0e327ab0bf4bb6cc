# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The machine of volumes.sh, switched off in order and on again: nothing has activated the logical volumes.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

foreign_lvs='stranger'

nothing_is_active() {
	equal 'device mapper devices' "$(dmsetup ls)" 'No devices found'
}

# Also shows that the second stage finds a group by its physical volumes.
chain_activates() {
	chain_facts >"$scratch/before"
	init_chain 75
	chain_facts >"$scratch/after"
	cmp "$scratch/before" "$scratch/after"
	test "$(dmsetup ls | wc -l)" -ge 2
}

driver_activates() {
	lvm vgchange -qq -an
	nothing_is_active
	driver_start
	test "$(dmsetup ls | wc -l)" -ge 2
	nothing_leaked
}

# used_again FS
used_again() {
	local id
	id=$(create "reboot-$1" 64Mi "$1")
	fails is_mounted "$(staging_of "$id")"
	stage "$id"
	publish "$id"
	has_dax "$(target_of "$id")"
	dax-check -size 4Mi -seed 11 verify "$(target_of "$id")/mapped"
	dax-check -size 1Mi -seed 12 -plain verify "$(target_of "$id")/plain"
	unpublish "$id"
	unstage "$id"
}

# A volume whose pool is away is neither lost nor made again.
missing_pool() {
	local id device namespace flags
	id=$(create reboot-ext4 64Mi ext4)
	driver_stop
	device=$(raw_range "$id")
	namespace=$(namespace_of "${device%% *}")
	lvm vgchange -qq -an "$(lvm lvs --noheadings -o vg_name --select "lv_name=\"$id\"" | tr -d ' ')"
	ndctl disable-namespace "$namespace"
	driver_start
	set_flags "$id"
	refused UNAVAILABLE delete "$id"
	refused UNAVAILABLE -size 64Mi -fs ext4 create reboot-ext4
	refused UNAVAILABLE "${flags[@]}" stage "$id" "$(staging_of "$id")"
	test -e "$state/$id.json"
	driver_stop
	ndctl enable-namespace "$namespace"
	driver_start
	nothing_leaked
	used_again ext4
}

delete_all() {
	local id
	for id in $(listed_ids); do
		delete "$id"
	done
	nothing_leaked
	driver_stop
	kept_as_before
}

# Manifests without init containers.
driver_runs_the_chain() {
	lvm vgchange -qq -an
	lvm vgremove -qq -y ndbus0region0fsdax
	driver_start_with -pmemPercentage=75
	nothing_leaked
	lvm vgs ndbus0region0fsdax
	note_kept
	delete "$(create reboot-last 16Mi ext4)"
	driver_stop
}

prove boot-activates-nothing nothing_is_active
prove chain-activates-and-changes-nothing chain_activates
prove driver-activates driver_activates
prove ext4-has-its-data-after-reboot used_again ext4
prove xfs-has-its-data-after-reboot used_again xfs
prove volume-without-its-pool-is-missing missing_pool
prove volumes-of-before-are-deleted delete_all
prove driver-runs-the-chain-itself driver_runs_the_chain
cat "$driver_log"
