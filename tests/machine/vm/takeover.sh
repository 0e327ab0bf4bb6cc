# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A node as the Go driver leaves it, made by hand: state files of its releases 0.6 to 1.1, a volume
# group, devices, and mounts in use at the moment of the change. Our driver takes it over, serves it, and hands it back.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/go_node.sh
. "$VM_TESTS/go_node.sh"
plan_whole_script

# --- taken over

chain_changes_nothing() {
	chain_facts >"$scratch/before"
	init_chain 60
	chain_facts >"$scratch/after"
	cmp "$scratch/before" "$scratch/after"
}

served='pvc-idle pvc-new pvc-used pvc-xfs pvc-ro pvc-fileio pvc-07 pvc-06 pvc-block pvc-kata pvc-direct pvc-direct-idle csi-1f0c9a'

driver_takes_over() {
	local name
	driver_start
	listed_ids >"$scratch/listed"
	for name in $served; do
		grep -qxF -- "$(id "$name")" "$scratch/listed"
	done
	grep -qxF -- "$(go_id pvc-stale)" "$scratch/listed"
	equal 'number of volumes' "$(wc -l <"$scratch/listed")" 14
	logged "state file is not used.*$(id pvc-damaged)"
	logged 'foreign device is left alone.*stranger'
}

no_byte_has_changed() {
	local name
	cmp "/dev/$group/stranger" "$copies/stranger"
	for name in "$@"; do
		cmp "/dev/$group/$(id "$name")" "$copies/$name"
	done
}

# Of the files only the record of the pool is new.
files_are_kept() {
	local file
	for file in "$copies/state"/*.json; do
		case $file in
		*"$(id pvc-damaged)"* | *"$(go_id pvc-stale)"*) cmp "$file" "$state/${file##*/}" ;;
		*) equal "${file##*/}" "$(sed 's/,"pool":"[^"]*"//' "$state/${file##*/}")" "$(<"$file")" ;;
		esac
	done
	cmp "$copies/state/$(go_id pvc-idle).json.tmp" "$state/$(go_id pvc-idle).json.tmp"
	test -d "$state/mount/$(go_id pvc-gone)"
}

mounts_are_kept() {
	mounts_of_kubelet | cmp - "$copies/mounts"
	dax-check -size 4Mi -seed 2 verify "$(target_of "$(id pvc-used)")/mapped"
	dax-check -size 4Mi -seed 3 verify "$(staging_of "$(id pvc-xfs)")/mapped"
}

# context NAME FS [FLAG]...: what kubelet knows of it
context() {
	local name=$1 fs=$2
	shift 2
	echo "-fs $fs" >"$scratch/context/$(id "$name")"
	printf '%s\n' "-parameter name=$name" "$@" >>"$scratch/context/$(id "$name")"
}

# Kubelet, restarted as well, repeats what it did.
calls_are_repeated() {
	context pvc-used ext4
	stage "$(id pvc-used)"
	publish "$(id pvc-used)"
	context pvc-xfs xfs
	stage "$(id pvc-xfs)"
	context pvc-ro ext4
	stage "$(id pvc-ro)"
	publish "$(id pvc-ro)" pod -readonly
	context pvc-fileio ext4 '-parameter usage=FileIO'
	stage "$(id pvc-fileio)"
	publish "$(id pvc-fileio)"
	context pvc-direct ext4
	stage "$(id pvc-direct)"
	publish "$(id pvc-direct)"
	csi -block publish "$(id pvc-block)" "$(staging_of "$(id pvc-block)")" "$(target_of "$(id pvc-block)")"
	mounts_of_kubelet | cmp - "$copies/mounts"
	refused ALREADY_EXISTS -fs ext4 publish "$(id pvc-ro)" "$(staging_of "$(id pvc-ro)")" "$(target_of "$(id pvc-ro)")"
}

names_find_volumes() {
	local name
	for name in pvc-idle pvc-used pvc-06 pvc-07; do
		equal "ID of $name" "$(create "$name" 14Mi ext4)" "$(id "$name")"
	done
	equal 'ID of pvc-xfs' "$(create pvc-xfs 320Mi xfs -parameter eraseafter=false)" "$(id pvc-xfs)"
	refused ALREADY_EXISTS -size 32Mi -fs ext4 create pvc-idle
	equal 'number of volumes' "$(listed_ids | wc -l)" 14
}

