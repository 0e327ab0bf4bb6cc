# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Schedulers and extenders of a run, "a" and "b", and simulated nodes: without kubelet, so that a pod is there when it
# is bound, and with volumes that take space.

# shellcheck source=tests/kube/controllers.sh
. "$(dirname "${BASH_SOURCE[0]}")/controllers.sh"

resource=$driver/scheduler

extender_address() {
	case $1 in
	a) address 4 ;;
	b) address 5 ;;
	esac
}

# certificates: of all programs here, as README says; and one with which the extender serves HTTPS, too, which its manifest does not
# need.
certificates() {
	"$here/../../scripts/make-certs" -o "$KUBE_RUN/certs" pmem-registry pmem-node-controller \
		"$installed-scheduler" \
		"$installed-webhook=DNS:$installed-webhook.$installed.svc"
	secret "$KUBE_RUN/secrets/registry" "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs/pmem-registry" 1000
	secret "$KUBE_RUN/secrets/scheduler" "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs/$installed-scheduler" 1000
	secret "$KUBE_RUN/secrets/webhook" "$KUBE_RUN/certs/ca.pem" "$KUBE_RUN/certs/$installed-webhook" 1000
}

# extender_args KIND NAME ADDRESS: of the extender in this pod. All run on one machine here, so that each has an address.
extender_args() {
	manifest_args "$1" "$2" scheduler-extender |
		sed -e "s|127.0.0.1:[0-9]*0\\b|$3:8001|" -e "s|127.0.0.1:[0-9]*1\\b|$3:10271|" -e "s|=:8001|=$3:10271|"
}

# extender_up EXTENDER [ARGUMENT]...: as its pod would, and with HTTPS, too.
extender_up() {
	local it=$1 address arguments
	shift
	address=$(extender_address "$it")
	mapfile -t arguments < <(extender_args daemonset "$installed-scheduler" "$address")
	mkdir -p "$KUBE_RUN/extenders"
	in_pod_world "extender-$it" "$installed-scheduler" "extender-$it" "$KUBE_RUN/extenders/$it" \
		"$programs/scheduler-extender" "${arguments[@]}" "-schedulerListen=$address:8000" \
		"-certFile=$KUBE_RUN/secrets/scheduler/tls.crt" "-keyFile=$KUBE_RUN/secrets/scheduler/tls.key" -v=5 "$@"
}

# is_extender_ready EXTENDER: all its watches are complete.
is_extender_ready() {
	curl -sf "http://$(extender_address "$1"):10271/status"
}

webhook_up() {
	local address arguments
	address=$(address 6)
	mapfile -t arguments < <(manifest_args deployment "$installed-webhook" webhook |
		sed -e "s|=/certs|=$KUBE_RUN/secrets/webhook|" -e "s|=:8443|=$address:8443|" -e "s|=:8001|=$address:8001|")
	mkdir -p "$KUBE_RUN/extenders"
	in_pod_world webhook "$installed-webhook" "$(deployment_pod "$installed-webhook" a)" "$KUBE_RUN/extenders/webhook" \
		"$programs/scheduler-extender" "${arguments[@]}" -v=5
}

is_webhook_ready() {
	curl -sf "http://$(address 6):8001/status"
}

# trusted: how many authorities the API server knows for the webhook, by itself and no hand of ours.
trusted() {
	k get mutatingwebhookconfiguration "$installed-hook" -o 'jsonpath={.webhooks[0].clientConfig.caBundle}' | base64 -d |
		grep -c 'BEGIN CERTIFICATE' || true
}

trusts() {
	[ "$(trusted)" = "$1" ]
}

# webhook_is_called: what a Service does where there is a network of its own.
webhook_is_called() {
	k -n "$installed" patch service "$installed-webhook" --type=merge -p "spec: {type: ExternalName, clusterIP: null,
		clusterIPs: null, externalName: '$(address 6)'}"
	k patch mutatingwebhookconfiguration "$installed-hook" --type=json \
		-p "[{op: add, path: /webhooks/0/clientConfig/service/port, value: 8443}]"
}

webhook_is_trusted() {
	wait_for 60 "the webhook's caBundle" trusts 1
}

# manifests_up: applies them, and starts a controller, its provisioner and the webhook. Kubernetes' own capacity tracking is off: it
# would be kube-scheduler itself that knows of room.
manifests_up() {
	stop scheduler
	apply_manifests lvm-scheduler
	k patch csidriver "$driver" --type=merge -p 'spec: {storageCapacity: false}'
	certificates
	controller_accounts
	account_folder "$installed-scheduler"
	account_folder "$installed-webhook"
	wait_for 30 "the controller's pods" controller_pod b
	wait_for 30 "the webhook's pods" deployment_pod "$installed-webhook" b
	# Simulated nodes are many in one process, and no kubelet has given them tokens.
	controller_up a -nodeAuthentication=role
	provisioner_for a --kube-api-qps=500 --kube-api-burst=1000
	webhook_up
	wait_for 30 "the webhook" is_webhook_ready
	webhook_is_called
	webhook_is_trusted
}

