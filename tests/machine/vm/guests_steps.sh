# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What the scenarios with nested guests do to volumes. Needs lib.sh and nested.sh. MODE: lvm (default) or direct.
: "${MODE:=lvm}"
image_name=kata-containers-pmem-csi-vm.img
image_offset=$((2 << 20))

# As mountPropagation: Bidirectional of the manifests makes it in the driver's container.
guests_driver() {
	mount --make-shared "$LAB_STATE_DIR"
	driver_start_with "-deviceManager=$MODE" "$@"
}

guests_start() {
	if [ "$MODE" = direct ]; then prepare_memory; else init_chain 100; fi
	guests_driver
	available >"$scratch/initial"
}

# Volumes are remembered by a name.
remember() {
	echo "$2" >"$scratch/id.$1"
}

id_of() {
	echo "$(<"$scratch/id.$1")"
}

has_all_space() {
	[ "$(available)" = "$(<"$scratch/initial")" ]
}

# publish_is_refused ID: for a second pod
publish_is_refused() {
	local flags
	set_flags "$1"
	refused FAILED_PRECONDITION "${flags[@]}" publish "$1" "$(staging_of "$1")" "$(target_of "$1" second)"
}

# --- images

# image_of ID: as Kata finds it, from the loop device that is mounted at the pod's path (virtcontainers, IsDeviceLoop and IsPFNImage)
image_of() {
	local fields image
	read -ra fields < <(mounts_of "$(target_of "$1")")
	image=$(<"/sys/dev/block/${fields[2]}/loop/backing_file")
	equal 'the signature' "$(dd if="$image" bs=1 skip=4096 count=15 status=none)" NVDIMM_PFN_INFO >&2
	echo "$image"
}

# is_mapped_with_sync PID PATH: its mapping of the file has MAP_SYNC in force, which is so with DAX only (proc(5), smaps: sf)
is_mapped_with_sync() {
	awk -v path="$2" '$1 ~ /^[0-9a-f]+-[0-9a-f]+$/ { here = $6 == path } here && /^VmFlags:/ && / sf( |$)/ { found = 1 }
		END { exit !found }' "/proc/$1/smaps"
}

# dax_guest_starts NAME ID: with the image of a volume that is published, mounted with DAX at /volume
dax_guest_starts() {
	local image
	image=$(image_of "$2")
	nested_start "$1" nvdimm "$image"
	is_mapped_with_sync "$(nested_pid "$1")" "$image"
	nested_do "$1" 'mount -o dax /dev/pmem0 /volume'
	nested_do "$1" 'grep "/volume .*dax=always" /proc/mounts'
}

# image_is_published FS SIZE: read-only on the host, and with DAX below it
image_is_published() {
	local id
	id=$(create "image-$1" "$2" "$1" -parameter kataContainers=true)
	remember "image-$1" "$id"
	stage "$id"
	publish "$id"
	has_dax "$(staging_of "$id")"
	has_dax "$state/mount/$id"
	[[ $(mounts_of "$(target_of "$id")") == *' ro,'*norecovery* ]]
}

# dax_guest_stores FS SIZE
dax_guest_stores() {
	image_is_published "$1" "$2"
	dax_guest_starts "$1-first" "$(id_of "image-$1")"
	nested_do "$1-first" 'dax-check -size 2Mi -seed 2 write /volume/mapped'
}

dax_guest_has_it_alone() {
	local id
	id=$(id_of "image-$1")
	publish_is_refused "$id"
	refused FAILED_PRECONDITION -size 900Mi expand "$id"
	refused FAILED_PRECONDITION delete "$id"
	driver_kill
	guests_driver
	publish "$id"
	equal 'mounts at the target' "$(mounts_of "$(target_of "$id")" | wc -l)" 1
}

# The guest stores on after its pod is gone, and what it has of the volume is not given to another one.
dax_guest_outlives_its_pod() {
	local id
	id=$(id_of "image-$1")
	refused FAILED_PRECONDITION unpublish "$id" "$(target_of "$id")"
	fails is_mounted "$(target_of "$id")"
	publish_is_refused "$id"
	nested_do "$1-first" 'dax-check -size 1Mi -seed 3 write /volume/late'
	unstage "$id"
	refused FAILED_PRECONDITION delete "$id"
	driver_kill
	guests_driver
	refused FAILED_PRECONDITION delete "$id"
	stage "$id"
	publish_is_refused "$id"
	nested_do "$1-first" 'dax-check -size 2Mi -seed 2 verify /volume/mapped && umount /volume'
	nested_kill "$1-first"
	unpublish "$id"
	fails test -e "$state/mount/$id"
}

# A pod without a guest sees a file system with the same content, read-only since nothing says what runs it.
dax_next_pod_reads_it() {
	local id file
	id=$(id_of "image-$1")
	publish "$id"
	for file in mapped:2:2Mi late:3:1Mi; do
		copy_is_right "$(target_of "$id")" "$file"
	done
}

