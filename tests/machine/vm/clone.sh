# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Clones and snapshots of volumes on persistent memory: of file systems under processes that store through MAP_SYNC, of ones that are not
# mounted, of block volumes; the driver killed while writers stand still; and what a clone without flushing would be worth.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

tracing=/sys/kernel/tracing

start() {
	init_chain 75
	driver_start
	record_stops
}

# All free space of a pool holds data of an earlier volume.
dirty_pool() {
	local id device bytes
	bytes=$(largest)
	id=$(create dirty "$bytes" ext4 -parameter eraseafter=false)
	device=$(device_of "$id")
	tr '\0' 'k' </dev/zero | dd of="$device" bs=4M iflag=fullblock oflag=direct status=none \
		count=$(($(blockdev --getsize64 "$device") >> 22)) || true
	delete "$id"
}

# has_old_bytes DEVICE: what dirty_pool() wrote is on it.
has_old_bytes() {
	dd if="$1" bs=4M iflag=direct status=none | LC_ALL=C grep -qam 1 kkkkkkkkkkkkkkkk
}

# start_writer FOLDER [FLAG]...: sets writer, and waits until it has stored to all files.
start_writer() {
	local folder=$1
	shift
	mkdir -p "$folder"
	: >"$scratch/writer"
	: >"$tracing/trace"
	ordered-stores "$@" write "$folder" >"$scratch/writer" &
	writer=$!
	await 60 grep -q storing "$scratch/writer"
}

# end_writer: sets last_number, and longest_gap (milliseconds).
end_writer() {
	kill -TERM "$writer"
	wait "$writer"
	read -r last_number longest_gap < <(tail -n 1 "$scratch/writer")
}

# verified FOLDER: sets number.
verified() {
	number=$(ordered-stores verify "$1")
}

fs_is_sound() {
	case $2 in
	ext4) e2fsck -fn "$1" ;;
	xfs) xfs_repair -n "$1" ;;
	esac
}

# clone_of ID NAME SIZE FS [FLAG]...: prints the ID of the clone.
clone_of() {
	local id=$1 name=$2 size=$3 fs=$4
	shift 4
	create "$name" "$size" "$fs" -source "$id" "$@"
}

# last_pause: of the last clone or snapshot, in milliseconds
last_pause() {
	sed -n 's/.* \(volume cloned\|snapshot taken\) .* pause_ms=\([0-9]*\).*/\2/p' "$driver_log" | tail -n 1
}

# record_stops: from now on the kernel records when file systems are frozen and devices are suspended, by whichever program. The module
# dm_mod has to be there already.
record_stops() {
	mount -t tracefs tracefs "$tracing"
	echo mono >"$tracing/trace_clock"
	cat >"$tracing/kprobe_events" <<-EOF
		p:stops/begins freeze_super
		r:stops/stopped freeze_super
		p:stops/goes_on thaw_super
		r:stops/ended thaw_super
		p:stops/device_begins dm_mod:dm_suspend
		r:stops/device_stopped dm_mod:dm_suspend
		p:stops/device_goes_on dm_mod:dm_resume
		r:stops/device_ended dm_mod:dm_resume
	EOF
	echo 1 >"$tracing/events/stops/enable"
}

end() {
	driver_stop
	echo 0 >"$tracing/events/stops/enable"
	echo >"$tracing/kprobe_events"
	umount "$tracing"
}

# stops: prints for each stop since the writer began how many milliseconds it lasted at least, from the end of the call that froze or
# suspended to the beginning of the one that ends the stop, and at most, with both calls. A device that is resumed was not always suspended.
stops() {
	awk '
		!match($0, / [0-9]+\.[0-9]+: [a-z_]+: /) { next }
		{
			split(substr($0, RSTART, RLENGTH), word, /:? /)
			ms = word[2] * 1000
			event = word[3]
			device = sub(/^device_/, "", event)
		}
		event == "begins" { begins[device] = ms }
		event == "stopped" { stopped[device] = ms }
		event == "goes_on" { goes_on[device] = ms }
		event == "ended" && stopped[device] {
			printf "%d %d\n", goes_on[device] - stopped[device], ms - begins[device]
			stopped[device] = 0
		}' "$tracing/trace"
}

