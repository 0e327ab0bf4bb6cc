# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Controllers of a run, "a" and "b": each in what its pod would give it, driver and provisioner.

# shellcheck source=tests/kube/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# A pod's world: no root, no capabilities, nothing that can be written but /tmp and the folder of the socket, and the
# ServiceAccount's token where it is in a pod; the host's name is the pod's, by which the provisioner goes when one of
# several leads. Arguments: pod, folder of the account, folder that is written, program...
# shellcheck disable=SC2016 # expanded in the namespace
pod_world='
	set -e
	echo "$1" >/proc/sys/kernel/hostname
	account=$2 writable=$3
	shift 3
	mount -t tmpfs -o mode=0755 tmpfs /run
	mkdir -p /run/secrets/kubernetes.io/serviceaccount
	mount --rbind "$account" /run/secrets/kubernetes.io/serviceaccount
	mount --bind "$writable" "$writable"
	mount -t tmpfs -o mode=1777 tmpfs /var/tmp
	mount -o remount,bind,ro /
	exec setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"'

# csi CONTROLLER ARGUMENT...: a CSI call, by the controller's user, whose servers alone csi-client asks.
csi() {
	local controller=$1
	shift
	setpriv --reuid=1000 --regid=1000 --clear-groups "$programs/csi-client" \
		-endpoint "unix://$KUBE_RUN/controllers/$controller/csi.sock" "$@"
}

# account_folder ACCOUNT: makes what kubelet mounts into a container for it.
account_folder() {
	local dir=$KUBE_RUN/accounts/$1
	token_of "$1"
	mkdir -p "$dir"
	cp "$KUBE_RUN/tokens/$1" "$dir/token"
	cp "$KUBE_RUN/pki/ca.pem" "$dir/ca.crt"
	echo -n "$installed" >"$dir/namespace"
}

# The driver's account comes by a Secret that Kubernetes fills, the provisioner's is the pod's.
controller_accounts() {
	local dir=$KUBE_RUN/accounts/$installed-controller key
	account_folder "$installed-provisioner"
	mkdir -p "$dir"
	wait_for 30 "the token in the driver's Secret" is_filled "$installed-controller-token"
	for key in token ca.crt namespace; do
		in_secret "$installed-controller-token" "$key" >"$dir/$key"
	done
}

# in_secret SECRET KEY
in_secret() {
	k -n "$installed" get secret "$1" -o "jsonpath={.data.${2//./\\.}}" | base64 -d
}

is_filled() {
	[ -n "$(in_secret "$1" token)" ]
}

# secret FOLDER AUTHORITIES NAME GROUP: publishes certificates as kubelet does, which replaces them all by one rename.
secret() {
	local folder=$1 authorities=$2 name=$3 group=$4 version
	mkdir -p "$folder"
	version=$(mktemp -d "$folder/..XXXXXX")
	chmod 0755 "$version"
	cat "$authorities" >"$version/ca.crt"
	cp "$name.pem" "$version/tls.crt"
	install -m 0440 -g "$group" "$name-key.pem" "$version/tls.key"
	ln -sfn "${version##*/}" "$folder/..new"
	mv -T "$folder/..new" "$folder/..data"
	local file
	for file in ca.crt tls.crt tls.key; do
		ln -sf "..data/$file" "$folder/$file"
	done
}

