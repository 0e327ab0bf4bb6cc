# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What an administrator and a backup tool do with LVM, ndctl, wipefs and sysfs while the driver runs: snapshots, renamed, removed
# and extended volumes, wiped signatures, devices taken away under a mount. First with volume groups, then in direct mode.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

start() {
	init_chain 50
	driver_start
}

# Once the driver has looked at its devices again.
settled() {
	await 60 nothing_leaked
	nothing_leaked
}

group_of() {
	lvm lvs --noheadings -o vg_name --select "lv_name=\"$1\"" | tr -d ' '
}

# used_volume NAME: a volume in use, with a file; prints its ID.
used_volume() {
	local id
	id=$(create "$1" 32Mi ext4)
	stage "$id"
	publish "$id"
	echo kept >"$(target_of "$id")/file"
	sync "$(target_of "$id")/file"
	echo "$id"
}

is_kept() {
	equal 'the file' "$(<"$(target_of "$1")/file")" kept
}

# idle_volume NAME: one that was in use, with a file; prints its ID.
idle_volume() {
	local id
	id=$(used_volume "$1")
	unpublish "$id"
	unstage "$id"
	echo "$id"
}

used_again() {
	stage "$1"
	publish "$1"
	is_kept "$1"
	unpublish "$1"
	unstage "$1"
}

# refused_stage CODE ID
refused_stage() {
	local flags
	set_flags "$2"
	mkdir -p "$(staging_of "$2")"
	refused "$1" "${flags[@]}" stage "$2" "$(staging_of "$2")"
	fails is_mounted "$(staging_of "$2")"
}

# --- LVM

# Memory with DAX has no snapshots while it is active: device-mapper refuses, and LVM gives up half-way. The volume has its data
# and can be used, before and after a restart.
snapshot_is_refused() {
	local id group
	load_modules dm-snapshot
	id=$(idle_volume snapped)
	group=$(group_of "$id")
	fails lvm lvcreate -qq -y -s -n backup -L 16m "$group/$id"
	used_again "$id"
	driver_crash_and_start
	used_again "$id"
	equal 'the list' "$(listed_ids)" "$id"
	# what LVM has left is an empty volume
	lvm lvremove -qq -y "$group/backup"
	delete "$id"
	settled
}

# Of a volume that is not active one can be made. It belongs to no volume. The volume it was made of has no DAX then and is not served without,
# and it is not deleted, for LVM would remove the backup with it.
snapshot_of_an_inactive_volume() {
	local id group
	id=$(idle_volume snapped-idle)
	group=$(group_of "$id")
	lvm lvchange -qq -an "$group/$id"
	lvm lvcreate -qq -y -s -n backup -L 16m "$group/$id"
	lvm lvchange -qq -ay "$group/$id"
	driver_crash_and_start
	equal 'the list' "$(listed_ids)" "$id"
	refused_stage FAILED_PRECONDITION "$id" | tee "$scratch/text"
	grep -q 'does not support DAX' "$scratch/text"
	refused FAILED_PRECONDITION delete "$id" | tee "$scratch/text"
	grep -q 'it has an LVM snapshot' "$scratch/text"
	mkdir -p "$scratch/backup"
	mount -t ext4 -o ro,norecovery "/dev/$group/backup" "$scratch/backup"
	equal 'the file of the snapshot' "$(<"$scratch/backup/file")" kept
	umount "$scratch/backup"
	lvm lvremove -qq -y "$group/backup"
	used_again "$id"
	delete "$id"
	settled
}

# The driver looks again within half a minute; until then it says UNAVAILABLE.
group_is_renamed() {
	local used idle group
	used=$(used_volume renamed-1)
	idle=$(idle_volume renamed-2)
	group=$(group_of "$used")
	lvm vgrename -qq "$group" elsewhere
	is_kept "$used"
	await 60 stage "$idle"
	used_again "$idle"
	stage "$used"
	publish "$used"
	unpublish "$used"
	unstage "$used"
	delete "$(create renamed-3 16Mi ext4)"
	delete "$used"
	driver_crash_and_start
	used_again "$idle"
	lvm vgrename -qq elsewhere "$group"
	await 60 stage "$idle"
	used_again "$idle"
	delete "$idle"
	settled
}

# By another name it is another volume, as far as the driver can see: missing, until it has its name again.
volume_is_renamed() {
	local id group
	id=$(idle_volume lost-name)
	group=$(group_of "$id")
	lvm lvrename -qq "$group" "$id" other-name
	if text=$(csi delete "$id" 2>&1); then
		lvm lvs --noheadings "$group/other-name"
		echo "deleted a volume whose device has another name"
		return 1
	fi
	echo "$text"
	lvm lvrename -qq "$group" other-name "$id"
	await 60 stage "$id"
	used_again "$id"
	delete "$id"
	settled
}

# It is provably gone: nothing is staged or made in its place, and it can be deleted.
volume_is_removed() {
	local id
	id=$(idle_volume removed)
	lvm lvremove -qq -y "$(group_of "$id")/$id"
	refused_stage UNAVAILABLE "$id"
	refused UNAVAILABLE -size 32Mi -fs ext4 create removed
	await 60 csi delete "$id"
	settled
	delete "$(create removed 32Mi ext4)"
	settled
}

