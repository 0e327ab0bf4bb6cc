# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the two guest scripts of scripts/demo share. BIN is the folder of the programs. What is sent to the host, besides
# results:
#   STEP # TITLE            a new section begins
#   STEP $ MS COMMAND       a command has succeeded, and how long it took
#   STEP = NAME VALUE       to be given to the second guest as a variable
#   STEP TEXT               a remark
# shellcheck source=tests/machine/lab/guest-lib.sh
. "$LAB_HOME/guest-lib.sh"
lvm_without_udev

export PATH=$BIN:$PATH
driver_name=pmem-csi.intel.com
kubelet=/var/lib/kubelet
export CSI_ENDPOINT=unix://$kubelet/plugins/$driver_name/csi.sock
out=/run/demo.out # of the latest command
n_claims=0

section() {
	step "# $*"
}

remember() {
	step "= $1 $2"
}

# claim TEXT COMMAND...: TEXT is true if the command succeeds.
claim() {
	local text=$1
	shift
	n_claims=$((n_claims + 1))
	if "$@"; then
		result "claim-$n_claims" ok "$text"
	else
		result "claim-$n_claims" fail "$text ($*)"
	fi
}

# What cannot be done ends the demo.
give_up() {
	result gave-up fail "$*"
	power_off 1
}

# A command as it is shown: volume IDs and paths by the names of their variables.
shown() {
	local text=$* volume
	for volume in ext4 xfs fileio; do
		[ -z "${id[$volume]:-}" ] || text=${text//${id[$volume]}/\$id_$volume}
		text=${text//$(target "$volume")/\$pod_$volume}
		text=${text//$(staging "$volume")/\$staging_$volume}
	done
	echo "$text"
}

# run COMMAND...: shows the command and its time; its output is in $out.
run() {
	local start=${EPOCHREALTIME/./} status=0
	"$@" >"$out" 2>&1 || status=$?
	[ "$status" = 0 ] || give_up "exit status $status of '$(shown "$*")': $(tail -n 1 "$out")"
	step "\$ $(((${EPOCHREALTIME/./} - start) / 1000)) $(shown "$*")"
}

# A field of the output of csi-client.
field() {
	sed -n "s/^ *$1: //p" "$out" | head -n 1
}

# Where kubelet has a volume mounted, for all pods and for one.
declare -A id=([ext4]=${ID_EXT4:-} [xfs]=${ID_XFS:-} [fileio]=${ID_FILEIO:-})
staging() {
	local sum
	sum=$(printf %s "${id[$1]:-}" | sha256sum)
	echo "$kubelet/plugins/kubernetes.io/csi/$driver_name/${sum%% *}/globalmount"
}
target() {
	echo "$kubelet/pods/7d6fd7c1-0000-4000-8000-00000000de30/volumes/kubernetes.io~csi/pvc-demo-$1/mount"
}

# create VOLUME FS SIZE [FLAG]...
create() {
	local volume=$1 fs=$2 size=$3
	shift 3
	run csi-client -fs "$fs" -size "$size" "$@" create "pvc-demo-$volume"
	id[$volume]=$(field volume_id)
	[ -n "${id[$volume]}" ] || give_up "no volume id"
	remember "ID_${volume^^}" "${id[$volume]}"
}

# As kubelet: makes the staging folder and the parent of the target, and leaves the target to the driver.
stage_and_publish() {
	local volume=$1 fs=$2
	mkdir -p "$(staging "$volume")" "$(dirname "$(target "$volume")")"
	run csi-client -fs "$fs" stage "${id[$volume]}" "$(staging "$volume")"
	run csi-client -fs "$fs" publish "${id[$volume]}" "$(staging "$volume")" "$(target "$volume")"
}

# File system and options at a path, from the kernel: "ext4 rw,stripe=512,dax=always".
mounted_at() {
	awk -v path="$1" '$5 == path { sub(/.* - /, ""); print $1, $3 }' /proc/self/mountinfo
}
has_dax() {
	[[ $(mounted_at "$1") =~ ^$2\ (.*,)?dax(=always)?(,|$) ]]
}
has_no_dax() {
	[[ $(mounted_at "$1") =~ ^$2\  ]] && [[ ! $(mounted_at "$1") =~ dax ]]
}

# The same without what is of no interest here.
brief_mount() {
	mounted_at "$1" | sed -E 's/ / (/; s/,(stripe|attr2|inode64|logbufs|logbsize|sunit|swidth|noquota)[^,]*//g; s/$/)/'
}

# Where the first 4 MiB of a file are: "DEVICE OFFSET" in units of 4 KiB, by file system and device mapper. Only for a file
# that lies in one piece, in a volume that does.
place_of() {
	local file_dev block start lower
	file_dev=$(stat -c %d "$1")
	block=$(filefrag -v -b4096 "$1" | awk '$1 == "0:" { sub(/[.]+/, "", $4); print $4 }')
	read -r lower start <<<"$(dmsetup table -j $((file_dev >> 8)) -m $((file_dev & 0xff)) | awk '{ print $4, $5 }')"
	echo "/dev/$(basename "$(readlink "/sys/dev/block/$lower")") $((start / 8 + block))"
}

# medium PLACE: 4 MiB as they are on the NVDIMM, behind the back of file system and driver.
medium() {
	dd if="${1% *}" skip="${1#* }" bs=4096 count=1024 iflag=direct status=none
}
is_on_medium() {
	medium "$2" | cmp -s - "$1"
}
is_zero_on_medium() {
	medium "$1" | cmp -s -n $((4 << 20)) - /dev/zero
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.1
	done
}

is_ready() {
	csi-client -timeout 5s probe >/dev/null 2>&1
}

# The driver with the flags of a node pod.
start_driver() {
	local start=${EPOCHREALTIME/./}
	local flags=(-mode=node -nodeid=demo -deviceManager=lvm "-drivername=$driver_name" "-endpoint=$CSI_ENDPOINT"
		"-statePath=$LAB_STATE_DIR" "-kubeletDir=$kubelet")
	mkdir -p "$kubelet/plugins/$driver_name"
	pmem-csi-driver "${flags[@]}" >/run/driver.log 2>&1 &
	driver=$!
	within 60 is_ready || give_up "pmem-csi-driver is not ready: $(tail -n 1 /run/driver.log)"
	step "\$ $(((${EPOCHREALTIME/./} - start) / 1000)) pmem-csi-driver -mode=node -deviceManager=lvm ... &"
}

stop_driver() {
	kill -TERM "$driver" && wait "$driver"
}

# Free bytes and the largest volume that fits: "N/M".
capacity() {
	csi-client capacity | grep -o '[0-9]*$' | paste -sd /
}
free_mib() {
	local now
	now=$(capacity)
	echo "$((${now%/*} >> 20)) MiB"
}

pool_namespaces() {
	ndctl list -N | python3 -c '
import json, sys
found = json.loads(sys.stdin.read() or "[]")
print(*sorted(n["blockdev"] for n in found if (n["mode"], n.get("name")) == ("fsdax", "pmem-csi")))'
}
count_mounts() {
	grep -c " $kubelet/" /proc/self/mountinfo
}
count_records() {
	find "$LAB_STATE_DIR" -maxdepth 1 \( -name '*.json' -o -name '*.creating' -o -name '*.erasing' \) | wc -l
}
count_regions() {
	find /sys/bus/nd/devices -name 'region?' | wc -l
}
volume_groups() {
	vgs --noheadings -o vg_name 2>/dev/null | sort | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}
logical_volumes() {
	lvs --noheadings -o lv_name 2>/dev/null | sort | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}
