# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What else uses LVM on the host while the driver runs: a process holds the lock of a group, a group is exported, another disk
# has a group of the same name or is a copy of ours, and the host's own configuration keeps LVM from persistent memory.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

group0=ndbus0region0fsdax
group1=ndbus0region1fsdax
locks=/run/lock/lvm

# Volumes in both groups, the second and third with a file.
start() {
	init_chain 50
	driver_start
	create lvm-first 32Mi ext4 >"$scratch/first"
	create lvm-filler 160Mi ext4 >"$scratch/filler"
	create lvm-second 64Mi ext4 -parameter usage=FileIO >"$scratch/second"
	create lvm-third 64Mi ext4 >"$scratch/third"
	equal 'the group of the first' "$(group_of "$(<"$scratch/first")")" "$(group_of "$(<"$scratch/filler")")"
	first_group=$(group_of "$(<"$scratch/first")")
	second_group=$(group_of "$(<"$scratch/second")")
	[ "$first_group" != "$second_group" ]
	echo "$first_group" >"$scratch/first-group"
	echo "$second_group" >"$scratch/second-group"
	used_with "$(<"$scratch/second")" 'of the second'
	used_with "$(<"$scratch/third")" 'of the third'
	wc -l < <(listed_ids) >"$scratch/n"
}

is_ours() {
	local which
	for which in first filler second third; do
		[ "$1" != "$(<"$scratch/$which")" ] || return 0
	done
	return 1
}

group_of() {
	lvm lvs --noheadings -o vg_name --select "lv_name=\"$1\"" | tr -d ' '
}

# used_with ID TEXT: has a file with that text afterwards.
used_with() {
	stage "$1"
	publish "$1"
	echo "$2" >"$(target_of "$1")/file"
	unpublish "$1"
	unstage "$1"
}

# used_again ID TEXT
used_again() {
	stage "$1"
	publish "$1"
	equal 'the file' "$(<"$(target_of "$1")/file")" "$2"
	unpublish "$1"
	unstage "$1"
}

nothing_half_done() {
	! compgen -G "$state/*.creating" >/dev/null && ! compgen -G "$state/*.erasing" >/dev/null
}

# Once the driver has looked again, and has cleared away what could not be undone.
settled() {
	await 60 nothing_half_done
	await 60 nothing_leaked
	nothing_leaked
}

answers() {
	is_ready
	csi-client -timeout 5s capacity >/dev/null
	csi-client -timeout 5s list >/dev/null
	csi-client -timeout 5s node-info >/dev/null
}

# --- the lock of a group, as an administrator's lvm command that hangs holds it

# hold_lock GROUP
hold_lock() {
	flock "$locks/V_$1" -c "echo held; exec sleep 600" >"$scratch/held" &
	await 10 grep -q held "$scratch/held"
}

let_go() {
	local pid
	for pid in $(pgrep -x sleep); do
		kill "$pid"
	done
}

refused_with_command() {
	refused UNAVAILABLE -size 16Mi -fs ext4 create lvm-new | tee "$scratch/text"
	grep -E 'until "lvm [a-z]+" has finished, which has been running for [0-9]+ s' "$scratch/text"
}

