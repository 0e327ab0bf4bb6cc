# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions for guest scripts: . "$LAB_HOME/guest-lib.sh". What they send is described in README.md.

# Every reader is served line by line: one write per line keeps lines of several processes apart.
lab_send() {
	printf '%s\n' "$*" >"$LAB_CONTROL"
}

# step TEXT: reports how far the script has come.
step() {
	lab_send "STEP $*"
}

# result NAME ok|fail [DETAIL]: NAME is one word.
result() {
	lab_send "RESULT $*"
}

# check NAME COMMAND...: a result that is ok if the command succeeds.
check() {
	local name=$1 status=0
	shift
	"$@" || status=$?
	if [ "$status" = 0 ]; then
		result "$name" ok
	else
		result "$name" fail "exit status $status: $*"
	fi
}

# Asks for a power cut and never returns. Other processes run on for the few milliseconds that it takes.
cut_power() {
	lab_send CUT
	while :; do sleep 60; done
}

# power_off [STATUS]: orderly end of the machine; STATUS other than 0 is a failure. Never returns.
power_off() {
	lab_send "EXIT ${1:-0}"
	umount "$LAB_STATE_DIR" 2>/dev/null
	sync
	echo o >/proc/sysrq-trigger
	while :; do sleep 60; done
}

# Without the host's modprobe configuration: ndctl's would run a key loader for seconds.
load_modules() {
	modprobe -C /dev/null -a "$@"
}

# For scripts about memory that something else than our programs has prepared, as a node of the Go driver is; all others begin with
# blank label areas (scripts/checks/strangers). What is on the NVDIMMs is lost.
initialise_labels_by_hand() {
	ndctl disable-region all >/dev/null 2>&1
	ndctl init-labels -f all >/dev/null 2>&1 && ndctl enable-region all >/dev/null 2>&1
}

# The machine of `vm --cxl`: its devices, without a region, as after every boot.
cxl_devices() {
	load_modules cxl_acpi cxl_pci cxl_mem cxl_port cxl_pmem && cxl list >/dev/null
}

# cxl_memdev SERIAL: the name of the device that has it, which a boot may change.
cxl_memdev() {
	local file
	for file in /sys/bus/cxl/devices/mem*/serial; do
		[ "$(<"$file")" != "$1" ] || basename "$(dirname "$file")"
	done
}

# cxl_region [SERIAL SERIAL]: one region, interleaved over both devices in that order.
cxl_region() {
	[ $# -gt 0 ] || set -- 0x1001 0x1002
	cxl_devices && cxl create-region -m -t pmem -d decoder0.0 -w 2 "$(cxl_memdev "$1")" "$(cxl_memdev "$2")"
}

# LVM commands given by hand must not wait for a udev that is not there, nor look at anything but PMEM.
lvm_without_udev() {
	export LVM_SYSTEM_DIR=/run/lab-lvm
	mkdir -p "$LVM_SYSTEM_DIR" /run/lock /run/lvm
	cat >"$LVM_SYSTEM_DIR/lvm.conf" <<-EOF
		activation { udev_sync=0 udev_rules=0 monitoring=0 }
		backup { backup=0 archive=0 }
		devices {
			use_devicesfile=0
			obtain_device_list_from_udev=0
			scan=["/dev"]
			filter=["a|^/dev/pmem|", "r|.*|"]
		}
		global { event_activation=0 use_lvmpolld=0 }
	EOF
}