# --- served

idle_has_its_data() {
	stage "$(id pvc-idle)"
	publish "$(id pvc-idle)"
	dax-check -size 4Mi -seed 1 verify "$(target_of "$(id pvc-idle)")/mapped"
	unpublish "$(id pvc-idle)"
	unstage "$(id pvc-idle)"
}

# The Go driver had not made a file system yet; what is on the device is not one.
new_gets_a_file_system() {
	dd if=/dev/zero of="/dev/$group/$(id pvc-new)" bs=4k count=1 conv=notrunc,fsync status=none
	context pvc-new ext4
	stage "$(id pvc-new)"
	has_dax "$(staging_of "$(id pvc-new)")"
	unstage "$(id pvc-new)"
}

stale_is_missing() {
	refused UNAVAILABLE delete "$(go_id pvc-stale)"
	refused UNAVAILABLE -size 16Mi -fs ext4 create pvc-stale
	test -e "$state/$(go_id pvc-stale).json"
}

damaged_is_left_alone() {
	refused FAILED_PRECONDITION -size 16Mi -fs ext4 create pvc-damaged
	csi delete "$(id pvc-damaged)" || true
	cmp "$copies/state/$(id pvc-damaged).json" "$state/$(id pvc-damaged).json"
	no_byte_has_changed pvc-damaged
}

# Its content is not ours to zero; what the pod was shown it is shown again.
block_is_served() {
	local id
	id=$(id pvc-block)
	refused FAILED_PRECONDITION delete "$id"
	cmp "$(target_of "$id")" "$copies/pvc-block"
	unpublish "$id"
	fails test -e "$(target_of "$id")"
	csi -block publish "$id" "$(staging_of "$id")" "$(target_of "$id" second)"
	cmp "$(target_of "$id" second)" "$copies/pvc-block"
	unpublish "$id" second
}

kata_is_taken_over() {
	local id
	id=$(id pvc-kata)
	context pvc-kata ext4 '-parameter kataContainers=true'
	stage "$id"
	is_mounted "$(staging_of "$id")"
	test -e "$(target_of "$id")/file-of-kata"
	refused FAILED_PRECONDITION delete "$id"
	unpublish "$id"
	unpublish "$id"
	fails test -e "$(target_of "$id")"
	equal 'loop devices' "$(losetup -nO NAME)" ''
	fails test -e "$state/mount/$id"
	unstage "$id"
	delete "$id"
	test -d "$state/mount"
}

ephemeral_ends_with_its_pod() {
	local target range
	target=$(target_of csi-1f0c9a)
	range=$(raw_range "$(id csi-1f0c9a)")
	csi -fs ext4 -parameter csi.storage.k8s.io/ephemeral=true -parameter size=16Mi publish csi-1f0c9a '' "$target"
	equal 'number of mounts' "$(mounts_of "$target" | wc -l)" 1
	dax-check -size 4Mi -seed 7 verify "$target/mapped"
	csi unpublish csi-1f0c9a "$target"
	csi unpublish csi-1f0c9a "$target"
	fails test -e "$target"
	await 60 is_erased "$(id csi-1f0c9a)"
	fails lv_exists "$(id csi-1f0c9a)"
	# shellcheck disable=SC2086 # three words
	raw_is_zero $range
}

# With a manager of logical volumes
direct_is_served() {
	local id
	id=$(id pvc-direct)
	refused FAILED_PRECONDITION delete "$id"
	dax-check -size 4Mi -seed 5 verify "$(target_of "$id")/mapped"
	unpublish "$id"
	unstage "$id"
	delete "$id"
	equal 'namespaces of that name' "$(ndctl list -N | grep -c "\"name\":\"$id\"" || true)" 0
	id=$(id pvc-direct-idle)
	context pvc-direct-idle ext4
	stage "$id"
	publish "$id"
	has_dax "$(target_of "$id")"
	dax-check -size 4Mi -seed 5 verify "$(target_of "$id")/mapped"
	unpublish "$id"
	unstage "$id"
}

used_is_not_deleted() {
	refused FAILED_PRECONDITION delete "$(id pvc-used)"
	refused FAILED_PRECONDITION delete "$(id pvc-ro)"
	refused FAILED_PRECONDITION delete "$(id pvc-fileio)"
	dax-check -size 4Mi -seed 2 verify "$(target_of "$(id pvc-used)")/mapped"
}