# copy_is_right FOLDER NAME:SEED:SIZE
copy_is_right() {
	local name seed size
	IFS=: read -r name seed size <<<"$2"
	cp "$1/$name" "$scratch/copy"
	dax-check -plain -size "$size" -seed "$seed" verify "$scratch/copy"
	rm "$scratch/copy"
}

dax_guest_is_killed() {
	local id
	id=$(id_of "image-$1")
	dax_guest_starts "$1-second" "$id"
	nested_do "$1-second" 'dax-check -size 2Mi -seed 2 verify /volume/mapped'
	nested_do "$1-second" 'dax-check -size 1Mi -seed 4 write /volume/killed && mkdir /volume/run && (ordered-stores write /volume/run >/dev/null &)'
	nested_do "$1-second" 'until [ -s /volume/run/numbers-39 ]; do sleep 1; done; ls -l /volume/run/numbers-0'
	nested_kill "$1-second"
	unpublish "$id"
}

# Of a volume that is staged and not published
dax_image_is_intact() {
	local id
	id=$(id_of "image-$1")
	on_loop "$(staging_of "$id")/$image_name" has_files "$1" mapped:2:2Mi killed:4:1Mi
	publish "$id"
	copy_is_right "$(target_of "$id")" killed:4:1Mi
	unpublish "$id"
}

# on_loop FILE COMMAND...: with a loop device over its file system as the last argument
on_loop() {
	local loop status=0
	loop=$(losetup --find --show --offset "$image_offset" "$1")
	# not as a condition, where bash ignores failures of its steps
	"${@:2}" "$loop" &
	wait $! || status=$?
	losetup --detach "$loop"
	return "$status"
}

# has_files FS NAME:SEED:SIZE... DEVICE: the log of the file system is replayed, the files are there, and nothing is left to repair.
has_files() {
	local at=$scratch/intact file device=${*: -1}
	mkdir -p "$at"
	mount -t "$1" "$device" "$at"
	[ ! -d "$at/run" ] || ordered-stores verify "$at/run"
	for file in "${@:2:$#-2}"; do
		copy_is_right "$at" "$file"
	done
	umount "$at"
	case $1 in
	ext4) e2fsck -fn "$device" ;;
	xfs) xfs_repair -n "$device" ;;
	esac
}

dax_is_deleted() {
	local id
	id=$(id_of "image-$1")
	unstage "$id"
	delete "$id"
	await 60 has_all_space
	equal 'the list' "$(listed_ids)" ''
}

# --- direct volumes

kata_folder=/run/kata-containers/shared/direct-volumes
kata_sandboxes=/run/vc/sbs
foreign_entry=$kata_folder/L3J1bi9rYXRhLWNvbnRhaW5lcnMvc2hhcmVkL2VtcHR5ZGly

foreign_entry_is_made() {
	install -d -m 0700 "$kata_folder" "$foreign_entry" "$kata_sandboxes"
	echo theirs >"$foreign_entry/mountInfo.json"
}

entry_of() {
	echo "$kata_folder/$(printf %s "$(target_of "$1")" | base64 -w 0 | tr +/ -_)"
}

# entries_are PATH...: beside the foreign one, which has not changed
entries_are() {
	equal 'the entries' "$(printf '%s\n' "$kata_folder"/* | sort)" "$(printf '%s\n' "$foreign_entry" "$@" | sort)"
	equal 'the foreign entry' "$(<"$foreign_entry/mountInfo.json")" theirs
}

# is_unpublished ID: with all that belonged to the pod
is_unpublished() {
	entries_are
	fails test -e "$(target_of "$1")"
}

# shim_start NAME SANDBOX ID: stands for Kata's runtime, which has found the entry of a volume's target
shim_start() {
	rm -f "$nested/$1".{device,grows}
	"$VM_TESTS/nested-shim" "$2" "$(target_of "$3")" "$nested/$1" >"$nested/$1.shim" 2>&1 </dev/null &
	echo $! >"$nested/$1.shim.pid"
	await 120 test -e "$nested/$1.device"
}

# shim_end NAME SIGNAL: with TERM it cleans up
shim_end() {
	local pid
	pid=$(<"$nested/$1.shim.pid")
	kill "-$2" "$pid"
	await 60 is_gone "$pid"
}

# device_in_entry NAME ID: as the shim has read it; in LVM mode it is the volume's
device_in_entry() {
	local device
	device=$(<"$nested/$1.device")
	[ "$MODE" = direct ] || equal 'the device' "$(stat -L -c %t:%T "$device")" "$(stat -L -c %t:%T "$(device_of "$2")")" >&2
	echo "$device"
}

# direct_is_published FS SIZE: what the host shows is empty
direct_is_published() {
	local id
	id=$(create "direct-$1" "$2" "$1" -parameter directVolume=true)
	remember "direct-$1" "$id"
	stage "$id"
	publish "$id"
	entries_are "$(entry_of "$id")"
	equal 'mode of mountInfo.json' "$(stat -c %a "$(entry_of "$id")/mountInfo.json")" 600
	[[ $(mounts_of "$(target_of "$id")") == *' ro,'*' - tmpfs '* ]]
	fails touch "$(target_of "$id")/file"
}

