# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-vgm restore, without a driver: labels and metadata areas zeroed under volumes that are in use and that are not; with
# BOOT=2 after the machine was switched off and on.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
leaks_are_meant

notes=$LAB_STATE_DIR/notes
group0=ndbus0region0fsdax
group1=ndbus0region1fsdax
mnt=$scratch/mnt
mkdir -p "$notes" "$mnt"

# restore STATUS [ARGUMENT]...: what it prints and logs is in $scratch/out.
restore() {
	local wanted=$1 status=0
	shift
	pmem-vgm "-statePath=$state" restore "$@" >"$scratch/out" 2>&1 || status=$?
	cat "$scratch/out"
	equal 'the exit status' "$status" "$wanted"
}

says() {
	grep -q -- "$1" "$scratch/out" || {
		echo "nothing says: $1"
		return 1
	}
}

# record ID GROUP: what the driver would keep of a volume
record() {
	local pool
	pool=$(lvm vgs --noheadings -o vg_uuid "$2" | tr -d ' ')
	echo "{\"id\":\"$1\",\"size\":16777216,\"parameters\":{\"name\":\"$1\"},\"pool\":\"$pool\"}" >"$state/$1.json"
}

# zero DEVICE OFFSET LENGTH, in KiB
zero() {
	dd if=/dev/zero of="$1" bs=1024 seek="$2" count="$3" conv=notrunc,fsync status=none
}

kib_of() {
	echo $(($(blockdev --getsize64 "$1") / 1024))
}

# Label and both metadata areas
zero_all() {
	zero "$1" 0 2048
	zero "$1" $(($(kib_of "$1") - 4096)) 4096
}

make_pools() {
	prepare_memory
	ndctl create-namespace -r region1 -m fsdax -n pmem-csi -s 128M >/dev/null
	init_chain 100
	lvm lvcreate -qq -y -n one -L 32m "$group0"
	lvm lvcreate -qq -y -n two -L 32m "$group0"
	# on both devices of the group
	lvm lvcreate -qq -y -n span -l 100%FREE "$group1"
	equal 'devices' "$(lvm vgs --noheadings -o pv_count "$group1" | tr -d ' ')" 2
	mkfs.ext4 -q "/dev/$group0/one"
	mount "/dev/$group0/one" "$mnt"
	seq 100000 >"$mnt/data"
	sync
	seq 1000000 | head -c 4M >"/dev/$group0/two"
	seq 1000000 | head -c 4M | dd of="/dev/$group1/span" bs=1M seek=40 conv=notrunc,fsync status=none
	pmem-vgm "-statePath=$state"
	record one "$group0"
	record two "$group0"
	record span "$group1"
	lvm pvs --noheadings -o pv_name --select "vg_name=$group0" | tr -d ' ' >"$notes/device"
	lvm pvs --noheadings -o pv_name --select "vg_name=$group1" | tr -s ' \n' ' ' >"$notes/devices"
	facts >"$notes/facts"
}

device() {
	echo "$(<"$notes/device")"
}

facts() {
	lvm vgs --noheadings -o vg_name,vg_uuid,vg_size,pv_count,vg_missing_pv_count
	lvm pvs --noheadings -o pv_uuid,pv_size,pe_start,pv_mda_count
	lvm lvs --noheadings -o lv_name,lv_uuid,lv_size,seg_pe_ranges
}

# All of LVM's metadata is as it was, and LVM has nothing to object to.
metadata_is_whole() {
	facts | diff "$notes/facts" -
	lvm vgck >"$scratch/vgck" 2>&1
	cat "$scratch/vgck"
	equal 'what LVM objects to' "$(<"$scratch/vgck")" ''
	restore 0 -dry-run
	equal 'groups with nothing to do' "$(grep -c ': nothing$' "$scratch/out")" 2
}

data_is_whole() {
	echo 3 >/proc/sys/vm/drop_caches
	seq 100000 | cmp - "$mnt/data"
	seq 1000000 | head -c 4M | cmp - <(head -c 4M "/dev/$group0/two")
	seq 1000000 | head -c 4M | cmp - <(dd if="/dev/$group1/span" bs=1M skip=40 count=4 status=none)
}

