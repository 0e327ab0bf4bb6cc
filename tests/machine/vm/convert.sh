# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-ns-init convert on NVDIMMs without a label area (region0, region1) and legacy memory (region2), and the driver on
# what it makes. With BOOT=2: after the machine of the first boot was switched off and on, without legacy memory, whose
# content is gone.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
[ "${BOOT:-1}" = 2 ] || volumes_are_left
# shellcheck source=tests/machine/vm/convert_steps.sh
. "$VM_TESTS/convert_steps.sh"

group0=ndbus0region0fsdax
hole=/run/hole

make_foreign() {
	ndctl create-namespace -f -e namespace1.0 -m fsdax >/dev/null
	hand vgcreate -qq theirs /dev/pmem1
	hand lvcreate -qq -y -n data -L 16m theirs
	yes 'foreign data' | dd of=/dev/theirs/data bs=1M count=16 iflag=fullblock conv=fsync status=none
	hand vgchange -qq -an theirs
	foreign_facts >"$LAB_STATE_DIR/foreign"
}

foreign_facts() {
	hand vgs --noheadings -o vg_name,vg_uuid,vg_seqno,vg_size theirs
	hand lvs --noheadings -o vg_name,lv_name,lv_uuid,lv_active theirs
	ndctl list -n namespace1.0
	head -c 32M /dev/pmem1 | sha256sum
	tail -c 2M /dev/pmem1 | sha256sum
}

foreign_is_untouched() {
	foreign_facts | diff "$LAB_STATE_DIR/foreign" -
}

foreign_is_invisible() {
	local text
	for text in "$(pmem-vgm "-statePath=$state" status)" "$(pmem-vgm "-statePath=$state" plan)"; do
		fails grep -q 'theirs\|pmem1' <<<"$text"
	done
	pmem-ns-init status -o json | python3 -c '
import json, sys
for r in json.load(sys.stdin)["regions"]:
	assert {e["kind"] for e in r["extents"]} == {"foreign" if r["region"] == "region1" else "own"}, r'
}

raw_namespaces_are_skipped() {
	ns_init 1 create -strict
	says 'skipped region region=region0 .*create -unlabelled=convert'
	pmem-vgm "-statePath=$state" status >"$scratch/out"
	says '^no volume groups$'
}

plan_changes_nothing() {
	ndctl list -N >"$scratch/before"
	ns_init 0 convert -dry-run
	says '^namespace0.0 in region0 on ndbus0, 512Mi: convert to fsdax; it keeps no name$'
	says '^namespace1.0 in .*: left alone (fsdax, in volume group theirs)$'
	says '^namespace2.0 in region2 on ndbus1, 256Mi: convert'
	ns_init 0 convert -dry-run -o json
	python3 -c '
import json, sys
found = {n["namespace"]: n["action"] for n in json.load(open(sys.argv[1]))["namespaces"]}
assert found == {"namespace0.0": "convert", "namespace1.0": "leave", "namespace2.0": "convert"}, found' "$scratch/out"
	ndctl list -N | diff "$scratch/before" -
}

refused_with() {
	head -c 16M /dev/pmem0 | sha256sum >"$scratch/sum"
	ns_init 1 convert namespace0.0
	says "^namespace0.0 .*: refused (.*$1"
	head -c 16M /dev/pmem0 | sha256sum | diff "$scratch/sum" -
}

content_is_refused() {
	mke2fs -q -F /dev/pmem0
	refused_with 'holds ext'
	wipefs -qa /dev/pmem0
	printf 'label: dos\n2048,4096\n' | sfdisk -q /dev/pmem0
	refused_with 'partition table'
	wipefs -qa /dev/pmem0
	hand pvcreate -qq /dev/pmem0
	refused_with LVM2_member
	wipefs -qa /dev/pmem0
}