# delete_go NAME: with what kubelet does first
delete_go() {
	local range
	range=$(raw_range "$(id "$1")")
	unpublish "$(id "$1")"
	unstage "$(id "$1")"
	fails is_mounted "$(staging_of "$(id "$1")")"
	delete "$(id "$1")"
	# shellcheck disable=SC2086 # three words
	raw_is_zero $range
	fails lv_exists "$(id "$1")"
	fails test -e "$state/$(id "$1").json"
}

used_are_deleted() {
	delete_go pvc-used
	delete_go pvc-fileio
	delete_go pvc-07
	delete_go pvc-06
	delete_go pvc-block
}

# --- handed back

hand_back() {
	local id device devices=()
	id=$(create pvc-ours 16Mi ext4 -parameter eraseafter=f)
	echo "$id" >"$scratch/id.pvc-ours"
	stage "$id"
	publish "$id"
	dax-check -size 4Mi -seed 4 write "$(target_of "$id")/mapped"
	driver_stop
	rm "$state/$(id pvc-damaged).json" "$state/$(go_id pvc-stale).json"
	for device in $(lvm lvs --noheadings -o lv_name "$group"); do
		case $device in
		stranger | "$(id pvc-damaged)") ;;
		*) devices+=("$device") ;;
		esac
	done
	equal 'number of logical volumes' "${#devices[@]}" 5
	devices+=("$(id pvc-direct-idle)")
	ndctl list -N | grep "\"name\":\"${devices[-1]}\""
	"$VM_TESTS/go-reads" "$state" "${devices[@]}"
}

only_names_of_go() {
	local file
	for file in "$state"/*; do
		case $file in
		*.json | *.json.tmp | */mount | */lvm | */durability) ;;
		*) echo "${file##*/} is left" && return 1 ;;
		esac
	done
}

# Without any of us, by what the Go driver would do.
go_serves_again() {
	local mounts
	mounts_of_kubelet >"$scratch/mounts"
	mounts=$(grep -c "$(id pvc-ours)" "$scratch/mounts")
	equal 'mounts of our volume' "$mounts" 2
	umount "$(target_of "$(id pvc-ours)")" "$(staging_of "$(id pvc-ours)")"
	mount -t ext4 -o dax "/dev/$group/$(id pvc-ours)" "$(staging_of "$(id pvc-ours)")"
	dax-check -size 4Mi -seed 4 verify "$(staging_of "$(id pvc-ours)")/mapped"
	dax-check -size 4Mi -seed 3 verify "$(staging_of "$(id pvc-xfs)")/mapped"
	only_names_of_go
}

clean_up() {
	local name
	for name in pvc-ours pvc-xfs pvc-ro; do
		umount -q "$(target_of "$(id "$name")")" || true
		umount "$(staging_of "$(id "$name")")"
	done
	lvm lvremove -qq -f -y "$group"
	ndctl destroy-namespace -f "$(ndctl list -N | sed -n "/\"dev\":/{s/.*\"dev\":\"\([^\"]*\)\".*/\1/;h}; /\"name\":\"$(id pvc-direct-idle)\"/{g;p}")"
}

prove node-of-the-go-driver-is-made make_node
prove chain-changes-nothing chain_changes_nothing
prove driver-takes-over driver_takes_over
# shellcheck disable=SC2086 # names
prove no-byte-has-changed no_byte_has_changed pvc-idle pvc-block $untouched
prove state-files-are-kept files_are_kept
prove mounts-are-kept mounts_are_kept
prove calls-are-repeated calls_are_repeated
prove names-find-volumes names_find_volumes
prove idle-has-its-data idle_has_its_data
prove new-gets-a-file-system new_gets_a_file_system
prove stale-file-is-a-missing-volume stale_is_missing
prove damaged-file-is-left-alone damaged_is_left_alone
prove used-is-not-deleted used_is_not_deleted
prove block-is-served-as-it-is block_is_served
prove kata-is-taken-over kata_is_taken_over
prove ephemeral-ends-with-its-pod ephemeral_ends_with_its_pod
prove direct-is-served-beside-lvm direct_is_served
prove used-are-deleted-and-erased used_are_deleted
prove others-have-their-bytes no_byte_has_changed pvc-damaged
prove handed-back hand_back
prove go-serves-again go_serves_again
prove clean-up clean_up
cat "$driver_log"
