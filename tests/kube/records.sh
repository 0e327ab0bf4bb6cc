# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The records of volumes, for scenarios that compare them with PersistentVolumes and with what three nodes have. Sourced with the
# arguments of a scenario.

# shellcheck source=tests/kube/bare_nodes.sh
. "$(dirname "${BASH_SOURCE[0]}")/bare_nodes.sh"

nodes=(node1 node2 node3)
account=system:serviceaccount:$installed:$installed-controller
# 100 volumes fit on these nodes: each has at least 8 MiB.
region_size=$((384 << 20))
notes=$KUBE_RUN/notes # what a proof has measured

# events: how many requests have been logged until now.
events() {
	wc -l <"$KUBE_RUN/audit.log"
}

note() {
	echo "     $*" >>"$notes"
}

# measured NAME COMMAND...: a proof, and then what it has noted.
measured() {
	: >"$notes"
	prove "$@"
	cat "$notes"
}

# create CONTROLLER NAME [OPTION]...: of 1 MiB, unless an option says otherwise; prints the handle.
create() {
	csi "$1" -size 1Mi "${@:3}" -o json create "$2" | grep -o '"volumeId": *"[^"]*"' | cut -d '"' -f 4
}

# unavailable COMMAND...: it fails with that code.
unavailable() {
	local said
	if said=$("$@" 2>&1); then
		echo "succeeded: $* $said"
		return 1
	fi
	grep '^UNAVAILABLE: ' <<<"$said" || {
		echo "$said"
		return 1
	}
}

# record_of NAME: the name of the object, by the name that CreateVolume was called with.
record_of() {
	echo "$(echo -n "$1" | sha224sum | cut -c 1-47).$driver"
}

# field NAME JSONPATH: of the record of that volume.
field() {
	value pmemvolume "$(record_of "$1")" "$2"
}

# shown NAME COLUMN: what "kubectl get pmemvolumes -o wide" has below that title; some columns are empty.
shown() {
	k get pmemvolumes -o wide | awk -v name="$(record_of "$1")" -v column="$2" '
		NR == 1 { match($0, " " column "( |$)"); at = RSTART + 1; next }
		$1 == name { text = substr($0, at); sub(/  .*/, "", text); sub(/ $/, "", text); print text; found = 1 }
		END { exit !found || at == 1 }'
}

shows() {
	[ "$(shown "$1" "$2")" = "$3" ]
}

has_no_record() {
	is_gone pmemvolume "$(record_of "$1")"
}

# volume_of CLAIM: its name, which is that of the PV.
volume_of() {
	value pvc "$1" .spec.volumeName
}

# placed_by_pvs, placed_by_nodes, placed_by_records: a line "HANDLE NODE" for each volume, sorted. Of records only those that are
# ready, as all are in the end.
placed_by_pvs() {
	k get pv -o 'jsonpath={range .items[*]}{.spec.csi.volumeHandle} {.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}{"\n"}{end}' | sort
}

placed_by_nodes() {
	local node
	for node in "${nodes[@]}"; do
		volumes_on "$node" | sed "s/\$/ $node/"
	done | sort
}

placed_by_records() {
	k get pmemvolumes -o 'jsonpath={range .items[?(@.status.phase=="Ready")]}{.status.volumeHandle} {.status.nodes[*].node}{"\n"}{end}' | sort
}

records() {
	k get pmemvolumes -o name | wc -l
}

has_records() {
	[ "$(records)" -ge "$1" ]
}

# reported: how many records were made of what nodes have reported.
reported() {
	k get pmemvolumes -o 'jsonpath={.items[*].spec.origin}' | tr ' ' '\n' | grep -cx Reported || true
}

has_reported() {
	[ "$(reported)" = "$1" ]
}

# all_agree NUMBER: there are so many volumes, and PVs, nodes and records say the same of each.
all_agree() {
	local at=$KUBE_RUN/placed
	placed_by_pvs >"$at.pvs" && placed_by_nodes >"$at.nodes" && placed_by_records >"$at.records" &&
		[ "$(wc -l <"$at.pvs")" = "$1" ] && [ "$(records)" = "$1" ] &&
		diff "$at.pvs" "$at.nodes" && diff "$at.pvs" "$at.records"
}

# wait_agree NUMBER SECONDS
wait_agree() {
	wait_for "$2" "$1 volumes that are the same in PVs, nodes and records" all_agree "$1" || {
		wc -l "$KUBE_RUN"/placed.*
		diff "$KUBE_RUN/placed.pvs" "$KUBE_RUN/placed.nodes" | head -n 5
		diff "$KUBE_RUN/placed.pvs" "$KUBE_RUN/placed.records" | head -n 5
		k get pmemvolumes -o wide | grep -v ' Ready ' | head -n 5
		return 1
	}
}

all_space_is_free() {
	local node
	for node in "${nodes[@]}"; do
		metric_is "$node" pmem_amount_available $((2 * region_size)) || return 1
	done
}

# wait_nothing SECONDS
wait_nothing() {
	wait_agree 0 "$1"
	wait_for 30 "the space of all nodes" all_space_is_free
}

leader() {
	wait_for 60 "a leader" a_or_b_leads
	if leads a; then echo a; else echo b; fi
}

other() {
	if [ "$1" = a ]; then echo b; else echo a; fi
}

installation() {
	nodes_register a b
	provisioner_for a
	provisioner_for b
	# A node registers before it has listed its devices.
	wait_for 60 "the inventories of three nodes" k wait --for=condition=DevicesHealthy --timeout=1s pmemnodes --all
}

# goes_with_its_claim CLAIM: all that it has led to.
goes_with_its_claim() {
	local volume
	volume=$(volume_of "$1")
	k delete pvc "$1" --wait=false
	wait_for 60 "the end of the PV of $1" is_gone pv "$volume"
	wait_for 60 "the end of the record of $1" has_no_record "$volume"
}

# in_time COMMAND...: ends within 10 s.
in_time() {
	local started=$SECONDS
	"$@"
	[ $((SECONDS - started)) -le 10 ]
}

is_ready() {
	shows "$1" PHASE Ready
}

# create_on NODE PREFIX: creates volumes until one is there, and sets "made" to its name; the others go.
create_on() {
	local i handle
	for ((i = 1; i <= 30; i++)); do
		made=$2-$i
		handle=$(create a "$made")
		[[ $(volumes_on "$1") != *"$handle"* ]] || return 0
		csi a delete "$handle"
	done
	return 1
}
