# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What a node lives through: its clock is set by hours, forwards and backwards, and its state disk is slow, hangs, fails and comes
# back. Certificates are not valid yet for a clock that is behind.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

hour=3600
disk=$scratch/disk
mapped=/dev/mapper/weather
loop=/dev/loop0
sectors=65536

# The disk for the state folder, which can be slowed down and torn off.
make_disk() {
	truncate -s $((sectors * 512)) "$scratch/image"
	losetup "$loop" "$scratch/image"
	mke2fs -q -t ext4 "$loop"
	dmsetup create weather --noudevrules --noudevsync --table "0 $sectors linear $loop 0"
	dmsetup mknodes weather
	mkdir -p "$disk"
	mount -t ext4 -o errors=remount-ro "$mapped" "$disk"
	mkdir "$disk/state"
}

# map_disk TARGET [ARGUMENT]...: what was written before is not waited for.
map_disk() {
	dmsetup suspend --nolockfs --noflush weather
	dmsetup load weather --table "0 $sectors $*"
	resume_disk
}

resume_disk() {
	dmsetup resume weather --noudevrules --noudevsync
}

start() {
	init_chain 75
	load_modules dm-delay
	driver_start
	create weather 32Mi ext4 >"$scratch/id"
	stage "$(<"$scratch/id")"
	publish "$(<"$scratch/id")"
	echo kept >"$(target_of "$(<"$scratch/id")")/file"
}

unuse() {
	unpublish "$(<"$scratch/id")"
	unstage "$(<"$scratch/id")"
}

is_kept() {
	equal 'the file' "$(<"$(target_of "$(<"$scratch/id")")/file")" kept
}

use_again() {
	stage "$(<"$scratch/id")"
	publish "$(<"$scratch/id")"
	is_kept
}

# Everything, once.
all_works() {
	local other
	is_ready
	use_again
	unuse
	use_again
	other=$(create other 16Mi ext4)
	stage "$other"
	unstage "$other"
	delete "$other"
	nothing_leaked
}

# --- the clock

# set_clock SECONDS: since 1970
set_clock() {
	date -s "@$1" >/dev/null
}

now() {
	date +%s
}

# advance_clock HOURS
advance_clock() {
	set_clock $(($(now) + $1 * hour))
}

clock_goes_forward() {
	advance_clock 10
	all_works
	driver_crash_and_start
	all_works
}

clock_goes_back() {
	advance_clock -30
	all_works
	driver_crash_and_start
	all_works
	advance_clock 20
}

# Unmounting waits for a device that is suspended. Neither jump ends the call before its time, or keeps it for longer.
clock_jumps_in_a_call() {
	local id status=0 caller
	id=$(create jumping 32Mi ext4)
	stage "$id"
	dmsetup suspend --nolockfs "$(readlink -f "$(device_of "$id")")"
	csi-client -timeout 8s unstage "$id" "$(staging_of "$id")" >"$scratch/text" 2>&1 &
	caller=$!
	advance_clock 1000
	is_ready
	kill -0 "$caller"
	advance_clock -2000
	is_ready
	wait "$caller" || status=$?
	advance_clock 1000
	[ "$status" != 0 ]
	grep -q '^DEADLINE_EXCEEDED: .*unmounting for [0-9]* s' "$scratch/text"
	dmsetup resume "$(readlink -f "$(device_of "$id")")"
	await 60 csi unstage "$id" "$(staging_of "$id")"
	delete "$id"
	nothing_leaked
}

# As a board without a battery.
clock_begins_anywhere() {
	local real
	driver_stop
	real=$(now)
	set_clock 1000
	driver_start
	all_works
	driver_stop
	set_clock $((real + 40 * 365 * 24 * hour))
	driver_start
	all_works
	set_clock "$real"
	all_works
}

# --- certificates

controller_log=$scratch/controller.log

tls_flags() {
	echo "-caFile=$scratch/certs/ca.pem -certFile=$scratch/certs/$1.pem -keyFile=$scratch/certs/$1-key.pem"
}

has_said() {
	grep -q -- "$1" "$2"
}

# registered TIMES: by the controller's log
registered() {
	[ "$(grep -c 'node registered node=lab' "$controller_log")" -ge "$1" ]
}