is_restored() {
	restore 0
	says "^$1: restored"
	metadata_is_whole
	data_is_whole
	pmem-vgm "-statePath=$state" plan >"$scratch/out"
	equal 'what create would do' "$(grep -vc 'nothing to do' "$scratch/out")" 0
	copies_are_current
}

copies_are_current() {
	local group seqno
	while read -r group seqno; do
		grep -qP "^\tseqno = $seqno$" "$state/lvm/copies/$group" || return 1
	done < <(lvm vgs --noheadings -o vg_name,vg_seqno)
}

# What must not change: where labels and metadata areas are, and the state folder.
sums() {
	local device
	for device in /dev/pmem*; do
		raw_bytes "$device" 0 2097152 | cksum
		raw_bytes "$device" $(($(blockdev --getsize64 "$device") - 4194304)) 4194304 | cksum
	done
	find "$state" -type f -exec cksum {} +
}

# dry STATUS: nothing changes.
dry() {
	local before
	before=$(sums)
	restore "$1" -dry-run
	cp "$scratch/out" "$scratch/dry"
	restore "$1" -dry-run -o json
	equal 'devices and records' "$(sums)" "$before"
	cp "$scratch/dry" "$scratch/out"
}

nothing_to_do() {
	metadata_is_whole
	restore 0
	says "^$group0: nothing"
	restore 0 "$group1"
	fails grep "$group0" "$scratch/out"
}

label_in_use() {
	zero "$(device)" 0 1
	fails lvm vgs "$group0"
	dry 0
	says "^$group0: restore"
	says "the label is lost; 2 volumes are active"
	says "metadata: metadata area of $(device), version"
	says 'would run: lvm pvck --yes --repairtype pv_header'
	fails grep vgck "$scratch/out"
	is_restored "$group0"
}

# The copy is older: the area at the end of the device counts.
first_area_in_use() {
	local copy=$state/lvm/copies/$group0
	cp "$copy" "$scratch/newest"
	sed -E "s/^\tseqno = [0-9]+/\tseqno = 1/; s/\t\ttwo \{/\t\tother {/" "$scratch/newest" >"$copy"
	zero "$(device)" 0 1024
	dry 0
	says "metadata: metadata area of $(device), version"
	says "would write: $state/lvm/older/"
	says 'would run: lvm pvck --yes --repairtype metadata .* mda_num=1'
	says 'would run: lvm vgck --updatemetadata'
	is_restored "$group0"
}

from_the_copy_in_use() {
	zero_all "$(device)"
	dry 0
	says 'label and metadata are lost'
	says "metadata: copy $state/lvm/copies/$group0, version .*, written 2.*Z, 2 volumes"
	says 'would run: lvm pvck --yes --repair --file'
	is_restored "$group0"
}

# LVM shows such a group.
one_area_damaged() {
	zero "$(device)" 4 8
	dry 0
	says 'a metadata area is damaged'
	fails grep pv_header "$scratch/out"
	is_restored "$group0"
}

one_of_two_devices() {
	local first second
	read -r first second < <(echo "$(<"$notes/devices")")
	zero_all "$second"
	dry 0
	says "metadata: metadata area of $first"
	is_restored "$group1"
	zero_all "$first"
	zero_all "$second"
	is_restored "$group1"
}

inactive() {
	umount "$mnt"
	lvm vgchange -qq -an "$group0"
	zero "$(device)" 0 1024
	dry 0
	says '0 volumes are active'
	restore 0 "$group0"
	says 'is back: volume one'
	mount "/dev/$group0/one" "$mnt"
	metadata_is_whole
	data_is_whole
}

killed() {
	PMEM_KILL_AT=$1 pmem-vgm "-statePath=$state" restore >"$scratch/killed" 2>&1 || true
	cat "$scratch/killed"
}

