# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2119
# pmem-ns-init on two NVDIMMs: percentages, fragments, old content, foreign namespaces, unusable regions.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

work=$(mktemp -d)
mib=1048576

# run NAME STATUS [ARGUMENT]...: a result that is ok if the program exits with STATUS; its output is in $work.
run() {
	local name=$1 wanted=$2 status=0
	shift 2
	"$BUILD_DIR/bin/pmem-ns-init" "$@" >"$work/out" 2>"$work/log" || status=$?
	if [ "$status" = "$wanted" ]; then
		result "$name" ok
	else
		result "$name" fail "exit status $status, expected $wanted: $(tail -n 3 "$work/log" | tr '\n' ' ')"
	fi
}

warned() {
	grep -q -- "$1" "$work/log" || {
		step "log: $(tail -n 3 "$work/log" | tr '\n' ' ')"
		return 1
	}
}

# pools REGION [MIB]...: whether the pool namespaces of a region have these raw sizes, by place.
pools() {
	local region=$1 dir name size at sizes
	shift
	sizes=$(for dir in "/sys/bus/nd/devices/$region"/namespace[0-9]*; do
		size=0 name=
		read -r size <"$dir/size"
		read -r name <"$dir/alt_name"
		if [ "$size" != 0 ] && [ "$name" = pmem-csi ]; then
			read -r at <"$dir/resource"
			echo "$((at)) $((size / mib))"
		fi
	done | sort -n | cut -d ' ' -f 2 | tr '\n' ' ')
	if [ "${sizes% }" != "$*" ]; then
		step "pools in $region: $sizes, expected $*"
		return 1
	fi
}

# namespace_called REGION NAME: the namespace with that name.
namespace_called() {
	grep -lx "$2" "/sys/bus/nd/devices/$1"/namespace[0-9]*/alt_name | sed 's|.*/\(namespace[0-9.]*\)/.*|\1|'
}

# All pools are fsdax with 2 MiB alignment and the page map on the medium.
pools_are_fsdax() {
	ndctl list -N -v | python3 -c '
import json, sys
pools = [n for n in json.load(sys.stdin) if n.get("name") == "pmem-csi"]
sys.exit(not pools or any((n["mode"], n["map"], n["align"]) != ("fsdax", "dev", 2 << 20) for n in pools))'
}

status_is_true() {
	"$BUILD_DIR/bin/pmem-ns-init" status -o json >"$work/status.json" 2>/dev/null || return 1
	ndctl list -R -N -v -i >"$work/ndctl.json" || return 1
	if ! "$VM_TESTS/compare-status" "$work/status.json" "$work/ndctl.json" 2>"$work/difference"; then
		step "$(cat "$work/difference")"
		return 1
	fi
}

create_foreign() {
	ndctl create-namespace -f -r "$1" -s "$2M" -m "$3" -n "$4" 2>"$work/ndctl.log" || {
		step "ndctl: $(cat "$work/ndctl.log")"
		return 1
	}
}

destroy_all() {
	ndctl destroy-namespace -f all >/dev/null 2>&1
}

without_labels() {
	run label-less-is-no-failure 0
	check label-less-is-named warned 'no labels'
	run label-less-is-strict-failure 1 -strict
	check label-less-is-untouched pools region0
}

contract() {
	prove nd-contract env PMEM_LAB_MACHINE=1 "$BUILD_DIR/tests/unit/pmem/nd/test_pmem_nd_real"
}

percentages() {
	run plan 0 plan
	check plan-shows-the-size grep -q '^region0 on ndbus0: create 2Gi (' "$work/out"
	check plan-creates-nothing pools region0
	run create-half 0 -useforfsdax=50
	check half-region0 pools region0 1024
	check half-region1 pools region1 1024
	run repeat-half 0 -useforfsdax=50
	check repeat-half-adds-nothing pools region0 1024
	run lower 0 -useforfsdax=10
	check lower-changes-nothing pools region0 1024
	run create-all 0 --useforfsdax 100
	check all-region0 pools region0 1024 1024
	check all-region1 pools region1 1024 1024
	run repeat-all 0
	check repeat-all-adds-nothing pools region0 1024 1024
	check pools-are-fsdax pools_are_fsdax
	check status-of-full-regions status_is_true
	destroy_all
}

# An MBR with one Linux partition.
write_partition_table() {
	python3 -c '
import struct, sys
entry = struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0x83, 0, 0, 0, 2048, 204800)
sys.stdout.buffer.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")' | dd of="$1" conv=fsync status=none
	blockdev --rereadpt "$1"
}

# The same places are used again, so that old content shows up where it is not wiped: what ndctl makes proves it.
old_signatures() {
	create_foreign region0 2048 fsdax old && mke2fs -q -F /dev/pmem0 2>/dev/null
	create_foreign region1 2048 fsdax old && write_partition_table /dev/pmem1
	check partition-is-there test -b /dev/pmem1p1
	destroy_all
	create_foreign region0 2048 fsdax again
	check old-signature-is-there blkid -p /dev/pmem0
	destroy_all
	run create-over-old 0
	check both-are-made pools region0 2048
	blkid -p /dev/pmem0 >/dev/null
	check old-signature-is-wiped test $? = 2
	blkid -p /dev/pmem1 >/dev/null
	check old-partition-table-is-wiped test $? = 2
	check old-partition-is-gone test ! -e /dev/pmem1p1
	destroy_all
}