certificates_of_the_future() {
	"$VM_TESTS/../../../scripts/make-certs" -o "$scratch/certs" pmem-registry pmem-node-controller >/dev/null
	# nodes register, although nothing answers at the API server's address
	cat >"$scratch/kubeconfig" <<-END
		{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
		 "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "$scratch/certs/ca.pem"}}],
		 "users": [{"name": "a", "user": {"token": "a"}}]}
	END
	# shellcheck disable=SC2046 # several words
	KUBECONFIG=$scratch/kubeconfig pmem-csi-driver -mode=controller \
		"-endpoint=unix:///run/pmem-csi/controller.sock" -registryEndpoint=tcp://127.0.0.1:10000 \
		-nodeAuthentication=role $(tls_flags pmem-registry) >"$controller_log" 2>&1 </dev/null &
	controller=$!
	driver_stop
	advance_clock -48
	# shellcheck disable=SC2046
	driver_start_with -registryEndpoint=tcp://127.0.0.1:10000 -controllerEndpoint=tcp://127.0.0.1:10001 $(tls_flags pmem-node-controller)
	await 60 has_said 'certificate.*\(future\|not.*valid\|validity\)' "$driver_log"
	fails registered 1
	all_works
	advance_clock 48
	await 120 registered 1
	kill -TERM "$controller"
	await 60 is_gone "$controller"
	driver_stop
	driver_start
}

# --- the state disk

move_to_disk() {
	driver_stop
	make_disk
	cp -a "$state/." "$disk/state/"
	state=$disk/state
	driver_start
	all_works
}

disk_is_slow() {
	map_disk delay "$loop" 0 100
	all_works
	map_disk linear "$loop" 0
}

# What is in memory is reported, a call is answered at its deadline with what it waits for, and all calls succeed when the disk works again.
disk_hangs() {
	local text
	dmsetup suspend --nolockfs --noflush weather
	is_kept
	if text=$(csi-client -size 16Mi -fs ext4 -timeout 4s create hanging 2>&1); then
		echo 'made a volume that could not be recorded'
		return 1
	fi
	echo "$text"
	[[ $text == DEADLINE_EXCEEDED:* ]]
	is_ready
	available
	csi-client -timeout 5s node-info >/dev/null
	csi-client -timeout 5s list >/dev/null
	resume_disk
	await 60 csi -size 16Mi -fs ext4 create hanging
	delete "$(create hanging 16Mi ext4)"
	all_works
}

disk_hangs_while_the_driver_ends() {
	unuse
	dmsetup suspend --nolockfs --noflush weather
	csi-client -size 16Mi -fs ext4 -timeout 2s create ending >/dev/null 2>&1 || true
	kill -TERM "$(driver_pid)"
	resume_disk
	await 60 is_gone "$(driver_pid)"
	driver_start
	delete "$(create ending 16Mi ext4)"
	all_works
}

# Every read and write fails. Nothing is made that could not be recorded; with a disk that works and a new mount all is there.
disk_fails() {
	map_disk error
	refused UNAVAILABLE -size 16Mi -fs ext4 create failing
	is_ready
	available
	is_kept
	driver_kill
	umount "$disk"
	map_disk linear "$loop" 0
	e2fsck -fy "$mapped" >/dev/null || [ $? -le 2 ]
	mount -t ext4 -o errors=remount-ro "$mapped" "$disk"
	driver_start
	all_works
}

ended() {
	unuse
	delete "$(<"$scratch/id")"
	driver_stop
	umount "$disk"
	dmsetup remove weather --noudevrules --noudevsync
	dmsetup mknodes
	losetup --detach "$loop"
}

prove start start
prove clock-goes-forward clock_goes_forward
prove clock-goes-back clock_goes_back
prove clock-jumps-in-a-call clock_jumps_in_a_call
prove clock-begins-in-1970-and-beyond clock_begins_anywhere
prove certificates-of-the-future certificates_of_the_future
prove disk-is-made move_to_disk
state=$disk/state
prove disk-is-slow disk_is_slow
prove disk-hangs disk_hangs
prove disk-hangs-while-the-driver-ends disk_hangs_while_the_driver_ends
prove disk-fails disk_fails
prove ended ended
cat "$driver_log"
cat "$controller_log"
