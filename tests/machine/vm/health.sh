# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Memory that loses its content below a file of a volume in use (MODE=lvm or direct): readers get an error, the volume says so with
# the place within 30 s, other volumes stay healthy, and deletion erases all around it. The bad blocks are written into the kernel's
# list, whose memory cannot be repaired by writing here.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script
file_bytes=$((8 << 20))

start() {
	if [ "$MODE" = lvm ]; then
		init_chain 75
		driver_start
	else
		prepare_memory
		driver_start_with -deviceManager=direct
	fi
}

# place_of ID: the device that has the volume's first byte, and at which byte, as "DEVICE OFFSET"
place_of() {
	local range dir
	if [ "$MODE" = lvm ]; then
		range=$(raw_range "$1")
		echo "${range% *}"
		return
	fi
	for dir in /sys/bus/nd/devices/namespace*; do
		[[ $(<"$dir/alt_name") != "$1" ]] || echo "/dev/$(ls "/sys/bus/nd/devices/$(<"$dir/holder")/block") 0"
	done
}

# damage DEVICE OFFSET: 4 KiB
damage() {
	echo "$(($2 / 512)) 8" >"/sys/block/${1##*/}/badblocks"
}

# offset_of FILE: where its first byte is on its file system's device; the file must be in one piece
offset_of() {
	local sectors
	sectors=$(filefrag -v -b512 "$1" | awk '$1 == "0:" { sub(/\.\..*/, "", $4); print $4 }')
	echo $((sectors * 512))
}

# condition_of ID: as NodeGetVolumeStats has it
condition_of() {
	csi stats "$1" "$(staging_of "$1")" | sed -n '/^volume_condition:/,/^[a-z]/s/^  message: //p'
}

has_condition() {
	[[ $(condition_of "$1") == *"$2"* ]]
}

make() {
	local id
	id=$(create "$1" "$([ "$2" = xfs ] && echo 320Mi || echo 64Mi)" "$2")
	stage "$id"
	dax-check -size $file_bytes -seed 1 write "$(staging_of "$id")/file"
	has_condition "$id" 'no error is known'
	echo "$id" >"$scratch/$1"
}

volumes_are_healthy() {
	make one ext4
	make two ext4
	make three xfs
	pmem-csi-driver check "-deviceManager=$MODE" "-statePath=$state"
}

readers_fail() {
	local file
	file=$(staging_of "$1")/file
	if dd if="$file" of=/dev/null bs=4k iflag=direct 2>"$scratch/dd"; then
		echo 'the file can be read'
		return 1
	fi
	grep -q 'Input/output error' "$scratch/dd"
	# SIGBUS
	status=0
	dax-check -size $file_bytes -seed 1 verify "$file" || status=$?
	equal 'the exit status of a process that loads' "$status" 135
}

error_is_shown() {
	local id place at begin
	id=$(<"$scratch/one")
	read -r -a place <<<"$(place_of "$id")"
	at=$(offset_of "$(staging_of "$id")/file")
	damage "${place[0]}" $((place[1] + at))
	begin=$SECONDS
	readers_fail "$id"
	await 30 has_condition "$id" "MediaError: its memory cannot be read: 4096 bytes at offset $at of the device"
	echo "shown after $((SECONDS - begin)) s"
	logged 'reason=MediaError'
	dax-check -size $file_bytes -seed 1 verify "$(staging_of "$(<"$scratch/two")")/file"
	has_condition "$(<"$scratch/two")" 'no error is known'
}

check_names_it() {
	local status=0
	pmem-csi-driver check "-deviceManager=$MODE" "-statePath=$state" >"$scratch/check" || status=$?
	cat "$scratch/check"
	equal 'the exit status of check' "$status" 1
	grep -q "^MISMATCH media-error: $(<"$scratch/one")$" "$scratch/check"
	equal 'the number of mismatches' "$(grep -c ^MISMATCH "$scratch/check")" 1
}

# look_for_files: doctor -files, which finds errors
look_for_files() {
	local status=0
	pmem-csi-driver doctor -files "$@" "-deviceManager=$MODE" "-statePath=$state" >"$scratch/files" || status=$?
	cat "$scratch/files"
	equal 'the exit status of doctor -files' "$status" 1
}

# names FILE DEVICE-OFFSET FILE-OFFSET: doctor -files has found it
names() {
	grep -qxF "  file: 4096 bytes at offset $2 of the device, at $3 of $1" "$scratch/files"
	grep -q "fallocate -p -o $3 -l 4096 FILE" "$scratch/files"
}

