# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The init chain and the driver from the image, with exactly the mounts of the manifests, as a container runtime makes them:
# read-only root, nothing in /run but what is mounted. A volume is made and used, so that every LVM command runs. Without the mount of
# /run/pmem-csi nothing works, which shows that the test would find a mount that is forgotten.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
plan_whole_script

manifests=$VM_TESTS/../../../manifests
image=$VM_TESTS/../../../build/image/root
export CSI_ENDPOINT=unix:///var/lib/kubelet/plugins/pmem-csi.intel.com/csi.sock
state=/var/lib/pmem-csi.intel.com

# set_pod [--without VOLUME] CONTAINER: the command, in the array pod, that runs it in a mount namespace of its own, which ends
# with it. Mounts that are shared stay so.
set_pod() {
	pod=(unshare --mount --propagation unchanged "$VM_TESTS/pod")
	if [ "$1" = --without ]; then
		pod+=(--without "$2")
		shift 2
	fi
	pod+=("$manifests" "$image" "$1")
}

run_pod() {
	local pod
	set_pod "$@"
	"${pod[@]}"
}

# As kubelet leaves it: the folders, and that mounts in them are seen by all.
prepare() {
	local folder
	mkdir -p "$kubelet/plugins_registry" "$kubelet/pods" "$kubelet/plugins/kubernetes.io/csi"
	for folder in "$kubelet/pods" "$kubelet/plugins/kubernetes.io/csi"; do
		mount --bind "$folder" "$folder"
		mount --make-shared "$folder"
	done
	rm -rf /run/pmem-csi "$state/lost+found"
	note_boot
}

run_init_chain() {
	run_pod pmem-ns-init 2>"$scratch/ns-init"
	cat "$scratch/ns-init"
	equal 'what pmem-ns-init warned of' "$(grep -c '^[WE]' "$scratch/ns-init")" 0
	equal 'pool namespaces' "$(ndctl list -N | grep -c '"name":"pmem-csi"')" 2
	refute_vgm_without
	run_pod pmem-vgm
	equal 'volume groups' "$(lvm vgs --noheadings -o vg_name | wc -l)" 2
	equal 'owner and mode of the folder' "$(stat -c '%U %a' /run/pmem-csi)" 'root 755'
	# a second time, as after each restart of the pod
	run_pod pmem-ns-init
	run_pod pmem-vgm
}

# LVM has no configuration there, and must not run with another one.
refute_vgm_without() {
	if run_pod --without programs pmem-vgm >"$scratch/without" 2>&1; then
		echo 'pmem-vgm works without /run/pmem-csi'
		return 1
	fi
	grep '/run/pmem-csi' "$scratch/without"
	equal 'volume groups' "$(lvm vgs --noheadings | wc -l)" 0
}

start_driver() {
	local pod
	set_pod pmem-driver
	"${pod[@]}" >>"$driver_log" 2>&1 </dev/null &
	echo $! >"$scratch/driver.pid"
	await 60 is_ready_or_gone
	is_ready
}

staging_of() {
	echo "$kubelet/plugins/kubernetes.io/csi/$1/globalmount"
}

use_volumes() {
	local id fs
	for fs in ext4=64Mi xfs=320Mi; do
		id=$(create "manifest-${fs%=*}" "${fs#*=}" "${fs%=*}")
		stage "$id"
		publish "$id"
		has_dax "$(target_of "$id")"
		dax-check -size 1Mi -seed 3 write "$(target_of "$id")/file"
		unpublish "$id"
		unstage "$id"
		# an ext4 that was in use is checked first
		stage "$id"
		unstage "$id"
		delete "$id"
	done
	nothing_leaked
	driver_stop
	fails logged 'Read-only file system'
}

prove prepared prepare
prove init-chain-runs-with-the-mounts-of-its-manifest run_init_chain
prove driver-starts-with-the-mounts-of-its-manifest start_driver
prove volumes-are-made-and-used-with-them use_volumes
cat "$driver_log"
