# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2119,SC2120
# Functions for the guest scripts of this folder, beside those of the lab. BUILD_DIR is the build folder of the
# programs and tests, VM_TESTS this folder. To start a process costs most in the machine, so bash does what it can.
# shellcheck source=tests/machine/lab/guest-lib.sh
. "$LAB_HOME/guest-lib.sh"
shopt -s inherit_errexit

export PATH=$BUILD_DIR/bin:$PATH
# For LVM commands given by hand, which complain about descriptors of bash.
export LVM_SUPPRESS_FD_WARNINGS=1
export CSI_ENDPOINT=unix:///run/pmem-csi/csi.sock
state=$LAB_STATE_DIR/state
kubelet=/var/lib/kubelet
scratch=/run/vm
driver_log=$scratch/driver.log
mkdir -p "$scratch/context" "$kubelet/staging" "$kubelet/pods"
touch "$driver_log"

# plan NAME...: the results that the script will give, beside the one of leaks.sh. The host counts a missing one as
# failed.
plan() {
	[ -n "$leaks_meant" ] || set -- "$@" nothing-is-left-behind
	lab_send "PLAN $*"
}

# Plans every name that stands in the script behind check, run, prove or refute.
plan_whole_script() {
	# shellcheck disable=SC2046 # names are single words
	plan $(sed -nE 's/^[[:blank:]]*(check|run|prove|refute) ([a-z0-9-]+) .*/\2/p' "$LAB_SCRIPT" | sort -u)
}

# strictly COMMAND...: runs it in a subshell that ends at the first failing step; sets status, and output is in
# $scratch/said. Not to be called where bash ignores failures (in a condition, before || or &&).
strictly() {
	(
		set -eE
		trap 'echo "failed: $BASH_COMMAND" >&2' ERR
		"$@"
	) >"$scratch/said" 2>&1
	status=$?
}

# said: the end of it, as the detail of a result
said() {
	tail -n 4 "$scratch/said" | tr '\n' ';'
}

# prove NAME COMMAND...: one result, ok if no step of the command fails. What it says becomes the detail of a failure.
prove() {
	local name=$1 status
	shift
	strictly "$@"
	echo "--- $name: $status"
	echo "$(<"$scratch/said")"
	if [ "$status" = 0 ]; then
		result "$name" ok
	else
		result "$name" fail "$(said)"
	fi
}

# refute NAME COMMAND...: ok if a step fails; its output is shown.
refute() {
	local name=$1 status
	shift
	strictly "$@"
	echo "--- $name: $status"
	echo "$(<"$scratch/said")"
	if [ "$status" = 0 ]; then
		result "$name" fail "found nothing"
	else
		result "$name" ok "$(said)"
	fi
}

# A descriptor that never becomes readable: waiting for it is a pause.
exec {never}<> <(:)

# await SECONDS COMMAND...: until the command succeeds.
await() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "waited in vain for: $*"
			return 1
		fi
		read -rt 0.05 -u "$never" || true
	done
}

# equal WHAT FOUND WANTED
equal() {
	if [ "$2" != "$3" ]; then
		echo "$1 is '$2', not '$3'"
		return 1
	fi
}

# fails COMMAND...: succeeds if the command does not.
fails() {
	if "$@"; then
		echo "should have failed: $*"
		return 1
	fi
}

# --- processes

# set_proc_state PID: sets proc_state to the letter of proc(5), or to nothing.
set_proc_state() {
	local line=''
	{ read -r line <"/proc/$1/stat"; } 2>/dev/null || true
	line=${line##*) }
	proc_state=${line%% *}
}

is_gone() {
	local proc_state
	set_proc_state "$1"
	[[ $proc_state = '' || $proc_state = Z ]]
}

is_stopped() {
	local proc_state
	set_proc_state "$1"
	[ "$proc_state" = T ]
}

# child PID NAME: a child process of that name.
child() {
	local dir line fields
	for dir in /proc/[0-9]*; do
		# proc_pid_stat(5): PID (NAME) STATE PARENT ...
		{ read -r line <"$dir/stat"; } 2>/dev/null || continue
		read -ra fields <<<"${line##*) }"
		if [[ $line == *"($2)"* && ${fields[1]} = "$1" ]]; then
			echo "${dir#/proc/}"
			return
		fi
	done
	echo "process $1 has no child $2" >&2
	return 1
}

# --- the init chain

# init_chain PERCENT: as the manifests run it with the component memory-preparation, since the machine's label areas are blank.
init_chain() {
	pmem-ns-init "-useforfsdax=$1" -strict -initLabels
	pmem-vgm "-statePath=$state"
}

# For direct mode, and where other programs make namespaces before ours do: as the init container of memory-preparation/direct.
prepare_memory() {
	pmem-ns-init -useforfsdax=0 -strict -initLabels
}

# What the chain has made, with all that identifies it.
chain_facts() {
	ndctl list -R -N -v
	lvm vgs --noheadings -o vg_name,vg_uuid,vg_seqno,vg_size,vg_tags
	lvm pvs --noheadings -o pv_name,pv_uuid,vg_name,pv_size
	lvm lvs --noheadings -o vg_name,lv_name,lv_uuid,lv_size,lv_tags
}

# --- the driver

# driver_launch [VARIABLE=VALUE|-FLAG]...: starts it and waits for nothing.
driver_launch() {
	local variables=() flags=() word
	[ -e "$kept_before" ] || note_kept
	for word; do
		case $word in
		-*) flags+=("$word") ;;
		*) variables+=("$word") ;;
		esac
	done
	env "${variables[@]}" pmem-csi-driver -mode=node -nodeid=lab -v=5 "-statePath=$state" "-kubeletDir=$kubelet" \
		"${flags[@]}" >>"$driver_log" 2>&1 </dev/null &
	echo $! >"$scratch/driver.pid"
}

