# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-ns-init is killed at each step of making a namespace, and once the power is cut: the next run uses what is left or gives
# it back, and says so. What is not blank is left alone and named. A signal that asks it or pmem-vgm to end lets it finish the
# namespace or group that it is making.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

log=$scratch/log

# pool_sizes: the raw sizes of all pool namespaces, in MiB, as words
pool_sizes() {
	local dir
	for dir in /sys/bus/nd/devices/namespace*; do
		if [[ $(<"$dir/size") != 0 && $(<"$dir/alt_name") = pmem-csi ]]; then
			echo "$(($(<"$dir/size") >> 20))"
		fi
	done | sort -n | tr '\n' ' '
}

active_pools() {
	ndctl list -N | grep -c '"blockdev"' || true
}

next_run_is_whole() {
	if ! pmem-ns-init -strict -useforfsdax=50 2>"$log"; then
		cat "$log"
		return 1
	fi
	cat "$log"
	equal 'sizes of pool namespaces' "$(pool_sizes)" '256 256 '
	equal 'active pool namespaces' "$(active_pools)" 2
}

destroy_all() {
	ndctl destroy-namespace -f all >/dev/null 2>&1 || true
}

killed_at_each_step() {
	local point
	prepare_memory
	for point in nd-uuid.after nd-mode.after nd-size.before nd-size.after nd-pfn-uuid.after nd-pfn-claim.before \
		nd-pfn-claim.after nd-pfn-enable.after; do
		echo "at $point"
		PMEM_KILL_AT=$point pmem-ns-init -strict -useforfsdax=50 2>"$log" || true
		next_run_is_whole
		case $point in
		nd-size.after | nd-pfn-*.before | nd-pfn-uuid.after | nd-pfn-claim.after) grep -q 'removed a pool namespace' "$log" ;;
		esac
		destroy_all
	done
}

# An idle namespace keeps the name that it had.
left_over() {
	local dir
	for dir in /sys/bus/nd/devices/namespace*; do
		if [[ $(<"$dir/size") != 0 && $(<"$dir/alt_name") = pmem-csi ]]; then
			echo "${dir##*/}"
		fi
	done
}

# It could be data.
what_holds_data_is_left() {
	local dev uuid
	PMEM_KILL_AT=nd-size.after pmem-ns-init -strict -useforfsdax=50 2>"$log" || true
	dev=$(left_over)
	uuid=$(<"/sys/bus/nd/devices/$dev/uuid")
	ndctl enable-namespace "$dev"
	echo data >"/dev/$(ls "/sys/bus/nd/devices/$dev/block")"
	fails pmem-ns-init -strict -useforfsdax=50 2>"$log"
	cat "$log"
	grep -q "holds something and is left alone.*$dev" "$log"
	equal 'its UUID' "$(<"/sys/bus/nd/devices/$dev/uuid")" "$uuid"
	equal 'its content' "$(head -c 4 "/dev/$(ls "/sys/bus/nd/devices/$dev/block")")" data
	destroy_all
}

# signalled POINT SIGNAL PROGRAM ARGUMENT...: the signal arrives while the program stands at the point. Sets status.
signalled() {
	local point=$1 signal=$2 pid
	shift 2
	status=0
	PMEM_STOP_AT=$point "$@" 2>"$log" &
	pid=$!
	await 60 is_stopped "$pid"
	kill "-$signal" "$pid"
	kill -CONT "$pid"
	wait "$pid" || status=$?
	cat "$log"
}

was_asked_to_end_by() {
	equal 'exit status' "$status" 1
	grep -q "stopped between two steps: run it again to continue signal=SIG$1" "$log"
}

groups() {
	lvm vgs --noheadings -o vg_name,pv_count | tr -s ' \n' ' '
}

signals_finish_the_step() {
	local point signal status device
	for signal in TERM INT HUP; do
		case $signal in
		TERM) point=nd-uuid.after ;;
		INT) point=nd-size.after ;;
		HUP) point=nd-pfn-claim.after ;;
		esac
		echo "$signal at $point"
		signalled "$point" "$signal" pmem-ns-init -strict -useforfsdax=50
		was_asked_to_end_by "$signal"
		equal 'sizes of pool namespaces' "$(pool_sizes)" '256 '
		equal 'active pool namespaces' "$(active_pools)" 1
		next_run_is_whole
		fails grep 'removed a pool namespace' "$log"
		destroy_all
	done
	signalled nd-size.after USR1 pmem-ns-init -strict -useforfsdax=50
	equal 'exit status' "$status" 0
	equal 'active pool namespaces' "$(active_pools)" 2
	signalled lvm-group.before TERM pmem-vgm -strict "-statePath=$state"
	was_asked_to_end_by TERM
	equal 'volume groups' "$(groups)" ' ndbus0region0fsdax 1 '
	pmem-vgm -strict "-statePath=$state"
	equal 'volume groups' "$(groups)" ' ndbus0region0fsdax 1 ndbus0region1fsdax 1 '
	lvm vgremove -qqf ndbus0region0fsdax ndbus0region1fsdax
	# what LVM has written would be left alone as data when a creation there is cut off
	for device in /dev/pmem*; do
		dd if=/dev/zero of="$device" bs=1M count=4 conv=fsync status=none
	done
	rm -rf "$state"
	destroy_all
}

stop_at() {
	PMEM_STOP_AT=$CUT pmem-ns-init -strict -useforfsdax=50 2>"$log" &
	await 60 is_stopped $!
}

if [ -n "${CUT:-}" ]; then
	plan killed-at-each-step what-holds-data-is-left-alone signals-finish-the-step stopped-for-the-cut
	prove killed-at-each-step killed_at_each_step
	prove what-holds-data-is-left-alone what_holds_data_is_left
	prove signals-finish-the-step signals_finish_the_step
	prove stopped-for-the-cut stop_at
	cut_power
fi
leaks_are_meant
plan given-back-after-a-power-cut
prove given-back-after-a-power-cut next_run_is_whole
