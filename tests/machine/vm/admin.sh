# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What an administrator asks of a node with volume groups: volumes, regions, doctor and check, compared with ndctl and
# LVM. Region 1 is fragmented by foreign namespaces.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

# admin STATUS COMMAND [ARGUMENT]...: the command must end with that status; its output is in $scratch/out.
admin() {
	local wanted=$1 status=0
	shift
	pmem-csi-driver "$1" "-statePath=$state" "${@:2}" >"$scratch/out" 2>"$scratch/log" || status=$?
	cat "$scratch/out" "$scratch/log"
	equal 'the exit status' "$status" "$wanted"
}

# holds EXPRESSION: it is true of the JSON output, called o
holds() {
	python3 -c 'import json, sys
with open(sys.argv[1]) as f: o = json.load(f)
assert eval("(" + sys.argv[2] + ")"), o' "$scratch/out" "$1"
}

# kinds KIND...: just these mismatches are listed
kinds() {
	admin 1 check -o json
	holds "sorted(f['kind'] for f in o['findings'] if f['severity'] == 'mismatch') == sorted('$*'.split())"
}

repaired() {
	admin 0 check -o json "-repair=$1"
	holds 'o["done"] and not o["left"]'
	admin 0 check -o json "-repair=$1"
	holds 'not o["done"] and not o["left"]'
}

vgs_json() {
	lvm vgs --reportformat json --units b --nosuffix -o vg_name,vg_uuid,vg_size,vg_free,vg_extent_size
}

prepare() {
	prepare_memory
	local name
	for name in one two three; do
		ndctl create-namespace -r region1 -m fsdax -n "$name" -s 64M >/dev/null
	done
	name=$(ndctl list -N | python3 -c 'import json, sys
print(next(n["dev"] for n in json.load(sys.stdin) if n.get("name") == "two"))')
	ndctl destroy-namespace -f "$name"
	init_chain 50
	mount --bind "$kubelet" "$kubelet"
	mount --make-shared "$kubelet"
	driver_start
	first=$(create pvc-first 64Mi ext4)
	second=$(create pvc-second 32Mi ext4)
	stage "$first"
	publish "$first"
	echo kept >"$(target_of "$first")/file"
}

regions_agree() {
	admin 0 regions -o json
	ndctl list -R -N -v >"$scratch/ndctl"
	vgs_json >"$scratch/vgs"
	"$VM_TESTS/compare-regions" "$scratch/out" "$scratch/ndctl" "$scratch/vgs"
	holds 'any(r["foreignNamespaces"] == 2 and r["freeExtents"] > 1 for r in o["regions"])'
	admin 0 regions
}

volumes_agree() {
	admin 0 volumes -o json
	holds "sorted(v['id'] for v in o['volumes']) == sorted('$first $second'.split())"
	holds "[v['stagedAt'] for v in o['volumes'] if v['id'] == '$first'] == ['$(staging_of "$first")']"
	holds "[v['published'] for v in o['volumes'] if v['id'] == '$first'] == [1]"
	holds "[v['device'] for v in o['volumes'] if v['id'] == '$first'] == ['$(device_of "$first")']"
	holds 'all(v["phase"] == "ready" and v["deviceMode"] == "lvm" for v in o["volumes"])'
	admin 0 volumes
}

doctor_agrees() {
	local largest
	largest=$(largest)
	admin 0 doctor -o json -size "$largest"
	holds "max(p.get('sizeBytes', 0) for p in o['pools']) == $largest"
	vgs_json >"$scratch/vgs"
	holds "sorted(p['freeBytes'] for p in o['pools'] if p['pool'].endswith('fsdax')) ==
		sorted(int(g['vg_free']) for g in json.load(open('$scratch/vgs'))['report'][0]['vg'])"
	admin 1 doctor -o json -size "$((largest + 1))"
	holds 'all({"space", "other-device-mode"} & {r["kind"] for r in p["reasons"]} for p in o["pools"])'
	ndctl list -R >"$scratch/ndctl"
	holds "sorted(r['bytes'] for p in o['pools'] for r in p['reasons']
		if r['kind'] == 'pool-share') ==
		sorted(r['available_size'] for r in json.load(open('$scratch/ndctl')) if r['available_size'])"
	admin 1 doctor -size "$((largest + 1))"
	refused RESOURCE_EXHAUSTED -fs ext4 -size "$((largest + 1))" create pvc-too-large
}

doctor_examines() {
	admin 0 doctor -o json
	holds 'o["problems"] == 0'
	holds "any(c['name'] == 'driver' and '$(driver_pid)' in c['text'] for c in o['checks'])"
	admin 0 doctor
	mount --make-private "$kubelet"
	admin 1 doctor -o json
	holds '[c["name"] for c in o["checks"] if c["level"] == "problem"] == ["kubelet-dir"]'
	mount --make-shared "$kubelet"
}

consistent() {
	admin 0 check -o json
	holds 'o["consistent"] and o["volumes"] == 2'
	holds "o['driverProcess'] == $(driver_pid)"
	admin 3 check "-repair=$first"
	driver_kill
	admin 0 check
}

