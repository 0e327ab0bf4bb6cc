# shellcheck shell=bash
# csi-sanity against the driver with LVM on two NVDIMMs, in the lab machine. BUILD_DIR is the build folder of the
# programs, SANITY the csi-sanity program, SANITY_TESTS the folder tests/sanity.
# shellcheck source=tests/lab/guest-lib.sh
. "$LAB_HOME/guest-lib.sh"
lvm_without_udev

bin=$BUILD_DIR/bin
work=$LAB_STATE_DIR/work
mkdir -p "$work/sanity"

logical_volumes() {
	lvs --noheadings -o lv_name
}

labels || exit 1
check pmem-ns-init "$bin/pmem-ns-init" -strict
check pmem-vgm "$bin/pmem-vgm"
step "init chain is done"
unshare -m --propagation private "$SANITY_TESTS/check" "$SANITY" "$bin" "$work/sanity" -deviceManager=lvm \
	>"$work/verdicts" || step "tests/sanity/check: exit status $?"
while read -r line; do
	case $line in
	'ok '*) result "$(tr ' ' - <<<"${line#ok   }")" ok ;;
	'FAIL '*) result "$(tr ' ' - <<<"${line#FAIL }")" fail ;;
	*) step "$line" ;;
	esac
done <"$work/verdicts"
check no-logical-volume-is-left test -z "$(logical_volumes)"
