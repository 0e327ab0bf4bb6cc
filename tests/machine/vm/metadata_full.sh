# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A volume group that can describe no more volumes although it has space: a small metadata area, made by hand.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

group=ndbus0region0fsdax

prepare() {
	local name
	pmem-ns-init -strict -initLabels -useforfsdax=100
	name=$(namespace_of /dev/pmem1)
	ndctl destroy-namespace -f "$name"
	lvm vgcreate -qq -y --dataalignment 64k --metadatasize 32k "$group" /dev/pmem0
	lvm vgs -o vg_mda_size,vg_mda_free "$group"
	pmem-vgm "-statePath=$state" -strict
	driver_start
}

limit_is_reported() {
	limit=$(csi node-info | field max_volumes_per_node)
	echo "$limit"
	[ "$limit" -gt 10 ]
	[ "$limit" -lt 60 ]
}

fill() {
	local n=0 text free_bytes volumes
	until ! text=$(csi -size 4Mi -block create "pvc-$n" 2>&1); do
		n=$((n + 1))
		[ "$n" -lt 100 ]
	done
	echo "$n volumes: $text"
	lvm vgs --units b -o vg_mda_size,vg_mda_free "$group"
	[[ $text == 'RESOURCE_EXHAUSTED: '*'no free room in the metadata '*"$group"* ]]
	# an estimate, from above the text that a volume takes
	[ "$n" -ge "$limit" ]
	[ "$n" -le $((limit * 2)) ]
	[ "$(lvm vgs --noheadings --nosuffix --units b -o vg_mda_free "$group")" -gt 0 ]
	look_at_pools
	[ "$free_bytes" -gt $((64 << 20)) ]
	equal 'the largest volume' "$(largest)" 0
	pmem-csi-driver doctor -size 16Mi "-statePath=$state" >"$scratch/out" || true
	cat "$scratch/out"
	grep -q group-metadata "$scratch/out"
}

fill_by_hand() {
	local n=0
	foreign_lvs=''
	while lvm lvcreate -qq -y -an -Zn -Wn -n "hand-$n" -l 1 "$group"; do
		foreign_lvs+=" hand-$n"
		n=$((n + 1))
		[ "$n" -lt 100 ]
	done
	echo "$n more by hand"
	lvm vgs --units b -o vg_mda_size,vg_mda_free "$group"
	refused RESOURCE_EXHAUSTED -size 4Mi -block create one-more
}

# LVM itself takes away what it has no room for beside what is there, since the text becomes shorter.
deleted_when_full() {
	local id
	for id in $(listed_ids); do
		delete "$id"
	done
	equal 'the volumes' "$(listed_ids)" ''
}

room_again() {
	local id name
	for name in $foreign_lvs; do
		lvm lvremove -qq -y "$group/$name"
	done
	id=$(create again 16Mi ext4)
	stage "$id"
	unstage "$id"
	delete "$id"
}

plan_whole_script
prove prepare prepare
limit=0
prove limit-is-reported limit_is_reported
limit=$(csi node-info | field max_volumes_per_node)
prove fill fill
foreign_lvs=''
prove fill-by-hand fill_by_hand
foreign_lvs=$(lvm lvs --noheadings -o lv_name --select 'lv_name=~"^hand-"' | tr -s ' \n' ' ')
prove deleted-when-full deleted_when_full
prove room-again room_again
