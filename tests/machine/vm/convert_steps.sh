# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# For convert.sh and convert_labels.sh: pmem-ns-init run, and stopped in the middle of a conversion. Needs lib.sh.

# ns_init STATUS [ARGUMENT]...: must end with that status; its output is in $scratch/out and log.
ns_init() {
	local wanted=$1 status=0
	shift
	pmem-ns-init "$@" >"$scratch/out" 2>"$scratch/log" || status=$?
	cat "$scratch/out" "$scratch/log"
	equal 'the exit status' "$status" "$wanted"
}

says() {
	grep -q -- "$1" "$scratch/out" "$scratch/log" || {
		echo "nothing says: $1"
		return 1
	}
}

hand() {
	lvm "$@"
}

groups() {
	local names
	names=$(hand vgs --noheadings -o vg_name | sort | tr -s ' \n' ' ')
	names=${names# }
	echo "${names% }"
}

# appears_between STEP TEXT ARGUMENT... FUNCTION: pmem-ns-init with these arguments finds region0 unused, and is stopped at the step while
# the function, which is given /dev/pmem0, writes to it. What it wrote is then refused, with the text, and stays.
appears_between() {
	local pid step=$1 text=$2 write=${*: -1}
	PMEM_STOP_AT=$step pmem-ns-init "${@:3:$#-3}" >"$scratch/out" 2>"$scratch/log" &
	pid=$!
	await 60 is_stopped "$pid"
	"$write" /dev/pmem0
	head -c 16M /dev/pmem0 | sha256sum >"$scratch/written"
	kill -CONT "$pid"
	wait "$pid" || true
	cat "$scratch/out" "$scratch/log"
	says "$text"
	equal 'mode' "$(ndctl list -n namespace0.0 | sed -n 's/.*"mode":"\(.*\)".*/\1/p')" raw
	head -c 16M /dev/pmem0 | sha256sum | diff "$scratch/written" -
	blkdiscard -fz /dev/pmem0
}

write_file_system() {
	mke2fs -q -F "$1"
}

write_row() {
	printf 'a row' | dd of="$1" bs=1 seek=100 conv=notrunc,fsync status=none
}

# stopped_at STEP: sets pid, of a conversion of namespace0.0 that has stopped itself there.
stopped_at() {
	PMEM_STOP_AT=$1 pmem-ns-init convert namespace0.0 >"$scratch/stopped" 2>&1 &
	pid=$!
	await 60 is_stopped "$pid"
}

killed_at() {
	local pid
	stopped_at "$1"
	kill -KILL "$pid"
	await 30 is_gone "$pid"
}

# region0's namespace is ours, with its page map on the medium, and in a group of that name.
is_converted() {
	equal 'mode and map' "$(ndctl list -n namespace0.0 | sed -nE 's/.*"(mode|map)":"(.*)".*/\2/p' | tr '\n' ' ')" \
		'fsdax dev '
	equal 'group' "$(hand pvs --noheadings -o vg_name /dev/pmem0 | tr -d ' ')" ndbus0region0fsdax
}

# Its records are removed as well: a region without labels has the same identity again. So is the page map at its beginning, which
# would count as data without a signature.
make_raw_again() {
	hand vgremove -qq -f ndbus0region0fsdax
	hand pvremove -qq -y /dev/pmem0
	ndctl create-namespace -f -e namespace0.0 -m raw >/dev/null 2>&1
	wipefs -qa /dev/pmem0
	dd if=/dev/zero of=/dev/pmem0 bs=1M count=4 conv=fsync status=none
	rm -rf /var/lib/pmem-csi.intel.com/lvm/namespaces
}

kernel_is_content() {
	fails grep -E 'BUG:|WARNING:|Oops|Call Trace' <<<"$(dmesg)"
}