killed_between_steps() {
	local point
	for point in lvm-restore.before lvm-restore.after lvm-restore.before:2 lvm-restore.after:2 lvm-restore.before:3; do
		echo "at $point"
		zero "$(device)" 0 1024
		killed "$point"
		restore 0
		metadata_is_whole
		data_is_whole
	done
	for point in lvm-restore.before lvm-restore.after; do
		echo "at $point, from the copy"
		zero_all "$(device)"
		killed "$point"
		restore 0
		metadata_is_whole
		data_is_whole
	done
}

# pvck itself cut off: it writes the label first.
cut_off_in_pvck() {
	local uuid
	uuid=$(lvm pvs --noheadings -o pv_uuid "$(device)" | tr -d ' ')
	zero_all "$(device)"
	lvm pvck -y --repairtype pv_header -f "$state/lvm/copies/$group0" --settings "pv_uuid=$uuid" "$(device)"
	fails lvm vgs "$group0"
	restore 0 -dry-run
	says 'the metadata is lost'
	is_restored "$group0"
}

# refused TEXT: without a change
is_refused() {
	dry 1
	says "^$group0: fail: .*$1"
	restore 1
	says "$1"
	fails lvm vgs "$group0"
}

refusals() {
	local other
	zero "$(device)" 0 1024
	truncate -s 64M "$scratch/disk"
	mkfs.ext4 -q "$scratch/disk"
	dd if="$scratch/disk" of="$(device)" bs=4096 count=1 conv=notrunc,fsync status=none
	is_refused 'holds ext4'
	says "wipefs -af $(device)"
	wipefs -qaf "$(device)"
	# of another physical volume
	truncate -s 0 "$scratch/disk"
	truncate -s 64M "$scratch/disk"
	other=$(losetup --find --show "$scratch/disk")
	lvm pvcreate -qq --config 'devices { filter=["a|.*|"] }' "$other"
	losetup -d "$other"
	dd if="$scratch/disk" of="$(device)" bs=1024 count=1 conv=notrunc,fsync status=none
	is_refused 'the label of another physical volume'
	zero "$(device)" 0 1
	sed "s/\"pool\":\"[^\"]*\"/$(grep -o '"pool":"[^"]*"' "$state/one.json")/" "$state/one.json" |
		sed 's/"id":"one"/"id":"gone"/' >"$state/gone.json"
	is_refused 'older than volumes'
	says 'not in the metadata: volume gone'
	restore 0 -force
	rm "$state/gone.json"
	metadata_is_whole
	data_is_whole
}

# The record is of another physical volume, is missing, or cannot be read.
another_namespace() {
	local record
	zero "$(device)" 0 1024
	for record in "$state"/lvm/namespaces/*.json; do
		grep -q "\"$group0\"" "$record" || continue
		cp "$record" "$scratch/record"
		sed -i 's/"pvUUID":"....../"pvUUID":"zzzzzz/' "$record"
		is_refused 'does not have the physical volume'
		rm "$record"
		restore 1 "$group0"
		says "no namespace of this host has been in volume group $group0"
		echo '{"group":' >"$record"
		restore 1
		says 'a record cannot be read'
		cp "$scratch/record" "$record"
	done
	is_restored "$group0"
}

lose_it_again() {
	umount "$mnt"
	lvm vgchange -qq -an
	zero_all "$(device)"
	sync
}

restored_after_boot() {
	pmem-vgm "-statePath=$state" >"$scratch/out" 2>&1
	cat "$scratch/out"
	says "pmem-vgm -statePath=$state restore $group0"
	restore 0
	mount "/dev/$group0/one" "$mnt"
	metadata_is_whole
	data_is_whole
	umount "$mnt"
}

boot_1() {
	prove make-pools make_pools
	prove nothing-to-do nothing_to_do
	prove label-in-use label_in_use
	prove first-area-in-use first_area_in_use
	prove from-the-copy-in-use from_the_copy_in_use
	prove one-area-damaged one_area_damaged
	prove one-of-two-devices one_of_two_devices
	prove inactive inactive
	prove killed-between-steps killed_between_steps
	prove cut-off-in-pvck cut_off_in_pvck
	prove refusals refusals
	prove another-namespace another_namespace
	prove lose-it-again lose_it_again
}

boot_2() {
	prove restored-after-boot restored_after_boot
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