# region0: 256 theirs, 512 free, 256 theirs (sector), 128 free, 256 theirs (devdax), 640 free
fragmented() {
	create_foreign region0 256 fsdax theirs-a
	create_foreign region0 512 raw hole-a
	create_foreign region0 256 sector theirs-b
	create_foreign region0 128 raw hole-b
	create_foreign region0 256 devdax theirs-c
	ndctl destroy-namespace -f "$(namespace_called region0 hole-a)" >/dev/null 2>&1
	ndctl destroy-namespace -f "$(namespace_called region0 hole-b)" >/dev/null 2>&1
	echo 'foreign content' | dd of=/dev/pmem0 conv=fsync status=none
	ndctl list -N -v -r region0 >"$work/before"
	check status-of-fragmented status_is_true
	run plan-fragmented 0 plan
	check plan-shows-each-extent grep -q '^region0 .*: create 640Mi + 512Mi + 128Mi (' "$work/out"
	run create-fragmented 0
	check fragments-are-used pools region0 512 128 640
	check status-of-used-fragments status_is_true
	run repeat-fragmented 0
	check repeat-adds-no-fragment pools region0 512 128 640
	ndctl list -N -v -r region0 >"$work/after"
	check foreign-are-unchanged python3 -c '
import json, sys
before, after = (json.load(open(name)) for name in sys.argv[1:])
sys.exit([n for n in after if n["name"] != "pmem-csi"] != before)' "$work/before" "$work/after"
	head -c 16 /dev/pmem0 >"$work/content"
	check foreign-content-is-kept grep -q '^foreign content' "$work/content"
	system_ram
	disabled_pool
	destroy_all
}

system_ram() {
	load_modules kmem device_dax
	# daxctl refuses while the kernel brings new memory online by itself, as Debian's 6.12 does
	echo offline >/sys/devices/system/memory/auto_online_blocks
	daxctl reconfigure-device -N -m system-ram all >/dev/null 2>&1
	run status-with-system-ram 0 status
	check system-ram-is-shown grep -q '^  dax0\.[0-9]*: [0-9MGi]*, system-ram$' "$work/out"
	daxctl reconfigure-device -f -m devdax all >/dev/null 2>&1
	run status-with-devdax 0 status
	check devdax-is-shown grep -q '^  dax0\.[0-9]*: [0-9MGi]*, devdax$' "$work/out"
}

# It is used again, and not made up for with a second one.
disabled_pool() {
	local pool
	pool=$(namespace_called region1 pmem-csi)
	ndctl disable-namespace "$pool" >/dev/null 2>&1
	run create-beside-disabled 0
	check disabled-pool-is-enabled warned "enabled a pool namespace.*$pool"
	check disabled-pool-counts pools region1 2048
	check status-with-disabled status_is_true
}

unusable() {
	(
		unshare -m bash -c 'mount -o remount,bind,ro /sys && exec "$@"' - \
			"$BUILD_DIR/bin/pmem-ns-init" -strict >"$work/out" 2>"$work/log"
	)
	check read-only-sys-is-strict-failure test $? = 1
	check read-only-sys-is-named warned '/sys is mounted read-only'
	echo 1 >/sys/bus/nd/devices/region0/read_only
	run read-only-region 0
	check read-only-region-is-named warned 'region is read-only'
	check other-region-is-used pools region1 2048
	echo 0 >/sys/bus/nd/devices/region0/read_only
	ndctl disable-region region0 >/dev/null 2>&1
	run disabled-region 0
	check disabled-region-is-named warned 'region is disabled'
	ndctl enable-region region0 >/dev/null 2>&1
	run after-enabling 0 -strict
	check region-is-used pools region0 2048
}

# Two plans made at once would together exceed the share.
concurrent() {
	destroy_all
	"$BUILD_DIR/bin/pmem-ns-init" -strict -useforfsdax=50 2>"$work/log.a" &
	"$BUILD_DIR/bin/pmem-ns-init" -strict -useforfsdax=50 2>"$work/log.b"
	check second-of-two test $? = 0
	wait $!
	check first-of-two test $? = 0
	check two-keep-to-the-share pools region0 1024
}

kernel_is_content() {
	dmesg >"$work/dmesg"
	! grep -E 'BUG:|WARNING:|Oops|Call Trace' "$work/dmesg" >"$work/complaints" || {
		step "kernel: $(head -n 1 "$work/complaints")"
		return 1
	}
}

without_labels
run labels-are-initialised 0 -strict -initLabels -useforfsdax=0
for part in contract percentages old_signatures fragmented unusable concurrent; do
	step "$part"
	"$part"
done
check kernel-does-not-complain kernel_is_content
