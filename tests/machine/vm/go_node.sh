# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# A node as the Go driver leaves it, made by hand after its behaviour; for takeover.sh. Needs lib.sh.

group=ndbus0region0fsdax
secret='bytes-of-the-go-driver'
copies=$scratch/copies
mkdir -p "$copies"

# go_id NAME: what 0.7 and later call the volume of that name.
go_id() {
	local sum
	sum=$(printf '%s' "$1" | sha224sum)
	echo "${1:0:6}-${sum%% *}"
}

# go_file ID SIZE PARAMETERS: one line, as encoding/json writes it.
go_file() {
	(
		umask 077
		printf '{"id":"%s","size":%s,"parameters":%s}\n' "$1" "$2" "$3" >"$state/$1.json"
	)
}

# go_device ID MIB: unlike ours it bears no tag.
go_device() {
	lvm lvcreate -qq -y -Zn -Wn -L "${2}m" -n "$1" "$group"
	yes "$secret" | dd of="/dev/$group/$1" bs=1M count="$2" iflag=fullblock conv=fsync status=none
}

# go_volume NAME MIB [BEFORE [AFTER]]: as 1.1 leaves it, with parameters that come before and after the name.
go_volume() {
	local id
	id=$(go_id "$1")
	go_device "$id" "$2"
	go_file "$id" $(($2 << 20)) "{\"deviceMode\":\"lvm\",${3:-}\"name\":\"$1\"${4:-}}"
	echo "$id" >"$scratch/id.$1"
}

# id NAME: the volume's ID
id() {
	echo "$(<"$scratch/id.$1")"
}

# go_format NAME FS [OPTION]...
go_format() {
	local name=$1 fs=$2
	shift 2
	dd if=/dev/zero of="/dev/$group/$(id "$name")" bs=4k count=1 conv=notrunc,fsync status=none
	case $fs in
	ext4) mke2fs -q -F -t ext4 -b 4096 -E stride=512,stripe_width=512 "/dev/$group/$(id "$name")" ;;
	xfs) mkfs.xfs -q -f -b size=4096 -m reflink=0 "/dev/$group/$(id "$name")" ;;
	esac
	mkdir -p "$(staging_of "$(id "$name")")"
	mount -t "$fs" "$@" "/dev/$group/$(id "$name")" "$(staging_of "$(id "$name")")"
}

# go_publish NAME [POD [OPTIONS]]
go_publish() {
	local target
	target=$(target_of "$(id "$1")" "${2:-pod}")
	mkdir -p "$target"
	mount -o bind "$(staging_of "$(id "$1")")" "$target"
	[ -z "${3:-}" ] || mount -o "remount,bind,$3" "$target"
}

# go_namespace NAME: a volume of the other device mode, with a file system, mounted as kubelet has it.
go_namespace() {
	local id
	id=$(go_id "$1")
	echo "$id" >"$scratch/id.$1"
	ndctl create-namespace -r region1 -m fsdax -n "$id" -s 64M >"$scratch/namespace"
	go_file "$id" $((64 << 20)) "{\"deviceMode\":\"direct\",\"name\":\"$1\"}"
	mkdir -p "$(staging_of "$id")"
	mke2fs -q -F -t ext4 -b 4096 "$(node_of_namespace "$id")"
	mount -t ext4 -o dax "$(node_of_namespace "$id")" "$(staging_of "$id")"
	dax-check -size 4Mi -seed 5 write "$(staging_of "$id")/mapped"
}

node_of_namespace() {
	echo "/dev/$(ndctl list -N | sed -n "/\"name\":\"$1\"/{x;p}; /\"blockdev\":/{s/.*\"blockdev\":\"\([^\"]*\)\".*/\1/;h}")"
}

# go_block NAME: its node shown to a pod
go_block() {
	local target
	go_volume "$1" 16
	target=$(target_of "$(id "$1")")
	touch "$target"
	mount -o bind "$(readlink -f "/dev/$group/$(id "$1")")" "$target"
}

# go_kata NAME: a file system on the host, in it an image with another one, which a loop device shows to the pod.
go_kata() {
	local host image
	go_volume "$1" 64 '"kataContainers":"true",'
	go_format "$1" ext4 -o dax
	host=$state/mount/$(id "$1")
	image=$host/kata-containers-pmem-csi-vm.img
	mkdir -p "$host" "$(target_of "$(id "$1")")"
	mount -t ext4 -o dax "/dev/$group/$(id "$1")" "$host"
	truncate -s 40M "$image"
	losetup -o 2M -f "$image"
	loop=$(losetup -nO NAME -j "$image")
	mke2fs -q -F -t ext4 -b 4096 "$loop"
	mount -t ext4 "$loop" "$(target_of "$(id "$1")")"
	touch "$(target_of "$(id "$1")")/file-of-kata"
}

