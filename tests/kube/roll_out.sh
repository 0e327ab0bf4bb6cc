# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Controllers of one release that are replaced by those of another, as the strategy Recreate does: all end before the first one
# starts. Sourced by scenarios that have sourced controllers.sh; what is about records needs records.sh, too.

current=$programs

# release NAME: of tests/kube/previous; its programs and manifests, in $KUBE_RUN/NAME. What is not the driver is of this release.
# shellcheck disable=SC2154 # of lib.sh
release() {
	local of
	of=$("$here/previous" "$1")
	mkdir -p "$KUBE_RUN/$1"
	cp "$current"/* "$KUBE_RUN/$1/"
	cp "$of/pmem-csi-driver" "$KUBE_RUN/$1/"
	cp -r "$of/manifests" "$KUBE_RUN/$1/"
}

# with_release NAME|current COMMAND...
# shellcheck disable=SC2034 # for cluster.sh
with_release() {
	local to=$1 programs=$current manifests=$here/../../manifests
	shift
	if [ "$to" != current ]; then
		programs=$KUBE_RUN/$to manifests=$KUBE_RUN/$to/manifests
	fi
	"$@"
}

pods_are_there() {
	[ -n "$(controller_pod b)" ]
}

# controllers_end SIGNAL: with the sidecars in their pods.
controllers_end() {
	local it
	for it in a b; do
		stop "provisioner-$it"
		stop "snapshotter-$it"
	done
	for it in a b; do
		stop "controller-$it" "$1"
	done
}

controllers_begin() {
	local it
	for it in a b; do
		controller_up "$it"
		provisioner_for "$it"
	done
}

# note_volumes: those that nodes have, those that have records, and where the log ends. No controller runs.
note_volumes() {
	placed_by_nodes | cut -d ' ' -f 1 >"$KUBE_RUN/noted.volumes"
	k get pmemvolumes -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}' >"$KUBE_RUN/noted.records"
	wc -l <"$KUBE_RUN/audit.log" >"$KUBE_RUN/noted.requests"
}

# records_come_first: of the volumes that were noted, those without a record got one, and no other volume got one before. Prints how
# many they were; fails if there was none.
# shellcheck disable=SC2154 # of records.sh
records_come_first() {
	tail -n "+$(($(<"$KUBE_RUN/noted.requests") + 1))" "$KUBE_RUN/audit.log" | /usr/bin/python3 -c '
import json, pathlib, re, sys
user, driver, noted = sys.argv[1:]
handles, recorded = (pathlib.Path(f"{noted}.{it}").read_text().split() for it in ("volumes", "records"))
awaited = {re.search(r"([0-9a-f]{47})\.", it).group(1) + "." + driver for it in handles} - set(recorded)
n, others = len(awaited), 0
for line in sys.stdin:
    event = json.loads(line)
    target = event.get("objectRef", {})
    if (event["user"]["username"], event["verb"], target.get("resource")) != (user, "create", "pmemvolumes"):
        continue
    if event["responseStatus"]["code"] >= 300:
        continue
    if target["name"] in awaited:
        awaited.discard(target["name"])
    elif awaited:
        sys.exit("%s was recorded before %u of %u volumes that were there" % (target["name"], len(awaited), n))
    else:
        others += 1
if awaited or n == 0 or others == 0:
    sys.exit("%u of %u volumes got no record, and %u others did" % (len(awaited), n, others))
print(f"{n} records of {len(handles)} volumes that were there came first, {others} followed")
' "$account" "$driver" "$KUBE_RUN/noted"
}

definition=customresourcedefinition/pmemvolumes.pmem-csi.intel.com
more=/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later

later() {
	k get pmemvolumes -o 'jsonpath={range .items[*]}{.spec.later}{"\n"}{end}' | grep -c . || true
}

set_later() {
	local it
	for it in $(k get pmemvolumes -o name); do
		k patch "$it" "--as=$account" --type=merge -p '{"spec": {"later": "kept"}}' >/dev/null || [ -z "$(k get "$it" --ignore-not-found -o name)" ]
	done
}

field_is_served() {
	[[ $(k explain pmemvolumes.spec.later 2>&1) == *later* ]] && set_later && [ "$(later)" -gt 0 ]
}

# definition_gets_a_field: that of a later release, and each record has it.
definition_gets_a_field() {
	k patch "$definition" --type=json -p "[{op: add, path: $more, value: {type: string}}]"
	wait_for 60 "the field of a later release" field_is_served
}

# field_is_kept CLAIM: by a write of a controller that does not know it.
field_is_kept() {
	local volume before
	volume=$(volume_of "$1")
	before=$(field "$volume" .metadata.resourceVersion)
	wait_for 60 "a call" create a "$volume"
	[ "$(field "$volume" .metadata.resourceVersion)" != "$before" ]
	[ "$(field "$volume" .spec.later)" = kept ]
}

# definition_loses_the_field: as when one goes back. What was written stays, also through writes of controllers.
definition_loses_the_field() {
	local before
	before=$(later)
	k patch "$definition" --type=json -p "[{op: remove, path: $more}]"
	wait_for 60 "the definition without that field" field_is_unknown
	[ "$(later)" = "$before" ]
}

field_is_unknown() {
	[[ $(k explain pmemvolumes.spec.later 2>&1) == *'does not exist'* ]]
}
