# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# CXL regions, which the kernel forgets at a boot: boots of one machine. After the first one the power is cut, then the devices
# change their numbers (BOOT=swapped), one is missing (BOOT=missing), and an administrator makes the region in the wrong order
# (BOOT=wrong). The kernel has no region at the beginning of any.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
volumes_are_left

bus=/sys/bus/cxl/devices
notes=$LAB_STATE_DIR/notes
first=0x1001 second=0x1002
mkdir -p "$notes"

ns_init() {
	pmem-ns-init "-statePath=$state" "$@" 2>&1 | tee "$scratch/ns-init.log"
	return "${PIPESTATUS[0]}"
}

# said_by_ns_init TEXT
said_by_ns_init() {
	grep -q -- "$1" "$scratch/ns-init.log" || {
		echo "pmem-ns-init did not say: $1"
		return 1
	}
}

no_region() {
	equal 'the regions' "$(compgen -G "$bus/region*" | tr '\n' ' ')" ''
	equal 'what is allocated on devices' "$(cat "$bus"/decoder*/dpa_size | sort -u | paste -sd ' ')" 0x0000000000000000
}

# order_of REGION: serial numbers by position.
order_of() {
	local target
	for target in target0 target1; do
		cat "$(dirname "$(readlink -f "$bus/$(<"$bus/$1/$target")")")/uport/serial"
	done | tr '\n' ' '
}

the_region() {
	basename "$(compgen -G "$bus/region*")"
}

is_whole() {
	equal 'the order' "$(order_of "$(the_region)")" "$first $second "
	equal 'the UUID' "$(<"$bus/$(the_region)/uuid")" "$(<"$notes/uuid")"
	equal 'the cookie' "$(cat /sys/bus/nd/devices/region*/set_cookie)" "$(<"$notes/cookie")"
}

destroy_region() {
	lvm vgchange -an >/dev/null
	ndctl disable-region all >/dev/null
	cxl destroy-region -f "$(the_region)" >/dev/null
	no_region
}

# doctor TEXT: ends with a problem that says so.
doctor_says() {
	local status=0
	pmem-csi-driver doctor -deviceManager=lvm "-statePath=$state" >"$scratch/doctor" || status=$?
	equal 'the status of doctor' "$status" 1
	grep -q "^problem *cxl-region .*$1" "$scratch/doctor" || {
		grep cxl "$scratch/doctor"
		return 1
	}
}

# --- the first boot

without_a_rule_nothing_is_made() {
	ns_init
	no_region
	test ! -e "$state/lvm/cxl"
}

# advises TEXT: in a line of the advice
advises() {
	pmem-ns-init "-statePath=$state" advise >"$scratch/advice"
	grep -q -- "$1" "$scratch/advice" || {
		cat "$scratch/advice"
		return 1
	}
}

# A disabled device has no way to a root decoder.
devices_without_region_are_named() {
	local device
	for device in $first $second; do
		advises "^$(cxl_memdev "$device") (serial $device): a CXL memory device with 512Mi of persistent memory$"
	done
	advises '^ *It is not used: it is part of no region.$'
	advises '^ *pmem-ns-init create -cxlRegions=create$'
	fails advises '^nmem' >/dev/null
	device=$(cxl_memdev $first)
	cxl disable-memdev -f "$device"
	advises "^ *cxl enable-memdev $device$"
	cxl enable-memdev "$device"
	fails advises '^ *cxl enable-memdev' >/dev/null
}

# As in a container that does not have the host's /dev: libcxl passes over the device.
device_without_a_node_is_named() {
	local device
	device=$(cxl_memdev $second)
	mv "/dev/cxl/$device" "$scratch/node"
	doctor_says "CXL memory device $device cannot be read: its node /dev/cxl/$device is missing"
	grep -q libnvdimm "$scratch/doctor"
	advises "^$device: a CXL memory device that cannot be read$"
	advises "^ *It is not used: its node /dev/cxl/$device is missing"
	fails ns_init -cxlRegions=create -strict
	said_by_ns_init "CXL memory device $device cannot be read"
	no_region
	mv "$scratch/node" "/dev/cxl/$device"
}

region_is_made() {
	ns_init -cxlRegions=create -useforfsdax=100 -strict
	said_by_ns_init 'was made'
	cat "$bus/$(the_region)/uuid" >"$notes/uuid"
	cat /sys/bus/nd/devices/region*/set_cookie >"$notes/cookie"
	is_whole
	test -s "$state/lvm/cxl/$(<"$notes/uuid").json"
	fails advises '^mem' >/dev/null
}

repeated_it_changes_nothing() {
	ns_init -cxlRegions=create -useforfsdax=100 -strict
	said_by_ns_init 'is as it was recorded'
	is_whole
	pmem-ns-init "-statePath=$state" status >"$scratch/status"
	fails grep 'not used' "$scratch/status"
}

volume_is_written() {
	local id
	pmem-vgm "-statePath=$state"
	driver_start
	id=$(create kept 64Mi ext4)
	stage "$id"
	dax-check -size 4Mi -seed 51 write "$(staging_of "$id")/mapped"
	echo "$id" >"$notes/id"
	cp "$scratch/context/$id" "$notes/context"
	sync
}

