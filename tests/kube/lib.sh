# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the programs here share. $KUBE_RUN is the folder of a run, made by "up"; $bin holds Kubernetes' programs.
#
#   pids/NAME    process id of what start() started     log/NAME.log    its output
#   net          first three numbers of the addresses of this run, in the loopback network: each process has an
#                address of its own there, and the port of the manifests; or those of netns
#   netns        if it is there, the network namespace of a cluster of machines (tests/cluster), which all is in
#   containers   if it is there, nodes are like those of kind: containers of their own, with kubelet's folder where it is on any
#                machine and addresses for pods. All is in the network namespace of the caller then, where 192.0.2.1 is the
#                API server's address, and that of the Service that stands for it, and 192.0.2.10 that of the name server
#                (tests/e2e/cluster)
#   pki/         certificate of the API server, key of the ServiceAccounts
#   users/NAME   kubeconfig of NAME
#   through-proxy    if it is there, pods reach the API server through a proxy
#   nodes/NAME/  a node: kubelet/, containerd/, and, of our driver, state/ and devices/

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
bin=$("$here/get")

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# wait_for SECONDS WHAT COMMAND...: until COMMAND succeeds; fails, and says what for, when that takes too long.
wait_for() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || {
			echo "waited in vain for $what"
			return 1
		}
		sleep 0.2
	done
}

# address N: of this run. 1 is the API server's, 2 and 3 are the controllers', 4 and 5 the extenders', 6 the webhook's,
# 7 that of a proxy before the API server, 10 the name server's, 11 and up those of nodes. Those of a second driver are $apart behind.
address() {
	echo "$(<"$KUBE_RUN/net").$(($1 == 1 ? 1 : $1 + ${apart:-0}))"
}

# enter_network: sets "enter" to what a command is prefixed with, so that it runs where the addresses are.
enter_network() {
	enter=()
	[ ! -e "$KUBE_RUN/netns" ] || enter=(nsenter "--net=$KUBE_RUN/netns")
}

# in_network COMMAND...
in_network() {
	local enter
	enter_network
	"${enter[@]}" "$@"
}

nodes_are_containers() {
	[ -e "$KUBE_RUN/containers" ]
}

# That of the Service: there is no kube-proxy that would translate it.
api_port() {
	if nodes_are_containers; then echo 443; else echo 6443; fi
}

# start NAME COMMAND...: in the background, in a session of its own.
start() {
	local name=$1 enter
	shift
	enter_network
	setsid "${enter[@]}" "$@" </dev/null >>"$KUBE_RUN/log/$name.log" 2>&1 &
	echo $! >"$KUBE_RUN/pids/$name"
}

# As kubelet does with containers that end: a provisioner ends itself when it loses the driver.
# shellcheck disable=SC2016,SC2034 # expanded later; used by those who source this
again_and_again='while :; do "$@"; sleep 0.5; done'

pid_of() {
	cat "$KUBE_RUN/pids/$1" 2>/dev/null
}

is_running() {
	local pid
	pid=$(pid_of "$1") && [[ $(ps -o state= -p "$pid") =~ ^[^Z] ]]
}

is_stopped() {
	! is_running "$1"
}

# stands_still PID...: all threads of these processes are stopped.
stands_still() {
	local pid states
	for pid; do
		states=$(sed 's/.*) \(.\) .*/\1/' "/proc/$pid"/task/*/stat)
		[[ $states =~ ^T([[:space:]]T)*$ ]] || return 1
	done
}

# suspend PID...: stops these processes until they get SIGCONT. A process goes on for a moment after the signal: its threads stop one
# after the other, and may answer a request until then.
suspend() {
	kill -STOP "$@"
	wait_for 60 "$* to stand still" stands_still "$@"
}

# stop NAME [SIGNAL]: ends it, with what it has started, and waits; one that takes longer than half a minute is killed.
stop() {
	local name=$1 pid
	pid=$(pid_of "$name") || return 0
	kill "-${2:-TERM}" -- "-$pid" 2>/dev/null || true
	if ! wait_for 30 "the end of $name" is_stopped "$name"; then
		kill -KILL -- "-$pid" 2>/dev/null || true
		wait_for 10 "the end of $name" is_stopped "$name" || true
	fi
	rm -f "$KUBE_RUN/pids/$name"
}

# apiserver_dies: killed, and after a moment started again as it was; what etcd has is all that stays.
apiserver_dies() {
	local command
	mapfile -d '' -t command <"/proc/$(pid_of apiserver)/cmdline"
	stop apiserver KILL
	sleep 2
	start apiserver "${command[@]}"
	wait_for 60 "the API server" k get namespace default
}

k() {
	in_network "$bin/kubectl" --kubeconfig="$KUBE_RUN/users/admin" "$@"
}

# write_user NAME TOKEN-FILE: a kubeconfig.
write_user() {
	cat >"$KUBE_RUN/users/$1" <<-END
		apiVersion: v1
		kind: Config
		clusters: [{name: k, cluster: {server: "https://$(address 1):$(api_port)", certificate-authority: $KUBE_RUN/pki/ca.pem}}]
		users: [{name: u, user: {tokenFile: $2}}]
		contexts: [{name: c, context: {cluster: k, user: u}}]
		current-context: c
	END
}
