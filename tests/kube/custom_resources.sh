# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Custom resources that a scenario writes itself, as the account of the controller, in a cluster without nodes or drivers. Sourced with
# the arguments of a scenario; $resource is the plural of the resource, as in its path, and $document is that of document.sh.

# shellcheck source=tests/kube/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
# shellcheck source=tests/kube/document.sh
. "$here/document.sh"

root=$here/../..
second_driver=pmem-b.example.com

# For the commands of the document.
kubectl() {
	(cd "$root" && k "$@")
}

# apply_as USER NAME[/status]: server-side apply of standard input; prints the answer, and fails where that is none of success.
# shellcheck disable=SC2154 # of those who source this
apply_as() {
	in_network curl -sS --fail-with-body --cacert "$KUBE_RUN/pki/ca.pem" -H "Authorization: Bearer $(<"$KUBE_RUN/tokens/$1")" \
		-X PATCH -H 'Content-Type: application/apply-patch+yaml' --data-binary @- \
		"https://$(address 1):$(api_port)/apis/pmem-csi.intel.com/v1alpha1/$resource/$2?fieldManager=pmem-csi&force=true&fieldValidation=Strict"
}

# refuses PATTERN COMMAND...: it fails, and says so.
refuses() {
	local pattern=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "taken: $* $said"
		return 1
	fi
	grep -- "$pattern" <<<"$said" || {
		echo "$said"
		return 1
	}
}

# shown NAME COLUMN: what "kubectl get -o wide" has there, with "<none>" for nothing.
shown() {
	k get "$resource" -o wide | awk -v name="$1" -v column="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == column) n = i }
		n && $1 == name { print $n }'
}

# header_of ARGUMENT...: of "kubectl get".
header_of() {
	k get "$@" | awk 'NR == 1 { $1 = $1; print }'
}

account_of() {
	echo "$1-controller"
}

# controller_account DRIVER-NAMESPACE: its name for --as.
controller_account() {
	echo "system:serviceaccount:$1:$(account_of "$1")"
}

installed() {
	apply_manifests lvm
	k wait --for=condition=Established "customresourcedefinition/$resource.pmem-csi.intel.com" --timeout=60s
	token_of "$(account_of pmem-csi)"
}

second_manifests() {
	k kustomize "$root/manifests/lvm" | "$root/scripts/second-driver" pmem-b "$second_driver" 10280
}

second_installed() {
	installed=pmem-b driver=$second_driver apply_manifests lvm
	installed=pmem-b token_of "$(account_of pmem-b)"
}
