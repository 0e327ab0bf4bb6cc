# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2119
# pmem-ns-init on a region that CXL interleaves over two devices.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

work=$(mktemp -d)

pool_count() {
	ndctl list -N >"$work/list"
	[ "$(grep -c '"name":"pmem-csi"' "$work/list")" = "$1" ]
}

status_is_true() {
	"$BUILD_DIR/bin/pmem-ns-init" status -o json >"$work/status.json" || return 1
	ndctl list -R -N -v -i >"$work/ndctl.json" || return 1
	"$VM_TESTS/compare-status" "$work/status.json" "$work/ndctl.json"
}

cxl_region >/dev/null 2>&1 || exit 1
"$BUILD_DIR/bin/pmem-ns-init" status >"$work/out"
check interleave-is-seen grep -q '^region0 on .*: 1Gi, interleave 2, .*unit 16Mi' "$work/out"
check create-half "$BUILD_DIR/bin/pmem-ns-init" -strict -useforfsdax=50
check one-pool pool_count 1
check create-all "$BUILD_DIR/bin/pmem-ns-init" -strict
check two-pools pool_count 2
check repeat "$BUILD_DIR/bin/pmem-ns-init" -strict
check repeat-adds-nothing pool_count 2
check status-is-true status_is_true