lock_is_held() {
	local text i
	hold_lock "$group0"
	hold_lock "$group1"
	if text=$(csi-client -timeout 4s -size 16Mi -fs ext4 create lvm-waits 2>&1); then
		echo 'made without the lock'
		return 1
	fi
	echo "$text"
	[[ $text == "DEADLINE_EXCEEDED: "*"lvm lvcreate for "* ]]
	for i in {1..40}; do
		csi-client -timeout 60s -size 16Mi -fs ext4 create "lvm-crowd-$i" >/dev/null 2>&1 &
	done
	answers
	used_again "$(<"$scratch/second")" 'of the second'
	await 60 refused_with_command
	answers
	used_again "$(<"$scratch/second")" 'of the second'
	[ "$(compgen -G "$state/*.creating" | wc -l)" -le 12 ]
}

no_client() {
	! pgrep -x csi-client
}

lock_is_free_again() {
	local id
	let_go
	await 120 no_client
	await 60 csi -size 16Mi -fs ext4 create lvm-waits
	for id in $(listed_ids); do
		is_ours "$id" || delete "$id"
	done
	settled
}

# --- vgexport, which LVM allows when nothing of the group is active

vgm() {
	local wanted=$1 status=0
	shift
	pmem-vgm "-statePath=$state" "$@" >"$scratch/vgm" 2>&1 || status=$?
	cat "$scratch/vgm"
	equal 'the exit status' "$status" "$wanted"
}

doctor_says() {
	pmem-csi-driver doctor "-statePath=$state" "-kubeletDir=$kubelet" >"$scratch/doctor" || true
	cat "$scratch/doctor"
	grep -q "$1" "$scratch/doctor"
}

# refused_stage CODE ID
refused_stage() {
	local flags
	set_flags "$2"
	mkdir -p "$(staging_of "$2")"
	refused "$1" "${flags[@]}" stage "$2" "$(staging_of "$2")" | tee "$scratch/text"
}

capacity_is_below() {
	[ "$(available)" -lt "$1" ]
}

capacity_is() {
	[ "$(available)" = "$1" ]
}

group_is_exported() {
	local group id before groups started
	group=$(<"$scratch/second-group")
	before=$(available)
	# it lists devices now, and not again for half a minute
	driver_crash_and_start
	lvm vgchange -qq -an "$group"
	lvm vgexport -qq "$group"
	# its node is gone, which the first call notices, without waiting for it
	started=$SECONDS
	refused_stage UNAVAILABLE "$(<"$scratch/second")"
	grep -q "volume group $group is exported" "$scratch/text"
	[ $((SECONDS - started)) -lt 4 ]
	groups=$(lvm vgs --noheadings -o vg_name,vg_uuid,vg_seqno)
	vgm 1 -strict
	grep -q "volume group $group is exported.*vgimport $group" "$scratch/vgm"
	vgm 0
	vgm 0 status
	grep -q "^$group: .*EXPORTED" "$scratch/vgm"
	equal 'the groups' "$(lvm vgs --noheadings -o vg_name,vg_uuid,vg_seqno)" "$groups"
	await 60 capacity_is_below "$before"
	refused RESOURCE_EXHAUSTED -size 96Mi -fs ext4 create lvm-large
	refused UNAVAILABLE delete "$(<"$scratch/second")" | tee "$scratch/text"
	stage "$(<"$scratch/first")"
	unstage "$(<"$scratch/first")"
	id=$(create lvm-beside 16Mi ext4)
	equal 'its group' "$(group_of "$id")" "$(<"$scratch/first-group")"
	delete "$id"
	doctor_says "^problem *volume-group .*$group is exported"
	driver_crash_and_start
	equal 'the volumes' "$(listed_ids | wc -l)" "$(<"$scratch/n")"
	stage "$(<"$scratch/first")"
	unstage "$(<"$scratch/first")"
	refused_stage UNAVAILABLE "$(<"$scratch/second")"
}

# An administrator takes a device out of use, or limits the volumes of a group: Kubernetes looks for another node. The driver does not know
# it yet when the first call comes.
group_gives_nothing() {
	local group device before id
	group=$(<"$scratch/second-group")
	device=$(lvm pvs --noheadings -o pv_name -S "vg_name=$group" | tr -d ' ')
	before=$(available)
	lvm pvchange -qq -xn "$device"
	refused RESOURCE_EXHAUSTED -size 96Mi -fs ext4 create lvm-withheld
	await 60 capacity_is_below "$before"
	lvm pvchange -qq -xy "$device"
	await 60 capacity_is "$before"
	lvm vgchange -qq -l "$(lvm vgs --noheadings -o lv_count "$group" | tr -d ' ')" "$group"
	refused RESOURCE_EXHAUSTED -size 96Mi -fs ext4 create lvm-limited
	[ "$(largest)" -lt $((96 << 20)) ]
	lvm vgchange -qq -l 0 "$group"
	id=$(create lvm-again 96Mi ext4)
	delete "$id"
}

group_is_imported() {
	local id
	id=$(<"$scratch/second")
	lvm vgimport -qq "$(<"$scratch/second-group")"
	await 60 stage "$id"
	unstage "$id"
	used_again "$id" 'of the second'
	vgm 0 -strict
	doctor_says '^ok *volume-group'
	delete "$(create lvm-large 96Mi ext4)"
	settled
}

# --- memory that takes no write: the kernel makes the devices of a read-only region read-only, below LVM

region_of_group() {
	local device namespace
	device=$(lvm pvs --noheadings -o pv_name --select "vg_name=\"$1\"" | tr -d ' ')
	namespace=$(namespace_of "$device")
	echo "region${namespace//[!0-9.]/}" | cut -d. -f1
}

region_fails_every_write() {
	local region id free i
	region=$(region_of_group "$(<"$scratch/first-group")")
	free=$(available)
	stage "$(<"$scratch/first")"
	publish "$(<"$scratch/first")"
	echo 1 >"/sys/bus/nd/devices/$region/read_only"
	for i in 1 2 3; do
		id=$(create "lvm-beside-$i" 16Mi ext4)
		equal 'its group' "$(group_of "$id")" "$(<"$scratch/second-group")"
		echo "$id" >>"$scratch/beside"
	done
	logged 'its pool is avoided'
	[ "$(available)" -lt $((free - 3 * (16 << 20))) ]
	doctor_says "^problem *region .*$region on .* is read-only"
	used_again "$(<"$scratch/third")" 'of the third'
	# what is mounted there is undone all the same
	unpublish "$(<"$scratch/first")"
	unstage "$(<"$scratch/first")"
	echo 0 >"/sys/bus/nd/devices/$region/read_only"
	stage "$(<"$scratch/first")"
	unstage "$(<"$scratch/first")"
	while read -r id; do
		delete "$id"
	done <"$scratch/beside"
	# the back-off begins with 10 s
	settled
	id=$(create lvm-in-it-again 16Mi ext4)
	equal 'its group' "$(group_of "$id")" "$(<"$scratch/first-group")"
	delete "$id"
}

# --- another disk

# on_loop COMMAND...: LVM that sees loop devices only
on_loop() {
	lvm "$1" --config 'devices { filter=["a|^/dev/loop|","r|.*|"] }' "${@:2}"
}

loop_facts() {
	on_loop vgs --noheadings -o vg_name,vg_uuid,vg_seqno,vg_size
	on_loop lvs --noheadings -o vg_name,lv_name,lv_uuid
	sha256sum "$1"
}

# The host's LVM sees both, and says so; ours sees its own.
group_of_the_same_name() {
	local group loop id
	group=$(<"$scratch/first-group")
	driver_stop
	# LVM makes no group whose folder in /dev is there
	lvm vgchange -qq -an "$group"
	truncate -s 64M "$scratch/disk"
	loop=$(losetup --find --show "$scratch/disk")
	on_loop vgcreate -qq "$group" "$loop"
	on_loop lvcreate -qq -y -n theirs -L 16m "$group"
	loop_facts "$loop" >"$scratch/theirs"
	driver_start
	id=$(create lvm-same-name 16Mi ext4)
	used_with "$id" mine
	driver_crash_and_start
	used_again "$id" mine
	delete "$id"
	vgm 0 -strict
	loop_facts "$loop" | diff "$scratch/theirs" -
	settled
	on_loop vgremove -qq -f "$group"
	losetup --detach "$loop"
}

# A copy of the whole device, as from a backup, whose volumes another program activates before the driver does: they have our volumes'
# names and UUIDs, and would be taken for them.
copy_of_a_group() {
	local group device loop id third
	id=$(<"$scratch/second")
	third=$(<"$scratch/third")
	group=$(<"$scratch/second-group")
	device=$(lvm pvs --noheadings -o pv_name --select "vg_name=\"$group\"" | tr -d ' ')
	driver_stop
	lvm vgchange -qq -an "$group"
	dd if="$device" of="$scratch/copy" bs=4M conv=sparse status=none
	loop=$(losetup --find --show "$scratch/copy")
	on_loop vgchange -qq -ay "$group"
	sha256sum "$loop" >"$scratch/copied"
	driver_start
	refused_stage UNAVAILABLE "$id"
	grep -q "is not on persistent memory of this driver.* lies on $loop" "$scratch/text"
	refused_stage UNAVAILABLE "$third"
	grep -q "is not on persistent memory of this driver.* lies on $loop" "$scratch/text"
	refused UNAVAILABLE delete "$id"
	sha256sum "$loop" | diff "$scratch/copied" -
	# the first group has nothing to do with it
	stage "$(<"$scratch/first")"
	unstage "$(<"$scratch/first")"
	on_loop vgchange -qq -an "$group"
	losetup --detach "$loop"
	rm "$scratch/copy"
	await 60 stage "$id"
	unstage "$id"
	used_again "$id" 'of the second'
	used_again "$third" 'of the third'
}

# --- the host's configuration

hosts_configuration_is_not_ours() {
	local id
	mkdir -p /etc/lvm/devices /run/hostile
	cat >/run/hostile/lvm.conf <<-EOF
		devices {
			use_devicesfile=1
			filter=["r|/dev/pmem|"]
			global_filter=["r|/dev/pmem|"]
		}
		activation { volume_list=[] }
		global { locking_type=1 metadata_read_only=1 system_id_source="lvmlocal" }
		local { system_id="another-host" }
	EOF
	: >/etc/lvm/devices/system.devices
	mount --bind /run/hostile /etc/lvm
	fails grep pmem <<<"$(LVM_SYSTEM_DIR=/etc/lvm lvm pvs 2>&1)"
	driver_stop
	(
		unset LVM_SYSTEM_DIR
		vgm 0 -strict
		driver_start
	)
	id=$(create lvm-configured 16Mi ext4)
	used_with "$id" mine
	delete "$id"
	used_again "$(<"$scratch/second")" 'of the second'
	umount /etc/lvm
	settled
}

largest_is_below() {
	[ "$(largest)" -lt "$1" ]
}

# The first extent of each piece of free space is bad: the largest volume has the others, and all of it can be read. The list is kept until the
# namespace is enabled again.
space_with_errors_is_not_used() {
	local device start extent first before id most
	before=$(largest)
	while read -r device start extent first; do
		echo "$(((start + first * extent + 8192) / 512)) 8" >"/sys/block/${device##*/}/badblocks"
	done < <(lvm pvs --noheadings --nosuffix --units b -o pv_name,pe_start,vg_extent_size,pvseg_start -S 'lv_name="" && pvseg_size>0')
	refused RESOURCE_EXHAUSTED -size "$before" -fs ext4 create lvm-bad
	await 60 largest_is_below "$before"
	logged 'free space of a volume group is not used because of media errors'
	id=$(create lvm-good "$(largest)" ext4)
	dd if="$(lvm lvs --noheadings -o lv_path -S "lv_name=$id" | tr -d ' ')" of=/dev/null bs=1M iflag=direct status=none
	delete "$id"
	id=$(create lvm-grown 16Mi ext4)
	most=$(refused RESOURCE_EXHAUSTED -size 512Mi expand "$id" | sed -n 's/.*can grow to at most \([0-9]*Mi\) there.*/\1/p')
	csi -size "$most" expand "$id"
	dd if="$(lvm lvs --noheadings -o lv_path -S "lv_name=$id" | tr -d ' ')" of=/dev/null bs=1M iflag=direct status=none
	delete "$id"
}

# As an administrator, or the origin of a thin snapshot, may have left a volume.
activation_is_skipped() {
	local id group
	id=$(<"$scratch/second")
	group=$(<"$scratch/second-group")
	driver_stop
	lvm vgchange -qq -an "$group"
	lvm lvchange -qq -ky "$group/$id"
	driver_start
	used_again "$id" 'of the second'
	lvm lvchange -qq -kn "$group/$id"
}

end() {
	local id
	for id in $(listed_ids); do
		delete "$id"
	done
	driver_stop
}

prove started start
prove lock-is-held-and-others-go-on lock_is_held
prove lock-is-free-and-all-recovers lock_is_free_again
prove group-is-exported group_is_exported
prove group-is-imported group_is_imported
prove group-gives-nothing group_gives_nothing
prove region-that-fails-every-write region_fails_every_write
prove group-of-the-same-name group_of_the_same_name
prove copy-of-a-group-is-not-served copy_of_a_group
prove hosts-configuration-is-not-ours hosts_configuration_is_not_ours
prove space-with-errors-is-not-used space_with_errors_is_not_used
prove volume-with-activation-skip-is-used activation_is_skipped
prove ended end
cat "$driver_log"