# extender_config EXTENDER FORM: an entry of kube-scheduler's configuration, made of the one in the manifests, which is
# the form "plain-names". The others are for pods that ask for the resource test.pmem/FORM.
extender_config() {
	local address edit=()
	address=$(extender_address "$1")
	case $2 in
	https-*) edit+=(-e "s|urlPrefix: .*|urlPrefix: https://$address:8000\n  enableHTTPS: true\n  tlsConfig: {serverName: $installed-scheduler, caFile: $KUBE_RUN/certs/ca.pem}|") ;;
	plain-*) edit+=(-e "s|urlPrefix: .*|urlPrefix: http://$address:8001|") ;;
	esac
	[[ $2 == *-names ]] || edit+=(-e 's|nodeCacheCapable: true|nodeCacheCapable: false|')
	[ "$2" = plain-names ] || edit+=(-e "s|name: $resource|name: test.pmem/$2|")
	of_this_driver <"$here/../../manifests/scheduler/kube-scheduler.yaml" | sed '1,/^extenders:/d; /^ *#/d' | sed "${edit[@]}"
}

# scheduler_config FILE [true|false]: of a kube-scheduler that asks no extender yet; extenders are to follow.
scheduler_config() {
	cat >"$1" <<-END
		apiVersion: kubescheduler.config.k8s.io/v1
		kind: KubeSchedulerConfiguration
		clientConnection: {kubeconfig: $KUBE_RUN/users/scheduler, qps: 500, burst: 1000}
		leaderElection: {leaderElect: ${2:-true}, leaseDuration: 15s, renewDeadline: 12s, retryPeriod: 1s}
		podMaxBackoffSeconds: 2
		extenders:
	END
}

# scheduler_start a|b FILE: one that cannot renew its lease in time ends itself.
scheduler_start() {
	start "scheduler-$1" bash -c "$again_and_again" - "$bin/kube-scheduler" "--config=$2" "--bind-address=$(extender_address "$1")"
}

# scheduler_up a|b [true|false]: it asks the extender of the same name; with the other it has to agree on the leader.
scheduler_up() {
	local file=$KUBE_RUN/scheduler-$1.yaml form
	scheduler_config "$file" "${2:-true}"
	for form in plain-names plain-objects https-names https-objects; do
		extender_config "$1" "$form"
	done >>"$file"
	scheduler_start "$1" "$file"
}

# nodes_up GROUP NUMBER SIZE...: with regions of these sizes, as API objects and as what registers with the controller.
nodes_up() {
	node_objects "$1" "$2" | k create -f - >/dev/null
	drivers_up "$@"
}

# drivers_up GROUP NUMBER SIZE...: what registers with the controller only
drivers_up() {
	local group=$1 number=$2 args=() size
	shift 2
	for size in "$@"; do
		args+=("-region=$size")
	done
	groups=$((${groups:-0} + 1))
	start "nodes-$group" "$programs/node-sim" "-prefix=$group-" "-count=$number" "${args[@]}" \
		"-port=$(($(port_base) + groups))" "-registryEndpoint=tcp://$(controller_address a):10000" \
		"-drivername=$driver" "-caFile=$KUBE_RUN/certs/ca.pem" "-certFile=$KUBE_RUN/certs/pmem-node-controller.pem" \
		"-keyFile=$KUBE_RUN/certs/pmem-node-controller-key.pem"
	wait_for 60 "registration of $group" grep -q '"event":"registered"' "$KUBE_RUN/log/nodes-$group.log"
	wait_for 60 "the PmemNodes of $group" are_shown "$group" "$number"
}

# are_shown GROUP NUMBER: so many nodes of the group have a PmemNode, which the extender goes by.
are_shown() {
	[ "$(k get pmemnodes -l "pmem-csi.intel.com/driver=$driver" -o name | grep -c "/$1-[0-9]*\.$driver\$")" = "$2" ]
}

node_objects() {
	local i
	for ((i = 0; i < $2; i++)); do
		cat <<-END
			---
			apiVersion: v1
			kind: Node
			metadata: {name: $1-$i, labels: {group: $1, kubernetes.io/hostname: $1-$i, $driver/node: $1-$i}}
			status:
			  allocatable: {cpu: "1000", memory: 1Ti, pods: "1000"}
			  capacity: {cpu: "1000", memory: 1Ti, pods: "1000"}
			---
			apiVersion: storage.k8s.io/v1
			kind: CSINode
			metadata: {name: $1-$i}
			spec: {drivers: [{name: $driver, nodeID: $1-$i, topologyKeys: [$driver/node]}]}
		END
	done
}

