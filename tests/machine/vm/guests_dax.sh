# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Volumes for Kata Containers on emulated NVDIMMs, where the image can have DAX: a guest in the machine (nested.sh) gets the image as Kata's
# runtime finds it, stores through MAP_SYNC, outlives its pod, ends, or is killed. FS: its file system; MODE: lvm or direct. Without a controller, as here, each
# pod counts as one that runs in a guest.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/nested.sh
. "$VM_TESTS/nested.sh"
# shellcheck source=tests/machine/vm/guests_steps.sh
. "$VM_TESTS/guests_steps.sh"
plan start nested-prepare "$FS"-{guest-stores-with-dax,guest-has-it-alone,guest-outlives-its-pod,next-pod-reads-it,guest-is-killed,image-is-intact,is-deleted}

# life FS SIZE
life() {
	prove "$1-guest-stores-with-dax" dax_guest_stores "$1" "$2"
	prove "$1-guest-has-it-alone" dax_guest_has_it_alone "$1"
	prove "$1-guest-outlives-its-pod" dax_guest_outlives_its_pod "$1"
	prove "$1-next-pod-reads-it" dax_next_pod_reads_it "$1"
	prove "$1-guest-is-killed" dax_guest_is_killed "$1"
	prove "$1-image-is-intact" dax_image_is_intact "$1"
	prove "$1-is-deleted" dax_is_deleted "$1"
}

prove start guests_start
prove nested-prepare nested_prepare "$FS"
case $FS in
ext4) life ext4 96Mi ;;
xfs) life xfs 480Mi ;;
esac
cat "$driver_log"
