# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Volumes from blank NVDIMMs on: sizes, refusals, both file systems, DAX, what must not be touched, and deletion. The
# machine is left with two volumes in use, for reboot.sh.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
leaks_are_meant
plan_whole_script

mib=1048576
secret='do-not-leave-me-behind'

# --- the init chain

make_pools() {
	init_chain 75
	equal 'number of groups' "$(lvm vgs --noheadings -o vg_name | grep -c 'ndbus0region[01]fsdax')" 2
}

repeat_chain() {
	chain_facts >"$scratch/before"
	init_chain 75
	chain_facts >"$scratch/after"
	cmp "$scratch/before" "$scratch/after"
}

start_driver() {
	driver_start
	equal 'mode of the socket' "$(stat -c %a "${CSI_ENDPOINT#unix://}")" 600
	nothing_leaked
	available >"$scratch/initial"
	largest >"$scratch/initial-largest"
}

# --- what belongs to others

foreign_lvs='stranger'

make_foreign() {
	local device
	ndctl create-namespace -r region1 -m fsdax -n theirs -s 128M >"$scratch/theirs.json"
	device=/dev/$(sed -n 's/.*"blockdev":"\(.*\)".*/\1/p' "$scratch/theirs.json")
	lvm vgcreate -qq foreign "$device"
	lvm lvcreate -qq -y -n data -L 4m foreign
	lvm lvcreate -qq -y -n stranger -L 4m ndbus0region0fsdax
	yes 'foreign data' | dd of=/dev/foreign/data bs=1M count=4 iflag=fullblock conv=fsync status=none
	yes 'stranger data' | dd of=/dev/ndbus0region0fsdax/stranger bs=1M count=4 iflag=fullblock conv=fsync status=none
	foreign_facts >"$scratch/foreign"
	driver_crash_and_start
	logged 'foreign device is left alone.*stranger'
	note_kept
	nothing_leaked
	equal 'capacity' "$(available)" $(($(cat "$scratch/initial") - 4 * mib))
	largest >"$scratch/largest"
	available >"$scratch/available"
}

foreign_facts() {
	lvm vgs --noheadings -o vg_name,vg_uuid,vg_seqno foreign
	lvm lvs --noheadings -o vg_name,lv_name,lv_uuid,lv_tags,lv_size --select 'lv_name=~"^(data|stranger)$"'
	ndctl list -N -v | sed -n '/"name":"theirs"/,/}/p'
	sha256sum /dev/foreign/data /dev/ndbus0region0fsdax/stranger
}

foreign_unchanged() {
	foreign_facts | cmp - "$scratch/foreign"
	if listed_ids | grep -E 'data|stranger'; then
		echo "a foreign volume is listed"
		return 1
	fi
	csi delete stranger
	foreign_facts | cmp - "$scratch/foreign"
}

# --- sizes

create_volumes() {
	local before after size
	before=$(available)
	create lab-ext4 64Mi ext4 >"$scratch/id-ext4"
	size=$(field capacity_bytes <"$scratch/created")
	equal 'size of an ext4 volume' "$size" $((64 * mib))
	after=$(available)
	equal 'fall of the capacity' $((before - after)) "$size"
	nothing_leaked
}

create_small_xfs() {
	local before after size
	before=$(available)
	create lab-xfs 100Mi xfs >"$scratch/id-xfs"
	size=$(field capacity_bytes <"$scratch/created")
	equal 'size of a small xfs volume' "$size" $((300 * mib))
	after=$(available)
	equal 'fall of the capacity' $((before - after)) "$size"
	refused OUT_OF_RANGE -size 100Mi -limit 200Mi -fs xfs create lab-xfs-limited
	nothing_leaked
}

round_up() {
	local id
	id=$(create lab-odd 10000001 ext4)
	equal 'size after rounding' "$(field capacity_bytes <"$scratch/created")" $((12 * mib))
	equal 'size of the device' "$(blockdev --getsize64 "$(device_of "$id")")" $((12 * mib))
	refused OUT_OF_RANGE -size 10000001 -limit 10000002 -fs ext4 create lab-odd-limited
	delete "$id"
}

create_again() {
	equal 'ID of the same request' "$(create lab-ext4 64Mi ext4)" "$(cat "$scratch/id-ext4")"
	refused ALREADY_EXISTS -size 65Mi -fs ext4 create lab-ext4
	refused ALREADY_EXISTS -size 64Mi -fs xfs create lab-ext4
	refused ALREADY_EXISTS -size 64Mi -fs ext4 -parameter eraseafter=false create lab-ext4
	nothing_leaked
}

too_large() {
	refused RESOURCE_EXHAUSTED -size 1Pi -fs ext4 create lab-huge
	refused RESOURCE_EXHAUSTED -size $(($(largest) + 1)) -fs ext4 create lab-huge
	nothing_leaked
}

largest_possible() {
	local before size id
	before=$(available)
	size=$(largest)
	id=$(create lab-largest "$size" ext4 -parameter eraseafter=false)
	equal 'size of the largest volume' "$(field capacity_bytes <"$scratch/created")" "$size"
	equal 'capacity beside it' "$(available)" $((before - size))
	nothing_leaked
	stage "$id"
	unstage "$id"
	delete "$id"
	equal 'capacity after deletion' "$(available)" "$before"
}

# --- file systems and DAX

# use_volume FS: staged and published, with DAX.
use_volume() {
	local id
	id=$(cat "$scratch/id-$1")
	stage "$id"
	stage "$id"
	has_dax "$(staging_of "$id")"
	publish "$id"
	publish "$id"
	has_dax "$(target_of "$id")"
	equal 'file system' "$(stat -f -c %T "$(target_of "$id")")" "$2"
	dax-check -size 4Mi -seed 7 write "$(target_of "$id")/mapped"
	dax-check -size 4Mi -seed 7 verify "$(staging_of "$id")/mapped"
}

read_only() {
	local id
	id=$(cat "$scratch/id-ext4")
	publish "$id" reader -readonly
	fails touch "$(target_of "$id" reader)/new"
	dax-check -plain -size 4Mi -seed 7 write "$(target_of "$id")/plain"
	cmp "$(target_of "$id" reader)/plain" "$(target_of "$id" reader)/mapped"
	set_flags "$id"
	refused ALREADY_EXISTS "${flags[@]}" publish "$id" "$(staging_of "$id")" "$(target_of "$id" reader)"
	unpublish "$id" reader
	fails test -e "$(target_of "$id" reader)"
}

single_writer() {
	local id flags
	id=$(cat "$scratch/id-ext4")
	set_flags "$id"
	refused FAILED_PRECONDITION "${flags[@]}" -access-mode SINGLE_NODE_SINGLE_WRITER \
		publish "$id" "$(staging_of "$id")" "$(target_of "$id" second)"
	publish "$id" second -access-mode SINGLE_NODE_MULTI_WRITER
	unpublish "$id" second
}

file_io() {
	local id
	id=$(create lab-fileio 32Mi ext4 -parameter usage=FileIO)
	stage "$id"
	publish "$id"
	fails has_dax "$(staging_of "$id")"
	dax-check -size 1Mi refused "$(target_of "$id")/file"
	dax-check -size 1Mi -plain write "$(target_of "$id")/file"
	unpublish "$id"
	unstage "$id"
	delete "$id"
}

read_only_staging() {
	local id
	id=$(create lab-ro-staging 32Mi ext4)
	stage "$id" -mount-flag noatime
	touch "$(staging_of "$id")/kept"
	unstage "$id"
	stage "$id" -mount-flag ro
	stage "$id" -mount-flag ro
	test -e "$(staging_of "$id")/kept"
	fails touch "$(staging_of "$id")/new"
	unstage "$id"
	delete "$id"
}

# --- refusals

delete_in_use() {
	local id
	id=$(cat "$scratch/id-ext4")
	refused FAILED_PRECONDITION delete "$id"
	unpublish "$id"
	refused FAILED_PRECONDITION delete "$id"
	dax-check -size 4Mi -seed 7 verify "$(staging_of "$id")/mapped"
	# Another process has it open.
	unstage "$id"
	exec {held}<"$(device_of "$id")"
	refused FAILED_PRECONDITION delete "$id"
	exec {held}<&-
	nothing_leaked
	stage "$id"
	publish "$id"
	dax-check -size 4Mi -seed 7 verify "$(target_of "$id")/mapped"
}

wrong_paths() {
	local id unstaged flags
	id=$(cat "$scratch/id-ext4")
	set_flags "$id"
	mkdir -p /srv/outside
	refused INVALID_ARGUMENT "${flags[@]}" stage "$id" /srv/outside
	fails is_mounted /srv/outside
	ln -sfn /srv/outside "$kubelet/staging/link"
	unstaged=$(create lab-unstaged 16Mi ext4)
	refused INVALID_ARGUMENT "${flags[@]}" stage "$unstaged" "$kubelet/staging/link"
	fails is_mounted /srv/outside
	delete "$unstaged"
	refused FAILED_PRECONDITION "${flags[@]}" publish "$id" "$kubelet/staging/elsewhere" "$(target_of "$id" elsewhere)"
	refused NOT_FOUND -fs ext4 stage no-such-volume "$(staging_of "$id")"
}

foreign_file_system() {
	local id device flags
	id=$(create lab-foreign-fs 16Mi ext4)
	device=$(device_of "$id")
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	mke2fs -q -t ext2 "$device"
	cat "$device" >"$scratch/foreign-fs"
	refused ALREADY_EXISTS "${flags[@]}" stage "$id" "$(staging_of "$id")"
	cmp "$device" "$scratch/foreign-fs"
	wipefs -qa "$device"
	mkswap -q "$device"
	refused ALREADY_EXISTS "${flags[@]}" stage "$id" "$(staging_of "$id")"
	delete "$id"
}

second_is_ready() {
	CSI_ENDPOINT=unix:///run/pmem-csi/second.sock is_ready
}

# The second one serves but is not ready, until the first one has ended.
second_driver() {
	local first
	first=$(driver_pid)
	driver_launch -endpoint=unix:///run/pmem-csi/second.sock
	await 30 test -S /run/pmem-csi/second.sock
	CSI_ENDPOINT=unix:///run/pmem-csi/second.sock refused UNAVAILABLE -size 16Mi -fs ext4 create lab-second
	await 30 logged 'is held by'
	fails second_is_ready
	is_ready
	nothing_leaked
	kill -KILL "$first"
	await 60 second_is_ready
	driver_stop
	driver_start
}

# --- deletion

# The bytes of a deleted volume, looked at where they lie in the NVDIMM.
delete_erases() {
	local id range
	id=$(create lab-secret 32Mi ext4)
	stage "$id"
	yes "$secret" | head -c 8M >"$(staging_of "$id")/file"
	sync "$(staging_of "$id")/file"
	unstage "$id"
	range=$(raw_range "$id")
	# shellcheck disable=SC2086 # three words
	raw_bytes $range | grep -aq "$secret"
	delete "$id"
	delete "$id"
	# shellcheck disable=SC2086
	raw_is_zero $range
	fails test -e "$(device_of "$id")"
	nothing_leaked
}

delete_head_only() {
	local id range
	id=$(create lab-not-erased 32Mi ext4 -parameter eraseafter=false)
	range=$(raw_range "$id")
	yes "$secret" | dd of="$(device_of "$id")" bs=4M count=8 iflag=fullblock conv=fsync status=none
	delete "$id"
	# shellcheck disable=SC2086 # three words
	fails raw_is_zero $range
	# A new volume in the same place shows nothing of the old one's signature.
	id=$(create lab-after-not-erased 32Mi ext4)
	# shellcheck disable=SC2046
	equal 'place of the new volume' "$(raw_range "$id")" "$range"
	stage "$id"
	fails grep -aq "$secret" "$(staging_of "$id")"/*
	unstage "$id"
	delete "$id"
}

capacity_restored() {
	local fs id
	for fs in ext4 xfs; do
		id=$(cat "$scratch/id-$fs")
		unpublish "$id"
		unstage "$id"
		delete "$id"
	done
	equal 'list' "$(listed_ids)" ''
	equal 'capacity' "$(available)" "$(cat "$scratch/available")"
	equal 'largest' "$(largest)" "$(cat "$scratch/largest")"
	nothing_leaked
}

leave_for_reboot() {
	local fs id
	for fs in ext4 xfs; do
		id=$(create "reboot-$fs" 64Mi "$fs")
		stage "$id"
		publish "$id"
		dax-check -size 4Mi -seed 11 write "$(target_of "$id")/mapped"
		dax-check -size 1Mi -seed 12 -plain write "$(target_of "$id")/plain"
	done
	driver_stop
	fails test -e "${CSI_ENDPOINT#unix://}"
	has_dax "$(target_of "$id")"
}

prove chain-makes-a-group-per-region make_pools
prove second-run-of-the-chain-changes-nothing repeat_chain
prove driver-becomes-ready start_driver
prove foreign-devices-are-reported make_foreign
prove ext4-volume-is-created create_volumes
prove small-xfs-is-rounded-up-to-its-minimum create_small_xfs
prove odd-size-is-rounded-up round_up
prove create-is-idempotent create_again
prove too-large-is-exhausted too_large
prove ext4-is-used-with-dax use_volume ext4 ext2/ext3
prove xfs-is-used-with-dax use_volume xfs xfs
prove read-only-target read_only
prove single-writer-has-one-target single_writer
prove file-io-has-no-dax file_io
prove staged-read-only read_only_staging
prove volume-in-use-is-not-deleted delete_in_use
prove paths-outside-are-refused wrong_paths
prove foreign-file-system-is-never-overwritten foreign_file_system
prove second-driver-is-kept-out second_driver
prove deleted-volume-is-zero-on-the-medium delete_erases
prove without-erasing-the-head-is-zero delete_head_only
prove capacity-comes-back capacity_restored
prove largest-volume-can-be-created largest_possible
prove foreign-devices-are-untouched foreign_unchanged
prove volumes-outlive-an-orderly-stop leave_for_reboot
cat "$driver_log"
