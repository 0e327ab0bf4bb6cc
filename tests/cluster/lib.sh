# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the programs here share. $KUBE_RUN is the folder of the cluster: that of a control plane, as tests/kube/lib.sh
# describes it, and
#
#   netns           the network namespace in which everything of the cluster is: a bridge, and a tap device per machine
#   hardware/NAME   the run folder of a machine (tests/machine/lab/vm)
#   images/         image archives, and the disk that machines begin with

cluster_home=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/kube/lib.sh
. "$cluster_home/../kube/lib.sh"

machines=(node1 node2)
POD_NETWORK=10.244.0.0/16
SERVICES=192.0.2.0/24 # as tests/kube/up has it
DNS=192.0.2.10
kubernetes_version=${bin##*/kubernetes-} # as tests/kube/get names the folder
export KUBE_RUN POD_NETWORK SERVICES

# address_of MACHINE
address_of() {
	address $((10 + ${1#node}))
}

# pods_of MACHINE: the addresses that its pods have.
pods_of() {
	echo "10.244.${1#node}.0/24"
}

# kustomization OVERLAY [COMPONENT]...: prints the folder of one that has these parts of manifests/, and the component that prepares
# memory as it comes, since the label areas of the machines are blank. A second kube-scheduler has the version of the cluster.
kustomization() {
	local folder=$KUBE_RUN/kustomization root part components=()
	mkdir -p "$folder"
	root=$(realpath --relative-to="$folder" "$cluster_home/../../manifests")
	part=memory-preparation
	[ "$1" != direct ] || part+=/direct
	for part in "$part" "${@:2}"; do
		components+=("$root/$part,")
	done
	cat >"$folder/kustomization.yaml" <<-END
		apiVersion: kustomize.config.k8s.io/v1beta1
		kind: Kustomization
		namespace: pmem-csi
		resources: [$root/$1]
		components: [${components[*]}]
		images: [{name: registry.k8s.io/kube-scheduler, newTag: v$kubernetes_version}]
	END
	echo "$folder"
}

# machine_on NAME: does not wait for it.
machine_on() {
	local name=$1 n=${1#node} other neighbours=()
	is_stopped "$name" || die "$name is on"
	for other in "${machines[@]}"; do
		[ "$other" = "$name" ] || neighbours+=("$(pods_of "$other")@$(address_of "$other")")
	done
	start "$name" "$cluster_home/../machine/lab/vm" --keep --run-dir "$KUBE_RUN/hardware/$name" --script "$cluster_home/guest-node" \
		--timeout 999999 --start-timeout 150 --state-dir /var/lib --early-writeback --memory 2560 \
		--tap "tap$n" --mac "52:54:00:00:00:0$n" --first-slot $(((n - 1) * 2)) \
		"LAB_HOSTNAME=$name" "NODE=$name" "ADDRESS=$(address_of "$name")" "GATEWAY=$(address 1)" "PODS=$(pods_of "$name")" \
		"NEIGHBOURS=${neighbours[*]}" "POD_NETWORK=$POD_NETWORK" "DNS=$DNS" \
		"KUBE_RUN=$KUBE_RUN" "KUBE_BIN=$bin" "CLUSTER_HOME=$cluster_home"
}

# machine_cut NAME: its power fails. Done when the machine can be switched on again.
machine_cut() {
	kill -USR1 "$(pid_of "$1")" || die "$1 is off"
	wait_for 120 "the end of $1" is_stopped "$1" || die "$1 goes on without power"
}

# machine_returns NAME CONDITION...: waits until it holds after the machine was switched on. A guest that does not come up is
# switched on again twice, after 150 s each.
machine_returns() {
	local name=$1
	shift
	wait_for 900 "$name to be back" "$@" || {
		tail -n 8 "$KUBE_RUN/log/$name.log" | sed 's/^/error: /'
		return 1
	}
}

# machine_off NAME: in good order.
machine_off() {
	in_machine "$1" sh -c 'echo off >/run/end' || die "$1 does not listen"
	wait_for 180 "the end of $1" is_stopped "$1" || die "$1 does not end, see $KUBE_RUN/log/$1.log"
}

# in_machine NAME COMMAND...: as root.
in_machine() {
	local name=$1
	shift
	in_network "$cluster_home/agent" run "$(address_of "$name")" "$@"
}

# condition_of KIND NAME CONDITION
condition_of() {
	k get "$1" "$2" -o "jsonpath={.status.conditions[?(@.type==\"$3\")].status}"
}

# A node that came back is Ready only when its kubelet has said so since.
is_ready() {
	[ "$(condition_of node "$1" Ready)" = True ]
}

# import FILE: an image archive, into all machines that are on.
import() {
	local name
	for name in "${machines[@]}"; do
		is_stopped "$name" || in_machine "$name" ctr -n k8s.io images import - <"$1"
	done
}
