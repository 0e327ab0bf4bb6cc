# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# pmem-ns-init on memory as it comes. With KIND=blank: two NVDIMMs whose label areas are blank, which only -initLabels initialises, and
# only where nothing is on them; also by a run that is killed in the middle. With KIND=cut: the power fails before and behind the write of
# the labels (CUT), and leaves half of an index block. With KIND=unlabelled: two NVDIMMs without a label area and legacy memory, which
# -unlabelled=convert converts.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"
# shellcheck source=tests/machine/vm/convert_steps.sh
. "$VM_TESTS/convert_steps.sh"

hole=/run/hole

labels_sum() {
	ndctl read-labels "$1" 2>/dev/null | sha256sum
}

device_sum() {
	head -c 16M "$1" | sha256sum
}

# pools REGION: sizes of its pool namespaces in MiB, as words
pools() {
	local dir
	for dir in "/sys/bus/nd/devices/$1"/namespace*.*; do
		[[ ! -e $dir/alt_name || $(<"$dir/alt_name") != pmem-csi ]] || echo "$(($(<"$dir/size") >> 20))"
	done | tr '\n' ' '
}

is_labelled() {
	equal 'kind of namespaces' "$(<"/sys/bus/nd/devices/$1/nstype")" 5
}

# Only before the kernel has used labels of nmem0: it goes on to until its driver is loaded again.
make_blank_again() {
	ndctl disable-region region0
	ndctl zero-labels nmem0
	ndctl enable-region region0
	equal 'kind of namespaces' "$(</sys/bus/nd/devices/region0/nstype)" 4
}

# advised_for REGION KIND ACTION TEXT
advised_for() {
	pmem-ns-init advise -o json >"$scratch/advice"
	python3 -c '
import json, sys
name, kind, action, text = sys.argv[2:]
(found,) = [m for m in json.load(open(sys.argv[1]))["memory"] if m["region"] == name]
assert (found["kind"], found["action"]) == (kind, action), found
assert text in " ".join([found["what"], found["state"]] + found["commands"]), found' "$scratch/advice" "$@"
}

advise_names_blank_labels() {
	pmem-ns-init advise >"$scratch/out"
	cat "$scratch/out"
	says '^region0 on ndbus0, 512Mi: NVDIMMs whose label areas are blank (nmem0)$'
	says '^ *pmem-ns-init create -initLabels$'
	advised_for region0 blank-labels init-labels 'create -initLabels'
	advised_for region1 blank-labels init-labels 'create -initLabels'
}

# The only bus is that of the NVDIMMs; each command that is named is run.
memory_without_a_driver_is_named() {
	echo ACPI0012:00 >/sys/bus/acpi/drivers/nfit/unbind
	pmem-ns-init advise >"$scratch/out"
	says 'module nfit is loaded, but has not taken it'
	modprobe -C /dev/null -r nd_pmem nd_e820 virtio_pmem nfit
	[ ! -e /sys/bus/nd/devices ]
	pmem-ns-init advise >"$scratch/out"
	says '^NFIT: NVDIMMs that the firmware describes$'
	says '^ *modprobe nfit$'
	ns_init 0
	says 'no persistent memory: pmem-ns-init advise says'
	pmem-csi-driver doctor -deviceManager=lvm "-statePath=$state" >"$scratch/out" || true
	says '^problem  memory  *NFIT: NVDIMMs .*: modprobe nfit$'
	load_modules nfit
	pmem-ns-init advise >"$scratch/out"
	says '^region0, region1: regions whose namespaces have no block devices$'
	says '^ *modprobe nd_pmem$'
	load_modules nd_pmem
	pmem-ns-init advise >"$scratch/out"
	fails grep modprobe "$scratch/out"
}

nothing_is_done_without_the_flag() {
	labels_sum nmem0 >"$scratch/sum"
	ns_init 0
	says 'skipped region region=region0 .*pmem-ns-init create -initLabels'
	ns_init 0 -unlabelled=convert
	ns_init 1 -strict
	labels_sum nmem0 | diff "$scratch/sum" -
	equal 'namespaces' "$(ndctl list -N | grep -c '"mode":"raw"')" 2
}