# The reported pause of the last copy encloses the last stop that the kernel has recorded. It is not much longer, either, but for the
# time in which the driver waits for a processor. The writer stood still meanwhile; stores through mappings go on for a part of the time
# that freezing and flushing take. None of the limits depends on how long processes wait on a busy machine. LVM suspends its devices for
# an instant, too, before the last stop.
pause_is_true() {
	local pause at_least at_most
	pause=$(last_pause)
	stops | tee "$scratch/stops"
	read -r at_least at_most < <(tail -n 1 "$scratch/stops")
	echo "pause $pause ms, by the kernel $at_least to $at_most ms, longest gap of the writer $longest_gap ms"
	[ "$pause" -gt 0 ]
	[ "$pause" -ge "$at_least" ]
	[ "$pause" -le $((at_most * 2 + 1000)) ]
	[ "$longest_gap" -ge $((at_least / 2)) ]
}

# Before the free space holds old data: a file may have space that was allocated and not written yet, which is copied as it is.
make_sources() {
	create source-ext4 100Mi ext4 >"$scratch/source-ext4"
	create source-xfs 320Mi xfs >"$scratch/source-xfs"
}

delete_sources() {
	delete "$(<"$scratch/source-ext4")"
	delete "$(<"$scratch/source-xfs")"
	nothing_leaked
}

# clone_under_stores ID FS SIZE_OF_CLONE NUMBER [FLAG]...
clone_under_stores() {
	local id=$1 fs=$2 size=$3 i=$4 clone
	shift 4
	start_writer "$(target_of "$id")/run-$i" "$@"
	clone=$(clone_of "$id" "clone-$fs-$i" "$size" "$fs")
	end_writer
	pause_is_true
	stage "$clone"
	has_dax "$(staging_of "$clone")"
	cmp "$(target_of "$id")/content" "$(staging_of "$clone")/content"
	verified "$(staging_of "$clone")/run-$i"
	echo "clone $i has $number of $last_number"
	[ "$number" -gt 0 ]
	[ "$last_number" -ge "$number" ]
	dax-check -size 1Mi -seed 3 write "$(staging_of "$clone")/new"
	rm "$(staging_of "$clone")/new"
	unstage "$clone"
	fs_is_sound "$(device_of "$clone")" "$fs"
	refute_old_bytes "$clone"
	delete "$clone"
}

# under_stores FS SIZE_OF_CLONE NUMBER: so many clones of a volume that is written to
under_stores() {
	local id i
	id=$(<"$scratch/source-$1")
	stage "$id"
	publish "$id"
	head -c 20M /dev/urandom >"$(target_of "$id")/content"
	for ((i = 1; i <= $3; i++)); do
		clone_under_stores "$id" "$1" "$2" "$i"
	done
	is_thawed "$id"
	unpublish "$id"
	unstage "$id"
	fs_is_sound "$(device_of "$id")" "$1"
}

writes_and_fsync() {
	local id
	id=$(create plain 64Mi ext4)
	stage "$id"
	publish "$id"
	head -c 20M /dev/urandom >"$(target_of "$id")/content"
	clone_under_stores "$id" ext4 64Mi plain -plain
	unpublish "$id"
	unstage "$id"
	delete "$id"
}

refute_old_bytes() {
	if has_old_bytes "$(device_of "$1")"; then
		echo "volume $1 has bytes of an earlier volume"
		return 1
	fi
}

# What freezing alone is worth on xfs: a clone made so has stores of later moments.
frozen_without_flushing() {
	local id clone rc=0
	id=$(<"$scratch/source-xfs")
	clone=$(create by-hand 320Mi xfs)
	stage "$id"
	start_writer "$(staging_of "$id")/by-hand"
	fsfreeze -f "$(staging_of "$id")"
	dd if="$(device_of "$id")" of="$(device_of "$clone")" bs=4M iflag=direct oflag=direct status=none
	fsfreeze -u "$(staging_of "$id")"
	end_writer
	unstage "$id"
	mkdir -p "$scratch/by-hand"
	mount -t xfs -o nouuid "$(device_of "$clone")" "$scratch/by-hand"
	ordered-stores verify "$scratch/by-hand/by-hand" || rc=$?
	umount "$scratch/by-hand"
	delete "$clone"
	equal 'exit status of ordered-stores' "$rc" 1
}

