# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scenarios: the driver in the cluster of machines, and pods that use it. A scenario finds the cluster up and the driver
# installed, and leaves them so, without volumes; each proof is a line of its output, and "SUITE passed failed skipped" the last.
# Sourced with the argument of a scenario, the folder of the cluster. Everything in the machines takes some ten times as long as
# on real ones, so limits are generous.

# shellcheck source=tests/cluster/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/kube/objects.sh
. "$here/objects.sh"

KUBE_RUN=$(cd "$1" && pwd -P)
manifests=$(cd "$here/../../manifests" && pwd -P)
driver=pmem-csi.intel.com
patience_s=${SCENARIO_PATIENCE_S:-480} # on a host that is busy otherwise, more

# kd ARGUMENT...: kubectl in the driver's namespace.
kd() {
	k -n pmem-csi "$@"
}

# rolled_out WORKLOAD...: all of its pods are there, of its newest version, and ready.
rolled_out() {
	local it
	for it in "$@"; do
		kd rollout status "$it" "--timeout=${patience_s}s" || {
			kd get pods -o wide
			kd get events --sort-by=.lastTimestamp | tail -n 15
			return 1
		}
	done
}

# driver_pod NODE: the one that is not being deleted.
driver_pod() {
	kd get pods -l app.kubernetes.io/name=pmem-csi-node --field-selector "spec.nodeName=$1" \
		-o 'jsonpath={range .items[*]}{.metadata.deletionTimestamp}:{.metadata.name}{"\n"}{end}' | sed -n 's/^://p'
}

# driver_status NODE PATH: of its container.
driver_status() {
	kd get pod "$(driver_pod "$1")" -o "jsonpath={.status.containerStatuses[0]$2}"
}

# driver_started_after NODE TIMES: it has been restarted more often than that.
driver_started_after() {
	[ "$(driver_status "$1" .restartCount)" -gt "$2" ]
}

is_registered() {
	k get csinode "$1" -o 'jsonpath={.spec.drivers[*].name}' | grep -qw "$driver"
}

# driver_says NODE ARGUMENT...: what the driver's program finds out on the node, from within its pod.
driver_says() {
	local node=$1
	shift
	kd exec "$(driver_pod "$node")" -c pmem-driver -- /usr/local/bin/pmem-csi-driver "$@"
}

# is_consistent NODE: what its driver has recorded and what is on the node. Shows what does not fit.
is_consistent() {
	local said
	said=$(driver_says "$1" check) || true
	echo "$said"
	grep ': consistent' <<<"$said"
}

# capacity_of NODE [FIELD [CLASS]]: in bytes, of the late-binding class for ext4 if no other is named. FIELD is maximumVolumeSize for what
# fits into the pool that has most.
capacity_of() {
	kd get csistoragecapacities -o json | python3 -c '
import json, re, sys
units = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
for item in json.load(sys.stdin)["items"]:
    number, unit = re.fullmatch("([0-9]+)([a-zA-Z]*)", item.get(sys.argv[2], "0")).groups()
    if sys.argv[1] in item["nodeTopology"]["matchLabels"].values() and item["storageClassName"] == sys.argv[3]:
        print(int(number) * units[unit])
' "$1" "${2:-capacity}" "${3:-pmem-csi-sc-late-binding-ext4}"
}

# installed_overlay: what "install" has applied.
installed_overlay() {
	cat "$KUBE_RUN/overlay"
}

has_extender() {
	[[ $(installed_overlay) == *-scheduler ]]
}

# is_marked POD: by the webhook, so that kube-scheduler asks the extender.
is_marked() {
	value pod "$1" '.spec.containers[*].resources.requests' | grep "$driver/scheduler"
}

# make_fresh NODE: what docs/INSTALL.md says for removing everything from a node.
make_fresh() {
	# shellcheck disable=SC2016 # in the machine
	in_machine "$1" sh -ec '
		for group in $(lvm vgs --noheadings -o vg_name); do
			devices=$(lvm vgs --noheadings -o pv_name "$group")
			lvm vgremove -f "$group"
			lvm pvremove $devices
		done
		ndctl destroy-namespace --force all
		rm -rf /var/lib/pmem-csi.intel.com /var/lib/kubelet/plugins/pmem-csi.intel.com'
}

# delete_records: the section "Deleting the records of volumes" of docs/INSTALL.md.
delete_records() {
	local volume
	kd delete --ignore-not-found deployment/pmem-csi-controller --cascade=foreground "--timeout=${patience_s}s"
	k delete --wait=false pmemvolumes -l "pmem-csi.intel.com/driver=$driver"
	for volume in $(k get pmemvolumes -l "pmem-csi.intel.com/driver=$driver" -o name); do
		k patch "$volume" --type=merge -p '{"metadata":{"finalizers":null}}'
	done
}