driver_pid() {
	echo "$(<"$scratch/driver.pid")"
}

is_ready() {
	csi-client -timeout 5s probe >/dev/null 2>&1
}

# Ends the wait early, too, when the driver has ended.
is_ready_or_gone() {
	if [ -S "${CSI_ENDPOINT#unix://}" ]; then
		is_ready || is_gone "$(driver_pid)"
	else
		is_gone "$(driver_pid)"
	fi
}

# driver_start_with [VARIABLE=VALUE|-FLAG]...: until it is ready.
driver_start_with() {
	driver_launch "$@"
	await 60 is_ready_or_gone
	if is_gone "$(driver_pid)"; then
		echo "the driver ended: $(tail -n 2 "$driver_log")"
		return 1
	fi
}

driver_start() {
	driver_start_with
}

driver_kill() {
	kill -KILL "$(driver_pid)"
	await 30 is_gone "$(driver_pid)"
}

driver_stop() {
	kill -TERM "$(driver_pid)"
	await 60 is_gone "$(driver_pid)"
}

driver_crash_and_start() {
	driver_kill
	driver_start
}

# logged TEXT: in the driver's log so far
logged() {
	if ! grep -q -- "$1" "$driver_log"; then
		echo "the driver's log does not say: $1"
		return 1
	fi
}

# --- calls

csi() {
	csi-client -timeout 100s "$@"
}

# refused CODE ARGUMENT...: the call must fail with that status.
refused() {
	local code=$1 text
	shift
	if text=$(csi "$@" 2>&1); then
		echo "not refused: $*"
		return 1
	fi
	echo "$text"
	if [[ $text != "$code: "* ]]; then
		echo "refused otherwise than with $code: $*: $text"
		return 1
	fi
}

# field NAME: the values of a field of an answer on standard input.
field() {
	local key value
	while read -r key value; do
		[ "$key" != "$1:" ] || echo "$value"
	done
}

# create NAME SIZE FS [FLAG]...: prints the ID. What the answer holds for stage and publish is kept.
create() {
	local name=$1 size=$2 fs=$3 id key value
	shift 3
	csi -size "$size" -fs "$fs" "$@" create "$name" >"$scratch/created"
	# a clone names its source behind
	read -r id < <(field volume_id <"$scratch/created")
	echo "-fs $fs" >"$scratch/context/$id"
	while read -r key value; do
		key=${key%:}
		[[ $key != volume_context.* ]] || echo "-parameter ${key#*.}=$value"
	done <"$scratch/created" >>"$scratch/context/$id"
	echo "$id"
}

# For the ID of a volume that create() has seen: the flags of stage and publish, in the array flags.
set_flags() {
	local flag value
	flags=()
	while read -r flag value; do
		flags+=("$flag" "$value")
	done <"$scratch/context/$1"
}

staging_of() {
	echo "$kubelet/staging/$1"
}

# target_of ID [POD]
target_of() {
	echo "$kubelet/pods/$1.${2:-pod}"
}

# stage ID [FLAG]...: as kubelet does, which makes the folder.
stage() {
	local id=$1 flags
	shift
	set_flags "$id"
	mkdir -p "$(staging_of "$id")"
	csi "${flags[@]}" "$@" stage "$id" "$(staging_of "$id")"
}

unstage() {
	csi unstage "$1" "$(staging_of "$1")"
}