# refusals: volumes that a node had no room for.
refusals() {
	cat "$KUBE_RUN"/log/nodes-*.log | awk '/"event":"refused"/ { n++ } END { print n + 0 }'
}

# nothing_refused: since forgive_refusals() no node was asked for what it has no room for, nor did a provisioner fail because of it.
nothing_refused() {
	local events refused
	refused=$(($(refusals) - ${forgiven:-0}))
	[ "$refused" = 0 ] || echo "refused: $refused volumes"
	[ "$refused" = 0 ]
	events=$(k get events -o 'jsonpath={range .items[?(@.reason=="ProvisioningFailed")]}{.message}{"\n"}{end}')
	echo "$events"
	! grep -q ResourceExhausted <<<"$events"
}

# forgive_refusals MOST: after an extender or a scheduler was killed. A pod that has passed, and whose claim has no selected node yet,
# is known to none that starts then; kube-scheduler binds many at a time, and each of those may be refused once.
forgive_refusals() {
	local refused=$(($(refusals) - ${forgiven:-0}))
	[ "$refused" -le "$1" ] || {
		echo "refused: $refused volumes, and at most $1 may be"
		return 1
	}
	forgiven=$(refusals)
	k delete events --field-selector reason=ProvisioningFailed >/dev/null
}

# pod_spec INDENT GROUP FORM: of a pod for this group of nodes; volumes are to follow. FORM says by which extender it is
# placed, where "hook" is the one of the manifests. No kubelet ends it: it goes at once.
pod_spec() {
	local request=''
	[ "$3" = hook ] || request="test.pmem/$3: 1"
	sed "s/^/$1/" <<-END
		nodeSelector: {group: $2}
		tolerations: [{operator: Exists}]
		automountServiceAccountToken: false
		terminationGracePeriodSeconds: 0
		containers: [{name: main, image: none, resources: {limits: {$request}}}]
		volumes:
	END
}

# labels SET FORM
labels() {
	[ "$2" = hook ] && echo "set: $1" || echo "set: $1, $driver/webhook: ignore"
}

claim_spec() {
	echo "{accessModes: [ReadWriteOnce], storageClassName: $installed-sc-late-binding-ext4, resources: {requests: {storage: $1}}}"
}

# pod_with SET NAME GROUP FORM SIZE...: a pod with claims of these sizes that are named after it.
pod_with() {
	local set=$1 name=$2 group=$3 form=$4 n
	shift 4
	for ((n = 1; n <= $#; n++)); do
		cat <<-END
			---
			apiVersion: v1
			kind: PersistentVolumeClaim
			metadata: {name: $name-$n, labels: {set: $set}}
			spec: $(claim_spec "${!n}")
		END
	done
	cat <<-END
		---
		apiVersion: v1
		kind: Pod
		metadata: {name: $name, labels: {$(labels "$set" "$form")}}
		spec:
		$(pod_spec '  ' "$group" "$form")
	END
	for ((n = 1; n <= $#; n++)); do
		echo "  - {name: v$n, persistentVolumeClaim: {claimName: $name-$n}}"
	done
}

# replicas SET NAME NUMBER GROUP FORM SIZE: pods that come all at once, each with a claim of its own.
replicas() {
	cat <<-END
		---
		apiVersion: apps/v1
		kind: ReplicaSet
		metadata: {name: $2, labels: {set: $1}}
		spec:
		  replicas: $3
		  selector: {matchLabels: {replicas: $2}}
		  template:
		    metadata: {labels: {replicas: $2, $(labels "$1" "$5")}}
		    spec:
		$(pod_spec '      ' "$4" "$5")
		      - {name: v, ephemeral: {volumeClaimTemplate: {metadata: {labels: {set: $1}}, spec: $(claim_spec "$6")}}}
	END
}

create() {
	k create -f - >/dev/null
}

# placed SET: how many of its pods have a node.
placed() {
	nodes_of "$1" | wc -l
}

# nodes_of SET: one line for each pod that has one.
nodes_of() {
	k get pods -l "set=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep . || true
}

are_placed() {
	[ "$(placed "$1")" -ge "$2" ]
}

# wait_placed SET NUMBER [SECONDS]
wait_placed() {
	wait_for "${3:-180}" "$2 pods of $1 to be placed" are_placed "$1" "$2" || {
		echo "waited in vain: $(placed "$1") are, and $(refusals) volumes were refused"
		k get events --field-selector reason=FailedScheduling -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}' |
			sort | uniq -c | sort -n | tail -n 5
		return 1
	}
}

# delete_set SET: and wait until its volumes have gone.
delete_set() {
	k delete replicasets,pods,pvc -l "set=$1" --wait=false >/dev/null
	wait_for 240 "the end of the volumes of $1" has_no_claims "$1"
}

has_no_claims() {
	[ -z "$(k get pvc -l "set=$1" -o name)" ]
}

has_no_volumes() {
	is_gone pv
}
