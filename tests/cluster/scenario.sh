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

# ephemeral_claim CLASS SIZE: a volume with a claim of its own.
ephemeral_claim() {
	echo "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: $1, resources: {requests: {storage: $2}}}}}"
}

# inline FSTYPE SIZE
inline() {
	echo "csi: {driver: $driver, fsType: $1, volumeAttributes: {size: $2}}"
}

# What a pod may do is as little as there is: its user is not root, it has no capabilities, and the volume is its group's.
# Variables of the caller may change a pod: node, task (a shell script), user, and mounts (how the container has the volume).
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
