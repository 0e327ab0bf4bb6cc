# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Direct mode, a namespace for each volume: sizes to the byte in a fragmented region, foreign namespaces of any name,
# sector mode, a driver that is killed in the middle, and volumes that change hands between the device modes. BOOT=2 finds
# them again after an orderly end, and has label slots run out.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
[ "${BOOT:-1}" = 2 ] || volumes_are_left

mib=1048576

# --- what the kernel says

# namespace_field NAME FIELD: of the namespaces with that name, one per line. An idle one keeps the name that it had.
namespace_field() {
	local dir block
	for dir in /sys/bus/nd/devices/namespace*; do
		[[ $(<"$dir/size") != 0 && $(<"$dir/alt_name") = "$1" ]] || continue
		case $2 in
		dev) echo "${dir##*/}" ;;
		uuid) echo "$(<"$dir/uuid")" ;;
		blockdev)
			for block in "$dir"/block/* "/sys/bus/nd/devices/$(<"$dir/holder")"/block/*; do
				[ ! -e "$block" ] || echo "${block##*/}"
			done
			;;
		esac
	done
}

# Names of all namespaces but pool and foreign ones, as words in the order of their bytes
namespace_names() {
	local dir name names=()
	for dir in /sys/bus/nd/devices/namespace*; do
		name=$(<"$dir/alt_name")
		[[ $(<"$dir/size") = 0 || $name = pmem-csi || " ${foreign_namespaces:-} " = *" $name "* ]] || names+=("$name")
	done
	[ ${#names[@]} = 0 ] || printf '%s\n' "${names[@]}" | LC_ALL=C sort | tr '\n' ' '
}

# As the driver counts it: whole units of 16 MiB
free_in_regions() {
	local region bytes sum=0
	for region in /sys/bus/nd/devices/region*; do
		bytes=$(<"$region/available_size")
		sum=$((sum + bytes / (16 * mib) * (16 * mib)))
	done
	echo "$sum"
}

# host_lvm LEVEL PATTERN SETTINGS: with these settings of the machine's LVM, doctor says so, and LVM lists namespaces or does not.
host_lvm() {
	local n=0
	echo "$3" >/etc/lvm/lvm.conf
	pmem-csi-driver doctor -deviceManager=direct "-statePath=$state" >"$scratch/doctor" || true
	grep '^[a-z]* *host-lvm' "$scratch/doctor"
	grep -q "^$1 *host-lvm .*$2" "$scratch/doctor" || return 1
	n=$(LVM_SYSTEM_DIR=/etc/lvm lvm lvmdiskscan | grep -c /dev/pmem) || true
	if [ "$1" = note ]; then
		[ "$n" -gt 0 ]
	else
		equal 'the number of namespaces that LVM looks into' "$n" 0
	fi
}

# The machine has a namespace with a block device, which its LVM looks into unless it is configured otherwise.
host_lvm_is_noted() {
	mkdir -p /etc/lvm
	host_lvm note 'looks into /dev/pmem' 'devices { global_filter = [ "a|.*|" ] }' &&
		host_lvm ok 'does not look' 'devices { global_filter = [ "r|^/dev/pmem|" ] }' &&
		host_lvm note 'looks into /dev/pmem' 'devices { filter = [ "r|^/dev/sd|" ] }' || return 1
	rm /etc/lvm/lvm.conf
}

nothing_leaked_direct() {
	local id ids='' file files=''
	for id in $(listed_ids); do
		ids+="$id "
	done
	for file in "$state"/*; do
		[ ! -f "$file" ] || [ "${file##*/}" = durability ] || files+="$(basename "$file" .json) "
	done
	# also as a condition, where bash goes on after a failure
	equal 'the set of namespaces' "$(namespace_names)" "$ids" &&
		equal 'the state folder' "$files" "$ids" &&
		equal 'the capacity' "$(available)" "$(free_in_regions)"
}

# A deleted volume is erased in the background.
all_is_back() {
	await 60 nothing_leaked_direct
	nothing_leaked_direct
}

direct_start() {
	driver_start_with -deviceManager=direct "$@"
}

# --- the checks

start_on_blank_regions() {
	prepare_memory
	direct_start -pmemPercentage=50
	logged 'no effect here.*pmemPercentage'
	fails logged 'lvm'
	nothing_leaked_direct
	available >"$scratch/initial"
}

make_foreign() {
	local device
	ndctl create-namespace -r region1 -m fsdax -n theirs -s 496M >"$scratch/theirs.json"
	device=/dev/$(namespace_field theirs blockdev)
	yes 'foreign data' | dd of="$device" bs=1M count=8 iflag=fullblock conv=fsync status=none
	foreign_facts >"$scratch/foreign"
	note_kept
	driver_kill
	fails pmem-csi-driver check -deviceManager=direct "-statePath=$state" -repair=theirs
	test ! -e "$state/theirs.json"
	direct_start
	logged 'foreign device is left alone.*theirs'
	equal 'list' "$(listed_ids)" ''
}

# To hash all of it takes a minute in the machine.
ends_of() {
	head -c 8M "$1" | sha256sum
	tail -c 2M "$1" | sha256sum
}

foreign_facts() {
	local dev
	for dev in $(namespace_field theirs dev); do
		cat "/sys/bus/nd/devices/$dev"/{uuid,alt_name,size,resource}
		ends_of "/dev/$(namespace_field theirs blockdev)"
	done
}

foreign_unchanged() {
	foreign_facts | cmp - "$scratch/foreign"
	csi delete theirs
	foreign_facts | cmp - "$scratch/foreign"
}

used_with_dax() {
	local id size
	id=$(create direct-ext4 64Mi ext4)
	size=$(field capacity_bytes <"$scratch/created")
	[ "$size" -ge $((64 * mib)) ]
	equal 'size of the device' "$(blockdev --getsize64 "/dev/$(namespace_field "$id" blockdev)")" "$size"
	nothing_leaked_direct
	stage "$id"
	has_dax "$(staging_of "$id")"
	publish "$id"
	dax-check -size 4Mi -seed 3 write "$(target_of "$id")/mapped"
	dax-check -size 4Mi -seed 3 verify "$(target_of "$id")/mapped"
	refused FAILED_PRECONDITION delete "$id"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	all_is_back
	equal 'namespaces of that name' "$(namespace_field "$id" dev)" ''
}

# fragments_are_explained SIZE: region 0 has as much, but not in one piece. ndctl shows pieces as they are, doctor what a volume
# in them has: the page map takes its share.
fragments_are_explained() {
	pmem-csi-driver doctor -deviceManager=direct "-statePath=$state" -o json -size "$1" >"$scratch/doctor" || true
	pmem-csi-driver regions -deviceManager=direct "-statePath=$state" -o json >"$scratch/regions"
	ndctl list -R -N -v >"$scratch/ndctl"
	lvm vgs --reportformat json --units b --nosuffix -o vg_name,vg_uuid,vg_size,vg_free,vg_extent_size >"$scratch/vgs"
	"$VM_TESTS/compare-regions" "$scratch/regions" "$scratch/ndctl" "$scratch/vgs"
	python3 -c 'import json, sys
size, mib = int(sys.argv[1]), 1 << 20
with open(sys.argv[2]) as f: doctor = json.load(f)
with open(sys.argv[3]) as f: region = next(r for r in json.load(f)["regions"] if r["dev"] == "region0")
pool = next(p for p in doctor["pools"] if p["pool"] == "ndbus0region0")
reasons = {r["kind"]: r["bytes"] for r in pool["reasons"]}
assert not doctor["creatable"] and set(reasons) == {"fragmentation"}, doctor
assert region["available_size"] >= size > region["max_available_extent"] - 16 * mib, region
assert reasons["fragmentation"] == size - 1 < region["max_available_extent"], (reasons, region)' \
		"$1" "$scratch/doctor" "$scratch/ndctl"
}

maximum_in_fragments() {
	local i size id ids=()
	for i in 1 2 3 4; do
		ids+=("$(create "direct-part-$i" 96Mi ext4 -parameter eraseafter=false)")
	done
	for i in 0 1 3; do
		delete "${ids[i]}"
	done
	all_is_back
	size=$(largest)
	[ "$size" -lt "$(available)" ]
	refused RESOURCE_EXHAUSTED -size $((size + 1)) -fs ext4 create direct-more
	fragments_are_explained $((size + 1))
	id=$(create direct-largest "$size" ext4 -limit "$size" -parameter eraseafter=false)
	equal 'size of the largest' "$(field capacity_bytes <"$scratch/created")" "$size"
	equal 'size of its device' "$(blockdev --getsize64 "/dev/$(namespace_field "$id" blockdev)")" "$size"
	nothing_leaked_direct
	delete "$id"
	delete "${ids[2]}"
	all_is_back
}

# An administrator gives a namespace the name of a volume of ours.
same_name() {
	local id ours theirs facts
	id=$(create direct-twin 32Mi ext4)
	ours=$(namespace_field "$id" uuid)
	ndctl create-namespace -r region0 -m fsdax -n "$id" -s 64M >/dev/null
	theirs=$(namespace_field "$id" uuid | grep -v "$ours")
	facts=$(twin_facts "$theirs")
	driver_kill
	direct_start
	stage "$id"
	unstage "$id"
	delete "$id"
	await 60 fails test -e "$state/$id.erasing"
	equal 'namespaces of that name' "$(namespace_field "$id" uuid)" "$theirs"
	equal 'the foreign one' "$(twin_facts "$theirs")" "$facts"
	refused FAILED_PRECONDITION -size 32Mi -fs ext4 create direct-twin
	equal 'the foreign one' "$(twin_facts "$theirs")" "$facts"
	ndctl destroy-namespace -f "$(namespace_field "$id" dev)"
	driver_kill
	direct_start
	nothing_leaked_direct
}

# twin_facts UUID: of the namespace with it
twin_facts() {
	local dir
	for dir in /sys/bus/nd/devices/namespace*; do
		[ "$(<"$dir/uuid")" = "$1" ] || continue
		cat "$dir"/{size,resource}
		ends_of "/dev/$(basename "/sys/bus/nd/devices/$(<"$dir/holder")"/block/*)"
	done
}

file_io() {
	local id device
	id=$(create direct-fileio 32Mi ext4 -parameter usage=FileIO)
	device=/dev/$(namespace_field "$id" blockdev)
	[[ $device = *s ]]
	equal 'sector size' "$(blockdev --getss "$device")" 4096
	[ "$(blockdev --getsize64 "$device")" -ge $((32 * mib)) ]
	stage "$id"
	publish "$id"
	fails has_dax "$(staging_of "$id")"
	dax-check -size 1Mi -plain write "$(target_of "$id")/file"
	dax-check -size 1Mi -plain verify "$(target_of "$id")/file"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	all_is_back
}

absent_region() {
	local id
	id=$(create direct-absent 32Mi ext4)
	ndctl disable-region region0
	driver_kill
	direct_start
	refused UNAVAILABLE delete "$id"
	refused UNAVAILABLE -size 32Mi -fs ext4 create direct-absent
	test -e "$state/$id.json"
	ndctl enable-region region0
	delete "$id"
	driver_kill
	direct_start
	all_is_back
}

nothing_half_done() {
	! compgen -G "$state/*.creating" >/dev/null && ! compgen -G "$state/*.erasing" >/dev/null
}

# killed_at POINT: the driver, while it makes or deletes a volume. What it leaves is cleared away by the next one.
killed_at() {
	local id
	driver_kill
	direct_start "PMEM_KILL_AT=$1"
	if id=$(create direct-killed 32Mi ext4 -timeout 20s 2>/dev/null); then
		csi delete "$id" || true
	fi
	await 60 is_gone "$(driver_pid)"
	direct_start
	# until then its name is in use
	await 60 nothing_half_done
	id=$(create direct-killed 32Mi ext4)
	delete "$id"
	all_is_back
}

killed_anywhere() {
	local point
	for point in nd-uuid.after nd-size.after nd-pfn-claim.after nd-pfn-enable.after nd-raw-enable.after \
		nd-delete.before; do
		echo "at $point"
		killed_at "$point"
	done
}

# A pool namespace that was given a size but never enabled does not block the region.
abandoned_seed() {
	local point id
	for point in nd-size.after nd-pfn-claim.after; do
		PMEM_KILL_AT=$point pmem-ns-init -useforfsdax=20 || true
		id=$(create direct-beside 32Mi ext4)
		delete "$id"
		await 60 fails test -e "$state/$id.erasing"
		ndctl destroy-namespace -f "$(namespace_field pmem-csi dev)" || true
		equal 'pool namespaces' "$(namespace_field pmem-csi dev)" ''
		all_is_back
	done
}

# Volumes of one device mode are served in the other, while they are in use.
change_of_mode() {
	local lvm direct
	driver_stop
	init_chain 40
	driver_start
	lvm=$(create direct-by-lvm 32Mi ext4)
	stage "$lvm"
	publish "$lvm"
	dax-check -size 1Mi -seed 4 write "$(target_of "$lvm")/file"
	driver_stop

	direct_start
	equal 'list' "$(listed_ids)" "$lvm"
	direct=$(create direct-by-itself 32Mi ext4)
	stage "$direct"
	publish "$direct"
	dax-check -size 1Mi -seed 5 write "$(target_of "$direct")/file"
	stage "$lvm"
	publish "$lvm" second
	dax-check -size 1Mi -seed 4 verify "$(target_of "$lvm" second)/file"
	unpublish "$lvm" second
	driver_stop

	driver_start
	equal 'number of volumes' "$(listed_ids | wc -l)" 2
	publish "$direct" second
	dax-check -size 1Mi -seed 5 verify "$(target_of "$direct" second)/file"
	unpublish "$direct" second
	unpublish "$direct"
	unstage "$direct"
	delete "$direct"
	await 60 fails test -e "$state/$direct.erasing"
	equal 'namespaces of the volume' "$(namespace_field "$direct" dev)" ''
	driver_stop

	direct_start
	unpublish "$lvm"
	unstage "$lvm"
	delete "$lvm"
	await 60 fails test -e "$state/$lvm.erasing"
	equal 'list' "$(listed_ids)" ''
	fails lv_exists "$lvm"
	driver_stop
	lvm vgremove -qq -y "$(lvm vgs --noheadings -o vg_name | tr -d ' ')"
	ndctl destroy-namespace -f "$(namespace_field pmem-csi dev)"
	direct_start
	nothing_leaked_direct
}

leave_for_reboot() {
	local id
	id=$(create direct-reboot 64Mi ext4)
	stage "$id"
	dax-check -size 4Mi -seed 11 write "$(staging_of "$id")/mapped"
	unstage "$id"
	create direct-reboot-fileio 32Mi ext4 -parameter usage=FileIO >/dev/null
	equal 'capacity' "$(available)" $(($(cat "$scratch/initial") - (496 + 80 + 48) * mib))
	driver_stop
}

found_again() {
	local id
	direct_start
	nothing_leaked_direct
	id=$(create direct-reboot 64Mi ext4)
	stage "$id"
	dax-check -size 4Mi -seed 11 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	id=$(create direct-reboot-fileio 32Mi ext4 -parameter usage=FileIO)
	stage "$id"
	unstage "$id"
	for id in $(listed_ids); do
		delete "$id"
	done
	all_is_back
	driver_stop
}

# --- label slots

# few_labels SLOTS: an empty label area for region 0 that has only so many. The kernel keeps one to itself.
few_labels() {
	local dimm
	dimm=$(</sys/bus/nd/devices/region0/mapping0)
	dimm=${dimm%%,*}
	ndctl disable-region region0
	ndctl init-labels -f "$dimm"
	ndctl read-labels "$dimm" -o "$scratch/labels"
	"$VM_TESTS/few-labels" "$scratch/labels" "$1"
	ndctl disable-dimm "$dimm"
	ndctl write-labels "$dimm" -i "$scratch/labels"
	ndctl enable-dimm "$dimm"
	ndctl enable-region region0
	equal 'label slots' "$(<"/sys/bus/nd/devices/$dimm/available_slots")" $(($1 - 1))
}

slots_run_out() {
	local i ids=()
	few_labels 4
	direct_start
	for i in 1 2 3; do
		ids+=("$(create "direct-slot-$i" 32Mi ext4)")
	done
	refused RESOURCE_EXHAUSTED -size 32Mi -fs ext4 create direct-slot-4 >"$scratch/text"
	grep 'no free label slot in ndbus0region0$' "$scratch/text"
	pmem-csi-driver doctor -deviceManager=direct "-statePath=$state" -o json -size 32Mi >"$scratch/text" || true
	grep '"label-slots"' "$scratch/text"
	equal 'the set of namespaces' "$(namespace_names | wc -w)" 3
	equal 'number of volumes' "$(listed_ids | wc -l)" 3
	nothing_half_done
	equal 'files of the state folder' "$(find "$state" -maxdepth 1 -type f ! -name .lock ! -name durability | wc -l)" 3
	stage "${ids[0]}"
	unstage "${ids[0]}"
	delete "${ids[1]}"
	ids[1]=$(create direct-slot-4 32Mi ext4)
	for i in 0 1 2; do
		delete "${ids[i]}"
	done
	all_is_back
	driver_stop
}

foreign_namespaces='theirs'
if [ "${BOOT:-1}" = 2 ]; then
	plan direct-volumes-outlive-a-reboot label-slots-run-out
	prove direct-volumes-outlive-a-reboot found_again
	prove label-slots-run-out slots_run_out
else
	plan blank-regions-are-served foreign-namespace-is-there host-lvm-is-noted volume-is-used-with-dax maximum-in-a-fragmented-region \
		namespace-of-the-same-name-is-untouched file-io-has-whole-sectors volume-without-its-region-is-missing \
		killed-driver-leaves-nothing abandoned-namespace-is-in-nobodys-way volumes-change-hands-between-modes \
		foreign-namespace-is-untouched volumes-for-the-next-boot
	prove blank-regions-are-served start_on_blank_regions
	prove foreign-namespace-is-there make_foreign
	prove host-lvm-is-noted host_lvm_is_noted
	prove volume-is-used-with-dax used_with_dax
	prove maximum-in-a-fragmented-region maximum_in_fragments
	prove namespace-of-the-same-name-is-untouched same_name
	prove file-io-has-whole-sectors file_io
	prove volume-without-its-region-is-missing absent_region
	prove killed-driver-leaves-nothing killed_anywhere
	prove abandoned-namespace-is-in-nobodys-way abandoned_seed
	prove volumes-change-hands-between-modes change_of_mode
	prove foreign-namespace-is-untouched foreign_unchanged
	prove volumes-for-the-next-boot leave_for_reboot
fi
cat "$driver_log"