# direct_guest_writes NAME FS SANDBOX
direct_guest_writes() {
	local id device
	id=$(id_of "direct-$2")
	shim_start "$1" "$3" "$id"
	device=$(device_in_entry "$1" "$id")
	nested_start "$1" disk "$device"
	nested_do "$1" "mount -t $2 /dev/vda /volume"
	nested_do "$1" 'dax-check -plain -size 4Mi -seed 5 write /volume/file'
}

# refuses_all ID TEXT: what would touch its device is refused, and the reason names what holds it.
refuses_all() {
	local call flags
	set_flags "$1"
	for call in publish delete copy; do
		case $call in
		publish) publish_is_refused "$1" ;;
		delete) refused FAILED_PRECONDITION delete "$1" ;;
		copy) refused FAILED_PRECONDITION -size 600Mi -fs "${flags[1]}" -source "$1" -parameter directVolume=true create copy ;;
		esac >"$scratch/refusal"
		cat "$scratch/refusal"
		grep -q -- "$2" "$scratch/refusal"
	done
}

direct_has_one_pod() {
	local id
	id=$(id_of "direct-$1")
	refuses_all "$id" "published at $(target_of "$id")"
	driver_kill
	guests_driver
	stage "$id"
	publish "$id"
	equal 'mounts at the target' "$(mounts_of "$(target_of "$id")" | wc -l)" 1
	entries_are "$(entry_of "$id")"
}

# The guest may need longer than the driver waits.
direct_statistics() {
	local id size total inodes said
	id=$(id_of "direct-$2")
	said=$(nested_do "$1" "stat -f -c '%S %b %c' /volume")
	read -r size total inodes <<<"$said"
	await 120 stats_are_answered "$id"
	equal 'bytes and inodes' "$(field total <"$scratch/stats" | tr '\n' ' ')" "$((size * total)) $inodes "
}

stats_are_answered() {
	csi stats "$1" "$(target_of "$1")" >"$scratch/stats"
}

# direct_grows NAME FS SIZE: with the agent of today, and with one that can
direct_grows() {
	local id blocks
	id=$(id_of "direct-$2")
	csi -size "$3" expand "$id"
	refused FAILED_PRECONDITION node-expand "$id" "$(target_of "$id")" >"$scratch/refusal"
	grep -q 'not implemented in kata-agent' "$scratch/refusal"
	blocks=$(nested_do "$1" "stat -f -c %b /volume")
	touch "$nested/$1.grows"
	await 240 csi node-expand "$id" "$(target_of "$id")"
	[ "$(nested_do "$1" "stat -f -c %b /volume")" -gt "$blocks" ]
	nested_do "$1" 'dax-check -plain -size 4Mi -seed 5 verify /volume/file'
}

# direct_pod_ends_first NAME FS SANDBOX: the driver is killed while it removes the entry.
direct_pod_ends_first() {
	local id
	id=$(id_of "direct-$2")
	driver_stop
	guests_driver PMEM_KILL_AT=direct-sandbox.before
	fails unpublish "$id"
	await 30 is_gone "$(driver_pid)"
	guests_driver
	unpublish "$id"
	is_unpublished "$id"
	refuses_all "$id" "sandbox $3"
	driver_kill
	guests_driver
	refuses_all "$id" "sandbox $3"
	nested_do "$1" 'dax-check -plain -size 1Mi -seed 6 write /volume/late && sync'
}

# direct_shim_is_killed NAME FS: its socket stays, and does not answer.
direct_shim_is_killed() {
	local id
	id=$(id_of "direct-$2")
	shim_end "$1" KILL
	refuses_all "$id" "process $(nested_pid "$1")"
	unstage "$id"
	refused FAILED_PRECONDITION -fs "$2" -parameter directVolume=true stage "$id" "$(staging_of "$id")"
	driver_kill
	guests_driver
	refused FAILED_PRECONDITION delete "$id"
}

# direct_guest_is_killed NAME FS: staging replays the log.
direct_guest_is_killed() {
	local id at=$scratch/intact
	id=$(id_of "direct-$2")
	nested_kill "$1"
	rm -r "${kata_sandboxes:?}"
	mkdir -p "$kata_sandboxes" "$at"
	stage "$id"
	mount -t "$2" -o ro "$(<"$nested/$1.device")" "$at"
	copy_is_right "$at" file:5:4Mi
	copy_is_right "$at" late:6:1Mi
	refused FAILED_PRECONDITION delete "$id"
	umount "$at"
	unstage "$id"
	case $2 in
	ext4) e2fsck -fn "$(<"$nested/$1.device")" ;;
	xfs) xfs_repair -n "$(<"$nested/$1.device")" ;;
	esac
}

direct_is_deleted() {
	delete "$(id_of "direct-$1")"
	await 60 has_all_space
	equal 'the list' "$(listed_ids)" ''
	entries_are
}
