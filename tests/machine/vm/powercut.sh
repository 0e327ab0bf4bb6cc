# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Power cuts. AFTER is the point at which the power was cut before this boot, CUT the one at which it will be cut; a
# chain of boots goes through several. At the point "stubbed" the driver's fsync does nothing, which must show.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/steps.sh
. "$VM_TESTS/steps.sh"
: "${AFTER:=}" "${CUT:=}"
# the leak that is the proof
[ "$AFTER" != stubbed ] || leaks_are_meant

cut() {
	prove "$CUT-is-reached" "$@"
	cat "$driver_log"
	cut_power
}

set_up() {
	init_chain 100
	driver_start
	bystander_is_made
	driver_stop
}

start_again() {
	init_chain 100
	driver_start
}

# --- what must be true after the cut

after_point() {
	prove "$AFTER-is-durable" is_durable "$AFTER"
	prove "$AFTER-starts-again" start_again
	prove "$AFTER-is-settled" is_settled "$AFTER"
	prove "$AFTER-succeeds-when-retried" succeeds_when_retried "$AFTER"
	prove "$AFTER-bystander-is-intact" bystander_is_intact
	[ -n "$CUT" ] || bystander_is_deleted
	driver_stop
}

written_is_there() {
	local id
	id=$(create "at-written-$1" 16Mi "$1")
	unpublish "$id"
	unstage "$id"
	stage "$id"
	publish "$id"
	dax-check -size 1Mi -seed 8 verify "$(target_of "$id")/mapped"
	dax-check -size 1Mi -seed 9 -plain verify "$(target_of "$id")/plain"
}

# What was recorded as staged and published before the cut does not count as use.
left_is_deleted() {
	delete "$(create at-written-left 16Mi ext4)"
	nothing_leaked
}

written_is_deleted() {
	local fs id
	for fs in ext4 xfs; do
		id=$(create "at-written-$fs" 16Mi "$fs")
		unpublish "$id"
		unstage "$id"
		delete "$id"
	done
	nothing_leaked
}

after_written() {
	prove written-starts-again start_again
	prove written-ext4-is-there written_is_there ext4
	prove written-xfs-is-there written_is_there xfs
	prove written-record-of-use-is-no-use left_is_deleted
	prove written-is-deleted written_is_deleted
	prove written-bystander-is-intact bystander_is_intact
	driver_stop
}

# --- with fsync stubbed out

reached_without_sync() {
	driver_start_with "LD_PRELOAD=$BUILD_DIR/tests/machine/vm/libnosync.so" "PMEM_STOP_AT=create-ready"
	csi -size 16Mi -fs ext4 create at-create-ready &
	await 60 is_stopped "$(driver_pid)"
	test -n "$(file_of json)"
}

pool_has_the_volume() {
	local volumes free_bytes
	look_at_pools
	[[ " $volumes" == *" at-"* ]]
}

after_stubbed() {
	prove stubbed-starts-again start_again
	prove stubbed-device-is-there pool_has_the_volume
	refute seeded-nosync nothing_leaked
}

plan_boot() {
	case $AFTER in
	'') plan set-up ;;
	written)
		plan written-{starts-again,ext4-is-there,xfs-is-there,record-of-use-is-no-use,is-deleted,bystander-is-intact}
		;;
	stubbed) plan stubbed-starts-again stubbed-device-is-there seeded-nosync ;;
	*) plan "$AFTER"-{is-durable,starts-again,is-settled,succeeds-when-retried,bystander-is-intact} ;;
	esac
	case $CUT in
	'') ;;
	stubbed) plan stubbed-is-reached ;;
	*) plan "$CUT-is-reached" ;;
	esac
}

plan_boot
case $AFTER in
'') prove set-up set_up ;;
written) after_written ;;
stubbed) after_stubbed ;;
*) after_point ;;
esac
case $CUT in
'') ;;
stubbed) cut reached_without_sync ;;
written) cut go_to_written ;;
*) cut go_to "$CUT" ;;
esac
cat "$driver_log"
