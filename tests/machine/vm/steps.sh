# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The points of a volume's life at which the power is cut or the driver is killed, for powercut.sh and restart.sh: how
# to get there, what must be durable then, and what must be true after the next start. Needs lib.sh.

bystander_is_made() {
	local id
	id=$(create bystander 16Mi ext4)
	stage "$id"
	dax-check -size 1Mi -seed 3 write "$(staging_of "$id")/mapped"
	unstage "$id"
}

bystander_is_intact() {
	local id
	id=$(create bystander 16Mi ext4)
	stage "$id"
	dax-check -size 1Mi -seed 3 verify "$(staging_of "$id")/mapped"
	unstage "$id"
}

bystander_is_deleted() {
	delete "$(create bystander 16Mi ext4)"
}

# go_to POINT: until the driver has stopped itself there.
go_to() {
	local id
	case $1 in
	create-*)
		driver_start_with "PMEM_STOP_AT=$1"
		csi -size 16Mi -fs ext4 create "at-$1" &
		;;
	delete-recorded)
		driver_start
		id=$(create "at-$1" 16Mi ext4)
		stage "$id"
		dax-check -size 1Mi -seed 5 write "$(staging_of "$id")/mapped"
		unstage "$id"
		driver_stop
		driver_start_with "PMEM_STOP_AT=$1"
		delete "$id" &
		;;
	esac
	await 60 is_stopped "$(driver_pid)"
}

# go_to_written: two volumes in use, written through MAP_SYNC and by write(2) and fsync(2), and one more.
go_to_written() {
	local fs id
	driver_start
	id=$(create at-written-left 16Mi ext4)
	stage "$id"
	publish "$id"
	for fs in ext4 xfs; do
		id=$(create "at-written-$fs" 16Mi "$fs")
		stage "$id"
		publish "$id"
		dax-check -size 1Mi -seed 8 write "$(target_of "$id")/mapped"
		dax-check -size 1Mi -seed 9 -plain write "$(target_of "$id")/plain"
	done
}

# file_of SUFFIX: the only state file with that suffix, without it. That of the bystander is not meant.
file_of() {
	local found
	found=$(grep -lr '"at-' "$state" --include="*.$1")
	found=${found##*/}
	echo "${found%".$1"}"
}

# is_durable POINT: before the driver's start. The ID is remembered.
is_durable() {
	local id
	case $1 in
	create-recorded | create-device-made) id=$(file_of creating) ;;
	create-ready) id=$(file_of json) ;;
	delete-recorded) id=$(file_of erasing) ;;
	esac
	echo "$id" >"$scratch/id"
	test -n "$id"
	if [ "$1" = create-recorded ]; then
		fails lv_exists "$id"
	else
		lv_exists "$id"
	fi
}

lv_is_gone() {
	! lv_exists "$1"
}

# is_settled POINT: after the driver's start. It is ready before it has cleared away what was left unfinished.
is_settled() {
	local id
	id=$(<"$scratch/id")
	if [ "$1" = create-ready ]; then
		lv_exists "$id"
	else
		await 30 lv_is_gone "$id"
	fi
	await 30 nothing_leaked
}

# succeeds_when_retried POINT: as kubelet and external-provisioner do.
succeeds_when_retried() {
	local id
	id=$(<"$scratch/id")
	if [ "$1" != delete-recorded ]; then
		equal 'ID of the retried creation' "$(create "at-$1" 16Mi ext4)" "$id"
		stage "$id"
		touch "$(staging_of "$id")/file"
		unstage "$id"
	fi
	delete "$id"
	delete "$id"
	fails lv_exists "$id"
	nothing_leaked
}