# The error of the first volume is at the beginning of its file, that of the xfs 1 MiB behind. A hole makes
# the file readable, and the bad block is free space then: writing does not clear it here.
doctor_names_files() {
	local id xfs place at first
	id=$(<"$scratch/one")
	xfs=$(<"$scratch/three")
	first=$(offset_of "$(staging_of "$id")/file")
	read -r -a place <<<"$(place_of "$xfs")"
	at=$(offset_of "$(staging_of "$xfs")/file")
	damage "${place[0]}" $((place[1] + at + (1 << 20)))
	look_for_files
	names "$(staging_of "$id")/file" "$first" 0
	names "$(staging_of "$xfs")/file" $((at + (1 << 20))) $((1 << 20))
	grep -qx '2 volumes whose memory cannot be read everywhere' "$scratch/files"
	mkdir "$(staging_of "$id")/folder"
	mv "$(staging_of "$id")/file" "$(staging_of "$id")/folder/renamed"
	sync -f "$(staging_of "$id")"
	look_for_files
	names "$(staging_of "$id")/folder/renamed" "$first" 0
	look_for_files -maxFiles=1
	grep -q 'not found within the bound: the number of files was reached after 1 files' "$scratch/files"
	fallocate -p -o 0 -l 4096 "$(staging_of "$id")/folder/renamed"
	dd if="$(staging_of "$id")/folder/renamed" of=/dev/null bs=4k iflag=direct
	sync -f "$(staging_of "$id")"
	look_for_files
	grep -qx "  free: 4096 bytes at offset $first of the device" "$scratch/files"
}

# The second segment of a volume is elsewhere: the offset counts in the volume.
second_segment_is_mapped() {
	local id after segment
	id=$(create split 16Mi ext4)
	after=$(create after 16Mi ext4)
	csi -size 32Mi expand "$id"
	stage "$id"
	segment=$(lvm lvs --segments --noheadings -o seg_pe_ranges --select "lv_name=\"$id\" && seg_start!=0")
	[[ $segment =~ ^\ *(/dev/pmem[0-9]+):([0-9]+)-([0-9]+)\ *$ ]]
	damage "${BASH_REMATCH[1]}" $(($(lvm pvs --noheadings --nosuffix --units b -o pe_start "${BASH_REMATCH[1]}") + \
		BASH_REMATCH[2] * $(lvm pvs --noheadings --nosuffix --units b -o vg_extent_size "${BASH_REMATCH[1]}") + 8192))
	await 30 has_condition "$id" "4096 bytes at offset $(((16 << 20) + 8192)) of the device"
	delete "$after"
	echo "$id" >"$scratch/split"
}

# As after a boot: the kernel has no list of its own.
enable_again() {
	local device namespace
	[ "$MODE" != lvm ] || lvm vgchange -an
	for device in /sys/block/pmem*; do
		# in direct mode, the namespaces went with their volumes
		[ -e "$device" ] || continue
		namespace=$(namespace_of "${device##*/}")
		ndctl disable-namespace "$namespace"
		ndctl enable-namespace "$namespace"
	done
}

# holds_zeros DEVICE OFFSET BYTES: but for blocks that cannot be read
holds_zeros() {
	dd if="$1" bs=4k skip="$2" count="$3" iflag=direct,skip_bytes,count_bytes conv=noerror,sync 2>/dev/null | tr -d '\0' | head -c 1 >"$scratch/left"
	[ ! -s "$scratch/left" ]
}

# The bad blocks are left out, and all around them is erased.
deleted_around_bad_blocks() {
	local id place ids=("$(<"$scratch/one")" "$(<"$scratch/two")" "$(<"$scratch/three")")
	[ "$MODE" != lvm ] || ids+=("$(<"$scratch/split")")
	read -r -a place <<<"$(place_of "${ids[0]}")"
	for id in "${ids[@]}"; do
		unstage "$id"
		csi delete "$id"
	done
	for id in "${ids[@]}"; do
		await 120 is_erased "$id"
	done
	logged 'blocks that can be neither written nor read are left out'
	[ "$MODE" != lvm ] || holds_zeros "${place[@]}" $((64 << 20))
}

works_with_good_memory() {
	driver_stop
	enable_again
	driver_start_with "-deviceManager=$MODE"
	delete "$(create again 64Mi ext4)"
	[ "$MODE" != lvm ] || nothing_leaked
}

prove started start
prove volumes-are-healthy volumes_are_healthy
prove media-error-is-shown error_is_shown
prove check-names-media-error check_names_it
prove doctor-names-files doctor_names_files
if [ "$MODE" = lvm ]; then
	prove second-segment-is-mapped second_segment_is_mapped
else
	result second-segment-is-mapped ok
fi
prove deleted-around-bad-blocks deleted_around_bad_blocks
prove works-with-good-memory works_with_good_memory
prove ended driver_stop
cat "$driver_log"
