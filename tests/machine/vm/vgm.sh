# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-vgm in the lab machine with two NVDIMMs. With BOOT=2: after the machine of the first boot was switched off and on.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
leaks_are_meant

group0=ndbus0region0fsdax
group1=ndbus0region1fsdax

# vgm STATUS [ARGUMENT]...: runs the program, which must end with that status; its output is in $scratch/out and log.
vgm() {
	local wanted=$1 status=0
	shift
	pmem-vgm "-statePath=$state" "$@" >"$scratch/out" 2>"$scratch/log" || status=$?
	cat "$scratch/out" "$scratch/log"
	equal 'the exit status' "$status" "$wanted"
}

says() {
	grep -q -- "$1" "$scratch/out" "$scratch/log" || {
		echo "nothing says: $1"
		return 1
	}
}

# LVM gets to know the loop device only here.
hand() {
	lvm "$1" --config 'devices { filter=["a|^/dev/(pmem|loop)|","r|.*|"] }' "${@:2}"
}

foreign_facts() {
	hand vgs --noheadings -o vg_name,vg_uuid,vg_seqno,vg_size hostvg theirs
	hand lvs --noheadings -o vg_name,lv_name,lv_uuid,lv_active hostvg theirs
	sha256sum "$loop"
}

field_of_group() {
	hand vgs --noheadings -o "$2" "$1" | tr -d ' '
}

active_lvs() {
	find /dev/mapper -type b -printf '%f\n' | sort | tr '\n' ' '
}

without_pools() {
	vgm 0
	vgm 1 -strict
	vgm 0 plan
	says 'no region has a pool namespace'
	vgm 0 status
	says 'no volume groups'
	vgm 0 status -o json
	equal 'the status' "$(cat "$scratch/out")" '{"schemaVersion":1,"groups":[]}'
}

usage() {
	vgm 2 destroy
	says 'unknown command "destroy"'
	vgm 2 -nonsense
	vgm 2 -o json
	vgm 2 -o yaml status
	vgm 2 status now
	vgm 0 --version
	vgm 0 -help
	vgm 0 -logtostderr -stderrthreshold 2 -v=5 -logging-format=json plan
	says 'accepted but has no effect'
}

make_foreign() {
	ndctl create-namespace -r region1 -m fsdax -n theirs -s 128M >/dev/null
	hand vgcreate -qq theirs /dev/pmem1
	hand lvcreate -qq -y -an -n data -L 16m theirs
	truncate -s 64M "$scratch/disk"
	loop=$(losetup --find --show "$scratch/disk")
	hand vgcreate -qq hostvg "$loop"
	hand lvcreate -qq -y -an -n data -L 16m hostvg
	foreign_facts >"$scratch/foreign"
}

foreign_is_untouched() {
	foreign_facts | diff "$scratch/foreign" -
}

create_groups() {
	pmem-ns-init -strict -useforfsdax=40
	vgm 0 plan
	says "^region0 on ndbus0: create volume group $group0 with /dev/pmem0$"
	fails test -n "$(hand vgs --noheadings -o vg_name | grep fsdax)"
	vgm 0 -strict
	says "created volume group region=region0 group=$group0 device=/dev/pmem0"
	says "created volume group region=region1 group=$group1 device=/dev/pmem1.1"
	equal 'start of the extents' "$(hand pvs --noheadings --units b -o pe_start /dev/pmem0 | tr -d ' ')" 2097152B
}

repeating_changes_nothing() {
	chain_facts >"$scratch/before"
	vgm 0 -strict
	equal 'what it says' "$(cat "$scratch/out" "$scratch/log")" ''
	chain_facts | diff "$scratch/before" -
	vgm 0 plan
	says "^region0 on ndbus0: nothing to do, volume group $group0 is complete$"
}

status_is_true() {
	hand lvcreate -qq -y -n one -L 8m $group0
	vgm 0 status
	says "^$group0: .*, 1 volumes, 1 active, region region0$"
	says '^  volume one 8Mi$'
	vgm 0 status -o json
	python3 -c '
import json, sys
groups = {g["group"]: g for g in json.load(open(sys.argv[1]))["groups"]}
assert sorted(groups) == sys.argv[2:4], groups
g = groups[sys.argv[2]]
assert g["complete"] and g["regions"] == ["region0"] and g["devices"][0]["device"] == "/dev/pmem0", g
assert g["volumes"] == [{"name": "one", "sizeBytes": 8 << 20, "active": True}], g
assert (g["uuid"], g["sizeBytes"], g["freeBytes"]) == (sys.argv[4], int(sys.argv[5]), int(sys.argv[6])), g
' "$scratch/out" "$group0" "$group1" "$(field_of_group $group0 vg_uuid)" \
		"$(hand vgs --noheadings --units b --nosuffix -o vg_size $group0)" \
		"$(hand vgs --noheadings --units b --nosuffix -o vg_free $group0)"
}

