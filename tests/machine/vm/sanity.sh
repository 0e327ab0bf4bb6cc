# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# csi-sanity against the driver on two NVDIMMs, with volumes mounted and as block devices. MODE is the device manager,
# SANITY the csi-sanity program, SANITY_TESTS the folder tests/sanity.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

work=$LAB_STATE_DIR/work
mkdir -p "$work/sanity"

prepare() {
	if [ "$MODE" = lvm ]; then init_chain 100; else prepare_memory; fi
	note_kept
}

prove prepared prepare
status=0
unshare -m --propagation private "$SANITY_TESTS/check" "$SANITY" "$BUILD_DIR/bin" "$work/sanity" "-deviceManager=$MODE" \
	>"$work/verdicts" || status=$?
while read -r line; do
	case $line in
	'ok '*) result "$(tr ' ' - <<<"${line#ok   }")" ok ;;
	'FAIL '*) result "$(tr ' ' - <<<"${line#FAIL }")" fail ;;
	*) step "$line" ;;
	esac
done <"$work/verdicts"
test "$status" = 0
