# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Direct mode on a kernel that hangs, and beside a region that refuses every write. A FIFO in the place of an attribute of
# sysfs lets the write hang that our driver makes, until it is read; a folder of sysfs that is covered by a file system
# which never answers lets a listing hang, also with volume groups; all the rest is the kernel's own. What reads memory
# answers, volumes that exist are staged and published, new ones are refused with what hangs and for how long; and when it
# goes on, all recovers.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

fifo=$scratch/fifo
nd=/sys/bus/nd/devices
# What our driver sees is covered; this is the kernel's own.
real=$scratch/sys

start() {
	prepare_memory
	load_modules fuse
	mkfifo "$fifo"
	mkdir -p "$real"
	mount -t sysfs sysfs "$real"
	driver_start_with -deviceManager=direct
	available >"$scratch/initial"
	create stuck-other 32Mi ext4 >"$scratch/other"
	create stuck-doomed 32Mi ext4 -parameter eraseafter=false >"$scratch/doomed"
}

# namespace_called NAME
namespace_called() {
	local dir
	for dir in "$nd"/namespace*; do
		if [[ $(<"$dir/size") != 0 && $(<"$dir/alt_name") = "$1" ]]; then
			echo "${dir##*/}"
		fi
	done
}

answers() {
	is_ready
	csi-client -timeout 5s capacity >/dev/null
	csi-client -timeout 5s list >/dev/null
	csi-client -timeout 5s node-info >/dev/null
}

# The namespace of a volume that is there needs no lock.
others_go_on() {
	local id
	id=$(<"$scratch/other")
	answers
	stage "$id"
	publish "$id"
	dax-check -size 1Mi -seed 3 write "$(target_of "$id")/file"
	unpublish "$id"
	unstage "$id"
}

# Many at once: each would hold a worker, until none is free.
crowd() {
	local i
	for i in {1..40}; do
		csi-client -timeout 60s -size 32Mi -fs ext4 create "stuck-crowd-$i" >/dev/null 2>&1 &
	done
}

# refused_with_reason PATTERN
refused_with_reason() {
	refused UNAVAILABLE -size 32Mi -fs ext4 create stuck-new | tee "$scratch/text"
	grep -E "$1.*running for [0-9]+ s" "$scratch/text"
}

