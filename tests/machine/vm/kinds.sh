# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Every kind of volume as kubelet uses it: raw block, inline ephemeral, cache, numbers of volumes, huge pages.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

mib=1048576
inline_handle=csi-$(printf '%064d' 7)
inline=(-parameter csi.storage.k8s.io/ephemeral=true -parameter csi.storage.k8s.io/pod.name=pod)

start() {
	init_chain 100
	driver_start
	available >"$scratch/initial"
}

all_is_free() {
	[ "$(available)" = "$(cat "$scratch/initial")" ]
}

# Deleted volumes are erased in the background.
nothing_is_left() {
	await 120 all_is_free
	equal 'list' "$(listed_ids)" ''
	nothing_leaked
}

# --- raw block

block_stage() {
	mkdir -p "$(staging_of "$1")"
	csi -block stage "$1" "$(staging_of "$1")"
}

# block_publish ID POD [FLAG]...
block_publish() {
	local id=$1 pod=$2
	shift 2
	csi -block "$@" publish "$id" "$(staging_of "$id")" "$(target_of "$id" "$pod")"
}

block_volume() {
	local id target
	csi -block -size 32Mi create lab-block >"$scratch/created"
	id=$(field volume_id <"$scratch/created")
	target=$(target_of "$id" pod)
	cmp -n $((32 * mib)) "$(device_of "$id")" /dev/zero
	block_stage "$id"
	block_stage "$id"
	fails is_mounted "$(staging_of "$id")"
	block_publish "$id" pod
	block_publish "$id" pod
	test -b "$target"
	equal 'mounts at the target' "$(mounts_of "$target" | wc -l)" 1
	equal 'size by the target' "$(blockdev --getsize64 "$target")" $((32 * mib))
	yes 'block content' | dd of="$target" bs=1M count=4 iflag=fullblock oflag=direct status=none
	refused ALREADY_EXISTS -block -readonly publish "$id" "$(staging_of "$id")" "$target"
	refused FAILED_PRECONDITION -block -access-mode SINGLE_NODE_SINGLE_WRITER publish "$id" \
		"$(staging_of "$id")" "$(target_of "$id" second)"
	block_publish "$id" reader -readonly
	[[ $(mounts_of "$(target_of "$id" reader)") == *' ro,'* ]]
	refused FAILED_PRECONDITION -fs ext4 stage "$id" "$(staging_of "$id")"
	refused FAILED_PRECONDITION delete "$id"
	csi stats "$id" "$target" >"$scratch/stats"
	equal 'bytes' "$(field total <"$scratch/stats")" $((32 * mib))
	driver_crash_and_start
	block_publish "$id" pod
	unpublish "$id" reader
	unpublish "$id" pod
	unpublish "$id" pod
	fails test -e "$target"
	unstage "$id"
	refused FAILED_PRECONDITION -block publish "$id" "$(staging_of "$id")" "$(target_of "$id" again)"
	block_stage "$id"
	block_publish "$id" again
	yes 'block content' | cmp -n $((4 * mib)) - "$(target_of "$id" again)"
	unpublish "$id" again
	unstage "$id"
	refused FAILED_PRECONDITION -fs ext4 stage "$id" "$(staging_of "$id")"
	delete "$id"
	nothing_is_left
}

# What was made for file systems may hold what others left.
block_refused() {
	local id
	id=$(create lab-mount 32Mi ext4)
	mkdir -p "$(staging_of "$id")"
	refused FAILED_PRECONDITION -block stage "$id" "$(staging_of "$id")"
	refused FAILED_PRECONDITION -block publish "$id" "$(staging_of "$id")" "$(target_of "$id")"
	delete "$id"
	nothing_is_left
}

# --- inline ephemeral

# inline_publish FS [FLAG]...
inline_publish() {
	local fs=$1
	shift
	csi "${inline[@]}" -fs "$fs" "$@" publish "$inline_handle" '' "$(target_of "$inline_handle")"
}

