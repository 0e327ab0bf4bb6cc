# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The label of a physical volume lost while 20 volumes lie on it: two boots of one machine. Nothing new may be made on it,
# and the command that doctor prints, pmem-vgm restore, must bring all of them back: with running pods, and with nothing active after a boot.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
[ "${BOOT:-1}" = 2 ] || volumes_are_left

notes=$LAB_STATE_DIR/notes
mkdir -p "$notes"

ids() {
	echo "$(<"$notes/ids")"
}

groups_are() {
	equal 'the groups' "$(lvm vgs --noheadings -o vg_name,vg_uuid | tr -s ' ')" "$(<"$notes/groups")"
}

# The twenty take the smaller of the two groups, since each goes where it fits best.
make_volumes() {
	local n id
	prepare_memory
	ndctl create-namespace -r region1 -m fsdax -n theirs -s 64M >/dev/null
	init_chain 100
	mount --bind "$kubelet" "$kubelet"
	mount --make-shared "$kubelet"
	driver_start
	for ((n = 0; n < 20; n++)); do
		id=$(create "pvc-$n" 16Mi ext4)
		echo "$id"
	done >"$notes/ids"
	for id in $(ids | head -n 3); do
		stage "$id"
		publish "$id"
		dax-check -size 4Mi -seed 5 write "$(target_of "$id")/data"
	done
	lvm lvs --noheadings -o devices | sed -n 's/^ *\([^(]*\)(.*/\1/p' | sort -u >"$notes/device"
	equal 'devices' "$(wc -l <"$notes/device")" 1
	lvm vgs --noheadings -o vg_name,vg_uuid | tr -s ' ' >"$notes/groups"
	cp -r "$scratch/context" "$notes/"
	nothing_leaked
}

device() {
	echo "$(<"$notes/device")"
}

two_areas() {
	equal 'metadata areas' "$(lvm pvs --noheadings -o pv_mda_count "$(device)" | tr -d ' ')" 2
}

# Of each group there is a copy as it is now, and it says so itself.
copies_are_current() {
	local group seqno
	while read -r group seqno; do
		grep -qP "^\tseqno = $seqno$" "$state/lvm/copies/$group" || return 1
	done < <(lvm vgs --noheadings -o vg_name,vg_seqno)
	doctor
	grep -q '^ok *volume-group' "$scratch/out"
}

# A copy that cannot be written fails no call, doctor reports it, and the next listing makes up for it.
copy_is_made_up_for() {
	local id
	mv "$state/lvm/copies" "$state/lvm/kept"
	echo 'in the way' >"$state/lvm/copies"
	id=$(create without-copy 16Mi ext4)
	doctor
	grep -q '^note *group-copy' "$scratch/out"
	delete "$id"
	rm "$state/lvm/copies"
	mv "$state/lvm/kept" "$state/lvm/copies"
	await 40 copies_are_current
	compgen -G "$state/lvm/older/*" >/dev/null
}

# What another program has changed is saved, too.
foreign_change_is_saved() {
	local group
	group=$(lvm pvs --noheadings -o vg_name "$(device)" | tr -d ' ')
	lvm vgchange -qq --addtag mine "$group"
	lvm vgchange -qq --deltag mine "$group"
	await 40 copies_are_current
}

zero_label() {
	dd if=/dev/zero of="$(device)" bs=1024 count="$1" conv=fsync status=none
	fails lvm pvs "$(device)"
}

doctor() {
	pmem-csi-driver doctor "-statePath=$state" "-kubeletDir=$kubelet" >"$scratch/out" || true
	cat "$scratch/out"
}

vgm() {
	local wanted=$1 status=0
	shift
	pmem-vgm "-statePath=$state" "$@" >"$scratch/vgm" 2>&1 || status=$?
	cat "$scratch/vgm"
	equal 'the exit status' "$status" "$wanted"
}

# beginning_of DEVICE: what must not change, for nothing is made there
beginning_of() {
	raw_bytes "$1" 0 2097152 | sha256sum
}

nothing_new_is_made() {
	local before groups
	before=$(beginning_of "$(device)")
	vgm 0
	grep -q "was in volume group .*nothing new is created on it" "$scratch/vgm"
	vgm 1 -strict
	vgm 1 -strict plan
	grep -q "was in volume group" "$scratch/vgm"
	equal 'the beginning of the device' "$(beginning_of "$(device)")" "$before"
	groups=$(lvm vgs --noheadings -o vg_name | wc -l)
	equal 'groups' "$groups" 1
}