# left_alone TEXT: region0, which holds something
left_alone() {
	device_sum /dev/pmem0 >"$scratch/sum"
	ns_init 0 -initLabels -unlabelled=convert
	says "skipped region region=region0 .*$1"
	device_sum /dev/pmem0 | diff "$scratch/sum" -
	advised_for region0 blank-labels by-hand "$1"
}

# region1 is in use meanwhile
content_is_left_alone() {
	mke2fs -q -F /dev/pmem1
	mkdir -p "$hole"
	mount /dev/pmem1 "$hole"
	echo still there >"$hole/file"
	labels_sum nmem0 >"$LAB_STATE_DIR/labels"
	labels_sum nmem1 >>"$LAB_STATE_DIR/labels"
	mke2fs -q -F /dev/pmem0
	left_alone 'holds ext'
	says 'skipped region region=region1 .*busy'
	wipefs -qa /dev/pmem0
	printf 'label: dos\n2048,4096\n' | sfdisk -q /dev/pmem0
	left_alone 'partition table'
	wipefs -qa /dev/pmem0
	hand pvcreate -qq /dev/pmem0
	left_alone LVM2_member
	hand pvremove -qq /dev/pmem0
	printf 'NVDIMM_PFN_INFO' | dd of=/dev/pmem0 bs=4096 seek=1 conv=notrunc,fsync status=none
	left_alone 'info block'
	{ labels_sum nmem0 && labels_sum nmem1; } | diff "$LAB_STATE_DIR/labels" -
	equal 'the file' "$(<"$hole/file")" 'still there'
	umount "$hole"
	dd if=/dev/zero of=/dev/pmem0 bs=1M count=4 conv=fsync status=none
	printf 'a row' | dd of=/dev/pmem0 bs=1 seek=100 conv=notrunc,fsync status=none
	left_alone 'data of an unknown kind'
	dd if=/dev/zero of=/dev/pmem0 bs=4096 count=1 conv=fsync status=none
	# of the second of two namespaces that had labels
	printf 'BTT_ARENA_INFO' | dd of=/dev/pmem0 bs=1M seek=256 conv=notrunc,fsync status=none
	left_alone 'a namespace that began at byte 268435456'
	blkdiscard -fz /dev/pmem0
}

# The point is in the writing of the note, between the advice and the first step.
content_that_appears_is_left_alone() {
	labels_sum nmem0 >"$scratch/sum"
	appears_between file-rename.after 'labels not initialised.*(/dev/pmem0) holds ext' -initLabels write_file_system
	appears_between file-rename.after 'labels not initialised.*holds data of an unknown kind' -initLabels write_row
	labels_sum nmem0 | diff "$scratch/sum" -
	no_note_is_left
}

disabled_is_left_alone() {
	ndctl disable-namespace namespace0.0
	ns_init 0 -initLabels
	says 'skipped region region=region0 .*ndctl enable-namespace namespace0.0'
	ndctl disable-region region0
	ns_init 0 -initLabels
	says 'skipped region region=region0 .*ndctl enable-region region0'
	equal 'driver of the region' "$(readlink /sys/bus/nd/devices/region0/driver)" ''
	ndctl enable-region region0
}

# What is not blank may be labels in a form that this kernel does not know.
odd_labels_are_left_alone() {
	ndctl disable-region region0
	printf 'whatever' >"$scratch/odd"
	ndctl write-labels -i "$scratch/odd" nmem0
	ndctl enable-region region0
	labels_sum nmem0 >"$scratch/sum"
	ns_init 0 -initLabels
	says 'skipped region region=region0 .*the label area of nmem0 is not blank.*ndctl init-labels -f nmem0'
	labels_sum nmem0 | diff "$scratch/sum" -
	advised_for region0 odd-labels by-hand 'ndctl init-labels -f nmem0'
	make_blank_again
}

# initialisation_killed_at POINT REGION: while the labels of the only region without content are initialised
initialisation_killed_at() {
	PMEM_KILL_AT=$1 pmem-ns-init -initLabels 2>"$scratch/log" && fails true
	[ -e /run/pmem-csi/init-labels-"$2" ]
}