fs_bytes() {
	echo "$(($(stat -fc '%b*%S' "$(staging_of "$1")")))"
}

# Source and clone, and a clone of the clone, are mounted at the same time.
not_mounted() {
	local fs=$1 size=$2 larger=$3 id clone second
	id=$(create "still-$fs" "$size" "$fs")
	stage "$id"
	dax-check -size 8Mi -seed 5 write "$(staging_of "$id")/file"
	unstage "$id"
	clone=$(clone_of "$id" "still-clone-$fs" "$larger" "$fs")
	refute_old_bytes "$clone"
	second=$(clone_of "$clone" "still-second-$fs" 0 "$fs")
	stage "$id"
	stage "$clone"
	stage "$second"
	dax-check -size 8Mi -seed 5 verify "$(staging_of "$clone")/file"
	dax-check -size 8Mi -seed 5 verify "$(staging_of "$second")/file"
	[ "$(fs_bytes "$clone")" -gt "$(fs_bytes "$id")" ]
	unstage "$id"
	unstage "$clone"
	unstage "$second"
	delete "$id"
	delete "$second"
	delete "$clone"
	nothing_leaked
}

# restored SNAPSHOT FS SIZE NUMBER: what a volume that is made of it has.
restored() {
	local id
	id=$(create "restored-$2-$4" "$3" "$2" -snapshot "$1")
	stage "$id"
	has_dax "$(staging_of "$id")"
	cmp "$scratch/past" "$(staging_of "$id")/content"
	verified "$(staging_of "$id")/run"
	unstage "$id"
	fs_is_sound "$(device_of "$id")" "$2"
	refute_old_bytes "$id"
	delete "$id"
}