# Without the record the metadata itself is in the way.
nothing_new_without_records() {
	local before
	before=$(beginning_of "$(device)")
	pmem-vgm "-statePath=$scratch/nowhere" >"$scratch/vgm" 2>&1
	cat "$scratch/vgm"
	grep -q 'holds metadata of LVM' "$scratch/vgm"
	equal 'the beginning of the device' "$(beginning_of "$(device)")" "$before"
}

# The other group goes on; what is on the lost one is kept in the state, and unavailable.
others_go_on() {
	local id volumes free_bytes
	driver_crash_and_start
	look_at_pools
	equal 'the capacity' "$(available)" "$free_bytes"
	id=$(create other 16Mi ext4)
	stage "$id"
	unstage "$id"
	delete "$id"
	equal 'the volumes' "$(listed_ids | wc -l)" 20
	id=$(ids | tail -n 1)
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	refused UNAVAILABLE "${flags[@]}" stage "$id" "$(staging_of "$id")"
	refused UNAVAILABLE delete "$id"
}

hostile_lvm() {
	mkdir -p "$scratch/hostile"
	sed 's/filter=.*/filter=["r|.*|"] global_filter=["r|.*|"]/; s/use_devicesfile=0/use_devicesfile=1/' \
		"$LVM_SYSTEM_DIR/lvm.conf" >"$scratch/hostile/lvm.conf"
	echo "$scratch/hostile"
}

doctor_restores() {
	local command
	doctor
	command=$(sed -n 's/^problem *volume-group .*would do: \(pmem-vgm .*\); if its volumes.*/\1/p' "$scratch/out")
	test -n "$command"
	echo "$command"
	# as on a host whose own LVM is kept from persistent memory
	LVM_SYSTEM_DIR=$(hostile_lvm) sh -c "$command"
	groups_are
	two_areas
	lvm vgck
	equal 'volumes' "$(lvm lvs --noheadings -o lv_name | tr -d ' ' | sort)" "$(ids | sort)"
}

pods_never_noticed() {
	local id
	for id in $(ids | head -n 3); do
		dax-check -size 4Mi -seed 5 verify "$(target_of "$id")/data"
	done
}

# Without a restart: its next listing has the group.
driver_finds_it() {
	local id
	id=$(ids | tail -n 1)
	await 60 stage "$id"
	unstage "$id"
}

all_is_served() {
	local id
	driver_crash_and_start
	doctor
	grep -q '^ok *volume-group' "$scratch/out"
	nothing_leaked
	id=$(ids | tail -n 1)
	stage "$id"
	unstage "$id"
}

# The machine goes down with the label, and this time the metadata behind it, zeroed.
lose_it_again() {
	local id
	for id in $(ids | head -n 3); do
		unpublish "$id"
		unstage "$id"
	done
	driver_stop
	umount "$kubelet"
	umount "$kubelet" || true
	zero_label 1024
	sync
}

boot_1() {
	prove make-volumes make_volumes
	prove two-areas two_areas
	prove copies-are-current copies_are_current
	prove copy-is-made-up-for copy_is_made_up_for
	prove foreign-change-is-saved foreign_change_is_saved
	prove zero-label zero_label 1
	prove nothing-new-is-made nothing_new_is_made
	prove nothing-new-without-records nothing_new_without_records
	prove others-go-on others_go_on
	prove pods-go-on pods_never_noticed
	prove doctor-restores-in-use doctor_restores
	prove pods-never-noticed pods_never_noticed
	prove driver-finds-it driver_finds_it
	prove all-is-served all_is_served
	prove lose-it-again lose_it_again
}

chain_goes_on() {
	init_chain 100
	driver_start
	equal 'the volumes' "$(listed_ids | wc -l)" 20
	cp -r "$notes/context" "$scratch/"
}

data_is_there() {
	local id
	for id in $(ids | head -n 3); do
		stage "$id"
		publish "$id"
		dax-check -size 4Mi -seed 5 verify "$(target_of "$id")/data"
		unpublish "$id"
		unstage "$id"
	done
}

delete_all() {
	local id
	for id in $(ids); do
		delete "$id"
	done
}

boot_2() {
	prove chain-goes-on chain_goes_on
	prove nothing-new-after-boot nothing_new_is_made
	prove doctor-restores-after-boot doctor_restores
	prove served-after-boot all_is_served
	prove data-is-there data_is_there
	prove delete-all delete_all
}

# shellcheck disable=SC2046 # names are single words
plan $(declare -f "boot_${BOOT:-1}" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"boot_${BOOT:-1}"
