# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Volumes that grow on persistent memory: file systems under a process that stores through MAP_SYNC, block volumes whose
# new space held other data, growth of a volume that is not mounted, and the driver killed at each durable step.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script
pattern_bytes=$((64 << 20))

start() {
	init_chain 75
	driver_start
}

# bytes_of PATH: the size of a block device
bytes_of() {
	blockdev --getsize64 "$1"
}

# store_until FILE: writes a pattern through a MAP_SYNC mapping and checks it, over and over, until FILE.stop exists.
store_until() {
	local seed=1
	until [ -e "$scratch/stop" ]; do
		dax-check -size 1Mi -seed "$seed" write "$1"
		dax-check -size 1Mi -seed "$seed" verify "$1"
		echo "$seed" >"$scratch/stored"
		seed=$((seed + 1))
	done
}

has_stored_since() {
	[ "$(<"$scratch/stored")" -gt "$1" ]
}

# online FS OLD NEW
online() {
	local id storer before at
	id=$(create "online-$1" "$2" "$1")
	stage "$id"
	publish "$id"
	at=$(target_of "$id")
	rm -f "$scratch/stop"
	echo 0 >"$scratch/stored"
	store_until "$at/numbers" &
	storer=$!
	await 60 has_stored_since 0
	csi -size "$3" expand "$id"
	csi node-expand "$id" "$at"
	before=$(<"$scratch/stored")
	await 60 has_stored_since $((before + 1))
	touch "$scratch/stop"
	wait "$storer"
	has_dax "$at"
	# larger than the volume was
	dax-check -size "$2" -seed 7 write "$at/large"
	dax-check -size "$2" -seed 7 verify "$at/large"
	logged 'file system expanded'
	unpublish "$id"
	unstage "$id"
	case $1 in
	ext4) e2fsck -fn "$(device_of "$id")" ;;
	xfs) xfs_repair -n "$(device_of "$id")" ;;
	esac
	stage "$id"
	dax-check -size "$2" -seed 7 verify "$(staging_of "$id")/large"
	unstage "$id"
	delete "$id"
	nothing_leaked
}

# offline FS OLD NEW
offline() {
	local id
	id=$(create "offline-$1" "$2" "$1")
	stage "$id"
	dax-check -size 1Mi -seed 3 write "$(staging_of "$id")/kept"
	unstage "$id"
	csi -size "$3" expand "$id"
	driver_crash_and_start
	stage "$id"
	dax-check -size 1Mi -seed 3 verify "$(staging_of "$id")/kept"
	dax-check -size "$2" -seed 4 write "$(staging_of "$id")/large"
	has_dax "$(staging_of "$id")"
	unstage "$id"
	delete "$id"
}