extend_group() {
	local uuid
	uuid=$(field_of_group $group0 vg_uuid)
	hand vgrename -qq $group0 elsewhere
	pmem-ns-init -strict -useforfsdax=80
	vgm 0 plan
	says '^region0 on ndbus0: extend volume group elsewhere with /dev/pmem0.1$'
	vgm 0 -strict
	equal 'the group of the first device' "$(field_of_group elsewhere vg_uuid)" "$uuid"
	equal 'its devices' "$(field_of_group elsewhere pv_count)" 2
	equal 'groups' "$(hand vgs --noheadings -o vg_name | grep -c fsdax)" 1
}

# Its devices are two, so that one can be missing.
incomplete_group() {
	local before
	before=$(field_of_group elsewhere vg_seqno)
	ndctl disable-namespace namespace0.1 >/dev/null
	vgm 0 status
	says '^elsewhere: .*INCOMPLETE: 1 devices are missing$'
	vgm 0
	ndctl enable-namespace namespace0.1 >/dev/null
	equal 'the sequence number' "$(field_of_group elsewhere vg_seqno)" "$before"
	vgm 0 status
	fails says INCOMPLETE
}

activate() {
	hand lvcreate -qq -y -n two -L 8m $group1
	echo content >"/dev/$group1/two"
	hand vgchange -qq -an elsewhere $group1
	equal 'what is active' "$(active_lvs)" ''
	vgm 0 -strict
	equal 'what is active' "$(active_lvs)" "elsewhere-one $group1-two "
	vgm 0 status
	fails says inactive
}

free_region1() {
	hand vgremove -qq -f $group1
	hand pvremove -qq -y /dev/pmem1.1 /dev/pmem1.2
}

# A group on a device that the program does not look at otherwise has the name that a region needs.
name_collision() {
	free_region1
	hand vgrename -qq hostvg $group1
	foreign_facts() {
		hand vgs --noheadings -o vg_name,vg_uuid,vg_seqno,vg_size $group1
		sha256sum "$loop"
	}
	foreign_facts >"$scratch/collision"
	vgm 0
	says "volume group $group1 exists that is not ours"
	vgm 1 -strict
	foreign_facts | diff "$scratch/collision" -
	fails blkid -p /dev/pmem1.1
	hand vgrename -qq $group1 hostvg
}

# Two regions change their numbers, as far as the program can see.
own_name_collision() {
	hand vgrename -qq elsewhere $group1
	vgm 0
	says 'exists on another region'
	vgm 1 -strict
	fails blkid -p /dev/pmem1.1
	hand vgrename -qq $group1 elsewhere
}

content_is_kept() {
	local sum
	mke2fs -q -F -t ext4 /dev/pmem1.1
	sum=$(head -c 8M /dev/pmem1.1 | sha256sum)
	vgm 0 "-statePath=$scratch/without-records"
	says '/dev/pmem1.1 holds ext4'
	vgm 1 -strict
	says 'namespace1.[0-9]* (/dev/pmem1.1) was in volume group'
	equal 'the content' "$(head -c 8M /dev/pmem1.1 | sha256sum)" "$sum"
	wipefs -qa /dev/pmem1.1
	# Nothing on it shows any more that LVM took it out of its group.
	vgm 1 -strict
	says 'nothing new is created on it'
	hand pvcreate -qq -ff -y --dataalignment 2m --pvmetadatacopies 2 /dev/pmem1.1
	vgm 0 -strict
	equal 'the devices of the new group' "$(field_of_group $group1 pv_count)" 2
}

# For the next boot.
leave_volumes() {
	hand lvcreate -qq -y -n two -L 8m $group1
	echo "two's content" >"/dev/$group1/two"
	losetup --detach "$loop"
	sync
}

boot_1() {
	prepare_memory || exit 1
	prove without-pools without_pools
	prove usage usage
	# The name of the loop device outlives the function that makes it.
	loop=/dev/loop0
	prove make-foreign make_foreign
	prove create-groups create_groups
	prove repeating-changes-nothing repeating_changes_nothing
	prove status-is-true status_is_true
	prove extend-group extend_group
	prove incomplete-group incomplete_group
	prove activate activate
	prove foreign-is-untouched foreign_is_untouched
	prove name-collision name_collision
	prove own-name-collision own_name_collision
	prove content-is-kept content_is_kept
	prove leave-volumes leave_volumes
}

activate_after_boot() {
	equal 'what is active' "$(active_lvs)" ''
	vgm 0 -strict
	equal 'what is active' "$(active_lvs)" "elsewhere-one $group1-two "
	equal 'the content' "$(head -c 14 "/dev/$group1/two")" "two's content"
}

boot_2() {
	prove activate-after-boot activate_after_boot
	prove repeating-after-boot vgm 0 -strict
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