lost_state_is_written_again() {
	mv "$state/$second.json" "$scratch/second"
	kinds device-without-state
	repaired "$second"
	cmp <(json_of "$scratch/second" identity pool size) <(json_of "$state/$second.json" identity pool size)
	admin 0 check
	echo '{"id":' >"$state/$second.json"
	kinds damaged
	repaired "$second"
	test -s "$state/$second.json.damaged"
	rm "$state/$second.json.damaged"
	admin 0 check
}

# json_of FILE KEY...
json_of() {
	python3 -c 'import json, sys
with open(sys.argv[1]) as f: o = json.load(f)
print([o[key] for key in sys.argv[2:]])' "$@"
}

devices_are_reported() {
	local group
	lvm lvchange -qq -an -S "lv_name=$second"
	kinds inactive-device
	repaired "$second"
	group=$(lvm vgs --noheadings -o vg_name -S "lv_name=$second" | tr -d ' ')
	lvm lvcreate -qq -y -Zn -Wn -n theirs -L 16m "$group"
	foreign_is_not_adopted theirs
	foreign_is_not_adopted one
	lvm lvchange -qq --deltag "$(identity_of "$second")" --addtag 00000000-0000-0000-0000-000000000000 \
		"$group/$second"
	kinds identity-mismatch
	admin 1 check "-repair=$second"
	lvm lvchange -qq --deltag 00000000-0000-0000-0000-000000000000 --addtag "$(identity_of "$second")" \
		"$group/$second"
	admin 0 check
	lvm lvremove -qq -y "$group/theirs"
	admin 0 check
}

# foreign_is_not_adopted ID: neither a logical volume in a group of ours nor a namespace, and no remedy is named
foreign_is_not_adopted() {
	admin 0 check -o json
	holds "[f['kind'] for f in o['findings'] if f['id'] == '$1'] == ['foreign-device']"
	admin 0 check
	fails grep -F -- '-repair' "$scratch/out"
	admin 1 check -o json "-repair=$1"
	holds 'not o["done"] and "is foreign" in o["left"][0]'
	test ! -e "$state/$1.json"
}

identity_of() {
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["identity"])' "$state/$1.json"
}

mounts_are_reported() {
	umount "$(target_of "$first")"
	kinds stale-target
	repaired "$first"
	mkdir -p "$scratch/by-hand"
	mount "$(device_of "$first")" "$scratch/by-hand"
	kinds unknown-mount
	umount "$scratch/by-hand"
	admin 0 check
}

unfinished_work_is_ended() {
	mv "$state/$second.json" "$state/$second.erasing"
	kinds unfinished-deletion
	admin 0 check -o json "-repair=$second"
	holds 'o["done"] and not o["left"]'
	admin 1 check -o json "-repair=$second"
	holds 'not o["done"] and "no volume, device or state file" in o["left"][0]'
	fails lv_exists "$second"
	driver_start
	publish "$first"
	equal 'the file' "$(cat "$(target_of "$first")/file")" kept
	unpublish "$first"
	unstage "$first"
	delete "$first"
	nothing_leaked
	admin 0 check
}

absent_region_is_missing() {
	local id
	id=$(create pvc-missing 16Mi ext4)
	driver_kill
	lvm vgchange -qq -an
	ndctl disable-region all
	admin 1 check -o json
	holds "[f['kind'] for f in o['findings'] if f['id'] == '$id'] == ['device-missing']"
	admin 1 check "-repair=$id"
	test -e "$state/$id.json"
	ndctl enable-region all
	kinds inactive-device
	admin 0 check "-repair=$id"
	admin 0 check
	driver_start
	delete "$id"
	driver_stop
	umount "$kubelet"
}

listens_as_readme_says() {
	csi-client -timeout 5s -endpoint unix:///run/pmem-csi/csi.sock probe
}

# What docs/INSTALL.md shows for a node, as it stands there; only the driver goes on in the background.
readme_is_right() {
	local command driver=''
	python3 "$VM_TESTS/../../commands/readme.py" "$VM_TESTS/../../../docs/INSTALL.md" 'Using it on a node' >"$scratch/commands"
	while read -r command; do
		echo "$command"
		case $command in
		'pmem-csi-driver -mode=node '*)
			bash -c "exec $command" </dev/null &
			driver=$!
			await 60 listens_as_readme_says
			;;
		*) bash -c "$command" </dev/null ;;
		esac
	done <"$scratch/commands"
	kill -TERM "$driver"
	wait "$driver"
}

plan_whole_script
lvm_without_udev
check prepared prepare
prove regions-agree regions_agree
prove volumes-agree volumes_agree
prove doctor-agrees doctor_agrees
prove doctor-examines doctor_examines
prove consistent consistent
prove lost-state-is-written-again lost_state_is_written_again
prove devices-are-reported devices_are_reported
prove mounts-are-reported mounts_are_reported
prove unfinished-work-is-ended unfinished_work_is_ended
prove absent-region-is-missing absent_region_is_missing
prove readme-is-right readme_is_right
cat "$driver_log"