# inline_volume FS SIZE
inline_volume() {
	local target
	target=$(target_of "$inline_handle")
	inline_publish "$1" -parameter "size=$2"
	inline_publish "$1" -parameter "size=$2"
	has_dax "$target"
	dax-check -size 4Mi -seed 3 write "$target/file"
	driver_crash_and_start
	inline_publish "$1" -parameter "size=$2"
	dax-check -size 4Mi -seed 3 verify "$target/file"
	csi stats "$inline_handle" "$target" >"$scratch/stats"
	unpublish "$inline_handle"
	unpublish "$inline_handle"
	fails test -e "$target"
	nothing_is_left
}

inline_file_io() {
	inline_publish ext4 -parameter size=32Mi -parameter usage=FileIO -parameter eraseafter=false
	fails has_dax "$(target_of "$inline_handle")"
	unpublish "$inline_handle"
	nothing_is_left
}

inline_undone() {
	refused INVALID_ARGUMENT "${inline[@]}" publish "$inline_handle" '' "$(target_of "$inline_handle")"
	refused RESOURCE_EXHAUSTED "${inline[@]}" -parameter size=1Pi publish "$inline_handle" '' \
		"$(target_of "$inline_handle")"
	refused NOT_FOUND "${inline[@]}" -parameter size=32Mi publish "$inline_handle" '' "$kubelet/none/target"
	nothing_is_left
}

# --- cache

cache_volume() {
	local id
	id=$(create lab-cache 32Mi ext4 -parameter persistencyModel=cache -access-mode MULTI_NODE_MULTI_WRITER)
	fails grep -qF . <<<"$id"
	stage "$id" -access-mode MULTI_NODE_MULTI_WRITER
	publish "$id" pod -access-mode MULTI_NODE_MULTI_WRITER
	publish "$id" second -access-mode MULTI_NODE_MULTI_WRITER
	unpublish "$id" pod
	unpublish "$id" second
	unstage "$id"
	delete "$id"
	refused INVALID_ARGUMENT -size 32Mi -fs ext4 -access-mode MULTI_NODE_MULTI_WRITER create lab-no-cache
	nothing_is_left
}

# --- numbers, and huge pages

file_system_numbers() {
	local id wanted
	id=$(create lab-stats 64Mi ext4)
	stage "$id"
	publish "$id"
	csi stats "$id" "$(target_of "$id")" >"$scratch/stats"
	wanted=$(stat -f -c '%b*%S' "$(target_of "$id")")
	equal 'bytes and inodes' "$(field total <"$scratch/stats" | tr '\n' ' ')" \
		"$((wanted)) $(stat -f -c %c "$(target_of "$id")") "
	refused NOT_FOUND stats "$id" "$kubelet/pods"
	refused NOT_FOUND stats unknown "$(target_of "$id")"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	nothing_is_left
}

# huge_pages FS SIZE: a file of 4 MiB that is aligned takes fewer faults than it has small pages.
huge_pages() {
	local id file
	id=$(create "lab-huge-$1" "$2" "$1")
	stage "$id"
	file=$(staging_of "$id")/file
	fallocate -l 16M "$file"
	dax-check -size 4Mi -seed 5 write "$file"
	dax-check -size 4Mi -seed 5 -huge verify "$file" | tee "$scratch/huge"
	unstage "$id"
	delete "$id"
	grep -q ': huge pages' "$scratch/huge"
	nothing_is_left
}

prove start start
prove block-volume block_volume
prove block-refused block_refused
prove inline-ext4 inline_volume ext4 32Mi
prove inline-xfs inline_volume xfs 320Mi
prove inline-file-io inline_file_io
prove inline-undone inline_undone
prove cache-volume cache_volume
prove file-system-numbers file_system_numbers
prove huge-pages-ext4 huge_pages ext4 64Mi
prove huge-pages-xfs huge_pages xfs 320Mi
driver_stop
