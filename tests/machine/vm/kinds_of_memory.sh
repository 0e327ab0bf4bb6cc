# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Memory as it comes, which was not prepared: the container of the manifests prepares it, while the driver runs on the node
# already; a volume in each region is used, the power is cut, and after a boot everything is there. With BOOT=2: after the
# first cut. With BOOT=warm: the same, and another cut. With BOOT=cold: after a boot that loses the content of legacy memory. KINDS has
# the kinds of the regions in their order: blank (NVDIMMs with blank label areas), labelless, e820, virtio-pmem.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
[ "${BOOT:-}" ] || volumes_are_left
[ "${BOOT:-}" != cold ] || leaks_are_meant

# shellcheck disable=SC2153 # a variable of the command line
read -ra kinds <<<"${KINDS//,/ }"
notes=$LAB_STATE_DIR/notes
mkdir -p "$notes"

# prepare [FLAG]...: pmem-ns-init as the manifests run it; its log is in $scratch/log.
prepare() {
	pmem-ns-init "-statePath=$state" "$@" 2>"$scratch/log" || {
		cat "$scratch/log"
		return 1
	}
	cat "$scratch/log"
}

groups() {
	lvm vgs --noheadings -o vg_name | tr -d ' ' | sort | tr '\n' ' '
}

nothing_is_made_unasked() {
	prepare
	pmem-vgm "-statePath=$state"
	equal 'groups' "$(groups)" ''
	equal 'regions that were skipped' "$(grep -c 'skipped region' "$scratch/log")" "${#kinds[@]}"
}

# The driver's pod is there before the label of the node is set.
driver_has_nothing() {
	driver_start
	equal 'the capacity' "$(available)" 0
}

# The container of pmem-csi-node-setup makes no namespaces in regions with labels, for which the init containers of the driver do.
conversion_is_found_by_the_driver() {
	local converted=0 kind
	prepare -useforfsdax=0 -initLabels -unlabelled=convert
	for kind in "${kinds[@]}"; do
		[ "$kind" = blank ] || converted=$((converted + 1))
	done
	equal 'number of groups' "$(groups | wc -w)" "$converted"
	[ "$converted" = 0 ] || await 90 has_capacity
	driver_stop
	init_chain 100
	equal 'number of groups' "$(groups | wc -w)" "${#kinds[@]}"
	note_kept
	driver_start
	nothing_leaked
}

has_capacity() {
	[ "$(available)" -gt 0 ]
}

group_of() {
	lvm lvs --noheadings -o vg_name --select "lv_name=\"$1\"" | tr -d ' '
}

# The driver picks the pool: a volume for each of them, of which each is larger than half of a pool.
use_volumes() {
	local i id
	for i in "${!kinds[@]}"; do
		id=$(create "volume-$i" 140Mi ext4)
		stage "$id"
		has_dax "$(staging_of "$id")"
		dax-check -size 4Mi -seed "$((40 + i))" -plain write "$(staging_of "$id")/data"
		sync -f "$(staging_of "$id")/data"
		group_of "$id" >"$notes/volume-$i.group"
		unstage "$id"
	done
	equal 'groups with a volume' "$(cat "$notes"/volume-*.group | sort -u | wc -l)" "${#kinds[@]}"
	nothing_leaked
	sync
}

boot_1() {
	prove nothing-is-made-unasked nothing_is_made_unasked
	prove driver-has-nothing driver_has_nothing
	prove conversion-is-found-by-the-driver conversion_is_found_by_the_driver
	prove use-volumes use_volumes
	cat "$driver_log"
	cut_power
}

verify_in() {
	stage "$1"
	dax-check -size 4Mi -seed "$2" -plain verify "$(staging_of "$1")/data"
	unstage "$1"
}

preparing_again_changes_nothing() {
	prepare -initLabels -unlabelled=convert
	pmem-vgm "-statePath=$state"
	chain_facts >"$scratch/before"
	prepare -useforfsdax=0 -initLabels -unlabelled=convert
	chain_facts | diff "$scratch/before" -
}

volumes_are_there() {
	local i
	driver_start
	nothing_leaked
	for i in "${!kinds[@]}"; do
		verify_in "$(create "volume-$i" 140Mi ext4)" "$((40 + i))"
	done
}

volumes_are_deleted() {
	local id
	for id in $(listed_ids); do
		delete "$id"
	done
	nothing_leaked
	driver_stop
}

boot_2() {
	prove preparing-again-changes-nothing preparing_again_changes_nothing
	prove volumes-are-there volumes_are_there
	prove volumes-are-deleted volumes_are_deleted
}

boot_warm() {
	prove preparing-again-changes-nothing preparing_again_changes_nothing
	prove volumes-are-there volumes_are_there
	cat "$driver_log"
	cut_power
}

# The content of legacy memory is gone with its info block, and its volume is missing. It is not prepared again, because the record of its
# group does not show that the content is gone for good. The others have their data.
legacy_memory_is_lost() {
	local i
	prepare -useforfsdax=0 -initLabels -unlabelled=convert
	driver_start
	for i in "${!kinds[@]}"; do
		if is_legacy "$(<"$notes/volume-$i.group")"; then
			refused UNAVAILABLE -size 140Mi -fs ext4 create "volume-$i"
		else
			verify_in "$(create "volume-$i" 140Mi ext4)" "$((40 + i))"
		fi
	done
	equal 'number of groups' "$(groups | wc -w)" $((${#kinds[@]} - 1))
	driver_stop
}

# is_legacy GROUP: groups are called ndbus<N>region<N>fsdax
is_legacy() {
	local number=${1#*region}
	[ "${kinds[${number%fsdax}]}" = e820 ]
}

boot_cold() {
	prove legacy-memory-is-lost legacy_memory_is_lost
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
cat "$driver_log"
