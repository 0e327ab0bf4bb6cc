# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The cases that the Go driver had beside csi-sanity, and that no other script here has. MODE is the device manager; only
# with lvm there is a pool, which grows with its share. Ends with leaks made by hand that leaks.sh must find.
# shellcheck source=tests/machine/vm/lib.sh
. "$VM_TESTS/lib.sh"

mib=1048576

# --- the pool

start() {
	if [ "$MODE" = lvm ]; then
		driver_start_with -deviceManager=lvm -pmemPercentage=50 -initLabels
	else
		prepare_memory
		driver_start_with "-deviceManager=$MODE"
	fi
}

# A larger share, at a restart; what there is stays.
pool_grows() {
	local id before
	before=$(available)
	id=$(create before-growth 32Mi ext4)
	stage "$id"
	dax-check -size 1Mi -seed 1 write "$(staging_of "$id")/mapped"
	driver_stop
	driver_start_with -deviceManager=lvm -pmemPercentage=75
	test "$(available)" -gt $((before + 256 * mib))
	dax-check -size 1Mi -seed 1 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	stage "$id"
	dax-check -size 1Mi -seed 1 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	before=$(available)
	driver_stop
	driver_start_with -deviceManager=lvm -pmemPercentage=75
	equal 'capacity after the same share again' "$(available)" "$before"
	delete "$id"
	has_available $((before + 32 * mib))
	note_kept
}

has_available() {
	equal 'the capacity' "$(available)" "$1"
}

# --- capacity

capacity_follows() {
	local before id size
	before=$(available)
	id=$(create capacity 33Mi ext4)
	size=$(field capacity_bytes <"$scratch/created")
	test "$size" -ge $((33 * mib))
	if [ "$MODE" = lvm ]; then
		has_available $((before - size))
	else
		test "$(available)" -le $((before - size))
	fi
	delete "$id"
	has_available "$before"
}

# Four volumes, three of them deleted: what is then the largest can be made.
fragmentation() {
	local before quarter n ids=() size
	before=$(available)
	quarter=$(($(largest) / 4))
	quarter=$((quarter - quarter % (16 * mib) - 16 * mib))
	for n in 1 2 3 4; do
		ids+=("$(create "fragment-$n" "$quarter" ext4 -parameter eraseafter=false)")
	done
	for n in 0 1 3; do
		delete "${ids[n]}"
	done
	equal 'the list' "$(listed_ids)" "${ids[2]}"
	size=$(largest)
	test "$size" -ge "$quarter"
	ids+=("$(create fragment-largest "$size" ext4 -parameter eraseafter=false)")
	test "$(field capacity_bytes <"$scratch/created")" -ge "$size"
	delete "${ids[4]}"
	delete "${ids[2]}"
	has_available "$before"
}

zero_size() {
	local before id
	before=$(available)
	id=$(create zero 0 ext4)
	test "$(field capacity_bytes <"$scratch/created")" -ge 4194304
	stage "$id"
	touch "$(staging_of "$id")/file"
	unstage "$id"
	delete "$id"
	has_available "$before"
}

too_large() {
	local before
	before=$(available)
	refused RESOURCE_EXHAUSTED -size 1Pi -fs ext4 create huge
	has_available "$before"
	equal 'the list' "$(listed_ids)" ''
}

# --- calls

staged_is_not_deleted() {
	local before id
	before=$(available)
	id=$(create staged 32Mi ext4)
	stage "$id"
	dax-check -size 1Mi -seed 2 write "$(staging_of "$id")/mapped"
	refused FAILED_PRECONDITION delete "$id"
	dax-check -size 1Mi -seed 2 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	stage "$id"
	dax-check -size 1Mi -seed 2 verify "$(staging_of "$id")/mapped"
	unstage "$id"
	delete "$id"
	has_available "$before"
}

# 40 parameters of 120,000 bytes; the stack's limit is that of arguments, too.
long_message() {
	local word arguments=() n
	printf -v word '%120000s' ''
	for n in {1..40}; do
		arguments+=(-parameter "long$n=$word")
	done
	ulimit -s 65536
	refused RESOURCE_EXHAUSTED -size 16Mi -fs ext4 "${arguments[@]}" create long
	equal 'the list' "$(listed_ids)" ''
}

# kubelet shows the message to whoever looks for the reason, on another machine.
node_is_named() {
	local text
	text=$(csi -fs ext4 stage no-such-volume "$(staging_of no-such-volume)" 2>&1) || true
	[[ $text == 'NOT_FOUND: lab: '* ]]
	text=$(csi unstage no-such-volume "$(staging_of no-such-volume)" 2>&1) || true
	[[ $text == 'NOT_FOUND: lab: '* ]]
	text=$(csi -size 1Pi -fs ext4 create huge 2>&1) || true
	[[ $text == 'RESOURCE_EXHAUSTED: lab: '* ]]
}

# --- inline ephemeral volumes

# set_ephemeral_flags FS FLAGGED: sets flags to what kubelet says of it; an old one does not flag it. xfs has a minimum.
set_ephemeral_flags() {
	local size=32Mi
	[ "$1" != xfs ] || size=320Mi
	flags=(-parameter "size=$size" -parameter csi.storage.k8s.io/pod.name=pod)
	[ "$1" = default ] || flags+=(-fs "$1")
	[ -z "$2" ] || flags+=(-parameter csi.storage.k8s.io/ephemeral=true)
}

