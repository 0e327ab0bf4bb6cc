# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A pod per kind of volume, and what each of them can do. For scenarios, which have sourced scenario.sh.

late=pmem-csi-sc-late-binding

block_claim() {
	k apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: block}
		spec: {accessModes: [ReadWriteOnce], volumeMode: Block, storageClassName: $late-ext4, resources: {requests: {storage: 64Mi}}}
	END
}

# shellcheck disable=SC2034 # for pod
block_pod() {
	local user=0 mounts='volumeDevices: [{name: volume, devicePath: /device}]'
	pod block "$(claimed block)"
}

# shellcheck disable=SC2034 # for pod
sub_path_pod() {
	local mounts='volumeMounts: [{name: volume, mountPath: /volume, subPath: one/two}]'
	pod sub-path "$(claimed ext4)"
}

# All at once; kubelet takes its time for each.
pods_start() {
	claim ext4 "$late-ext4" 128Mi
	claim xfs "$late-xfs" 384Mi
	claim fileio pmem-csi-sc-ext4-fileio 64Mi
	block_claim
	pod ext4 "$(claimed ext4)"
	pod xfs "$(claimed xfs)"
	# Its volume is created before it is known where the pod is to be.
	node='' pod fileio "$(claimed fileio)"
	pod inline "$(inline ext4 64Mi)"
	pod generic "$(ephemeral_claim "$late-ext4" 64Mi)"
	block_pod
	running ext4 xfs fileio inline generic block
}

# type_in POD TYPE: the file system at /volume
type_in() {
	in_pod "$1" sh -c 'grep " /volume " /proc/mounts' | grep " $2 "
}

# stores_directly POD: MAP_SYNC works from within the container, and what was stored so is read.
stores_directly() {
	in_pod "$1" dax-check -seed 1 write /volume/data
	in_pod "$1" dax-check -seed 1 verify /volume/data
}

ext4_with_dax() {
	type_in ext4 ext4
	stores_directly ext4
}

xfs_with_dax() {
	type_in xfs xfs
	stores_directly xfs
}

fileio_without_dax() {
	type_in fileio ext4
	in_pod fileio touch /volume/mapped
	in_pod fileio dax-check refused /volume/mapped
	in_pod fileio dax-check -plain write /volume/data
	in_pod fileio dax-check -plain verify /volume/data
}

block_device() {
	in_pod block sh -c 'echo here | dd of=/device bs=512 seek=8 conv=notrunc,fsync'
	[ "$(in_pod block sh -c 'dd if=/device bs=512 skip=8 count=1 | head -c 4')" = here ]
	# shellcheck disable=SC2016 # in the pod
	in_pod block sh -c '[ "$(blockdev --getsize64 /device)" -ge 67108864 ]'
}

inline_volume() {
	type_in inline ext4
	stores_directly inline
}

generic_ephemeral_volume() {
	type_in generic ext4
	stores_directly generic
}

fs_group() {
	[ "$(in_pod ext4 stat -c '%g' /volume)" = 2000 ]
	in_pod ext4 touch /volume/new
	[ "$(in_pod ext4 stat -c '%u %g' /volume/new)" = '1000 2000' ]
}

sub_path() {
	sub_path_pod
	running sub-path
	in_pod sub-path touch /volume/below
	in_pod ext4 ls /volume/one/two/below
}

read_only() {
	pod read-only "persistentVolumeClaim: {claimName: ext4, readOnly: true}"
	running read-only
	in_pod read-only ls /volume/data
	in_pod read-only sh -c 'touch /volume/no 2>&1 || true' | grep 'Read-only file system'
}
