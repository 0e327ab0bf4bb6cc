# shellcheck shell=bash disable=SC2154
# What a scenario leaves behind. lib.sh brings this into every script: when the script ends, namespaces, logical
# volumes, device mapper and loop devices and mounts must be as they were. What outlives a boot is compared with how the
# scenario found it before its first driver started; the rest with how this boot began.

kept_before=$LAB_STATE_DIR/leaks.before
boot_before=$scratch/leaks.boot

# What stays in the NVDIMMs.
kept_facts() {
	ndctl list -N | sed -n 's/^ *"\(dev\|mode\|size\|uuid\|name\)"/\1/p'
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

no_process_left() {
	local dir name
	for dir in /proc/[0-9]*; do
		{ read -r name <"$dir/comm"; } 2>/dev/null || continue
		case $name in
		pmem-* | lvm | mkfs* | mke2fs)
			# The kernel's threads have no program, zombies are nobody's.
			[ ! -e "$dir/exe" ] || { echo "process ${dir#/proc/}: $name" && return 1; }
			;;
		esac
	done
}

# Erasing may run on after the last call.
nothing_is_left_behind() {
	if [ -e "$kept_before" ]; then
		await 120 kept_as_before || kept_as_before
	fi
	if [ -e "$scratch/driver.pid" ] && ! is_gone "$(driver_pid)"; then
		driver_stop
	fi
	boot_as_before
	no_process_left
}

check_leaks_at_end() {
	prove nothing-is-left-behind nothing_is_left_behind
}

# leaks_are_meant: this boot leaves what it made to the next one, or was to lose it. A boot that ends with a power cut
# needs not say so.
leaks_are_meant() {
	leaks_meant=1
	trap - EXIT
}

leaks_meant=${CUT:-}
if [ -z "$leaks_meant" ]; then
	note_boot
	trap check_leaks_at_end EXIT
fi