# ephemeral FS FLAGGED: each call ten times
ephemeral() {
	local before handle target flags n
	before=$(available)
	set_ephemeral_flags "$1" "$2"
	handle=csi-$(printf '%s' "$*" | sha256sum | cut -c 1-64)
	target=$(target_of "$handle")
	for n in {1..10}; do
		csi "${flags[@]}" publish "$handle" '' "$target"
	done
	equal 'number of volumes' "$(listed_ids | wc -l)" 1
	equal 'number of mounts' "$(mounts_of "$target" | wc -l)" 1
	has_dax "$target"
	dax-check -size 1Mi -seed 6 write "$target/mapped"
	for n in {1..10}; do
		csi unpublish "$handle" "$target"
	done
	fails test -e "$target"
	equal 'the list' "$(listed_ids)" ''
	await 60 has_available "$before"
}

ephemeral_matrix() {
	local fs
	for fs in default ext4 xfs; do
		ephemeral "$fs" ''
		ephemeral "$fs" flagged
	done
}

ephemeral_is_undone() {
	local before flags
	before=$(available)
	set_ephemeral_flags ext4 flagged
	refused INVALID_ARGUMENT -fs ext4 -parameter csi.storage.k8s.io/ephemeral=true publish csi-undone '' "$(target_of undone)"
	rm -f /usr/sbin/mkfs.ext4
	ln -s /bin/false /usr/sbin/mkfs.ext4
	refused INTERNAL "${flags[@]}" publish csi-undone '' "$(target_of undone)" >"$scratch/refusal"
	grep 'mkfs.ext4 ended with status 1' "$scratch/refusal"
	equal 'the list' "$(listed_ids)" ''
	fails test -e "$(target_of undone)"
	await 60 has_available "$before"
	ln -sf mke2fs /usr/sbin/mkfs.ext4
	csi "${flags[@]}" publish csi-undone '' "$(target_of undone)"
	csi unpublish csi-undone "$(target_of undone)"
	await 60 has_available "$before"
}

# --- many at a time

stress() {
	local volumes=40
	[ "$MODE" = lvm ] || volumes=20
	csi-load -workers 10 -volumes "$volumes" -size 15Mi -kubelet "$kubelet" -space 120s >"$scratch/load"
	cat "$scratch/load"
	[[ $(<"$scratch/load") == "volumes $volumes failed 0 odd 0 "* ]]
	equal 'the list' "$(listed_ids)" ''
	rmdir "$kubelet"/staging-load-*
}

# --- what leaks.sh finds

# found WORD COMMAND...: the command fails, and says the word.
found() {
	local word=$1 said
	shift
	if said=$("$@"); then
		echo "found nothing: $*"
		return 1
	fi
	echo "$said"
	[[ $said == *"$word"* ]]
}

leak_of_device() {
	ndctl create-namespace -r region1 -m fsdax -n leak -s 64M
	found 'name:"leak"' kept_as_before
	ndctl destroy-namespace -f "$(ndctl list -N | sed -n '/"dev":/{s/.*"dev":"\([^"]*\)".*/\1/;h}; /"name":"leak"/{g;p}')"
}

leak_of_volume() {
	lvm lvcreate -qq -y -n leak -L 4m ndbus0region0fsdax
	found 'ndbus0region0fsdax leak' kept_as_before
	found ndbus0region0fsdax-leak boot_as_before
	lvm lvremove -qq -y ndbus0region0fsdax/leak
}

leak_of_mount() {
	mount -t tmpfs leak /srv
	found 'mount /srv' boot_as_before
	umount /srv
}

leak_of_loop() {
	truncate -s 1M "$scratch/loop"
	losetup -f "$scratch/loop"
	found "$scratch/loop" boot_as_before
	losetup -D
}

leak_of_process() {
	local pid
	ln -sf "$(type -P sleep)" "$scratch/mkfs.leak"
	"$scratch/mkfs.leak" 1000 &
	pid=$!
	await 30 grep -q mkfs.leak "/proc/$pid/comm"
	driver_stop
	found "$pid" no_process_left
	kill "$pid"
}

plan start capacity-follows fragmentation zero-size too-large-is-exhausted staged-is-not-deleted \
	long-message-is-refused errors-name-the-node ephemeral-matrix ephemeral-is-undone ten-at-a-time \
	seeded-leak-of-a-{device,mount,loop,process}
prove start start
if [ "$MODE" = lvm ]; then
	plan pool-grows-with-its-share seeded-leak-of-a-volume
	prove pool-grows-with-its-share pool_grows
fi
prove capacity-follows capacity_follows
prove fragmentation fragmentation
prove zero-size zero_size
prove too-large-is-exhausted too_large
prove staged-is-not-deleted staged_is_not_deleted
prove long-message-is-refused long_message
prove errors-name-the-node node_is_named
prove ephemeral-matrix ephemeral_matrix
prove ephemeral-is-undone ephemeral_is_undone
prove ten-at-a-time stress
[ "$MODE" != lvm ] || prove seeded-leak-of-a-volume leak_of_volume
prove seeded-leak-of-a-device leak_of_device
prove seeded-leak-of-a-mount leak_of_mount
prove seeded-leak-of-a-loop leak_of_loop
prove seeded-leak-of-a-process leak_of_process
cat "$driver_log"
