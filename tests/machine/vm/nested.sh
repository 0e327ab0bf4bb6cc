# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Virtual machines in the lab's machine, which play the guests of pods: the same kernel, and an initramfs of busybox with the programs that
# check content. Each is given commands by its second serial port (nested-init). Emulation in emulation is slow, so nothing that is done
# with them is a measure of time. Needs lib.sh.
nested=$scratch/nested
mkdir -p "$nested"

# Copies a program with its libraries into the folder $1.
nested_copy_program() {
	local path
	cp "$2" "$1/bin/"
	ldd "$2" | grep -o '/[^ ]*' >"$nested/libraries"
	while read -r path; do
		[ -e "$1$path" ] || { mkdir -p "$1${path%/*}" && cp -L "$path" "$1$path"; }
	done <"$nested/libraries"
}

# Copies modules into the folder $1. Without their signatures, and without what only tracing uses, the kernel loads them in a fifth of
# the time: it compares each constant of their trace events with every trace event that there is (kernel/trace/trace.c,
# trace_insert_eval_map()).
nested_copy_modules() {
	local path module
	for module in "${@:2}"; do
		modprobe -C /dev/null --ignore-install --show-depends "$module"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | grep -v crc32c-intel | awk '!seen[$0]++' >"$nested/modules"
	while read -r path; do
		objcopy --strip-debug -R .BTF -R __mcount_loc -R _ftrace_eval_map "$path" "$1/${path##*/}"
		echo "${path##*/}" >>"$1/order"
	done <"$nested/modules"
}

# nested_prepare FILE-SYSTEM...: the initramfs, once in a boot
nested_prepare() {
	local tree=$nested/tree program
	mkdir -p "$tree"/{bin,dev,proc,sys,modules,volume}
	cp "$(type -P busybox)" "$tree/bin/"
	for program in dax-check ordered-stores resize2fs; do
		nested_copy_program "$tree" "$(type -P "$program")"
	done
	nested_copy_modules "$tree/modules" virtio_pci virtio_blk nfit nd_pmem crc32c_generic "$@"
	cp "$VM_TESTS/nested-init" "$tree/init"
	chmod 0755 "$tree/init"
	(cd "$tree" && find . | cpio -o -H newc --quiet) >"$nested/initramfs"
	rm -r "$tree"
}

nested_pid() {
	echo "$(<"$nested/$1.pid")"
}

nested_is_up() {
	grep -q '^UP' "$nested/$1.out" || is_gone "$(nested_pid "$1")"
}

# nested_start NAME [nvdimm IMAGE] [disk DEVICE]: until the guest takes commands. Its clock counts instructions: one that followed the
# host's would have it do little but serve its timer.
nested_start() {
	local name=$1 hardware=()
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		nvdimm)
			hardware+=(-object "memory-backend-file,id=image,share=on,pmem=on,mem-path=$2,size=$(stat -c %s "$2")"
				-device "nvdimm,memdev=image")
			;;
		disk)
			hardware+=(-blockdev "driver=host_device,node-name=disk,filename=$2" -device "virtio-blk-pci,drive=disk")
			;;
		esac
		shift 2
	done
	rm -f "$nested/$name".{in,out,qmp}
	mkfifo "$nested/$name.in"
	: >"$nested/$name.out"
	qemu-system-x86_64 -machine pc,nvdimm=on "${hardware[@]}" -accel tcg,thread=single,tb-size=256 -icount shift=4 -cpu qemu64 \
		-m 256,slots=2,maxmem=4G -nodefaults -no-user-config -display none -no-reboot -qmp "unix:$nested/$name.qmp,server=on,wait=off" \
		-serial "file:$nested/$name.console" -chardev "pipe,id=commands,path=$nested/$name" -serial chardev:commands \
		-kernel "$LAB_KERNEL/vmlinux" -initrd "$nested/initramfs" -append \
		'console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests swiotlb=noforce rodata=off init_on_alloc=0 mitigations=off audit=0 nokaslr' \
		>"$nested/$name.qemu" 2>&1 </dev/null &
	echo $! >"$nested/$name.pid"
	await 1200 nested_is_up "$name"
	if is_gone "$(nested_pid "$name")"; then
		echo "the guest ended: $(tail -n 3 "$nested/$name.qemu" "$nested/$name.console")"
		return 1
	fi
	step "guest $name is up"
}

# nested_has_done NAME NUMBER
nested_has_done() {
	grep -q "^DONE $2 " "$nested/$1.out" || is_gone "$(nested_pid "$1")"
}

# nested_do NAME COMMAND: in the guest; with its output and status. What it says must end with a newline. The stand-in for the shim asks the
# same guest, one after the other.
nested_do() {
	local name=$1 before number status lock
	exec {lock}>"$nested/$name.lock"
	flock "$lock"
	before=$(wc -l <"$nested/$name.out")
	number=$(($(grep -c '^DONE ' "$nested/$name.out" || true) + 1))
	# opened for reading, too, so that it does not wait for a guest that is gone
	echo "$2" 1<>"$nested/$name.in"
	await 1200 nested_has_done "$name" "$number"
	tail -n "+$((before + 1))" "$nested/$name.out" >"$nested/$name.said"
	exec {lock}>&-
	status=$(sed -n "s/^DONE $number //p" "$nested/$name.said")
	sed "/^DONE $number /d" "$nested/$name.said"
	return "${status:-1}"
}

# nested_kill NAME: as a crash of the hypervisor
nested_kill() {
	kill -KILL "$(nested_pid "$1")"
	await 30 is_gone "$(nested_pid "$1")"
}