label_write_hangs() {
	local region seed
	for region in 0 1; do
		seed=$(<"$nd/region$region/namespace_seed")
		mount --bind "$fifo" "$nd/$seed/sector_size"
		echo "$nd/$seed/sector_size" >>"$scratch/covered"
	done
	csi-client -timeout 2s -size 32Mi -fs ext4 create stuck-first || true
	crowd
	others_go_on
	await 100 refused_with_reason 'until "create namespace in region[01]" has finished'
	others_go_on
	[ "$(compgen -G "$state/*.creating" | wc -l)" -le 12 ]
}

goes_on() {
	local path
	while read -r path; do
		umount -l "$path"
	done <"$scratch/covered"
	rm "$scratch/covered"
	# whoever waits for a reader
	timeout 5 cat "$fifo" >/dev/null || true
	wait_for_crowd
	create stuck-first 32Mi ext4 >"$scratch/first"
	delete "$(<"$scratch/first")"
}

all_created_are_deleted() {
	local id
	for id in $(listed_ids); do
		[[ $id == "$(<"$scratch/other")" || $id == "$(<"$scratch/doomed")" ]] || delete "$id"
	done
}

wait_for_crowd() {
	await 60 no_client
	await 60 nothing_half_done
	all_created_are_deleted
}

no_client() {
	! pgrep -x csi-client
}

nothing_half_done() {
	! compgen -G "$state/*.creating" >/dev/null && ! compgen -G "$state/*.erasing" >/dev/null
}

unbind_hangs() {
	local id
	id=$(<"$scratch/doomed")
	mount --bind "$fifo" /sys/bus/nd/drivers/nd_pmem/unbind
	csi delete "$id"
	others_go_on
	await 100 refused_with_reason '"(remove a device|destroy namespace .*)"'
	others_go_on
	test -e "$state/$id.erasing"
}

# What the driver asked for is done behind its back, before its write comes back.
unbind_goes_on() {
	local id dev holder
	id=$(<"$scratch/doomed")
	dev=$(namespace_called "$id")
	holder=$(<"$nd/$dev/holder")
	umount -l /sys/bus/nd/drivers/nd_pmem/unbind
	echo "$holder" >"$real/bus/nd/drivers/nd_pmem/unbind"
	timeout 5 cat "$fifo" >/dev/null || true
	await 60 is_erased "$id"
	equal 'namespaces of the volume' "$(namespace_called "$id")" ''
	create stuck-after 32Mi ext4 >"$scratch/after"
	delete "$(<"$scratch/after")"
}

# One file in the place of what is written first: nothing can be made in region 0.
one_region_fails() {
	local seed free id i
	seed=$(<"$nd/region0/namespace_seed")
	echo 512 >"$scratch/attribute"
	mount --bind "$scratch/attribute" "$nd/$seed/sector_size"
	mount -o remount,bind,ro "$nd/$seed/sector_size"
	free=$(available)
	for i in 1 2 3; do
		id=$(create "stuck-beside-$i" 32Mi ext4)
		[[ $(namespace_called "$id") = namespace1.* ]]
		echo "$id" >>"$scratch/beside"
		# the back-off begins with 10 s
		[ "$i" != 1 ] || [ "$(available)" -lt $((free * 3 / 4)) ]
	done
	logged 'its pool is avoided'
	umount -l "$nd/$seed/sector_size"
	while read -r id; do
		delete "$id"
	done <"$scratch/beside"
}

# --- a listing

# cover REGION: listings of namespaces hang there.
cover() {
	"$VM_TESTS/hang-folder" "$nd/$1" >"$scratch/covering" 2>&1 &
	echo $! >"$scratch/coverer"
	await 60 grep -q covered "$scratch/covering"
}

uncover() {
	kill "$(<"$scratch/coverer")"
	await 60 is_gone "$(<"$scratch/coverer")"
}

not_listed='devices are not listed: .* step="list namespaces"\|devices could not be listed .*running for'
not_ready='not ready yet: reading state and devices for the first time has not ended seconds=[0-9]* step="list namespaces"'

# times_logged TEXT
times_logged() {
	grep -c -- "$1" "$driver_log" || true
}

# logged_more TIMES TEXT
logged_more() {
	[ "$(times_logged "$2")" -gt "$1" ]
}

# With a volume of the other region, for what lies in this one cannot be looked at.
listing_hangs() {
	local before
	await 60 nothing_half_done
	before=$(times_logged "$not_listed")
	cover region1
	crowd
	await 60 refused_with_reason '"(list namespaces|list devices|create a device)"'
	others_go_on
	[ "$(compgen -G "$state/*.creating" | wc -l)" -le 12 ]
	# whether it is the refresh itself that hangs, or one that waited for a call that does
	await 60 logged_more "$before" "$not_listed"
	others_go_on
}

listing_goes_on() {
	uncover
	wait_for_crowd
	create stuck-listed 32Mi ext4 >"$scratch/listed"
	delete "$(<"$scratch/listed")"
}

# not_ready_with_reason METHOD...
not_ready_with_reason() {
	fails is_ready
	refused UNAVAILABLE -size 32Mi -fs ext4 create stuck-early | tee "$scratch/text"
	grep 'still starting: list namespaces for [0-9]* s' "$scratch/text"
}

start_hangs() {
	local before
	before=$(times_logged "$not_ready")
	driver_kill
	cover region1
	driver_launch "$@"
	await 20 not_ready_with_reason
	await 60 logged_more "$before" "$not_ready"
	not_ready_with_reason
	fails is_gone "$(driver_pid)"
}

start_goes_on() {
	uncover
	await 60 is_ready
	others_go_on
}

# The driver has its own end, whatever hangs.
ends_while_listing_hangs() {
	cover region1
	csi-client -timeout 2s -size 32Mi -fs ext4 create stuck-at-the-end || true
	await 60 refused_with_reason '"(list namespaces|list devices|create a device)"'
	kill -TERM "$(driver_pid)"
	await 30 is_gone "$(driver_pid)"
	uncover
}

# The same with volume groups, where the driver lists namespaces before each listing of them.
with_groups() {
	local id
	driver_start_with -deviceManager=direct
	delete "$(<"$scratch/other")"
	driver_stop
	init_chain 50
	note_kept
	driver_start
	id=$(create stuck-in-a-group 32Mi ext4)
	echo "$id" >"$scratch/other"
}

end() {
	delete "$(<"$scratch/other")"
	umount "$real"
	driver_stop
}

prove started start
prove label-write-hangs-and-others-go-on label_write_hangs
prove label-write-goes-on-and-all-recovers goes_on
prove unbind-hangs-and-others-go-on unbind_hangs
prove unbind-goes-on-and-all-recovers unbind_goes_on
prove one-region-that-refuses-writes-stops-nothing one_region_fails
prove listing-hangs-and-others-go-on listing_hangs
prove listing-goes-on-and-all-recovers listing_goes_on
prove start-hangs-and-says-why start_hangs -deviceManager=direct
prove start-goes-on start_goes_on
prove ends-while-a-listing-hangs ends_while_listing_hangs
prove with-groups with_groups
prove listing-hangs-below-groups listing_hangs
prove listing-goes-on-below-groups listing_goes_on
prove start-hangs-below-groups start_hangs
prove start-goes-on-below-groups start_goes_on
prove ended end
cat "$driver_log"
