# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Results of a scenario, and the objects that it makes and looks at. For those who have sourced lib.sh.

passed=0 failed=0

# prove NAME COMMAND...: one result, ok if no step of the command fails. What it said is shown when it does.
prove() {
	local name=$1 said started=$SECONDS status=0
	shift
	# Not in a condition: there bash would go on after a failing step.
	set +e
	said=$(
		set -eE
		trap 'echo "failed: $BASH_COMMAND"' ERR
		"$@" 2>&1
	)
	status=$?
	set -e
	if [ "$status" = 0 ]; then
		passed=$((passed + 1))
		echo "ok   $name ($((SECONDS - started)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL $name ($((SECONDS - started)) s)"
		tail -n 30 <<<"$said" | sed 's/^/     /'
	fi
}

# claim NAME CLASS SIZE [ACCESS-MODE]
claim() {
	k apply -f - <<-END
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1}
		spec: {accessModes: [${4:-ReadWriteOnce}], storageClassName: $2, resources: {requests: {storage: $3}}}
	END
}

claimed() {
	echo "persistentVolumeClaim: {claimName: $1}"
}

# value KIND NAME JSONPATH
value() {
	k get "$1" "$2" -o "jsonpath={$3}"
}

phase_is() {
	[ "$(value "$1" "$2" .status.phase)" = "$3" ]
}

wait_phase() {
	wait_for "${4:-60}" "$1 $2 to be $3" phase_is "$1" "$2" "$3" || {
		k describe "$1" "$2" | tail -n 15
		return 1
	}
}

# has_event OBJECT PATTERN: of the component, the reason and the message
has_event() {
	k get events --field-selector "involvedObject.name=$1" \
		-o 'jsonpath={range .items[*]}{.source.component}{.reportingComponent} {.reason} {.message}{"\n"}{end}' |
		grep -q "$2"
}

# wait_event OBJECT PATTERN [SECONDS]
wait_event() {
	wait_for "${3:-120}" "an event of $1 with '$2'" has_event "$1" "$2" || {
		k get events --field-selector "involvedObject.name=$1"
		return 1
	}
}

# make_secrets NAMESPACE [webhook]: of the roles with certificates, with the commands of docs/INSTALL.md. They may be there already.
# shellcheck disable=SC2154 # of lib.sh
make_secrets() {
	local certs=$KUBE_RUN/certs leaves=(pmem-registry pmem-node-controller) roles=(registry=pmem-registry node=pmem-node-controller) role
	if [ -n "${2:-}" ]; then
		leaves+=("pmem-csi-webhook=DNS:pmem-csi-webhook.$1.svc")
		roles+=(webhook=pmem-csi-webhook)
	fi
	"$here/../../scripts/make-certs" -o "$certs" "${leaves[@]}"
	for role in "${roles[@]}"; do
		k -n "$1" create secret generic "pmem-csi-${role%=*}-secrets" --dry-run=client -o yaml "--from-file=ca.crt=$certs/ca.pem" \
			"--from-file=tls.crt=$certs/${role#*=}.pem" "--from-file=tls.key=$certs/${role#*=}-key.pem" | k apply -f -
	done
}

is_gone() {
	[ -z "$(k get "$1" ${2:+"$2"} --ignore-not-found -o name)" ]
}

summary() {
	echo "SUITE $passed $failed 0"
	[ "$failed" = 0 ]
}
