# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The driver is killed and started again between any two calls of a volume's life, and in the middle of some; each call
# is also repeated.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/steps.sh
. "$VM_TESTS/steps.sh"

calls='create stage publish unpublish unstage delete'
points='create-recorded create-device-made create-ready delete-recorded'

# plan_life: the results of the loops below
plan_life() {
	local fs call point
	for call in $calls; do
		for fs in ext4 xfs; do
			echo "restart-before-$call-$fs"
		done
	done
	for point in $points; do
		echo "killed-at-$point"
	done
}

start() {
	init_chain 100
	driver_start
	bystander_is_made
}

before_create() {
	local id
	id=$(create "life-$1" 16Mi "$1")
	equal 'ID of the second call' "$(create "life-$1" 16Mi "$1")" "$id"
	echo "$id" >"$scratch/life-id"
	nothing_leaked
}

before_stage() {
	local id
	id=$(<"$scratch/life-id")
	equal 'the list' "$(listed_ids | grep -cxF -- "$id")" 1
	stage "$id"
	stage "$id"
	equal 'number of mounts' "$(mounts_of "$(staging_of "$id")" | wc -l)" 1
	dax-check -size 1Mi -seed 4 write "$(staging_of "$id")/mapped"
}

before_publish() {
	local id
	id=$(<"$scratch/life-id")
	publish "$id"
	publish "$id"
	publish "$id" reader -readonly
	equal 'number of mounts' "$(mounts_of "$(target_of "$id")" | wc -l)" 1
	dax-check -size 1Mi -seed 4 verify "$(target_of "$id")/mapped"
}

before_unpublish() {
	local id
	id=$(<"$scratch/life-id")
	has_dax "$(target_of "$id")"
	dax-check -size 1Mi -seed 4 verify "$(target_of "$id")/mapped"
	refused FAILED_PRECONDITION delete "$id"
	unpublish "$id"
	unpublish "$id"
	unpublish "$id" reader
	fails test -e "$(target_of "$id")"
	fails is_mounted "$(target_of "$id" reader)"
}

before_unstage() {
	local id
	id=$(<"$scratch/life-id")
	refused FAILED_PRECONDITION delete "$id"
	dax-check -size 1Mi -seed 4 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	unstage "$id"
	fails is_mounted "$(staging_of "$id")"
}

before_delete() {
	local id
	id=$(<"$scratch/life-id")
	delete "$id"
	delete "$id"
	nothing_leaked
}

# after_crash CALL FS
after_crash() {
	driver_crash_and_start
	"before_$1" "$2"
}

# What runs in a pod does not notice. The pod is a process that keeps a file open.
pod_runs_on() {
	local id pod log
	id=$(create pod 16Mi ext4)
	stage "$id"
	publish "$id"
	log=$(target_of "$id")/log
	tail -f /dev/null >>"$log" &
	pod=$!
	echo before >>"$log"
	driver_kill
	test -S "${CSI_ENDPOINT#unix://}"
	echo between >>"$log"
	driver_start
	echo after >>"$log"
	equal 'what the pod wrote' "$(tr '\n' ' ' <"$log")" 'before between after '
	refused FAILED_PRECONDITION unpublish "$id" "$(target_of "$id")"
	kill "$pod"
	await 30 is_gone "$pod"
	unpublish "$id"
	unstage "$id"
	delete "$id"
}

lvm_child_dies() {
	local id
	delete "$(create shell-warm 16Mi ext4)"
	kill -KILL "$(child "$(driver_pid)" lvm)"
	id=$(create shell-killed 16Mi ext4)
	kill -KILL "$(child "$(driver_pid)" lvm)"
	delete "$id"
	nothing_leaked
}

# The call that was under way when the driver was killed.
killed_at() {
	driver_stop
	go_to "$1"
	driver_kill
	is_durable "$1"
	driver_start
	is_settled "$1"
	succeeds_when_retried "$1"
}

# A mkfs that has written something when it and the driver are killed: the next call makes the file system again.
killed_in_mkfs() {
	local id flags
	driver_stop
	driver_start
	id=$(create mkfs 16Mi ext4)
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	rm -f /usr/sbin/mkfs.ext4
	cat >/usr/sbin/mkfs.ext4 <<-'END'
		#!/bin/bash
		printf XFSB | dd of="${*: -1}" conv=notrunc,fsync status=none
		echo $$ >/run/vm/mkfs.pid
		exec sleep 1000
	END
	chmod 0755 /usr/sbin/mkfs.ext4
	csi "${flags[@]}" stage "$id" "$(staging_of "$id")" &
	await 30 test -s "$scratch/mkfs.pid"
	driver_kill
	kill -KILL "$(cat "$scratch/mkfs.pid")"
	ln -sf mke2fs /usr/sbin/mkfs.ext4
	driver_start
	stage "$id"
	unstage "$id"
	delete "$id"
	nothing_leaked
}

# shellcheck disable=SC2046 # names are single words
plan $(plan_life)
plan_whole_script
prove start start
for fs in ext4 xfs; do
	for call in $calls; do
		prove "restart-before-$call-$fs" after_crash "$call" "$fs"
	done
done
prove pod-runs-on-without-the-driver pod_runs_on
prove lvm-child-is-started-again lvm_child_dies
for point in $points; do
	prove "killed-at-$point" killed_at "$point"
done
prove killed-in-mkfs killed_in_mkfs
prove bystander-is-intact bystander_is_intact
prove bystander-is-deleted bystander_is_deleted
cat "$driver_log"
