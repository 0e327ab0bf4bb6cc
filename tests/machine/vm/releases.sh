# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Earlier releases of our driver (RELEASES, their folders), each of which serves for a while in place of this one: without groups of
# snapshots, without snapshots, and without growth. Two volumes are written to all the time. Snapshots, a group of them, a restored
# volume, and what was cut off are there meanwhile.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/handover_steps.sh
. "$VM_TESTS/handover_steps.sh"
plan_whole_script

earlier_log=$scratch/earlier.log
: >"$earlier_log"
volumes_that_stay=(first second growing restored)

# folder_of RELEASE
folder_of() {
	local folder
	for folder in $RELEASES; do
		[[ ${folder##*/} != "previous-$1-"* ]] || echo "$folder"
	done
}

# earlier_starts RELEASE: in place of ours, which has ended.
earlier_starts() {
	local driver_log=$earlier_log folder
	folder=$(folder_of "$1")
	if [ -z "$folder" ]; then
		echo "RELEASES does not have $1: scripts/machines releases builds it"
		return 1
	fi
	PATH=$folder:$PATH driver_start
	[[ $(readlink "/proc/$(driver_pid)/exe") == */previous-* ]]
}

ids_of() {
	local name
	for name; do
		id "$name"
	done | sort
}

# The list of those that stay is right, and the capacity is what is free.
accounts_are_right() {
	local volumes free_bytes
	equal 'the list' "$(listed_ids | sort)" "$(ids_of "${volumes_that_stay[@]}")"
	look_at_pools
	equal 'the capacity' "$(available)" "$free_bytes"
}

ours_makes_all() {
	init_chain 60
	driver_start
	make first ext4
	make second ext4
	start_writer first
	start_writer second
	take first
	take second
	take_group pair first second
	make restored ext4 -snapshot "$(id past-first)"
	numbers_are_whole "$(target_of "$(id restored)")/numbers" "$(<"$scratch/lines.first")"
	make growing ext4
	dax-check -size 4Mi -seed 4 write "$(target_of "$(id growing)")/mapped"
	csi list-snapshots >"$scratch/listed"
	cp -r "$state" "$scratch/state"
	accounts_are_right
}

# check [FOLDER/ [OPTION]...]: by the driver there, or ours
check() {
	"${1:-}"pmem-csi-driver check "-statePath=$state" "${@:2}"
}

# ours_is_there: what it says of snapshots is what it said before all releases.
ours_is_there() {
	local file
	accounts_are_right
	snapshots_are_as_they_were pair
	csi list-snapshots | diff "$scratch/listed" -
	for file in "$scratch"/state/*.snapshot; do
		cmp "$file" "$state/${file##*/}"
	done
	check
	written first second
}

# is_undone ID: neither a file nor a device of it is there.
is_undone() {
	! compgen -G "$state/$1.*" && ! lv_exists "$1"
}

# id_in_phase SUFFIX: of the only volume or snapshot whose state file has it
id_in_phase() {
	local files=("$state"/*".$1")
	basename "${files[0]}" ".$1"
}

# undoes_what_was_half_made RELEASE: a snapshot that is filled and not ready, as if it were a clone.
undoes_what_was_half_made() {
	local half
	dies_at create-filled create-snapshot half "$(id first)"
	half=$(id_in_phase creating)
	lv_exists "$half"
	earlier_starts "$1"
	await 60 is_undone "$half"
	bytes_are_as_they_were
	driver_stop
	driver_start
	ours_is_there
}

# A release without clones does not undo what has a file system, and does not list it. When ours is back, it is ready.
leaves_what_was_half_made() {
	local half
	dies_at create-filled create-snapshot half "$(id first)"
	half=$(id_in_phase creating)
	earlier_starts "$1"
	accounts_are_right
	bytes_are_as_they_were
	lv_exists "$half"
	driver_stop
	driver_start
	csi delete-snapshot "$half"
	await 60 is_undone "$half"
	ours_is_there
}

# Nor does it let writers go on that were to stand still for a moment.
leaves_writers_standing() {
	local lines
	dies_at freeze-begun create-snapshot half "$(id first)"
	earlier_starts "$1"
	lines=$(lines_of first)
	sleep 3
	equal 'number of lines' "$(lines_of first)" "$lines"
	fsfreeze -u "$(staging_of "$(id first)")"
	written first second
	driver_stop
	driver_start
	ours_is_there
}

# One of the group was ready, which ours would have completed. That one stays, and says what it was.
undoes_what_a_group_lacks() {
	local half torn left
	dies_at group-member-ready create-group torn "$(id first)" "$(id second)"
	half=$(id_in_phase creating)
	earlier_starts without-groups
	await 60 is_undone "$half"
	driver_stop
	driver_start
	csi list-snapshots | field snapshot_id | sort >"$scratch/now"
	left=$(field snapshot_id <"$scratch/listed" | sort | comm -13 - "$scratch/now")
	torn=$(csi get-snapshot "$left" | field group_snapshot_id)
	csi get-group "$torn" >"$scratch/torn"
	cat "$scratch/torn"
	grep -qF 'ready_to_use: false' "$scratch/torn"
	refused FAILED_PRECONDITION create-group torn "$(id first)" "$(id second)"
	csi delete-group "$torn"
	await 120 is_undone "$left"
	ours_is_there
}

# is_cut_off SIZE: in the middle of a growth, and while a snapshot is erased.
is_cut_off() {
	csi create-snapshot going "$(id second)" | field snapshot_id >"$scratch/id.going"
	driver_stop
	driver_start_with PMEM_KILL_AT=grow-device-grown -eraseBandwidth=1Mi
	csi delete-snapshot "$(id going)"
	fails csi -size "$1" expand "$(id growing)"
	await 30 is_gone "$(driver_pid)"
	grep -q resizing "$state/$(id growing).json"
	test -e "$state/$(id going).erasing"
}

# is_no_volume ID: of a snapshot; nothing happens to it. Without a state file that it reads, a release refuses to delete its device.
is_no_volume() {
	mkdir -p "$(staging_of "$1")"
	refused NOT_FOUND -fs ext4 stage "$1" "$(staging_of "$1")"
	refused NOT_FOUND -fs ext4 publish "$1" "$(staging_of "$1")" "$(target_of "$1")"
	csi delete "$1" || refused FAILED_PRECONDITION delete "$1"
	fails test -e "$state/$1.erasing"
	lv_exists "$1"
}

# uses_volumes: as ever, also those that snapshots have to do with, and the one whose growth was cut off.
uses_volumes() {
	again growing restored
	dax-check -size 4Mi -seed 4 verify "$(target_of "$(id growing)")/mapped"
	numbers_are_whole "$(target_of "$(id restored)")/numbers" "$(<"$scratch/lines.first")"
	make later ext4
	dax-check -size 4Mi -seed 5 write "$(target_of "$(id later)")/mapped"
	goes later
	await 120 is_undone "$(id later)"
	written first second
}

# serves RELEASE
serves() {
	earlier_starts "$1"
	await 120 is_undone "$(id going)"
	accounts_are_right
	is_no_volume "$(id past-first)"
	is_no_volume "$(id pair-first)"
	uses_volumes
	bytes_are_as_they_were
	accounts_are_right
}

# It takes a name that a snapshot has for one that a device without a state file has.
serves_without_snapshots() {
	serves "$1"
	refused FAILED_PRECONDITION -size 32Mi -fs ext4 create past-first
	driver_stop
}

serves_without_groups() {
	serves without-groups
	csi list-snapshots | field snapshot_id | diff <(field snapshot_id <"$scratch/listed") -
	restored past-first first
	restored pair-second second
	refused UNIMPLEMENTED get-group "$(id pair)"
	driver_stop
}

# is_back SIZE: of the volume whose growth was cut off
is_back() {
	driver_start
	await 60 growth_is_settled growing
	ours_is_there
	restored past-first first
	restored pair-second second
	csi -size "$1" expand "$(id growing)"
	csi -fs ext4 node-expand "$(id growing)" "$(target_of "$(id growing)")"
	equal 'MiB of the device that grew' "$(($(blockdev --getsize64 "$(device_of "$(id growing)")") >> 20))Mi" "$1"
	dax-check -size 4Mi -seed 4 verify "$(target_of "$(id growing)")/mapped"
	ours_is_there
}

# An earlier release advises to write a state file for the device of a snapshot, which takes it for a volume. Ours goes by its own file.
snapshot_is_repaired() {
	local it
	it=$(id past-second)
	driver_stop
	check "$(folder_of without-snapshots)/" "-repair=$it"
	test -e "$state/$it.json"
	driver_start
	accounts_are_right
	snapshots_are_as_they_were pair
	is_no_volume "$it"
	driver_stop
	fails check
	check '' "-repair=$it"
	fails test -e "$state/$it.json"
	driver_start
	ours_is_there
}

all_go() {
	local name
	for name in first second; do
		written "$name"
		stop_writer "$name"
	done
	for name in "${volumes_that_stay[@]}"; do
		goes "$name"
	done
	csi delete-snapshot "$(id past-first)"
	csi delete-snapshot "$(id past-second)"
	csi delete-group "$(id pair)"
	await 120 nothing_is_erasing
	volumes_that_stay=()
	accounts_are_right
}

prove ours-makes-all ours_makes_all
prove without-groups-undoes-what-was-half-made undoes_what_was_half_made without-groups
prove without-groups-undoes-what-a-group-lacks undoes_what_a_group_lacks
prove ours-is-cut-off is_cut_off 64Mi
prove without-groups-serves serves_without_groups
prove ours-is-back is_back 64Mi
prove without-snapshots-undoes-what-was-half-made undoes_what_was_half_made without-snapshots
prove ours-is-cut-off-again is_cut_off 96Mi
prove without-snapshots-serves serves_without_snapshots without-snapshots
prove ours-is-back-again is_back 96Mi
prove snapshot-is-repaired-as-a-volume snapshot_is_repaired
prove without-growth-leaves-what-was-half-made leaves_what_was_half_made without-growth
prove without-growth-leaves-writers-standing leaves_writers_standing without-growth
prove ours-is-cut-off-a-third-time is_cut_off 128Mi
prove without-growth-serves serves_without_snapshots without-growth
prove ours-is-back-for-good is_back 128Mi
prove all-go all_go
cat "$driver_log" "$earlier_log"
