# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How durable the memory of a region is, found out with the first mount: NVDIMMs (region0, region1) take stores with MAP_SYNC, and
# a virtio-pmem device (region2) refuses them. With BOOT=2: what was found out is known after a boot, before anything is mounted.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
if [ "${BOOT:-1}" = 1 ]; then
	volumes_are_left
	plan pools-of-both-kinds nvdimms-take-map-sync virtio-pmem-refuses-map-sync nvdimms-are-full \
		only-classes-that-do-without-get-it mounted-volumes-are-tried-at-the-start volumes-are-unstaged
else
	plan it-is-known-after-a-boot volumes-that-exist-are-usable
fi

# durability_of REGION: what `regions` shows, by both of its forms
durability_of() {
	local cell
	cell=$(pmem-csi-driver regions "-statePath=$state" -o json | python3 -c '
import json, sys
print(*(r["durability"] for r in json.load(sys.stdin)["regions"] if r["region"] == sys.argv[1]))' "$1")
	pmem-csi-driver regions "-statePath=$state" | awk -v "name=$1" '$1 ~ "/"name"$"' | grep -qw -- "$cell"
	echo "$cell"
}

# capacity_of [FLAG]...: the largest volume
capacity_of() {
	csi "$@" capacity | field value
}

no_capacity() {
	local bytes
	bytes=$(capacity_of)
	equal 'capacity' "${bytes:-0}" 0
}

make_pools() {
	pmem-ns-init -useforfsdax=75 -initLabels
	pmem-ns-init convert namespace2.0 >/dev/null
	pmem-vgm "-statePath=$state"
	driver_start
	equal 'groups' "$(lvm vgs --noheadings -o vg_name | grep -c fsdax)" 3
	for region in region0 region1 region2; do
		equal "durability of $region" "$(durability_of "$region")" unknown
	done
	fails test -e "$state/durability"
}

# pool_of ID: its group
pool_of() {
	lvm lvs --noheadings -o vg_name --select "lv_name=\"$1\"" | tr -d ' '
}

# Of the groups that have room, the one with the least gets a volume: the first fits into those of the NVDIMMs only, and leaves
# too little room for the second.
nvdimms_take_map_sync() {
	local id
	id=$(create nvdimm 300Mi ext4)
	fails grep -q region2 <<<"$(pool_of "$id")"
	stage "$id"
	logged 'the kernel accepts MAP_SYNC on a region'
	equal 'durability' "$(durability_of "$(pool_of "$id" | sed -E 's/ndbus[0-9]+(region[0-9]+)fsdax/\1/')")" synchronous
	equal 'durability' "$(durability_of region2)" unknown
	dax-check -size 1Mi write "$(staging_of "$id")/file"
	equal 'files besides' "$(find "$(staging_of "$id")" -mindepth 1 -not -name lost+found -not -name file | wc -l)" 0
}

# Until something is mounted there, volumes are made as ever. What the kernel answers is not looked at: it may accept MAP_SYNC by mistake
# after NVDIMMs were set up (docs/decisions/092).
virtio_pmem_refuses_map_sync() {
	local id
	id=$(create virtio 128Mi ext4)
	echo "$id" >"$LAB_STATE_DIR/virtio"
	equal 'group' "$(pool_of "$id" | grep -c region2)" 1
	stage "$id"
	logged 'the kernel refuses MAP_SYNC on a region.*durability=fsync'
	equal 'durability' "$(durability_of region2)" fsync
	grep -q '"fsync"' "$state/durability"
	pmem-csi-driver doctor "-statePath=$state" | grep 'durability.*region2.*fsync'
}

# The largest volume for a class that says nothing fits into an NVDIMM.
fill_nvdimms() {
	local bytes number=0
	bytes=$(capacity_of)
	while [ "${bytes:-0}" -gt 0 ]; do
		number=$((number + 1))
		create "filler$number" "$bytes" ext4 >"$scratch/filler"
		fails grep -q region2 <<<"$(pool_of "$(<"$scratch/filler")")"
		bytes=$(capacity_of)
	done
}

only_classes_that_do_without_get_it() {
	refused RESOURCE_EXHAUSTED -size 64Mi -fs ext4 create more | tee "$scratch/refusal"
	grep 'refuses MAP_SYNC.*durability=fsync' "$scratch/refusal"
	no_capacity
	[ "$(capacity_of -parameter durability=fsync)" -gt 0 ]
	[ "$(capacity_of -parameter usage=FileIO)" -gt 0 ]
	fails pmem-csi-driver doctor "-statePath=$state" -size 64Mi
	pmem-csi-driver doctor "-statePath=$state" -size 64Mi -durability fsync
	id=$(create relaxed 64Mi ext4 -parameter durability=fsync)
	equal 'group' "$(pool_of "$id" | grep -c region2)" 1
	stage "$id"
	equal 'record' "$(grep -c '"fsyncSuffices":true' "$state/$id.json")" 1
}

# As after an update from a driver that did not try.
mounted_volumes_are_tried_at_the_start() {
	driver_stop
	rm "$state/durability"
	driver_start
	await 30 grep -q '"fsync"' "$state/durability"
	equal 'durability' "$(durability_of region2)" fsync
	equal 'files' "$(find "$(staging_of "$(<"$LAB_STATE_DIR/virtio")")" -mindepth 1 -not -name lost+found | wc -l)" 0
}

all_are_unstaged() {
	local path
	for path in "$kubelet/staging"/*; do
		unstage "${path##*/}"
	done
}

it_is_known_after_a_boot() {
	driver_start
	no_capacity
	[ "$(capacity_of -parameter durability=fsync)" -gt 0 ]
	equal 'durability' "$(durability_of region2)" fsync
}

# Whatever was found out of their memory.
volumes_are_usable() {
	local id
	id=$(<"$LAB_STATE_DIR/virtio")
	echo "-fs ext4" >"$scratch/context/$id"
	stage "$id"
	publish "$id"
	echo more >"$(target_of "$id")/more"
	unpublish "$id"
	unstage "$id"
	for id in $(listed_ids); do
		delete "$id"
	done
}

if [ "${BOOT:-1}" = 1 ]; then
	prove pools-of-both-kinds make_pools
	prove nvdimms-take-map-sync nvdimms_take_map_sync
	prove virtio-pmem-refuses-map-sync virtio_pmem_refuses_map_sync
	prove nvdimms-are-full fill_nvdimms
	prove only-classes-that-do-without-get-it only_classes_that_do_without_get_it
	prove mounted-volumes-are-tried-at-the-start mounted_volumes_are_tried_at_the_start
	prove volumes-are-unstaged all_are_unstaged
else
	prove it-is-known-after-a-boot it_is_known_after_a_boot
	prove volumes-that-exist-are-usable volumes_are_usable
fi
