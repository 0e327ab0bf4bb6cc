# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What is there while another driver serves in place of ours: volumes that are written to all the time, snapshots, and what was cut
# off. For go_driver.sh and releases.sh. Needs lib.sh.

id() {
	echo "$(<"$scratch/id.$1")"
}

# make NAME FS [FLAG]...: until a pod would have it.
make() {
	local name=$1 id
	id=$(create "$name" 32Mi "${@:2}")
	echo "$id" >"$scratch/id.$name"
	stage "$id"
	publish "$id"
}

# One line after the other, each durable before the next; the first error ends it.
writer() {
	local n=0
	while n=$((n + 1)) && echo "$n" >>"$1/numbers" && sync "$1/numbers"; do
		sleep 0.2
	done
	echo "the writer has failed after $n" >>"$1.failed"
}

# start_writer NAME: until it has written something
start_writer() {
	writer "$(target_of "$(id "$1")")" >>"$scratch/writers.log" 2>&1 </dev/null &
	echo $! >"$scratch/writer.$1"
	await 30 test -s "$(target_of "$(id "$1")")/numbers"
}

stop_writer() {
	kill -KILL "$(<"$scratch/writer.$1")"
	await 30 is_gone "$(<"$scratch/writer.$1")"
}

has_more_lines() {
	[ "$(wc -l <"$1")" -gt "$2" ]
}

# written NAME...: the writer goes on, and no line is missing.
written() {
	local name file
	for name; do
		file=$(target_of "$(id "$name")")/numbers
		fails is_gone "$(<"$scratch/writer.$name")"
		await 30 has_more_lines "$file" "$(wc -l <"$file")"
		head -n "$(wc -l <"$file")" "$file" | awk '$1 != NR { print "line " NR " is " $1; exit 1 }'
	done
}

# lines_of NAME
lines_of() {
	wc -l <"$(target_of "$(id "$1")")/numbers"
}

# take NAME: a snapshot of a volume that is written to. It has at least the lines that there were before.
take() {
	lines_of "$1" >"$scratch/lines.$1"
	csi create-snapshot "past-$1" "$(id "$1")" | field snapshot_id >"$scratch/id.past-$1"
	sum_of "$(id "past-$1")" >"$scratch/sum.past-$1"
}

# take_group NAME VOLUME...: of volumes of which one snapshot each was taken before.
take_group() {
	local group=$1 it volumes=()
	shift
	for it; do
		volumes+=("$(id "$it")")
	done
	csi create-group "$group" "${volumes[@]}" | field group_snapshot_id | head -n 1 >"$scratch/id.$group"
	for it; do
		csi -source "$(id "$it")" list-snapshots | field snapshot_id | grep -vxF "$(id "past-$it")" >"$scratch/id.$group-$it"
		sum_of "$(id "$group-$it")" >"$scratch/sum.$group-$it"
	done
}

# bytes_are_as_they_were: of all snapshots
bytes_are_as_they_were() {
	local it
	for it in "$scratch"/sum.*; do
		it=${it##*/sum.}
		equal "bytes of $it" "$(sum_of "$(id "$it")")" "$(<"$scratch/sum.$it")"
	done
}

# snapshots_are_as_they_were GROUP: to our driver, and one of them is that group.
snapshots_are_as_they_were() {
	local it sums=("$scratch"/sum.*)
	bytes_are_as_they_were
	for it in "${sums[@]}"; do
		csi get-snapshot "$(id "${it##*/sum.}")" | grep -qF 'ready_to_use: true'
	done
	equal 'snapshots' "$(csi list-snapshots | field snapshot_id | wc -l)" "${#sums[@]}"
	csi get-group "$(id "$1")" | grep -qF 'ready_to_use: true'
}

# numbers_are_whole FILE NUMBER: so many lines at least, and none is missing
numbers_are_whole() {
	[ "$(wc -l <"$1")" -ge "$2" ]
	awk '$1 != NR { print "line " NR " is " $1; exit 1 }' "$1"
}

# restored SNAPSHOT NAME: what a volume that is made of it has
restored() {
	local volume
	volume=$(create "restored-$1" 32Mi ext4 -snapshot "$(id "$1")")
	stage "$volume"
	numbers_are_whole "$(staging_of "$volume")/numbers" "$(<"$scratch/lines.$2")"
	unstage "$volume"
	delete "$volume"
}

# dies_at POINT ARGUMENT...: our driver, which runs, ends there in the middle of this call.
dies_at() {
	local point=$1
	shift
	driver_stop
	driver_start_with "PMEM_KILL_AT=$point"
	fails csi "$@"
	await 30 is_gone "$(driver_pid)"
}

# dies_while_growing NAME SIZE: the device has its new size, the record both, and the file system the old one.
dies_while_growing() {
	dies_at grow-device-grown -size "$2" expand "$(id "$1")"
	grep -q resizing "$state/$(id "$1").json"
}

# growth_is_settled NAME
growth_is_settled() {
	! grep -q resizing "$state/$(id "$1").json"
}

# again NAME...: the volume is used as by another pod.
again() {
	local name
	for name; do
		unpublish "$(id "$name")"
		unstage "$(id "$name")"
		stage "$(id "$name")"
		publish "$(id "$name")"
	done
}

# goes NAME: also a volume that is used.
goes() {
	unpublish "$(id "$1")"
	unstage "$(id "$1")"
	csi delete "$(id "$1")"
}

nothing_is_erasing() {
	! compgen -G "$state/*.erasing"
}
