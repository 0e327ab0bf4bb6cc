# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Our driver in the cluster of a run: manifests, the processes that they would start, claims and pods. For scenarios.
# Sourced with the arguments of a scenario: the folder of the run, and that of the programs under test.

# shellcheck source=tests/kube/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/kube/objects.sh
. "$here/objects.sh"

KUBE_RUN=$1 programs=$2
driver=pmem-csi.intel.com
# its namespace, and what the names of its objects begin with
installed=pmem-csi
# for the extender of a second one
second_port=10280

# of_this_driver: manifests on standard input, as they are for the driver that is meant.
of_this_driver() {
	if [ "$installed" = pmem-csi ]; then
		cat
	else
		"$here/../../scripts/second-driver" "$installed" "$driver" "$second_port"
	fi
}

# apply_manifests OVERLAY [COMPONENT]...: with pods that exist but are never started; the test does that in their place. They are
# those in $manifests, if that is set.
apply_manifests() {
	local dir=$KUBE_RUN/overlay/$1 root component components=()
	mkdir -p "$dir"
	root=$(realpath --relative-to="$dir" "${manifests:-$here/../../manifests}")
	for component in "${@:2}"; do
		components+=("$root/$component,")
	done
	cat >"$dir/kustomization.yaml" <<-END
		namespace: pmem-csi
		resources: ["$root/$1"]
		components: [${components[*]}]
		patches:
		- target: {kind: DaemonSet|Deployment}
		  patch: |
		    - {op: add, path: /spec/template/spec/schedulingGates, value: [{name: test/gate}]}
	END
	k kustomize "$dir" | of_this_driver | k apply -f -
}

# manifest_args KIND NAME CONTAINER: the arguments of a container, one per line.
manifest_args() {
	k -n "$installed" get "$1" "$2" \
		-o "jsonpath={range .spec.template.spec.containers[?(@.name==\"$3\")].args[*]}{@}{\"\\n\"}{end}"
}

# node_args NODE CONTAINER: into the array "arguments", with what differs on this node instead of in a pod.
node_args() {
	local dir=$KUBE_RUN/nodes/$1 address
	address=$(address $((10 + ${1#node})))
	mapfile -t arguments < <(manifest_args daemonset "$installed-node" "$2" | sed -e "s|\$(NODE_NAME)|$1|" \
		-e "s|\$(POD_IP)|$address|" -e "s|/var/lib/kubelet|$dir/kubelet|" -e "s|/var/lib/$driver|$dir/state|" \
		-e "s|=/certs|=$dir/certs|" -e "s|=/registry-token|=$dir/registry-token|" -e "s|=/csi/|=$dir/kubelet/plugins/$driver/|" \
		-e "s|=:\(100[0-9]*\)|=$address:\1|")
}

# driver_up NODE [ARGUMENT]...: starts the node's driver as the DaemonSet would, but on fake devices.
driver_up() {
	local node=$1 dir=$KUBE_RUN/nodes/$1 arguments
	shift
	mkdir -p "$dir/kubelet/plugins_registry"
	node_args "$node" pmem-driver
	start "$node-driver" nsenter -t "$(pid_of "$node-containerd")" -m "$programs/pmem-csi-driver" \
		"${arguments[@]}" -deviceManager=fake "-fakePath=$dir/devices" -v=5 "$@"
}

is_registered() {
	k get csinode "$1" -o 'jsonpath={.spec.drivers[*].name}' | grep -qw "$driver"
}

# metric NODE NAME: of the node's driver, an integer.
metric() {
	curl -sf "http://$(address $((10 + ${1#node}))):10010/metrics" | awk -v name="$2" '
		index($1, name "{") == 1 { printf "%.0f\n", $2; found = 1 }
		END { exit !found }'
}

metric_is() {
	[ "$(metric "$1" "$2")" = "$3" ]
}

# devices_of NODE: files of its volumes that loop devices hold.
devices_of() {
	on_node "$1" losetup --list --noheadings --output BACK-FILE |
		awk -v dir="$KUBE_RUN/nodes/$1/devices/" 'index($0, dir)'
}

# pod NAME VOLUME [NODE]: writes its name into a file of the volume, which is YAML without its name.
pod() {
	local selector=''
	[ -z "${3:-}" ] || selector="kubernetes.io/hostname: $3"
	k apply -f - <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  nodeSelector: {$selector}
		  hostNetwork: true
		  automountServiceAccountToken: false
		  terminationGracePeriodSeconds: 1
		  containers:
		  - name: main
		    image: localhost/busybox:1
		    imagePullPolicy: Never
		    command: [sh, -c, "echo \$0 >>/volume/names && sync && exec sleep 3600", "$1"]
		    volumeMounts: [{name: volume, mountPath: /volume}]
		  volumes:
		  - {name: volume, $2}
	END
}

# in_pod NODE POD: the folder that the pod's volume is mounted at, in the node's namespace.
in_pod() {
	local uid pattern
	uid=$(value pod "$2" .metadata.uid)
	pattern="$KUBE_RUN/nodes/$1/kubelet/pods/$uid/volumes/kubernetes.io~csi/*/mount"
	on_node "$1" bash -c "echo $pattern"
}

on_node() {
	local node=$1
	shift
	nsenter -t "$(pid_of "$node-containerd")" -m "$@"
}

# has_written NODE POD FSTYPE NAME...: the pod's volume is one of ours, with these names in it.
has_written() {
	local node=$1 pod=$2 type=$3 mount
	shift 3
	mount=$(in_pod "$node" "$pod")
	[ "$(on_node "$node" findmnt -n -o FSTYPE "$mount")" = "$type" ]
	[ "$(on_node "$node" cat "$mount/names" | tr '\n' ' ')" = "$* " ]
}

# token_of ACCOUNT: writes a kubeconfig users/ACCOUNT that has nothing but a token of this ServiceAccount.
token_of() {
	k -n "$installed" create token "$1" --duration=4h >"$KUBE_RUN/tokens/$1"
	write_user "$1" "$KUBE_RUN/tokens/$1"
	chmod 0644 "$KUBE_RUN/tokens/$1" "$KUBE_RUN/users/$1"
}

# pod_of PREFIX [NODE]: name of a pod that the API server has of the manifests; of this node, if it is a DaemonSet's.
pod_of() {
	local affinity=.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
	k -n "$installed" get pods -o "jsonpath={range .items[*]}{.metadata.name} {$affinity.nodeSelectorTerms[*].matchFields[*].values[*]}{\"\\n\"}{end}" |
		awk -v prefix="$1" -v node="${2:-}" 'index($1, prefix) == 1 && (node == "" || $2 == node) { print $1; exit }'
}

# provisioner_up NODE ARGUMENT...: the one of the distributed variant.
provisioner_up() {
	local node=$1 arguments
	shift
	node_args "$node" external-provisioner
	wait_for 30 "the DaemonSet's pod for $node" has_pod "$node" || return 1
	start "$node-provisioner" bash -c "$again_and_again" - env "NODE_NAME=$node" "NAMESPACE=$installed" "POD_NAME=$(pod_of "$installed-node" "$node")" \
		"$bin/csi-provisioner" "--kubeconfig=$KUBE_RUN/users/$installed-node" "${arguments[@]}" -v=5 "$@"
}

has_pod() {
	[ -n "$(pod_of "$installed-node" "$1")" ]
}
