# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How volumes come to a path and away from it on persistent memory: mkfs that was cut off, the Go driver in between, file
# systems without DAX, options that the kernel drops, errors on the file system, mounts that are hidden, broken state.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

start() {
	init_chain 75
	driver_start
	create kept-ext4 64Mi ext4 >"$scratch/kept-ext4"
	create kept-xfs 300Mi xfs >"$scratch/kept-xfs"
	create cut-ext4 64Mi ext4 >"$scratch/cut-ext4"
	driver_stop
}

# die_in_stage POINT ID: the driver is killed there.
die_in_stage() {
	driver_start_with "PMEM_KILL_AT=$1"
	if stage "$2"; then
		echo "the driver was not killed at $1"
		return 1
	fi
	await 30 is_gone "$(driver_pid)"
}

# as_go_driver ID FS: what it does with a file system that it finds
as_go_driver() {
	local dir=$scratch/go
	mkdir -p "$dir"
	mount -t "$2" -o dax "$(device_of "$1")" "$dir"
	echo 'of a pod' >"$dir/data"
	umount "$dir"
}

# mounted_by_go FS
mounted_by_go() {
	local id
	id=$(<"$scratch/kept-$1")
	die_in_stage "mkfs-$1.after" "$id"
	grep -q '"fsUUID"' "$state/$id.json"
	as_go_driver "$id" "$1"
	driver_start
	stage "$id"
	equal 'data of the pod' "$(<"$(staging_of "$id")/data")" 'of a pod'
	has_dax "$(staging_of "$id")"
	unstage "$id"
	driver_stop
}

mkfs_is_done_again() {
	local id
	id=$(<"$scratch/cut-ext4")
	die_in_stage mkfs-ext4.after "$id"
	driver_start
	stage "$id"
	has_dax "$(staging_of "$id")"
	unstage "$id"
}

# without_dax CODE REASON ID MKFS...: what is mounted without DAX is not staged, and the reason is reported.
without_dax() {
	local code=$1 reason=$2 id=$3
	shift 3
	"$@" "$(device_of "$id")"
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	refused "$code" "${flags[@]}" stage "$id" "$(staging_of "$id")" >"$scratch/text"
	cat "$scratch/text"
	grep -q -- "$reason" "$scratch/text"
	fails is_mounted "$(staging_of "$id")"
	set_flags "$id"
	csi "${flags[@]}" -mount-flag dax=never stage "$id" "$(staging_of "$id")"
	fails has_dax "$(staging_of "$id")"
	unstage "$id"
	delete "$id"
}

small_blocks() {
	without_dax FAILED_PRECONDITION 'DAX' "$(create blocks-xfs 300Mi xfs)" mkfs.xfs -q -f -b size=1024 -m reflink=0
	without_dax INVALID_ARGUMENT 'the kernel says .*DAX' "$(create blocks-ext4 64Mi ext4)" mkfs.ext4 -q -F -b 1024
}

dropped_flags() {
	local id flags fs
	for fs in ext4 xfs; do
		id=$(<"$scratch/kept-$fs")
		stage "$id" -mount-flag discard
		stage "$id" -mount-flag discard
		driver_crash_and_start
		stage "$id" -mount-flag discard
		set_flags "$id"
		refused ALREADY_EXISTS "${flags[@]}" -mount-flag noexec stage "$id" "$(staging_of "$id")"
		unstage "$id"
	done
}

# Limits of a project can be set then, as kubelet does for other volumes.
project_quota() {
	local id fs
	for fs in ext4 xfs; do
		id=$(create "quota-$fs" "$([ "$fs" = xfs ] && echo 300Mi || echo 64Mi)" "$fs")
		stage "$id" -mount-flag prjquota
		grep -q "^[^ ]* $(staging_of "$id") $fs [^ ]*prjquota" /proc/self/mounts
		unstage "$id"
		delete "$id"
	done
}

error_flag() {
	local id
	id=$(<"$scratch/kept-ext4")
	debugfs -w -R 'ssv state 2' "$(device_of "$id")"
	stage "$id"
	logged 'file system was checked before mounting.*e2fsck repaired it'
	equal 'data of the pod' "$(<"$(staging_of "$id")/data")" 'of a pod'
	unstage "$id"
	dumpe2fs -h "$(device_of "$id")" 2>&1 | grep -q 'Filesystem state: *clean'
}

# Kubelet in a container binds its folder over itself.
hidden_mount() {
	local id flags
	id=$(<"$scratch/kept-ext4")
	stage "$id"
	driver_stop
	mount --bind "$kubelet" "$kubelet"
	driver_start
	set_flags "$id"
	refused FAILED_PRECONDITION "${flags[@]}" publish "$id" "$(staging_of "$id")" "$(target_of "$id")" | grep 'hides it'
	refused FAILED_PRECONDITION "${flags[@]}" stage "$id" "$(staging_of "$id")" | grep 'hides it'
	fails is_mounted "$(target_of "$id")"
	driver_stop
	umount "$kubelet"
	driver_start
	publish "$id"
	equal 'data of the pod' "$(<"$(target_of "$id")/data")" 'of a pod'
}

damaged_state() {
	local id
	id=$(<"$scratch/kept-ext4")
	cp "$state/$id.json" "$scratch/record"
	driver_kill
	echo '{' >"$state/$id.json"
	driver_start
	logged "state file is not used.*$id"
	unpublish "$id"
	unstage "$id"
	fails is_mounted "$(staging_of "$id")"
	fails test -e "$(target_of "$id")"
	driver_stop
	cp "$scratch/record" "$state/$id.json"
	driver_start
}

full_state_disk() {
	local id
	id=$(<"$scratch/kept-ext4")
	stage "$id"
	publish "$id"
	dd if=/dev/zero of="$state/filler" bs=64k status=none || true
	dd if=/dev/zero of="$state/filler2" bs=1 status=none || true
	unpublish "$id"
	unstage "$id"
	rm "$state/filler" "$state/filler2"
	stage "$id"
	unstage "$id"
}

full_target() {
	local id flags
	id=$(<"$scratch/kept-ext4")
	stage "$id"
	mkdir -p "$(target_of "$id")/something"
	set_flags "$id"
	refused FAILED_PRECONDITION "${flags[@]}" publish "$id" "$(staging_of "$id")" "$(target_of "$id")" | grep 'it contains "something"'
	unpublish "$id"
	test -d "$(target_of "$id")/something"
	rm -r "$(target_of "$id")"
	unstage "$id"
}

all_goes() {
	local name
	for name in kept-ext4 kept-xfs cut-ext4; do
		delete "$(<"$scratch/$name")"
	done
	driver_stop
}

prove started start
prove ext4-of-the-go-driver-is-kept mounted_by_go ext4
prove xfs-of-the-go-driver-is-kept mounted_by_go xfs
prove mkfs-is-done-again mkfs_is_done_again
prove no-dax-is-an-error small_blocks
prove dropped-flags-are-answered-as-before dropped_flags
prove project-quota-is-mounted project_quota
prove errors-are-mended-before-the-mount error_flag
prove hidden-mount-is-not-published hidden_mount
prove damaged-state-blocks-nothing damaged_state
prove full-state-disk-blocks-nothing full_state_disk
prove target-with-content-is-refused full_target
prove all-goes all_goes
cat "$driver_log"