# uninstall_overlay: in the order of docs/INSTALL.md, with volumes left.
uninstall_overlay() {
	local overlay namespace name
	overlay=$(installed_overlay)
	if has_extender; then
		k delete mutatingwebhookconfiguration pmem-csi-hook --ignore-not-found
		while read -r namespace name _; do
			k -n "$namespace" delete pod "$name" "--timeout=${patience_s}s"
		done < <(k get pods -A --field-selector=status.phase=Pending -o \
			'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.spec.containers[*].resources.requests}{"\n"}{end}' |
			sed -n "\|$driver/scheduler|p")
	fi
	[ "$overlay" != lvm-scheduler ] || sed '/^extenders:/,$d' "$manifests/scheduler/kube-scheduler.yaml" | "$cluster_home/scheduler" "$KUBE_RUN"
	delete_records
	k delete --ignore-not-found -k "$manifests/$overlay" "--timeout=${patience_s}s"
	is_gone namespace pmem-csi
	is_gone csidriver "$driver"
}

# install_overlay OVERLAY: all that it has is up.
install_overlay() {
	local workloads
	"$cluster_home/install" "$KUBE_RUN" "$1"
	workloads=$(kd get daemonsets,deployments -o name)
	# shellcheck disable=SC2086 # words
	rolled_out $workloads
}

# add_component NAME: of manifests/, to the overlay that is installed. remove_component leaves the objects that were added.
add_component() {
	k apply -k "$(kustomization "$(installed_overlay)" "$1")"
}

remove_component() {
	k apply -k "$(kustomization "$(installed_overlay)")"
}

# ephemeral_claim CLASS SIZE: a volume with a claim of its own.
ephemeral_claim() {
	echo "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: $1, resources: {requests: {storage: $2}}}}}"
}

# inline FSTYPE SIZE
inline() {
	echo "csi: {driver: $driver, fsType: $1, volumeAttributes: {size: $2}}"
}

# What a pod may do is as little as there is: its user is not root, it has no capabilities, and the volume is its group's.
# Variables of the caller may change a pod: node, scheduler, runtime (its RuntimeClass), task (a shell script), user, and mounts (how the
# container has the volume).
user=1000
mounts="volumeMounts: [{name: volume, mountPath: /volume}]"
sleeping='exec sleep 100000'

# pod NAME VOLUME: VOLUME is YAML without its name. It is at /volume.
pod() {
	k apply -f - <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, labels: {scenario: ""}}
		spec:
		  nodeSelector: {${node:+kubernetes.io/hostname: $node}}
		  schedulerName: ${scheduler:-default-scheduler}
		  ${runtime:+runtimeClassName: $runtime}
		  automountServiceAccountToken: false
		  terminationGracePeriodSeconds: 1
		  restartPolicy: Always
		  securityContext: {runAsUser: $user, runAsGroup: $user, fsGroup: 2000}
		  containers:
		  - name: main
		    image: localhost/dax-check:1
		    command: [sh, -c]
		    args: ["${task:-$sleeping}"]
		    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
		    $mounts
		  volumes:
		  - {name: volume, $2}
	END
}

# in_pod NAME COMMAND...
in_pod() {
	local name=$1
	shift
	k exec "$name" -- "$@"
}

# running POD...
running() {
	local it
	for it in "$@"; do
		wait_phase pod "$it" Running "$patience_s"
	done
}

# The program of a writer: a number per line, each durable before the next, and an end at the first error.
# shellcheck disable=SC2016,SC2034 # of the pod; for scenarios
writing='i=0; while i=$((i + 1)) && echo $i >>/volume/numbers && sync /volume/numbers; do sleep 0.3; done; exit 1'

# written POD: how many numbers.
written() {
	in_pod "$1" sh -c 'wc -l </volume/numbers'
}

has_written_more() {
	[ "$(written "$1")" -gt "$2" ]
}

# writes_without_error POD...: it goes on writing, was never restarted, and no number is missing.
writes_without_error() {
	local it before
	for it in "$@"; do
		before=$(written "$it")
		wait_for 60 "$it to write" has_written_more "$it" "$before"
		[ "$(value pod "$it" '.status.containerStatuses[0].restartCount')" = 0 ]
		# shellcheck disable=SC2016 # in the pod
		in_pod "$it" sh -c 'seq $(wc -l </volume/numbers) | head -n -1 >/tmp/n && head -n $(wc -l </tmp/n) /volume/numbers | cmp - /tmp/n'
	done
}

# Its container has ended once at least.
is_started_again() {
	[ "$(value pod "$1" '.status.containerStatuses[0].restartCount')" -ge 1 ] && phase_is pod "$1" Running
}

# all_gone: pods and claims of the scenario, with their volumes.
all_gone() {
	k delete pods -l scenario --timeout="${patience_s}s" --ignore-not-found
	k delete pvc --all --timeout="${patience_s}s"
	wait_for "$patience_s" "the end of the volumes" is_gone pv
}
