# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What a scenario leaves behind. lib.sh brings this into every script: when the script ends, namespaces, logical
# volumes, device mapper and loop devices and mounts must be as they were. What outlives a boot is compared with how the
# scenario found it before its first driver started; the rest with how this boot began.

kept_before=$LAB_STATE_DIR/leaks.before
boot_before=$scratch/leaks.boot

# What stays in the NVDIMMs. A line for each namespace: a region that was disabled counts them from zero.
kept_facts() {
	ndctl list -N |
		sed -nE 's/^ *"dev":"namespace([0-9]+).*/region\1/p; s/^ *"(mode|size|uuid|name)"/\1/p' |
		awk '/^region/ && NR > 1 { print "" } { printf "%s ", $0 } END { print "" }' | sort
	lvm vgs --noheadings --nosuffix --units b -o vg_name,vg_free
	lvm lvs --noheadings -o vg_name,lv_name,lv_uuid,lv_size,lv_tags
}

# What ends with the boot. A mount's line without its numbers, which the kernel counts on.
boot_facts() {
	local line fields file
	while read -r line; do
		read -ra fields <<<"$line"
		echo "mount ${fields[4]} of ${fields[2]} ${fields[3]}"
	done </proc/self/mountinfo
	for file in /sys/block/loop*/loop/backing_file /sys/block/dm-*/dm/name; do
		[ ! -e "$file" ] || echo "$file: $(<"$file")"
	done
}

# note_kept: what the NVDIMMs hold now is to be there at the end of the scenario.
note_kept() {
	kept_facts >"$kept_before"
	sync "$kept_before"
}

# note_boot: what there is else is to be there at the end of the boot.
note_boot() {
	boot_facts >"$boot_before"
}

kept_as_before() {
	kept_facts | diff "$kept_before" -
}

boot_as_before() {
	boot_facts | diff "$boot_before" -
}

# Volumes that stay keep their devices.
boot_as_before_but_devices() {
	boot_facts | grep -v '^/sys/block/dm-' | diff <(grep -v '^/sys/block/dm-' "$boot_before") -
}

no_process_left() {
	local dir name
	for dir in /proc/[0-9]*; do
		{ read -r name <"$dir/comm"; } 2>/dev/null || continue
		case $name in
		pmem-* | qemu-* | lvm | mkfs* | mke2fs | e2fsck | tune2fs | xfs_db)
			# The kernel's threads and zombies have no program.
			[ ! -e "$dir/exe" ] || { echo "process ${dir#/proc/}: $name" && return 1; }
			;;
		esac
	done
}

# Erasing may run on after the last call.
nothing_is_left_behind() {
	if [ -e "$kept_before" ] && [ -z "$volumes_stay" ]; then
		await 120 kept_as_before || kept_as_before
	fi
	if [ -e "$scratch/driver.pid" ] && ! is_gone "$(driver_pid)"; then
		driver_stop
	fi
	if [ -z "$volumes_stay" ]; then
		boot_as_before
	else
		boot_as_before_but_devices
	fi
	no_process_left
}

check_leaks_at_end() {
	prove nothing-is-left-behind nothing_is_left_behind
}

# volumes_are_left: to the next boot, which checks what stays in the NVDIMMs; mounts, loop devices and processes are not.
volumes_are_left() {
	volumes_stay=1
}

# leaks_are_meant: this boot was to lose what it made. One that ends with a power cut needs not say so.
leaks_are_meant() {
	leaks_meant=1
	trap - EXIT
}

volumes_stay='' leaks_meant=${CUT:-}
if [ -z "$leaks_meant" ]; then
	note_boot
	trap check_leaks_at_end EXIT
fi