no_note_is_left() {
	equal 'notes' "$(echo /run/pmem-csi/init-labels-*)" '/run/pmem-csi/init-labels-*'
}

# A run without the flag brings back what the killed one has disabled; region1 holds a file system meanwhile.
killed_before_and_behind_the_label() {
	initialisation_killed_at labels-region-off.after region0
	ns_init 0
	says 'enabled again what an interrupted initialisation'
	no_note_is_left
	equal 'mode' "$(ndctl list -n namespace0.0 | sed -n 's/.*"mode":"\(.*\)".*/\1/p')" raw
	initialisation_killed_at labels-module-off.after region0
	ns_init 0 -useforfsdax=0
	says 'enabled again what an interrupted initialisation'
	no_note_is_left
	is_labelled region0
	ns_init 0 -initLabels -useforfsdax=50
	equal 'pools' "$(pools region0)" '256 '
	labels_sum nmem1 | diff <(tail -n 1 "$LAB_STATE_DIR/labels") -
}

create_initialises_all() {
	mount /dev/pmem1 "$hole"
	equal 'the file' "$(<"$hole/file")" 'still there'
	umount "$hole"
	blkdiscard -fz /dev/pmem1
	initialisation_killed_at labels-write.after region1
	ns_init 0 -initLabels -strict
	no_note_is_left
	is_labelled region0
	is_labelled region1
	equal 'pools' "$(pools region0)$(pools region1)" '256 256 512 '
	chain_facts >"$scratch/before"
	ns_init 0 -initLabels -strict
	chain_facts | diff "$scratch/before" -
	advised_for region0 labelled none 'is used'
}

kernel_is_content() {
	fails grep -E 'BUG:|WARNING:|Oops|Call Trace' <<<"$(dmesg)"
}

blank_1() {
	prove advise-names-blank-labels advise_names_blank_labels
	prove memory-without-a-driver-is-named memory_without_a_driver_is_named
	prove nothing-is-done-without-the-flag nothing_is_done_without_the_flag
	prove content-is-left-alone content_is_left_alone
	prove content-that-appears-is-left-alone content_that_appears_is_left_alone
	prove disabled-is-left-alone disabled_is_left_alone
	prove odd-labels-are-left-alone odd_labels_are_left_alone
	prove killed-before-and-behind-the-label killed_before_and_behind_the_label
	prove create-initialises-all create_initialises_all
	prove kernel-does-not-complain kernel_is_content
}

labels_outlive_a_reboot() {
	ns_init 0 -initLabels -strict
	equal 'pools' "$(pools region0)$(pools region1)" '256 256 512 '
	init_chain 100
}

# create, use and delete a volume
use_a_volume() {
	local id
	driver_start
	id=$(create one 64Mi ext4)
	stage "$id"
	has_dax "$(staging_of "$id")"
	dax-check -size 4Mi -seed 7 write "$(staging_of "$id")/mapped"
	dax-check -size 4Mi -seed 7 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	delete "$id"
	driver_stop
}

blank_2() {
	prove labels-outlive-a-reboot labels_outlive_a_reboot
	prove use-a-volume use_a_volume
	prove kernel-does-not-complain kernel_is_content
}

unlabelled_memory_is_named() {
	advised_for region0 no-label-area convert 'create -unlabelled=convert'
	advised_for region2 legacy convert 'create -unlabelled=convert'
	ns_init 0 -initLabels
	says 'skipped region region=region0 .*pmem-ns-init create -unlabelled=convert'
	equal 'namespaces' "$(ndctl list -N | grep -cE '"mode":"raw"|"map":"mem"')" 3
}

# The point is in the making of the folders for records, between the plan and the conversion: the next one after those of a dry run.
content_that_appears_is_not_converted() {
	local hits
	PMEM_STEP_TRACE=$scratch/trace pmem-ns-init "-statePath=$scratch/other" -dry-run convert namespace0.0
	hits=$(grep -c 'folder-make.after' "$scratch/trace" || true)
	appears_between "folder-make.after:$((hits + 1))" 'namespace not converted.*(/dev/pmem0) holds ext' \
		"-statePath=$scratch/other" convert namespace0.0 write_file_system
}

