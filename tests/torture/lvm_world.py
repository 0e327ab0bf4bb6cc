"""LVM on emulated NVDIMMs in the machine of tests/lab: what there is, and how it loses its power without going down.

A power cut of this kind takes what the state disk had not been sent, all mounts, and all mapped devices; it leaves the
kernel running, which saves a boot. Stores to PMEM are never lost, neither so nor when the machine is killed.
"""

import fcntl
import glob
import hashlib
import mmap
import os
import re
import signal
import struct
import subprocess

from calls import until
from world import MIB, World, digest

STATE_DISK = "/dev/vda"
MAPPED = "state"
# as tests/lab/guest-init mounts it
MOUNT_OPTIONS = "noauto_da_alloc,commit=300,errors=panic"
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN
NO_LOG_FLUSH = 2
GROUP = re.compile(r"ndbus\d+region\d+fsdax")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, close_fds=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def map_state(target, *feature):
    """The state disk through another target; nothing on its way is waited for."""
    sectors = int(run("blockdev", "--getsz", STATE_DISK))
    table = f"0 {sectors} {target} {STATE_DISK} 0 {' '.join(feature)}".strip()
    exists = os.path.exists(f"/dev/mapper/{MAPPED}")
    if not exists:
        run("dmsetup", "create", MAPPED, "--noudevrules", "--noudevsync", "--table", table)
        run("dmsetup", "mknodes", MAPPED)
        return
    run("dmsetup", "suspend", "--nolockfs", "--noflush", MAPPED)
    run("dmsetup", "load", MAPPED, "--table", table)
    run("dmsetup", "resume", "--noudevrules", "--noudevsync", MAPPED)


def shut_down(path):
    """The file system mounted there writes nothing any more."""
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    finally:
        os.close(fd)


def read_direct(path, start, length):
    """Past the page cache, which knows nothing of what was written through the volume."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, length) as memory:
            got = os.preadv(fd, [memory], start)
            return memory[:got]
    finally:
        os.close(fd)


class LvmWorld(World):
    kinds = ["ext4", "kept", "block", "ephemeral"]
    stranger = "stranger"
    arguments = []

    def __init__(self, disk, kubelet):
        self.disk = disk
        self.ranges = []
        super().__init__(disk)
        self.kubelet = kubelet
        for folder in (kubelet + "/staging", kubelet + "/pods"):
            os.makedirs(folder, exist_ok=True)

    def map_disk(self):
        """From now on the state disk can lose its power."""
        run("umount", self.disk)
        map_state("linear")
        self.mount_disk()

    def mount_disk(self):
        run("mount", "-t", "ext4", "-o", MOUNT_OPTIONS, f"/dev/mapper/{MAPPED}", self.disk)

    def look(self):
        report = run(
            *("lvm", "pvs", "--segments", "--noheadings", "--nosuffix", "--units", "b"),
            *("-o", "vg_name,vg_free,pvseg_size,vg_extent_size,pv_name,pe_start,pvseg_start,lv_name"),
        )
        self.segments = []
        self.groups = {}
        for line in report.splitlines():
            words = line.split()
            if len(words) < 7 or not GROUP.fullmatch(words[0]):
                continue
            self.groups[words[0]] = int(words[1])
            if len(words) == 8:
                extent = int(words[3])
                start = int(words[5]) + int(words[6]) * extent
                self.segments.append((words[7], words[4], start, int(words[2]) * extent))
        return self.segments

    def add_strangers(self):
        """A volume of somebody else in a group of ours, and a file in the state folder."""
        self.look()
        run("lvm", "lvcreate", "-y", "-Zn", "-Wn", "-n", self.stranger, "-L", "4m", min(self.groups))
        self.look()
        self.find_stranger()
        with open(self.place[0], "r+b") as device:
            device.seek(self.place[1])
            device.write(b"not ours" * (4 * MIB // 8))
            device.flush()
            os.fsync(device.fileno())
        with open(self.state + "/notes.txt", "w") as f:
            f.write("not ours\n")
            f.flush()
            os.fsync(f.fileno())

    def find_stranger(self):
        self.place = next(segment[1:] for segment in self.segments if segment[0] == self.stranger)

    def foreign(self):
        notes = self.state + "/notes.txt"
        return {
            "stranger": hashlib.sha256(read_direct(*self.place)).hexdigest(),
            "notes": digest(notes) if os.path.exists(notes) else "gone",
        }

    def devices(self):
        found = {}
        for name, _, _, size in self.look():
            if name != self.stranger:
                found[name] = found.get(name, 0) + size
        return found

    def free_bytes(self):
        self.look()
        return sum(self.groups.values())

    def beside(self):
        return sorted(glob.glob("/dev/mapper/*fsdax*"))

    def leaks(self):
        return []

    def id_of(self, name):
        for volume in self.records():
            for phase in self.records()[volume]:
                with open(f"{self.state}/{volume}.{phase}") as f:
                    if f'"{name}"' in f.read():
                        return volume
        return None

    def saw_device(self, life):
        self.ranges = [s[1:] for s in self.look() if s[0] not in (self.stranger, self.bystander_id)]

    def forget_devices(self):
        self.ranges = []

    def readable(self, pattern):
        return [place for place in self.ranges if pattern in read_direct(*place)]

    def cut_power(self, driver):
        """Of the state disk; the kernel stays. The driver has stopped itself."""
        map_state("flakey", "0", "60", "1", "drop_writes")
        children = self.children(driver.process.pid)
        driver.kill()
        for pid in children:
            self.end(pid)
        for path in self.mounts():
            shut_down(path)
        for path in reversed(self.mounts()):
            run("umount", path)
        run("umount", self.disk)
        run("lvm", "vgchange", "-an", *self.groups)
        map_state("linear")
        self.mount_disk()

    def children(self, parent):
        found = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as f:
                    fields = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[1] == str(parent) and fields[0] != "Z":
                found.append(int(path.split("/")[2]))
        return found

    def end(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        until(f"process {pid} ends", lambda: not os.path.exists(f"/proc/{pid}/exe") or self.is_dead(pid), 10)

    def is_dead(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True