# publish ID [POD [FLAG]...]
publish() {
	local id=$1 pod=${2:-pod} flags
	shift
	[ $# = 0 ] || shift
	set_flags "$id"
	csi "${flags[@]}" "$@" publish "$id" "$(staging_of "$id")" "$(target_of "$id" "$pod")"
}

# unpublish ID [POD]
unpublish() {
	csi unpublish "$1" "$(target_of "$1" "${2:-pod}")"
}

is_erased() {
	! test -e "$state/$1.erasing"
}

# Until its space is back: it is erased after the answer.
delete() {
	csi delete "$1" || return
	await 120 is_erased "$1"
}

# The sizes of capacity, in bytes.
available() {
	csi capacity | field available_capacity
}

largest() {
	csi capacity | field value
}

# In the order of their bytes
listed_ids() {
	csi list | awk 'NR > 1 { print $1 }'
}

# --- what the kernel and LVM say, which the driver must agree with

# Sets volumes, the logical volumes in the pools less those named in $foreign_lvs, in the order of their bytes and each
# followed by a blank, and free_bytes. By segments, since that shows groups without volumes, too.
look_at_pools() {
	local report group free name
	declare -A seen=()
	volumes='' free_bytes=0
	report=$(lvm pvs --segments --noheadings --nosuffix --units b -o vg_name,vg_free,lv_name -O lv_name \
		--select 'vg_name=~"^ndbus.*fsdax$"')
	while read -r group free name; do
		if [ -z "${seen[$group]:-}" ]; then
			seen[$group]=1
			free_bytes=$((free_bytes + free))
		fi
		if [[ -n $name && -z ${seen[$name]:-} && " ${foreign_lvs:-} " != *" $name "* ]]; then
			seen[$name]=1
			volumes+="$name "
		fi
	done <<<"$report"
}

lv_exists() {
	local volumes free_bytes
	look_at_pools
	[[ " $volumes" == *" $1 "* ]]
}

# namespace_of DEVICE: such as namespace1.0 for /dev/pmem1
namespace_of() {
	ndctl list -N | sed -n "/\"dev\":/{s/.*\"dev\":\"\([^\"]*\)\".*/\1/;h}; /\"blockdev\":\"${1##*/}\"/{g;p}"
}

device_of() {
	local path
	path=$(lvm lvs --noheadings -o lv_path --select "lv_name=\"$1\"")
	echo "${path// /}"
}

# sum_of ID: of all its bytes
sum_of() {
	dd if="$(device_of "$1")" bs=4M iflag=direct status=none | sha256sum
}

# raw_range ID: the place of a volume's bytes as "DEVICE OFFSET LENGTH"; it must have one segment only.
raw_range() {
	local range extent start device
	range=$(lvm lvs --noheadings -o seg_pe_ranges --select "lv_name=\"$1\"")
	[[ $range =~ ^\ *(/dev/pmem[0-9]+):([0-9]+)-([0-9]+)\ *$ ]]
	device=${BASH_REMATCH[1]}
	extent=$(lvm pvs --noheadings --nosuffix --units b -o vg_extent_size "$device")
	start=$(lvm pvs --noheadings --nosuffix --units b -o pe_start "$device")
	echo "$device $((start + BASH_REMATCH[2] * extent)) $(((BASH_REMATCH[3] - BASH_REMATCH[2] + 1) * extent))"
}

# raw_bytes DEVICE OFFSET LENGTH: past the page cache, which knows nothing of what was written through the volume.
raw_bytes() {
	dd if="$1" bs=4M iflag=direct,skip_bytes,count_bytes,fullblock skip="$2" count="$3" status=none
}

# raw_is_zero DEVICE OFFSET LENGTH
raw_is_zero() {
	raw_bytes "$@" | cmp -n "$3" - /dev/zero
}

# mounts_of PATH: mountinfo(5)'s lines of what is mounted there
mounts_of() {
	local line fields
	while read -r line; do
		read -ra fields <<<"$line"
		[ "${fields[4]}" != "$1" ] || echo "$line"
	done </proc/self/mountinfo
}

is_mounted() {
	[ -n "$(mounts_of "$1")" ]
}

# has_dax PATH: whether what is mounted there has DAX, by the file system's own options.
has_dax() {
	local mount options
	mount=$(mounts_of "$1")
	options=,${mount##* },
	[[ $options == *,dax,* || $options == *,dax=always,* ]]
}

# Nothing has leaked and nothing is lost: what the driver lists is what LVM has, the state folder holds one file for
# each, and the capacity is what is free.
nothing_leaked() {
	local volumes free_bytes ids='' file files='' id
	for id in $(listed_ids); do
		ids+="$id "
	done
	for file in "$state"/* "$state"/.[!.]*; do
		case $file in
		*'/*' | *'/.[!.]*' | */.lock | */lvm | */durability) ;;
		*.json)
			file=${file##*/}
			files+="${file%.json} "
			;;
		*) files+="${file##*/} " ;;
		esac
	done
	look_at_pools
	equal 'the set of logical volumes' "$volumes" "$ids"
	equal 'the state folder' "$files" "$ids"
	equal 'the capacity' "$(available)" "$free_bytes"
}

lvm_without_udev
# shellcheck source=tests/machine/vm/leaks.sh
. "$VM_TESTS/leaks.sh"