use_is_refused() {
	mkdir -p "$hole"
	mke2fs -q -F /dev/pmem0
	mount /dev/pmem0 "$hole"
	ns_init 1 convert -force namespace0.0
	says '^namespace0.0 .*: refused (.*busy)$'
	echo still there >"$hole/file"
	umount "$hole"
	wipefs -qa /dev/pmem0
	hand vgcreate -qq used /dev/pmem0
	hand lvcreate -qq -y -n volume -L 8m used
	ns_init 1 convert -force namespace0.0
	says '^namespace0.0 .*: refused (.*busy)$'
	hand vgremove -qq -f used
	hand pvremove -qq /dev/pmem0
}

force_is_force() {
	mke2fs -q -F /dev/pmem0
	ns_init 0 convert -force namespace0.0
	says '^namespace0.0 .*: convert .* (LOST: holds ext'
	is_converted
	make_raw_again
}

# The one that is killed is region0's; each time the next call finishes.
killed_at_each_step() {
	local step
	for step in zero.after nd-disable.after nd-pfn-claim.after nd-pfn-enable.after lvm-pv.before lvm-pv.after group-recorded \
		lvm-group.before lvm-group.after; do
		killed_at "$step"
		ns_init 0 convert namespace0.0
		is_converted
		make_raw_again
	done
}

convert_all() {
	ns_init 0 convert "-statePath=$state"
	says 'converted namespace region=region0 namespace=namespace0.0 name=""'
	is_converted
	equal 'groups' "$(groups)" "$group0 ndbus1region2fsdax theirs"
	equal 'mode of the legacy memory' "$(ndctl list -n namespace2.0 | sed -n 's/.*"map":"\(.*\)".*/\1/p')" dev
}

# as_raw COMMAND...: run while the kernel shows namespace0.0 from its first byte on
as_raw() {
	ndctl disable-namespace namespace0.0
	echo 1 >/sys/bus/nd/devices/namespace0.0/force_raw
	ndctl enable-namespace namespace0.0
	"$@"
	ndctl disable-namespace namespace0.0
	echo 0 >/sys/bus/nd/devices/namespace0.0/force_raw
	ndctl enable-namespace namespace0.0
}

copy_block() {
	dd "if=$1" "of=$2" bs=4096 count=1 conv=fsync,notrunc status=none "${@:3}"
}

lose_info_block() {
	copy_block /dev/pmem0 "$scratch/info-block" skip=1
	copy_block /dev/zero /dev/pmem0 seek=1
}

# Nothing has recorded the groups but the conversion that made them: pmem-vgm has not run since. When the info block is back,
# so are the volumes.
lost_info_block_is_refused() {
	local first second
	driver_start
	first=$(create lost-1 160Mi ext4)
	second=$(create lost-2 160Mi ext4)
	stage "$second"
	echo kept >"$(staging_of "$second")/file"
	unstage "$second"
	driver_stop
	equal 'group of the second volume' "$(hand lvs --noheadings -o vg_name -S "lv_name=$second" | tr -d ' ')" "$group0"
	hand vgchange -qq -an "$group0"
	as_raw lose_info_block
	ns_init 1 convert "-statePath=$state"
	says "^namespace0.0 .*: refused (was in volume group $group0 when it was fsdax"
	ns_init 1 -force convert "-statePath=$state"
	says "^namespace0.0 .*: refused (was in volume group $group0 when it was fsdax"
	as_raw copy_block "$scratch/info-block" /dev/pmem0 seek=1
	driver_start
	stage "$second"
	equal 'the file' "$(cat "$(staging_of "$second")/file")" kept
	unstage "$second"
	delete "$first"
	delete "$second"
	driver_stop
}

repeating_changes_nothing() {
	chain_facts >"$scratch/before"
	ns_init 0 convert
	ns_init 0 create
	says 'skipped region region=region1'
	fails says 'skipped region region=region[02]'
	pmem-vgm "-statePath=$state" -strict
	chain_facts | diff "$scratch/before" -
}

# zeroed FIRST_MIB LAST_MIB: what is lost of region0's device
zeroed() {
	dd if=/dev/zero of=/dev/pmem0 bs=1M count="$1" conv=fsync status=none
	dd if=/dev/zero of=/dev/pmem0 bs=1M count="$2" seek=$(($(blockdev --getsize64 /dev/pmem0) / 1048576 - $2)) conv=fsync \
		status=none
}