# region1 holds something
unlabelled_memory_is_converted() {
	mke2fs -q -F /dev/pmem1
	device_sum /dev/pmem1 >"$scratch/sum"
	ns_init 0 -unlabelled=convert "-statePath=$state"
	is_converted
	equal 'groups' "$(groups)" 'ndbus0region0fsdax ndbus1region2fsdax'
	says 'skipped region region=region1 .*holds ext.*pmem-ns-init -force convert namespace1.0'
	device_sum /dev/pmem1 | diff "$scratch/sum" -
	chain_facts >"$scratch/before"
	ns_init 0 -unlabelled=convert "-statePath=$state"
	chain_facts | diff "$scratch/before" -
	advised_for region0 no-label-area none 'is used as a whole'
	pmem-vgm "-statePath=$state"
}

unlabelled_1() {
	load_modules nd_e820
	prove unlabelled-memory-is-named unlabelled_memory_is_named
	prove content-that-appears-is-not-converted content_that_appears_is_not_converted
	prove unlabelled-memory-is-converted unlabelled_memory_is_converted
	prove use-a-volume use_a_volume
	prove kernel-does-not-complain kernel_is_content
}

# The power is cut while the labels of region0 are initialised; region1 holds a file system.
initialisation_stops() {
	PMEM_STOP_AT=$CUT pmem-ns-init -initLabels 2>"$scratch/log" &
	await 60 is_stopped $!
	[ -e /run/pmem-csi/init-labels-region0 ]
}

file_system_is_made() {
	mke2fs -q -F /dev/pmem1
	device_sum /dev/pmem1 >"$LAB_STATE_DIR/sum"
	labels_sum nmem1 >"$LAB_STATE_DIR/labels"
	sync
}

file_system_is_there() {
	device_sum /dev/pmem1 | diff "$LAB_STATE_DIR/sum" -
	labels_sum nmem1 | diff "$LAB_STATE_DIR/labels" -
}

cut_1() {
	prove file-system-is-made file_system_is_made
	prove initialisation-stops initialisation_stops
	cut_power
}

nothing_was_written() {
	advised_for region0 blank-labels init-labels 'create -initLabels'
	ns_init 0
	says 'skipped region region=region0 .*pmem-ns-init create -initLabels'
	file_system_is_there
}

cut_2() {
	prove nothing-was-written nothing_was_written
	prove initialisation-stops initialisation_stops
	cut_power
}

# The kernel uses the index that was written.
next_boot_has_labels() {
	advised_for region0 labelled none 'is used'
	ns_init 0
	equal 'pools' "$(pools region0)" '512 '
	file_system_is_there
}

# As the power leaves it in the middle of an index block: its checksum is wrong, so that the kernel takes it for none.
index_is_cut_off() {
	ndctl read-labels -s 128 nmem0 -o "$scratch/index"
	ndctl disable-region region1
	ndctl write-labels -i "$scratch/index" nmem1
	labels_sum nmem1 >"$LAB_STATE_DIR/labels"
	sync
}

cut_3() {
	prove next-boot-has-labels next_boot_has_labels
	prove index-is-cut-off index_is_cut_off
	cut_power
}

initialisation_is_finished() {
	advised_for region1 blank-labels by-hand 'holds ext'
	ns_init 0 -initLabels
	says 'skipped region region=region1 .*holds ext'
	file_system_is_there
	blkdiscard -fz /dev/pmem1
	advised_for region1 blank-labels init-labels 'create -initLabels'
	ns_init 0 -initLabels -strict
	is_labelled region1
	equal 'pools' "$(pools region0)$(pools region1)" '512 512 '
	no_note_is_left
	init_chain 100
}

cut_4() {
	prove initialisation-is-finished initialisation_is_finished
	prove use-a-volume use_a_volume
	prove kernel-does-not-complain kernel_is_content
}

part=${KIND}_${BOOT:-1}
# shellcheck disable=SC2046 # names are single words
plan $(declare -f "$part" | sed -nE 's/^[[:blank:]]*prove ([a-z0-9-]+) .*/\1/p')
"$part"
cat "$driver_log"