# secrets AUTHORITIES CERTS: for controllers and nodes, out of what make-certs made in CERTS.
secrets() {
	local dir
	secret "$KUBE_RUN/secrets/registry" "$1" "$2/pmem-registry" 1000
	for dir in "$KUBE_RUN"/nodes/*/; do
		secret "${dir}certs" "$1" "$2/pmem-node-controller" 0
	done
}

# token_pod NODE [PATCH]: a pod that has the token which the DaemonSet's pod would have: from a real kubelet, which
# projects it and replaces it. The driver finds it where the manifest says.
token_pod() {
	local node=$1
	k -n "$installed" get daemonset "$installed-node" -o json | /usr/bin/python3 -c '
import json, sys
node, patch = sys.argv[1], json.loads(sys.argv[2])
spec = json.load(sys.stdin)["spec"]["template"]["spec"]
volume = next(v for v in spec["volumes"] if v["name"] == "registry-token")
volume["projected"]["sources"][0]["serviceAccountToken"].update(patch)
json.dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"token-{node}"}, "spec": {
    "serviceAccountName": spec["serviceAccountName"], "automountServiceAccountToken": False, "hostNetwork": True,
    "nodeName": node, "terminationGracePeriodSeconds": 1, "volumes": [volume], "containers": [{
        "name": "main", "image": "localhost/busybox:1", "imagePullPolicy": "Never", "command": ["sleep", "36000"],
        "volumeMounts": [{"name": volume["name"], "mountPath": "/registry-token"}]}]}}, sys.stdout)
' "$node" "${2:-{\}}" | k -n "$installed" create -f -
	wait_for 60 "the token of $node" has_token "$node"
	ln -sfn "$(token_folder "$node")" "$KUBE_RUN/nodes/$node/registry-token"
}

token_folder() {
	local uid
	uid=$(k -n "$installed" get pod "token-$1" -o 'jsonpath={.metadata.uid}')
	echo "$KUBE_RUN/nodes/$1/kubelet/pods/$uid/volumes/kubernetes.io~projected/registry-token"
}

has_token() {
	on_node "$1" test -s "$(token_folder "$1")/token"
}

controller_address() {
	case $1 in
	a) address 2 ;;
	b) address 3 ;;
	esac
}

# Nodes find the controllers as they would by the headless service.
name_controllers() {
	local node dir controller
	for node in node1 node2; do
		dir=$KUBE_RUN/nodes/$node
		{
			echo "127.0.0.1 localhost"
			for controller in "$@"; do
				echo "$(controller_address "$controller") $installed-controller"
			done
		} >"$dir/hosts"
	done
}

# api_address: of the API server, for pods; with the file "through-proxy", of a proxy before it.
api_address() {
	if [ -e "$KUBE_RUN/through-proxy" ]; then
		address 7
	else
		address 1
	fi
}

# in_pod_world NAME ACCOUNT POD FOLDER PROGRAM...: starts it as process NAME; only FOLDER is written to.
in_pod_world() {
	local name=$1 account=$2 pod=$3 folder=$4
	shift 4
	install -d -o 1000 -g 1000 -m 0700 "$folder"
	start "$name" unshare -m -u --propagation private bash -c "$pod_world" - "$pod" \
		"$KUBE_RUN/accounts/$account" "$folder" \
		env KUBERNETES_SERVICE_PORT=6443 "KUBERNETES_SERVICE_HOST=$(api_address)" \
		"POD_NAME=$pod" "POD_NAMESPACE=$installed" "NAMESPACE=$installed" "$@"
}

# deployment_pod DEPLOYMENT a|b: its first or second pod.
deployment_pod() {
	local pods
	mapfile -t pods < <(k -n "$installed" get pods -l "app.kubernetes.io/name=$1" \
		-o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}' | sort)
	case $2 in
	a) echo "${pods[0]}" ;;
	b) echo "${pods[1]}" ;;
	esac
}

controller_pod() {
	deployment_pod "$installed-controller" "$1"
}

# in_controller_world NAME ACCOUNT CONTROLLER PROGRAM...
in_controller_world() {
	local name=$1 account=$2 controller=$3
	shift 3
	mkdir -p "$KUBE_RUN/controllers"
	in_pod_world "$name" "$account" "$(controller_pod "$controller")" "$KUBE_RUN/controllers/$controller" "$@"
}

# controller_args CONTROLLER CONTAINER: into the array "arguments".
controller_args() {
	local dir=$KUBE_RUN/controllers/$1 address
	address=$(controller_address "$1")
	mapfile -t arguments < <(manifest_args deployment "$installed-controller" "$2" | sed -e "s|//:|//$address:|" \
		-e "s|=\(unix://\)\{0,1\}/csi/|=\1$dir/|" -e "s|=/certs|=$KUBE_RUN/secrets/registry|" \
		-e "s|=:\(100[0-9]*\)|=$address:\1|")
}

controller_up() {
	local controller=$1 arguments
	shift
	controller_args "$controller" pmem-driver
	in_controller_world "controller-$controller" "$installed-controller" "$controller" "$programs/pmem-csi-driver" "${arguments[@]}" -v=5 "$@"
}

# sidecar_for CONTROLLER NAME [ARGUMENT]...: external-NAME, which waits for the driver by itself.
sidecar_for() {
	local controller=$1 name=$2 arguments
	shift 2
	controller_args "$controller" "external-$name"
	in_controller_world "$name-$controller" "$installed-provisioner" "$controller" bash -c "$again_and_again" - \
		"$programs/csi-$name" "${arguments[@]}" -v=5 "$@"
}

provisioner_for() {
	sidecar_for "$1" provisioner "${@:2}"
}

# two_nodes_come_up OVERLAY [COMPONENT]...: with kubelet, and these manifests. Both controllers and both drivers can be started
# afterwards.
two_nodes_come_up() {
	local node
	for node in node1 node2; do
		"$here/node" "$KUBE_RUN" "$node" up
		k label node "$node" storage=pmem
	done
	apply_manifests "$@"
	"$here/../../scripts/make-certs" -o "$KUBE_RUN/certs" pmem-registry pmem-node-controller
	secrets "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs"
	controller_accounts
	name_controllers a b
	wait_for 30 "the Deployment's pods" controller_pod b
	for node in node1 node2; do
		token_pod "$node"
	done
}

both_know_the_nodes() {
	knows_nodes a 2 && knows_nodes b 2
}

# examine [OPTION]...: what "cluster check" reports in a pod of the controller, and its exit status in the last line.
# shellcheck disable=SC2016,SC2120 # expanded in the pod's world; scenarios give options
examine() {
	: >"$KUBE_RUN/log/check.log"
	in_controller_world check "$installed-controller" a bash -c '"$@"; echo "status $?"' - \
		"$programs/pmem-csi-driver" cluster check "$@"
	wait_for 60 "the end of the check" is_stopped check
	cat "$KUBE_RUN/log/check.log"
}

# shellcheck disable=SC2119
everything_fits() {
	[[ $(examine) == *': consistent'*$'\nstatus 0' ]]
}

# controller_metric CONTROLLER PATTERN: the value of the first line that fits, an integer.
controller_metric() {
	curl -sf "http://$(controller_address "$1"):10010/metrics" | awk -v pattern="$2" '
		$0 !~ /^#/ && $0 ~ pattern { printf "%.0f\n", $NF; found = 1; exit }
		END { exit !found }'
}

# Simulated nodes are at the same addresses in each run, so the ports tell runs apart.
port_base() {
	local a b
	IFS=. read -r _ a b <"$KUBE_RUN/net"
	echo $((10100 + (a * 256 + b) % 1100 * 20))
}

knows_nodes() {
	[ "$(controller_metric "$1" '^pmem_nodes.*(live|registered)')" = "$2" ]
}

# claims PREFIX FIRST LAST SIZE: with the label set=PREFIX, in one request
claims() {
	local i
	for ((i = $2; i <= $3; i++)); do
		cat <<-END
			---
			apiVersion: v1
			kind: PersistentVolumeClaim
			metadata: {name: $1-$i, labels: {set: $1}}
			spec: {accessModes: [ReadWriteOnce], storageClassName: $installed-sc-ext4, resources: {requests: {storage: $4}}}
		END
	done | k apply -f - >/dev/null
}

# are_bound PREFIX NUMBER: so many claims there are, all of them bound.
are_bound() {
	[ "$(k get pvc -l "set=$1" -o 'jsonpath={.items[*].status.phase}' | tr ' ' '\n' | sort | uniq -c | tr -s ' ')" = " $2 Bound" ]
}

# handles: of the PVs, sorted.
handles() {
	k get pv -o 'jsonpath={range .items[*]}{.spec.csi.volumeHandle}{"\n"}{end}' | sort
}

handle_of() {
	value pv "$(value pvc "$1" .spec.volumeName)" .spec.csi.volumeHandle
}

# record_of_claim CLAIM: the PmemVolume of its volume.
record_of_claim() {
	echo "$(value pvc "$1" .spec.volumeName | tr -d '\n' | sha224sum | cut -c 1-47).$driver"
}

# volumes_on NODE: IDs, sorted, as the node's driver lists them.
volumes_on() {
	"$programs/csi-client" -endpoint "unix://$KUBE_RUN/nodes/$1/kubelet/plugins/$driver/csi.sock" -o json list |
		{ grep -o '"volumeId": *"[^"]*"' || true; } | cut -d '"' -f 4 | sort
}