# snapshot_under_stores FS SIZE [LARGER]: a snapshot of a volume that is written to stays as it was taken while the volume changes and
# is deleted, the driver is killed and stopped, and volumes are restored from it.
snapshot_under_stores() {
	local fs=$1 id snapshot sum
	id=$(create "past-$fs" "$2" "$fs")
	stage "$id"
	head -c 20M /dev/urandom >"$scratch/past"
	cp "$scratch/past" "$(staging_of "$id")/content"
	start_writer "$(staging_of "$id")/run"
	snapshot=$(csi create-snapshot "snapshot-$fs" "$id" | field snapshot_id)
	end_writer
	pause_is_true
	is_thawed "$id"
	head -c 20M /dev/urandom >"$(staging_of "$id")/content"
	equal 'volumes' "$(listed_ids)" "$id"
	csi delete "$snapshot"
	sum=$(sum_of "$snapshot")
	driver_crash_and_start
	restored "$snapshot" "$fs" "$2" 1
	unstage "$id"
	delete "$id"
	if [ $# = 3 ]; then
		driver_stop
		driver_start
		restored "$snapshot" "$fs" "$3" 2
	fi
	equal 'bytes of the snapshot' "$(sum_of "$snapshot")" "$sum"
	refute_old_bytes "$snapshot"
	csi get-snapshot "$snapshot" | grep -qF "source_volume_id: $id"
	csi delete-snapshot "$snapshot"
	await 120 is_erased "$snapshot"
	nothing_leaked
}

# die_in_snapshot POINT COUNT: how many snapshots there are after the next start. One that was begun is undone, one that was finished
# becomes ready, and the call can be repeated.
die_in_snapshot() {
	local id snapshot
	id=$(create dying 64Mi ext4)
	stage "$id"
	head -c 8M /dev/urandom >"$(staging_of "$id")/content"
	driver_stop
	driver_start_with "PMEM_KILL_AT=$1"
	if csi create-snapshot dying-snapshot "$id"; then
		echo 'the driver was not killed'
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	driver_start
	await 120 nothing_is_erasing
	equal 'snapshots' "$(csi list-snapshots | field snapshot_id | wc -l)" "$2"
	snapshot=$(csi create-snapshot dying-snapshot "$id" | field snapshot_id)
	unstage "$id"
	delete "$id"
	csi delete-snapshot "$snapshot"
	await 120 is_erased "$snapshot"
	nothing_leaked
}

killed_in_snapshot() {
	die_in_snapshot copy-last-step 0
	die_in_snapshot create-filled 1
}

# make_pair: sets first and second, two volumes that are staged, with a writer that stores to both in turn.
make_pair() {
	first=$(create pair-ext4 64Mi ext4)
	second=$(create pair-xfs 300Mi xfs)
	stage "$first"
	stage "$second"
	mkdir "$(staging_of "$first")/run" "$(staging_of "$second")/run"
	: >"$scratch/writer"
	: >"$tracing/trace"
	ordered-stores write "$(staging_of "$first")/run" "$(staging_of "$second")/run" >"$scratch/writer" &
	writer=$!
	await 60 grep -q storing "$scratch/writer"
}

delete_pair() {
	unstage "$first"
	unstage "$second"
	delete "$first"
	delete "$second"
	nothing_leaked
}

# snapshot_of ID: prints the ID of its snapshot, of a group that was printed to $scratch/group.
snapshot_of() {
	csi -source "$1" list-snapshots | field snapshot_id
}

# pair_is_of_one_moment: volumes that are restored from both snapshots.
pair_is_of_one_moment() {
	local one two
	one=$(create restored-ext4 64Mi ext4 -snapshot "$(snapshot_of "$first")")
	two=$(create restored-xfs 300Mi xfs -snapshot "$(snapshot_of "$second")")
	stage "$one"
	stage "$two"
	number=$(ordered-stores verify "$(staging_of "$one")/run" "$(staging_of "$two")/run")
	echo "the snapshots have $number of $last_number"
	[ "$number" -gt 0 ]
	[ "$last_number" -ge "$number" ]
	unstage "$one"
	unstage "$two"
	fs_is_sound "$(device_of "$one")" ext4
	fs_is_sound "$(device_of "$two")" xfs
	delete "$one"
	delete "$two"
}

# delete_group ID
delete_group() {
	csi delete-group "$1"
	await 120 nothing_is_erasing
	equal 'snapshots' "$(csi list-snapshots | field snapshot_id | wc -l)" 0
}

# A writer that stores to both volumes in turn shows whether the snapshots are of one moment.
group_under_stores() {
	local group
	make_pair
	group=$(csi create-group pair "$first" "$second" | field group_snapshot_id | head -n 1)
	end_writer
	is_thawed "$first"
	is_thawed "$second"
	pair_is_of_one_moment
	refused INVALID_ARGUMENT delete-snapshot "$(snapshot_of "$first")"
	driver_crash_and_start
	equal 'the same group' "$(csi create-group pair "$second" "$first" | field group_snapshot_id | head -n 1)" "$group"
	delete_group "$group"
	delete_pair
}

# die_in_group POINT COUNT: how many snapshots there are after the next start.
die_in_group() {
	local group
	make_pair
	driver_stop
	driver_start_with "PMEM_KILL_AT=$1"
	if csi create-group dying "$first" "$second"; then
		echo 'the driver was not killed'
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	driver_start
	await 120 nothing_is_erasing
	end_writer
	equal 'snapshots' "$(csi list-snapshots | field snapshot_id | wc -l)" "$2"
	group=$(csi create-group dying "$first" "$second" | field group_snapshot_id | head -n 1)
	pair_is_of_one_moment
	delete_group "$group"
	delete_pair
}

# Before each snapshot is finished all are undone, and afterwards all become ready.
killed_in_group() {
	die_in_group copy-last-step:2 0
	die_in_group group-filled 2
	die_in_group group-member-ready 2
}

block() {
	local id clone device
	id=$(csi -size 32Mi -block create block | field volume_id)
	device=$(device_of "$id")
	# shellcheck disable=SC2119
	mkdir -p "$(staging_of "$id")"
	csi -block stage "$id" "$(staging_of "$id")"
	csi -block publish "$id" "$(staging_of "$id")" "$(target_of "$id")"
	dd if=/dev/urandom of="$(target_of "$id")" bs=4M count=8 oflag=direct status=none
	csi unpublish "$id" "$(target_of "$id")"
	clone=$(csi -size 48Mi -block -source "$id" create block-clone | field volume_id | head -n 1)
	cmp -n $((32 << 20)) "$device" "$(device_of "$clone")"
	dd if="$(device_of "$clone")" bs=4M skip=8 iflag=direct status=none | cmp -n $((16 << 20)) - /dev/zero
	csi unstage "$id" "$(staging_of "$id")"
	delete "$clone"
	delete "$id"
	nothing_leaked
}

# use_block NAME SIZE: sets id, a block volume that a pod uses, with a writer that goes past the page cache.
use_block() {
	id=$(csi -size "$2" -block create "$1" | field volume_id)
	# shellcheck disable=SC2119
	mkdir -p "$(staging_of "$id")"
	csi -block stage "$id" "$(staging_of "$id")"
	csi -block publish "$id" "$(staging_of "$id")" "$(target_of "$id")"
	write_block "$(target_of "$id")"
}

# write_block DEVICE
write_block() {
	: >"$scratch/writer"
	: >"$tracing/trace"
	ordered-stores -block write "$1" >"$scratch/writer" &
	writer=$!
	await 60 grep -q storing "$scratch/writer"
}

stop_using_block() {
	csi unpublish "$id" "$(target_of "$id")"
	csi unstage "$id" "$(staging_of "$id")"
	delete "$id"
	nothing_leaked
}

# is_suspended ID
is_suspended() {
	dmsetup info -c --noheadings -o suspended "$(device_of "$1")" | grep -q Suspended
}

runs_on() {
	! is_suspended "$1" && ! grep -q suspending "$state/$1.json"
}

# of_one_moment ID: a copy of a block volume that is not changed any more.
of_one_moment() {
	number=$(ordered-stores -block verify "$(device_of "$1")")
	echo "the copy has $number of $last_number"
	[ "$number" -gt 0 ]
	[ "$last_number" -ge "$number" ]
}

# A clone and a snapshot under a writer are of one moment.
block_in_use() {
	local id clone snapshot
	use_block used 64Mi
	clone=$(csi -size 64Mi -block -source "$id" create used-clone | field volume_id | head -n 1)
	runs_on "$id"
	snapshot=$(csi create-snapshot used-snapshot "$id" | field snapshot_id)
	end_writer
	pause_is_true
	runs_on "$id"
	of_one_moment "$clone"
	of_one_moment "$snapshot"
	delete "$clone"
	csi delete-snapshot "$snapshot"
	await 120 is_erased "$snapshot"
	stop_using_block
}

# Another program has suspended it: it stays so, and is not copied.
block_of_others() {
	local id
	use_block others 16Mi
	dmsetup suspend --nolockfs "$(device_of "$id")"
	if csi -size 16Mi -block -source "$id" create others-clone; then
		echo 'a device that another program has suspended was copied'
		return 1
	fi
	is_suspended "$id"
	dmsetup resume "$(device_of "$id")"
	end_writer
	stop_using_block
}

# block_dies POINT: the driver is killed there, and the next one lets the writer go on.
block_dies() {
	local id
	use_block "dies-$1" 32Mi
	driver_stop
	driver_start_with "PMEM_KILL_AT=$1"
	if csi -size 32Mi -block -source "$id" create dies-clone; then
		echo "the driver was not killed at $1"
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	[ "$1" = suspend-recorded ] || is_suspended "$id"
	driver_start
	await 60 runs_on "$id"
	await 120 nothing_is_erasing
	end_writer
	stop_using_block
}

killed_while_suspended() {
	block_dies suspend-recorded
	block_dies suspend-begun
}

# Nothing is suspended if the writer would stand still for too long.
block_too_long() {
	local id
	use_block slow-block 32Mi
	driver_stop
	driver_start_with -copyBandwidth=16Mi
	refused FAILED_PRECONDITION -size 32Mi -block -parameter maxPause=1s -source "$id" create slow-block-clone | tee "$scratch/text"
	grep -q 'nothing was stopped' "$scratch/text"
	runs_on "$id"
	end_writer
	stop_using_block
	driver_stop
	driver_start
}

# The writers would stand still for too long: nothing is stopped, nothing is left.
too_long() {
	local id
	driver_stop
	driver_start_with -copyBandwidth=16Mi
	id=$(create slow 200Mi ext4)
	stage "$id"
	head -c 80M /dev/zero >"$(staging_of "$id")/large"
	refused FAILED_PRECONDITION -fs ext4 -parameter maxPause=2s -source "$id" create slow-clone | tee "$scratch/text"
	grep -q 'nothing was stopped' "$scratch/text"
	equal 'volumes' "$(listed_ids)" "$id"
	unstage "$id"
	delete "$id"
	driver_stop
	driver_start
}

nothing_is_erasing() {
	! compgen -G "$state/*.erasing"
}

is_thawed() {
	! grep -q freezing "$state/$1.json"
}

# die_in_clone POINT FS SIZE: the driver is killed there; the next one lets the writers go on, and nothing of the clone is left, unless it
# was finished.
die_in_clone() {
	local id left=1
	[ "$1" != create-filled ] || left=2
	id=$(create "at-$1" "$3" "$2")
	stage "$id"
	start_writer "$(staging_of "$id")/run"
	driver_stop
	driver_start_with "PMEM_KILL_AT=$1"
	if csi -fs "$2" -source "$id" create "clone-at-$1"; then
		echo "the driver was not killed at $1"
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
	driver_start
	await 60 is_thawed "$id"
	await 120 nothing_is_erasing
	equal 'volumes' "$(listed_ids | wc -l)" "$left"
	end_writer
	start_writer "$(staging_of "$id")/again"
	end_writer
	[ "$last_number" -gt 0 ]
	clone=$(clone_of "$id" "clone-at-$1" 0 "$2")
	stage "$clone"
	verified "$(staging_of "$clone")/run"
	unstage "$clone"
	delete "$clone"
	unstage "$id"
	delete "$id"
	nothing_leaked
}

# killed FS SIZE POINT...
killed() {
	local fs=$1 size=$2 point
	shift 2
	for point; do
		die_in_clone "$point" "$fs" "$size"
	done
}

prove driver-starts start
prove sources-are-made make_sources
prove pool-holds-old-data dirty_pool
prove ext4-cloned-under-stores under_stores ext4 120Mi 1
prove xfs-cloned-under-stores under_stores xfs 320Mi 1
prove freezing-xfs-alone-gives-a-wrong-clone frozen_without_flushing
prove sources-are-deleted delete_sources
prove ext4-cloned-under-writes-and-fsync writes_and_fsync
prove ext4-cloned-while-not-mounted not_mounted ext4 64Mi 100Mi
prove xfs-cloned-while-not-mounted not_mounted xfs 300Mi 320Mi
prove ext4-snapshot-keeps-its-moment snapshot_under_stores ext4 64Mi 100Mi
prove xfs-snapshot-keeps-its-moment snapshot_under_stores xfs 300Mi
prove killed-while-a-snapshot-is-taken killed_in_snapshot
prove group-is-of-one-moment group_under_stores
prove killed-while-a-group-is-taken killed_in_group
prove block-volume-cloned block
prove block-volume-in-use-is-copied-at-one-moment block_in_use
prove block-volume-that-others-have-suspended-is-theirs block_of_others
prove killed-while-a-block-volume-is-suspended killed_while_suspended
prove block-volume-whose-pause-is-too-long-is-refused block_too_long
prove pause-that-is-too-long-is-refused too_long
prove killed-while-ext4-is-cloned killed ext4 64Mi freeze-recorded freeze-begun copy-last-step uuid-ext4-only.before create-filled
prove killed-while-xfs-is-cloned killed xfs 300Mi freeze-begun uuid-xfs.before create-filled
prove driver-stops end
cat "$driver_log"
