# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The power of the node is cut while a guest stores through MAP_SYNC. CUT: the file system of the volume in use then; AFTER: that of the
# last boot, whose stores are looked for by the guest of the next pod.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/nested.sh
. "$VM_TESTS/nested.sh"
# shellcheck source=tests/machine/vm/guests_steps.sh
. "$VM_TESTS/guests_steps.sh"
: "${AFTER:=}" "${CUT:=}"
kept=$LAB_STATE_DIR/guests

# keep NAME TEXT: for the next boot
keep() {
	mkdir -p "$kept"
	echo "$2" >"$kept/$1"
	sync "$kept/$1" "$kept"
}

number_stored() {
	nested_do guest "hexdump -n 4 -e '1/4 \"%u\\n\"' /volume/run/numbers-39"
}

has_stored() {
	[ "$(number_stored)" -gt 0 ]
}

# What is seen in the memory that the last file maps has been stored in all files, and is durable.
guest_stores() {
	local size=96Mi number
	[ "$CUT" = ext4 ] || size=480Mi
	image_is_published "$CUT" "$size"
	dax_guest_starts guest "$(id_of "image-$CUT")"
	nested_do guest 'dax-check -size 2Mi -seed 2 write /volume/mapped && mkdir /volume/run'
	nested_do guest '(ordered-stores write /volume/run >/dev/null &)'
	nested_do guest 'until [ -s /volume/run/numbers-39 ]; do sleep 1; done'
	await 120 has_stored
	number=$(number_stored)
	keep number "$number"
	keep context "$(<"$scratch/context/$(id_of "image-$CUT")")"
	keep id "$(id_of "image-$CUT")"
}

starts_again() {
	[ "$MODE" = direct ] || init_chain 100
	guests_driver
	remember "image-$AFTER" "$(<"$kept/id")"
	cp "$kept/context" "$scratch/context/$(<"$kept/id")"
}

# The volume was published when the power was cut; the pod of that time is gone.
next_guest_sees_it() {
	local id number
	id=$(id_of "image-$AFTER")
	unpublish "$id"
	unstage "$id"
	stage "$id"
	publish "$id"
	dax_guest_starts guest "$id"
	nested_do guest 'dax-check -size 2Mi -seed 2 verify /volume/mapped'
	number=$(nested_do guest 'ordered-stores verify /volume/run')
	echo "$number are there, and at least $(<"$kept/number") were stored"
	[ "$number" -ge "$(<"$kept/number")" ]
	nested_do guest 'umount /volume'
	nested_kill guest
	unpublish "$id"
}

is_deleted() {
	local id
	id=$(id_of "image-$AFTER")
	unstage "$id"
	delete "$id"
	equal 'the list' "$(listed_ids)" ''
}

[ -z "$AFTER" ] || plan "$AFTER"-{starts-again,next-guest-sees-it,is-deleted}
[ -z "$CUT" ] || plan "$CUT-guest-stores"
[ -n "$AFTER" ] || plan start
plan nested-prepare
prove nested-prepare nested_prepare "${CUT:-$AFTER}"
if [ -n "$AFTER" ]; then
	prove "$AFTER-starts-again" starts_again
	prove "$AFTER-next-guest-sees-it" next_guest_sees_it
	prove "$AFTER-is-deleted" is_deleted
else
	prove start guests_start
fi
if [ -n "$CUT" ]; then
	prove "$CUT-guest-stores" guest_stores
	cat "$driver_log"
	cut_power
fi
cat "$driver_log"