# go_ephemeral NAME: of a pod; the handle of kubelet is only a name.
go_ephemeral() {
	local target
	go_volume "$1" 16 '' ',"persistencyModel":"ephemeral","size":"16777216"'
	go_format "$1" ext4 -o dax
	target=$(target_of "$1")
	mkdir -p "$target"
	mount -o dax "/dev/$group/$(id "$1")" "$target"
	umount "$(staging_of "$(id "$1")")"
	dax-check -size 4Mi -seed 7 write "$target/mapped"
}

make_pool() {
	initialise_labels_by_hand
	ndctl create-namespace -r region0 -m fsdax -n pmem-csi -s 640M
	ndctl create-namespace -r region1 -m fsdax -n pmem-csi -s 480M
	lvm vgcreate -qq --force "$group" /dev/pmem0
	lvm vgcreate -qq --force ndbus0region1fsdax /dev/pmem1
	note_kept
	mkdir -m 0750 "$state" "$state/mount"
}

# What a volume went through is in its name.
make_volumes() {
	local old
	go_volume pvc-idle 16
	go_format pvc-idle ext4 -o dax
	dax-check -size 4Mi -seed 1 write "$(staging_of "$(id pvc-idle)")/mapped"
	umount "$(staging_of "$(id pvc-idle)")"
	go_volume pvc-new 16
	go_volume pvc-used 16
	go_format pvc-used ext4 -o dax
	go_publish pvc-used
	dax-check -size 4Mi -seed 2 write "$(target_of "$(id pvc-used)")/mapped"
	go_volume pvc-xfs 320 '"eraseafter":"false",'
	go_format pvc-xfs xfs -o dax
	dax-check -size 4Mi -seed 3 write "$(staging_of "$(id pvc-xfs)")/mapped"
	go_volume pvc-ro 16 '' ',"persistencyModel":"normal"'
	go_format pvc-ro ext4 -o dax
	go_publish pvc-ro pod ro
	go_volume pvc-fileio 16 '' ',"usage":"FileIO"'
	go_format pvc-fileio ext4
	go_publish pvc-fileio
	# 0.7 to 0.9 noted the size that was asked for; 0.6 no mode, and hashed otherwise.
	go_volume pvc-07 16
	go_file "$(id pvc-07)" 15000001 \
		'{"deviceMode":"lvm","eraseafter":"true","kataContainers":"false","name":"pvc-07","persistencyModel":"none"}'
	old=$(printf pvc-06 | sha1sum)
	echo "${old%% *}" >"$scratch/id.pvc-06"
	go_device "$(id pvc-06)" 16
	go_file "$(id pvc-06)" 15000000 '{"eraseafter":"true","name":"pvc-06","nsmode":"fsdax"}'
}

# Kinds that are no file system of the pool's on a path
make_other_kinds() {
	go_block pvc-block
	go_kata pvc-kata
	go_ephemeral csi-1f0c9a
	go_namespace pvc-direct
	go_publish pvc-direct
	go_namespace pvc-direct-idle
	umount "$(staging_of "$(id pvc-direct-idle)")"
}

# Its orphans and leftovers
make_rubbish() {
	go_volume pvc-damaged 16
	truncate -s 40 "$state/$(id pvc-damaged).json"
	go_file "$(go_id pvc-stale)" 16777216 '{"deviceMode":"lvm","name":"pvc-stale"}'
	printf '{"id":' >"$state/$(go_id pvc-idle).json.tmp"
	: >"$state/$(go_id pvc-never).json.tmp"
	go_device stranger 16
	mkdir "$state/mount/$(go_id pvc-gone)"
}

untouched='pvc-new pvc-07 pvc-06 pvc-damaged'

# Byte for byte, in memory: what nothing may write to.
copy_bytes() {
	local name
	cat "/dev/$group/stranger" >"$copies/stranger"
	cat "/dev/$group/$(id pvc-idle)" >"$copies/pvc-idle"
	cat "/dev/$group/$(id pvc-block)" >"$copies/pvc-block"
	for name in $untouched; do
		cat "/dev/$group/$(id "$name")" >"$copies/$name"
	done
	cp -a "$state" "$copies/state"
	mounts_of_kubelet >"$copies/mounts"
}

mounts_of_kubelet() {
	local line
	while read -r line; do
		[[ $line != *" $kubelet/"* ]] || echo "${line#* * * }"
	done </proc/self/mountinfo
}

make_node() {
	make_pool
	make_volumes
	make_other_kinds
	make_rubbish
	copy_bytes
}

