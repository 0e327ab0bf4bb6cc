# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Nodes that are objects and drivers, without kubelet: for scenarios between drivers, controllers and the API server.
# Sourced with the arguments of a scenario.

# shellcheck source=tests/kube/controllers.sh
. "$(dirname "${BASH_SOURCE[0]}")/controllers.sh"

# of a registration; for those who source this
# shellcheck disable=SC2034
lease_s=90
# of each of the two regions of a node
region_size=$((64 << 20))

node_object() {
	k create -f - <<-END
		apiVersion: v1
		kind: Node
		metadata: {name: $1, labels: {$driver/node: $1}}
	END
	prepare_node "$1"
}

uid_of() {
	k get node "$1" -o 'jsonpath={.metadata.uid}'
}

new_token() {
	k -n pmem-csi create token pmem-csi-node "--audience=$driver/registry" --bound-object-kind=Node \
		"--bound-object-name=$1" "--bound-object-uid=$(uid_of "$1")"
}

# give_token NODE TOKEN: as kubelet replaces it.
give_token() {
	local file=$KUBE_RUN/nodes/$1/registry-token/token
	echo -n "$2" >"$file.new"
	mv "$file.new" "$file"
}

# prepare_node NODE [ID]: for node_up(), which needs no API server then. The driver says that it is ID.
prepare_node() {
	local node=$1 id=${2:-$1} dir=$KUBE_RUN/nodes/$1 arguments
	mkdir -p "$dir"/registry-token "$dir"/kubelet/plugins{,_registry}
	secret "$dir/certs" "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs/pmem-node-controller" 0
	node_args "$node" pmem-driver
	arguments=("${arguments[@]/#-nodeid=$node/-nodeid=$id}")
	printf '%s\n' "${arguments[@]}" >"$dir/arguments"
}

# Nodes find the controllers as they would by the headless Service.
# shellcheck disable=SC2016 # expanded in the namespace
with_hosts='mount --bind "$1" /etc/hosts && shift && exec "$@"'

node_up() {
	local dir=$KUBE_RUN/nodes/$1 arguments
	mapfile -t arguments <"$dir/arguments"
	start "$1-driver" unshare -m --propagation private bash -c "$with_hosts" - "$KUBE_RUN/hosts" \
		"$programs/pmem-csi-driver" "${arguments[@]}" \
		-deviceManager=fake "-fakePath=$dir/devices" "-fakeRegionSize=$region_size" -v=5
}

says() {
	grep -q "$2" "$KUBE_RUN/log/$1.log"
}

# registers NODE: a volume that comes and goes is a change that the controller gets at once.
registers() {
	local at=unix://$KUBE_RUN/nodes/$1/kubelet/plugins/$driver/csi.sock
	"$programs/csi-client" -endpoint "$at" -size 1Mi -parameter eraseafter=false create news
	"$programs/csi-client" -endpoint "$at" delete "$(volumes_on "$1")"
}

# nodes_register CONTROLLER...: three nodes, at these controllers.
nodes_register() {
	local node controller
	apply_manifests lvm
	"$here/../../scripts/make-certs" -o "$KUBE_RUN/certs" pmem-registry pmem-node-controller
	secret "$KUBE_RUN/secrets/registry" "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs/pmem-registry" 1000
	controller_accounts
	wait_for 30 "the Deployment's pods" controller_pod b
	echo "127.0.0.1 localhost" >"$KUBE_RUN/hosts"
	for controller; do
		echo "$(controller_address "$controller") $installed-controller" >>"$KUBE_RUN/hosts"
		controller_up "$controller"
	done
	for node in node1 node2 node3; do
		node_object "$node"
		give_token "$node" "$(new_token "$node")"
		node_up "$node"
	done
	for controller; do
		wait_for 30 "three nodes" knows_nodes "$controller" 3
	done
}

# leads CONTROLLER: it is the leader of the replicas.
leads() {
	[ "$(controller_metric "$1" '^pmem_leader')" = 1 ]
}

a_or_b_leads() {
	leads a || leads b
}
