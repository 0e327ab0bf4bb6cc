# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-ns-init convert where there are labels: raw namespaces get the name of our pools. The first boot ends with a power
# cut in the middle of a conversion (CUT), which the second finishes.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/convert_steps.sh
. "$VM_TESTS/convert_steps.sh"

make_namespaces() {
	initialise_labels_by_hand
	ndctl create-namespace -r region0 -m raw -s 256M >/dev/null
	ndctl create-namespace -r region0 -m fsdax -n theirs -s 64M >/dev/null
	ndctl create-namespace -r region1 -m raw -n theirs -s 64M >/dev/null
	ndctl create-namespace -r region1 -m fsdax -s 64M >/dev/null
	ndctl create-namespace -r region1 -m sector -s 64M >/dev/null
	foreign_facts >"$LAB_STATE_DIR/foreign"
}

foreign_facts() {
	local dir device
	for dir in /sys/bus/nd/devices/namespace0.1 /sys/bus/nd/devices/namespace1.*; do
		grep -s . "$dir"/{alt_name,uuid,size,mode,resource} || true
	done
	for device in /dev/pmem0.1 /dev/pmem1*; do
		echo "$device $(head -c 4M "$device" | sha256sum)"
	done
}

foreign_is_untouched() {
	foreign_facts | diff "$LAB_STATE_DIR/foreign" -
}

# At the steps of the label, of which the power cut takes one, and next to them; convert.sh has all the others.
killed_around_the_label() {
	local step
	for step in nd-disable.after convert-name.after nd-pfn-claim.after; do
		killed_at "$step"
		ns_init 0 convert namespace0.0
		is_converted
		is_named
		make_raw_again
	done
}

# As a run with -force and the name leaves it that ends between conversion and group: the namespace is ours, holds nothing, and
# was in a group by the record.
forced_conversion_is_finished() {
	local device=/dev/pmem0 sectors
	ns_init 0 "-statePath=$state" convert namespace0.0
	pmem-vgm "-statePath=$state"
	hand vgremove -qq -f ndbus0region0fsdax
	hand pvremove -qq -y "$device"
	sectors=$(blockdev --getsz "$device")
	dd if=/dev/zero of="$device" bs=1M count=4 conv=fsync status=none
	dd if=/dev/zero of="$device" bs=512 seek=$((sectors - 8192)) count=8192 conv=fsync status=none
	pmem-vgm "-statePath=$state" >"$scratch/out" 2>"$scratch/log"
	says 'was in volume group ndbus0region0fsdax'
	ns_init 1 "-statePath=$state" convert namespace0.0
	ns_init 0 -force "-statePath=$state" convert namespace0.0
	is_converted
	is_named
	make_raw_again
}

is_named() {
	equal 'name' "$(</sys/bus/nd/devices/namespace0.0/alt_name)" pmem-csi
}

cut_there() {
	local pid
	stopped_at "$CUT"
	sync
}

boot_1() {
	prove make-namespaces make_namespaces
	prove killed-around-the-label killed_around_the_label
	prove forced-conversion-is-finished forced_conversion_is_finished
	prove named-raw-namespace-is-refused named_is_refused
	prove foreign-is-untouched foreign_is_untouched
	prove stopped-before-the-cut cut_there
	cut_power
}

named_is_refused() {
	ns_init 1 convert
	says '^namespace1.0 .*: refused (it has been given a name)$'
	is_named
	make_raw_again
}

finish_after_the_cut() {
	ns_init 1 convert
	is_converted
	is_named
	ns_init 0 convert namespace0.0
}

chain_uses_it() {
	init_chain 100
	equal 'groups' "$(groups)" 'ndbus0region0fsdax ndbus0region1fsdax'
	driver_start
	delete "$(create one 16Mi ext4)"
	nothing_leaked
	driver_stop
	kept_as_before
}

# What there is beside namespace1.0
other_namespaces() {
	local dir
	for dir in /sys/bus/nd/devices/namespace*; do
		[[ $(<"$dir/size") = 0 || $dir = */namespace1.0 ]] || grep . "$dir"/{alt_name,uuid,size,mode,resource}
	done
}

# Named ones, too; then it waits, so that its container is not started again.
mode_of_the_go_driver() {
	local pid log=$scratch/convert.log
	other_namespaces >"$scratch/others"
	pmem-csi-driver -mode=force-convert-raw-namespaces -nodeid=lab '-nodeSelector={"storage":"pmem"}' \
		>"$log" 2>&1 </dev/null &
	pid=$!
	await 60 grep 'waiting for a signal' "$log"
	cat "$log"
	kill -TERM "$pid"
	wait "$pid"
	grep 'converted namespace region=region1 namespace=namespace1.0 name=pmem-csi' "$log"
	equal 'devices of the group' "$(hand vgs --noheadings -o pv_count ndbus0region1fsdax | tr -d ' ')" 2
	other_namespaces | diff "$scratch/others" -
	equal 'groups' "$(groups)" 'ndbus0region0fsdax ndbus0region1fsdax'
	note_kept
}

boot_2() {
	prove finish-after-the-cut finish_after_the_cut
	prove foreign-is-untouched-after-the-cut foreign_is_untouched
	prove chain-uses-it chain_uses_it
	prove mode-of-the-go-driver mode_of_the_go_driver
	prove kernel-does-not-complain kernel_is_content
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
cat "$driver_log"
