# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Two nodes whose volumes can have snapshots: snapshot-controller, and external-snapshotter and external-provisioner beside two
# controllers. For scenarios, which say in $region_size how much memory each of the two regions of a node has. Sourced with the
# arguments of a scenario.

# shellcheck source=tests/kube/controllers.sh
. "$(dirname "${BASH_SOURCE[0]}")/controllers.sh"

class=$installed-sc-late-binding-ext4
snapshot_api=snapshot.storage.k8s.io

# shellcheck disable=SC2154 # of the scenario
node_driver_up() {
	driver_up "$1" "-fakeRegionSize=$region_size" "${@:2}"
}

# controllers_up [SIDECAR]...: "a" and "b", with these sidecars
controllers_up() {
	local it sidecar
	for it in a b; do
		controller_up "$it"
		for sidecar in "$@"; do
			sidecar_for "$it" "$sidecar"
		done
	done
}

# cluster_comes_up COMPONENT: the one that adds external-snapshotter. The add-on of the cluster comes first, as INSTALL has it.
cluster_comes_up() {
	local it
	k apply -k "$bin/snapshot-crds"
	k wait --for=condition=Established --timeout=60s crd --all
	start snapshot-controller "$bin/snapshot-controller" "--kubeconfig=$KUBE_RUN/users/admin" -v=5
	two_nodes_come_up lvm "$1"
	controllers_up provisioner snapshotter
	for it in node1 node2; do
		node_driver_up "$it"
		wait_for 60 "registration with kubelet" is_registered "$it"
	done
	wait_for 60 "the nodes at both controllers" both_know_the_nodes
}

# node_driver_again NODE [ARGUMENT]...: after it was killed, and when controllers know the node again
node_driver_again() {
	stop "$1-driver" KILL
	sleep 1
	node_driver_up "$@"
	wait_for 60 "registration with kubelet" is_registered "$1"
	wait_for 60 "the nodes at both controllers" both_know_the_nodes
}

# starts CLAIM SIZE NODE: a claim, and a pod of that name that uses it.
starts() {
	claim "$1" "$class" "$2"
	pod "$1" "$(claimed "$1")" "$3"
	wait_phase pod "$1" Running
}

# is_ready NAME [KIND]
is_ready() {
	[ "$(value "${2:-volumesnapshot}" "$1" .status.readyToUse)" = true ]
}

# wait_ready NAME [SECONDS] [KIND]
wait_ready() {
	local kind=${3:-volumesnapshot}
	wait_for "${2:-60}" "$kind $1 to be ready" is_ready "$1" "$kind" || {
		k describe "$kind,${kind}content" | tail -n 40
		return 1
	}
}

# says NAME PATTERN [KIND]: the error that users see there
says() {
	value "${3:-volumesnapshot}" "$1" .status.error.message | grep -q -- "$2"
}

# snapshot NAME CLAIM [CLASS]
snapshot() {
	k apply -f - <<-END
		apiVersion: $snapshot_api/v1
		kind: VolumeSnapshot
		metadata: {name: $1}
		spec: {volumeSnapshotClassName: ${3:-$installed-snapclass}, source: {persistentVolumeClaimName: $2}}
	END
}

# record_of_snapshot NAME: the name of its PmemVolume
record_of_snapshot() {
	k get pmemvolumes -o "jsonpath={range .items[?(@.spec.volumeSnapshot==\"default/$1\")]}{.metadata.name}{end}"
}

# in_set SET CLAIM...
in_set() {
	k label pvc "${@:2}" "set=$1"
}

# group NAME SET: of the claims with the label set=SET
group() {
	k apply -f - <<-END
		apiVersion: groupsnapshot.storage.k8s.io/v1
		kind: VolumeGroupSnapshot
		metadata: {name: $1}
		spec: {volumeGroupSnapshotClassName: $installed-groupsnapclass, source: {selector: {matchLabels: {set: $2}}}}
	END
}

# members GROUP: the VolumeSnapshots of it, each with its claim and whether it is ready
members() {
	k get volumesnapshots -o "jsonpath={range .items[?(@.status.volumeGroupSnapshotName==\"$1\")]}{.metadata.name} {.spec.source.persistentVolumeClaimName} {.status.readyToUse}{\"\\n\"}{end}"
}

are_ready() {
	[ "$(members "$1" | grep -c ' true$')" = "$2" ]
}

# member GROUP CLAIM: the VolumeSnapshot of it
member() {
	members "$1" | awk -v claim="$2" '$2 == claim { print $1; found = 1 } END { exit !found }'
}

# write_into POD TEXT: on node1, a line behind those that pods have written.
write_into() {
	on_node node1 bash -c "echo $2 >>$(in_pod node1 "$1")/names && sync -f $(in_pod node1 "$1")"
}

# restored NAME SNAPSHOT NODE [SIZE]: a claim with what the snapshot has, and a pod of that name that uses it. Without SIZE it is as
# large as the snapshot.
restored() {
	local size=${4:-$(value volumesnapshot "$2" .status.restoreSize)}
	k apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec:
		  accessModes: [ReadWriteOnce]
		  storageClassName: $class
		  resources: {requests: {storage: $size}}
		  dataSource: {apiGroup: $snapshot_api, kind: VolumeSnapshot, name: $2}
	END
	pod "$1" "$(claimed "$1")" "$3"
}

# stand_still: a file system of node1 is, or may be, frozen
stand_still() {
	on_node node1 bash -c "grep -q '\"freezing\":true' $KUBE_RUN/nodes/node1/state/*.json"
}

free() {
	metric node1 pmem_amount_available
}

has_free() {
	[ "$(free)" = "$1" ]
}

all_space_is_free() {
	metric_is node1 pmem_amount_available $((2 * region_size)) && metric_is node2 pmem_amount_available $((2 * region_size))
}

# everything_goes KIND: pods, the snapshots of this kind, and claims
everything_goes() {
	k delete pod --all --timeout=60s
	k delete "$1" --all --timeout=120s
	k delete pvc --all --timeout=60s
	wait_for 120 "the space of the nodes" all_space_is_free
	wait_for 60 "the end of all records" is_gone pmemvolumes ''
	is_gone "${1}contents" ''
}