boot_first() {
	prove without-a-rule-nothing-is-made without_a_rule_nothing_is_made
	prove devices-without-region-are-named devices_without_region_are_named
	prove device-without-a-node-is-named device_without_a_node_is_named
	prove region-is-made region_is_made
	prove repeated-it-changes-nothing repeated_it_changes_nothing
	prove volume-is-written volume_is_written
	cat "$driver_log"
	cut_power
}

# --- later ones

volume_has_its_data() {
	local id
	id=$(<"$notes/id")
	cp "$notes/context" "$scratch/context/$id"
	driver_start_with "$@"
	stage "$id"
	publish "$id"
	dax-check -size 4Mi -seed 51 verify "$(target_of "$id")/mapped"
	unpublish "$id"
	unstage "$id"
	driver_stop
}

# The kernel numbers devices in the order in which it is done with them, mostly that of their ports.
places_have_changed() {
	readlink -f "/sys/bus/cxl/devices/$(cxl_memdev $second)" | grep -F /0000:0c:00.0/
	no_region
}

region_is_made_again() {
	ns_init -useforfsdax=100 -strict
	said_by_ns_init 'was made again'
	is_whole
	pmem-vgm "-statePath=$state"
}

# The point is one of common/pmem/cxl/cxl_real.c; the next run removes or uses what is there.
killed_at() {
	destroy_region
	fails env "PMEM_KILL_AT=$1" pmem-ns-init "-statePath=$state" -strict
	ns_init -strict
	is_whole
}

killed_anywhere_it_is_made_by_the_next_run() {
	local point
	for point in cxl-create.after cxl-size.after cxl-allocate.after cxl-attach.after cxl-attach.after:2 cxl-enable.after; do
		echo "killed at $point"
		killed_at "$point"
	done
}

driver_makes_it_again() {
	destroy_region
	volume_has_its_data
	logged 'was made again'
	is_whole
}

boot_swapped() {
	prove places-have-changed places_have_changed
	prove region-is-made-again region_is_made_again
	prove volume-has-its-data volume_has_its_data
	prove killed-anywhere-it-is-made-by-the-next-run killed_anywhere_it_is_made_by_the_next_run
	prove driver-makes-it-again driver_makes_it_again
}

missing_device_is_named() {
	fails ns_init -strict
	said_by_ns_init "the device with serial number $second (position 1 of 2) is missing"
	no_region
}

what_is_left_is_not_used() {
	fails ns_init -strict -cxlRegions=create
	no_region
	test -s "$state/lvm/cxl/$(<"$notes/uuid").json"
}

doctor_names_the_missing_device() {
	doctor_says "$second (position 1 of 2) is missing"
}

boot_missing() {
	prove missing-device-is-named missing_device_is_named
	prove what-is-left-is-not-used what_is_left_is_not_used
	prove doctor-names-the-missing-device doctor_names_the_missing_device
}

wrong_order_is_named() {
	cxl_region "$second" "$first"
	fails ns_init -strict
	said_by_ns_init "has the devices $second, $first with .* recorded are $first, $second with"
}

nothing_is_made_in_it() {
	pmem-ns-init "-statePath=$state" status | tee "$scratch/status"
	grep -q 'not used: the CXL region is not recorded' "$scratch/status"
	grep -q 'free 0 ' "$scratch/status"
	equal 'the pool namespaces' "$(ndctl list -Ni | grep -c '"name":"pmem-csi"')" 0
}

doctor_names_the_order() {
	doctor_says "has the devices $second, $first"
}

right_order_is_found_after_that() {
	destroy_region
	ns_init -strict
	is_whole
	volume_has_its_data -pmemPercentage=100
}

off_touches_nothing() {
	destroy_region
	ns_init -cxlRegions=off
	no_region
	rm "$state/lvm/cxl/"*
	cxl_region >/dev/null
	ns_init -cxlRegions=off
	equal 'the records' "$(ls "$state/lvm/cxl")" ''
}

region_made_by_hand_is_recorded() {
	ns_init -strict
	said_by_ns_init 'is now recorded'
	test -s "$state/lvm/cxl/$(<"$bus/$(the_region)/uuid").json"
}

labels_are_not_hidden() {
	destroy_region
	rm "$state/lvm/cxl/"*
	fails ns_init -strict -cxlRegions=create
	said_by_ns_init 'the label area of mem. (0x100.) is not empty'
	no_region
	test -z "$(ls "$state/lvm/cxl")"
}

boot_wrong() {
	prove wrong-order-is-named wrong_order_is_named
	prove nothing-is-made-in-it nothing_is_made_in_it
	prove doctor-names-the-order doctor_names_the_order
	prove right-order-is-found-after-that right_order_is_found_after_that
	prove off-touches-nothing off_touches_nothing
	prove region-made-by-hand-is-recorded region_made_by_hand_is_recorded
	prove labels-are-not-hidden labels_are_not_hidden
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-first}" | sed -nE 's/^ *prove ([a-z0-9-]+) .*/\1/p')
cxl_devices
"boot_${BOOT:-first}"