device_sum() {
	raw_bytes /dev/pmem0 0 $((64 << 20)) | sha256sum
}

# Label and both metadata areas are lost, so that nothing on the device shows what it was; its record does, and the command
# that is printed brings the group back.
former_group_is_refused() {
	local sum command
	hand lvcreate -qq -y -an -n kept -L 16m "$group0"
	pmem-vgm "-statePath=$state" -strict
	hand vgchange -qq -an "$group0"
	zeroed 2 4
	sum=$(device_sum)
	ns_init 1 convert "-statePath=$state"
	says "^namespace0.0 .*: refused (.* was in volume group $group0"
	ns_init 1 -force convert "-statePath=$state"
	ns_init 1 convert "-statePath=$state" namespace0.0
	equal 'the device' "$(device_sum)" "$sum"
	command=$(sed -n 's/.*: \(pmem-vgm .*\); if its volumes.*/\1/p' "$scratch/out")
	echo "$command"
	sh -c "$command"
	equal 'volumes' "$(hand lvs --noheadings -o lv_name "$group0" | tr -d ' ')" kept
	hand lvremove -qq -y "$group0/kept"
	# with the second area as before
	hand vgremove -qq "$group0"
	hand pvremove -qq /dev/pmem0
	zeroed 2 4
	ns_init 0 -force convert "-statePath=$state" namespace0.0
	is_converted
}

# The first fits best into the smaller group, that of the legacy memory, which forgets.
use_volumes() {
	local first second id
	driver_start
	first=$(create one 160Mi ext4)
	second=$(create two 160Mi ext4)
	for id in "$first" "$second"; do
		stage "$id"
		has_dax "$(staging_of "$id")"
		dax-check -size 4Mi -seed 21 write "$(staging_of "$id")/mapped"
		unstage "$id"
	done
	equal 'groups with a volume' "$(hand lvs --noheadings -o vg_name | tr -d ' ' | sort | tr '\n' ' ')" \
		"$group0 ndbus1region2fsdax theirs "
	delete "$first"
	foreign_lvs=data nothing_leaked
	driver_stop
}

boot_1() {
	prove raw-namespaces-are-skipped raw_namespaces_are_skipped
	prove make-foreign make_foreign
	prove plan-changes-nothing plan_changes_nothing
	prove content-is-refused content_is_refused
	prove use-is-refused use_is_refused
	prove force-is-force force_is_force
	prove killed-at-each-step killed_at_each_step
	prove convert-all convert_all
	prove lost-info-block-is-refused lost_info_block_is_refused
	prove repeating-changes-nothing repeating_changes_nothing
	prove foreign-is-invisible foreign_is_invisible
	prove former-group-is-refused former_group_is_refused
	prove use-volumes use_volumes
	prove foreign-is-untouched foreign_is_untouched
	prove kernel-does-not-complain kernel_is_content
}

volumes_are_back() {
	local id
	pmem-vgm "-statePath=$state" -strict
	driver_start
	id=$(create two 160Mi ext4)
	stage "$id"
	dax-check -size 4Mi -seed 21 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	delete "$id"
	foreign_lvs=data nothing_leaked
	driver_stop
}

# The converted namespace and its group are those of the first boot; the legacy memory has gone.
conversion_is_left() {
	equal 'namespaces' "$(ndctl list -N | sed -n 's/.*"dev":"\(.*\)".*/\1/p' | sort | tr '\n' ' ')" \
		'namespace0.0 namespace1.0 '
	equal 'groups' "$(groups)" "$group0 theirs"
	equal 'logical volumes' "$(hand lvs --noheadings -o vg_name,lv_name | tr -s ' ')" ' theirs data'
	kept_facts >"$scratch/now"
	fails grep -vxFf "$kept_before" "$scratch/now"
	note_kept
}

boot_2() {
	prove volumes-are-back volumes_are_back
	prove conversion-is-left conversion_is_left
	prove foreign-is-untouched-after-boot foreign_is_untouched
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
cat "$driver_log"