volume_is_extended() {
	local id
	id=$(idle_volume extended)
	lvm lvextend -qq -y -L 64m "$(group_of "$id")/$id"
	used_again "$id"
	driver_crash_and_start
	used_again "$id"
	delete "$id"
	settled
}

# wipefs refuses a device in use, unless it is forced. A volume without its signature is not formatted again; the bytes that
# wipefs has put aside bring it back.
signature_is_wiped() {
	local id device
	id=$(idle_volume wiped)
	device=$(device_of "$id")
	(cd "$scratch" && HOME=$scratch wipefs -qab "$device")
	refused_stage FAILED_PRECONDITION "$id"
	grep -aq kept "$device"
	cat "$scratch"/wipefs-*.bak | dd of="$device" bs=1 seek=$((0x438)) conv=notrunc,fsync status=none
	used_again "$id"
	delete "$id"
	settled
}

signature_is_wiped_in_use() {
	local id
	id=$(used_volume wiped-in-use)
	fails wipefs -qa "$(device_of "$id")"
	is_kept "$id"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	settled
}

# --- ndctl and sysfs, in direct mode

direct_start() {
	driver_start_with -deviceManager=direct
}

# namespace_of_volume ID: by its name
namespace_of_volume() {
	local dir
	for dir in /sys/bus/nd/devices/namespace*; do
		[[ $(<"$dir/size") = 0 || $(<"$dir/alt_name") != "$1" ]] || echo "${dir##*/}"
	done
}

holder_of() {
	echo "$(<"/sys/bus/nd/devices/$1/holder")"
}

direct() {
	driver_stop
	direct_start
	delete "$(create direct 32Mi ext4)"
}

# Its volume is provably gone, as above.
namespace_is_destroyed() {
	local id
	id=$(idle_volume destroyed)
	ndctl destroy-namespace -f "$(namespace_of_volume "$id")"
	refused_stage UNAVAILABLE "$id"
	refused UNAVAILABLE -size 32Mi -fs ext4 create destroyed
	await 60 csi delete "$id"
	equal 'the list' "$(listed_ids | grep -cxF "$id" || true)" 0
	delete "$(create destroyed 32Mi ext4)"
}

# ndctl's own way refuses a device that is mounted.
namespace_in_use_stays() {
	local id
	id=$(used_volume guarded)
	fails ndctl disable-namespace "$(namespace_of_volume "$id")"
	is_kept "$id"
	unpublish "$id"
	unstage "$id"
	delete "$id"
}

# Disabled while idle: it is enabled again when it is used.
namespace_is_disabled() {
	local id
	id=$(idle_volume disabled)
	ndctl disable-namespace "$(namespace_of_volume "$id")"
	await 60 stage "$id"
	used_again "$id"
	ndctl disable-namespace "$(namespace_of_volume "$id")"
	driver_crash_and_start_direct
	used_again "$id"
	delete "$id"
}

driver_crash_and_start_direct() {
	driver_kill
	direct_start
}

# sysfs does not check for users. The pod's mount is on a device that does not exist any more: what was mounted is taken down all the same, and the next
# use finds the namespace again.
device_goes_under_a_mount() {
	local id namespace holder
	id=$(used_volume torn)
	namespace=$(namespace_of_volume "$id")
	holder=$(holder_of "$namespace")
	sync
	echo "$holder" >"/sys/bus/nd/drivers/nd_pmem/unbind"
	is_ready
	available
	unpublish "$id"
	unstage "$id"
	fails is_mounted "$(staging_of "$id")"
	delete "$(create torn-beside 32Mi ext4)"
	echo "$holder" >"/sys/bus/nd/drivers/nd_pmem/bind" || ndctl enable-namespace "$namespace"
	used_again "$id"
	delete "$id"
}


# A region that an administrator makes read-only takes no volume; the other one does.
region_becomes_read_only() {
	local region=/sys/bus/nd/devices/region0 id
	ndctl disable-region region0
	ndctl enable-region region0
	echo 1 >"$region/read_only"
	id=$(create elsewhere 32Mi ext4)
	[[ $(namespace_of_volume "$id") = namespace1.* ]]
	stage "$id"
	unstage "$id"
	delete "$id"
	echo 0 >"$region/read_only"
}


prove start start
prove snapshot-is-refused snapshot_is_refused
prove snapshot-of-an-inactive-volume snapshot_of_an_inactive_volume
prove group-is-renamed group_is_renamed
prove volume-is-renamed volume_is_renamed
prove volume-is-removed volume_is_removed
prove volume-is-extended volume_is_extended
prove signature-is-wiped signature_is_wiped
prove signature-is-wiped-in-use signature_is_wiped_in_use
prove direct direct
prove namespace-is-destroyed namespace_is_destroyed
prove namespace-in-use-stays namespace_in_use_stays
prove namespace-is-disabled namespace_is_disabled
prove device-goes-under-a-mount device_goes_under_a_mount
prove region-becomes-read-only region_becomes_read_only
prove ended driver_stop
cat "$driver_log"