# fill DEVICE BYTES: with the pattern, past the page cache
# of the driver and its lvm process
pss_kib() {
	local pid kib=0
	for pid in "$(driver_pid)" $(pgrep -x -P "$(driver_pid)" lvm); do
		kib=$((kib + $(awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup")))
	done
	echo "$kib"
}

has_lvm_process() {
	pgrep -x -P "$(driver_pid)" lvm >/dev/null
}

has_no_lvm_process() {
	! has_lvm_process
}

# LVM keeps what it reserves for suspending devices until its process ends, so that this one ends soon; the next one has 20 MiB
# together with the driver.
memory_is_returned() {
	local id other after
	id=$(create memory 64Mi ext4)
	other=$(create memory-too 16Mi ext4)
	step "PSS before a growth: $(pss_kib) KiB"
	csi -size 96Mi expand "$id"
	step "PSS after a growth: $(pss_kib) KiB"
	await 15 has_no_lvm_process
	step "PSS when its lvm process has ended: $(pss_kib) KiB"
	delete "$id"
	delete "$other"
	id=$(create memory-again 64Mi ext4)
	await 15 has_lvm_process
	after=$(pss_kib)
	step "PSS with the next lvm process: $after KiB"
	delete "$id"
	[ "$after" -le $((20 << 10)) ]
}

fill() {
	local at
	for ((at = 0; at < $2; at += pattern_bytes)); do
		dd if="$scratch/pattern" of="$1" bs=4M oflag=direct,seek_bytes seek="$at" status=none \
			count=$((($2 - at < pattern_bytes ? $2 - at : pattern_bytes) >> 22))
	done
}

# All free space of a pool holds data of an earlier volume.
dirty_pool() {
	local id bytes
	bytes=$(largest)
	id=$(create dirty "$bytes" ext4 -parameter eraseafter=false)
	fill "$(device_of "$id")" "$bytes"
	delete "$id"
}

make_block() {
	csi -size "$2" -block create "$1" | field volume_id
}

# is_zero_from DEVICE BYTES
is_zero_from() {
	dd if="$1" bs=4M iflag=direct,skip_bytes skip="$2" status=none | cmp -n $(($(bytes_of "$1") - $2)) - /dev/zero
}

block() {
	local id device open
	tr '\0' 'k' </dev/zero | head -c "$pattern_bytes" >"$scratch/pattern" || true
	dirty_pool
	id=$(make_block block 16Mi)
	device=$(device_of "$id")
	fill "$device" $((16 << 20))
	exec {open}<"$device"
	csi -size 200Mi expand "$id"
	equal 'size that an open descriptor shows' "$(bytes_of "/proc/self/fd/$open")" $((200 << 20))
	exec {open}<&-
	is_zero_from "$device" $((16 << 20))
	cmp -n $((16 << 20)) "$device" "$scratch/pattern"
	delete "$id"
	nothing_leaked
}

no_spare_is_left() {
	! lvs --noheadings -o lv_name | grep -q '_spare-'
}

# The driver answers already while it settles what the last one has left.
is_settled() {
	! grep -q resizing "$state/$1.json"
}

# die_in_growth POINT block|ext4: the driver is killed there; after the next start, the volume has one of both sizes.
die_in_growth() {
	local id size
	driver_stop
	driver_start_with "PMEM_KILL_AT=$1"
	if [ "$2" = block ]; then
		id=$(make_block "at-$1" 16Mi)
	else
		id=$(create "at-$1" 16Mi "$2")
	fi
	if csi -size 40Mi expand "$id"; then
		echo "the driver was not killed at $1"
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	driver_start
	await 60 is_settled "$id"
	no_spare_is_left
	size=$(bytes_of "$(device_of "$id")")
	grep -q "\"size\":$size," "$state/$id.json"
	case $size in
	$((16 << 20)) | $((40 << 20))) ;;
	*)
		echo "$size bytes after $1"
		return 1
		;;
	esac
	[ "$2" != block ] || is_zero_from "$(device_of "$id")" 0
	csi -size 40Mi expand "$id"
	equal 'size after the retry' "$(bytes_of "$(device_of "$id")")" $((40 << 20))
	[ "$2" != block ] || is_zero_from "$(device_of "$id")" 0
	delete "$id"
	nothing_leaked
}

killed_block() {
	local point
	for point in grow-recorded lvm-spare.before lvm-spare.after lvm-ranges.after lvm-spare-remove.before \
		lvm-spare-remove.after lvm-extend-onto.before lvm-extend-onto.after grow-device-grown grow-done; do
		die_in_growth "$point" block
	done
}

killed_fs() {
	local point
	for point in grow-recorded lvm-extend.before lvm-extend.after grow-device-grown grow-done; do
		die_in_growth "$point" ext4
	done
}

# cut_off old-size|suspended: LVM has died after its metadata had the new size, and before the mapped device had it.
cut_off() {
	local id device old new
	driver_stop
	driver_start_with PMEM_KILL_AT=lvm-extend.after
	id=$(create "cut-off-$1" 16Mi ext4)
	device=$(readlink -f "$(device_of "$id")")
	old=$(dmsetup table "$device")
	if csi -size 40Mi expand "$id"; then
		echo 'the driver was not killed at lvm-extend.after'
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	new=$(dmsetup table "$device")
	dmsetup suspend --nolockfs "$device"
	dmsetup reload "$device" <<<"$old"
	dmsetup resume "$device"
	equal 'size before the start' "$(bytes_of "$device")" $((16 << 20))
	if [ "$1" = suspended ]; then
		dmsetup reload "$device" <<<"$new"
		dmsetup suspend --nolockfs "$device"
	fi
	driver_start
	await 60 is_settled "$id"
	logged 'so it is refreshed'
	equal 'size after the start' "$(bytes_of "$device")" $((40 << 20))
	stage "$id"
	dax-check -size 24Mi -seed 5 write "$(staging_of "$id")/large"
	unstage "$id"
	delete "$id"
	nothing_leaked
}

# The pool's own limit, and what is said about it.
full() {
	local id
	id=$(create full 16Mi ext4)
	refused RESOURCE_EXHAUSTED -size 100Gi expand "$id" | tee "$scratch/text"
	grep -q 'can grow to at most' "$scratch/text"
	delete "$id"
}

prove driver-starts start
prove ext4-grows-under-stores online ext4 100Mi 220Mi
prove xfs-grows-under-stores online xfs 320Mi 500Mi
prove ext4-grows-when-staged offline ext4 100Mi 200Mi
prove xfs-grows-when-staged offline xfs 320Mi 480Mi
prove memory-is-returned-after-a-growth memory_is_returned
prove new-space-of-a-block-volume-is-zero block
prove killed-while-a-block-volume-grows killed_block
prove killed-while-a-file-system-grows killed_fs
prove extension-that-was-cut-off-is-finished cut_off old-size
prove suspended-device-of-an-extension-is-resumed cut_off suspended
prove full-pool-says-what-fits full
prove driver-stops driver_stop
cat "$driver_log"
