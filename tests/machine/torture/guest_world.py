# SPDX-License-Identifier: Apache-2.0
"""The machine of tests/machine/lab: how it loses its power without going down, and what devices of both kinds have in common.

A power cut of this kind takes what the state disk had not been sent, all mounts, and what the kernel knows of
volumes' devices; it leaves the kernel running, which saves a boot. Stores to PMEM are never lost, neither so nor
when the machine is killed.
"""

import fcntl
import glob
import mmap
import os
import signal
import stat
import struct
import subprocess

from calls import until
from world import World, digest

STATE_DISK = "/dev/vda"
MAPPED = "state"
# as tests/machine/lab/guest-init mounts it
MOUNT_OPTIONS = "noauto_da_alloc,commit=300,errors=panic"
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN
NO_LOG_FLUSH = 2


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
    """The file system mounted there writes nothing any more; a device there is none."""
    if stat.S_ISBLK(os.stat(path).st_mode):
        return
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


class GuestWorld(World):
    """Its subclasses know the devices: add_stranger(), stranger_facts(), places(), read_place(), remove(), and
    renew_devices(); and points, with which the names of their points begin."""

    stranger = "stranger"
    arguments = []

    def __init__(self, disk, kubelet):
        self.disk = disk
        self.ranges = []
        self.bystander_id = None
        super().__init__(disk)
        self.kubelet = kubelet
        for folder in (kubelet + "/staging", kubelet + "/pods"):
            os.makedirs(folder, exist_ok=True)

    def devices(self):
        found = {}
        for name, _, _, size in self.look():
            if name != self.stranger:
                found[name] = found.get(name, 0) + size
        return found

    def map_disk(self):
        """From now on the state disk can lose its power."""
        run("umount", self.disk)
        map_state("linear")
        self.mount_disk(f"/dev/mapper/{MAPPED}")

    def unmap_disk(self):
        run("umount", self.disk)
        run("dmsetup", "remove", "--noudevrules", "--noudevsync", MAPPED)
        run("dmsetup", "mknodes")
        self.mount_disk(STATE_DISK)

    def mount_disk(self, device):
        run("mount", "-t", "ext4", "-o", MOUNT_OPTIONS, device, self.disk)

    def notes(self):
        return self.state + "/notes.txt"

    def add_strangers(self):
        """A foreign device among ours, and a file in the state folder."""
        self.add_stranger()
        with open(self.notes(), "w") as f:
            f.write("not ours\n")
            f.flush()
            os.fsync(f.fileno())

    def foreign(self):
        return {
            "stranger": self.stranger_facts(),
            "notes": digest(self.notes()) if os.path.exists(self.notes()) else "gone",
        }

    def saw_device(self, life):
        self.ranges = [place for name, place in self.places() if name not in (self.stranger, self.bystander_id)]

    def forget_devices(self):
        self.ranges = []

    def readable(self, pattern):
        return [place for place in self.ranges if pattern in self.read_place(*place)]

    def let_go(self):
        """Ends what runs beside the driver."""

    def unknown(self):
        """Names of devices that have no record."""
        return sorted(set(self.devices()) - set(self.records()))

    def forget_empty_records(self):
        """A file whose name outlived its content is damaged: the driver leaves it and its device to the administrator."""
        for name in os.listdir(self.state):
            path = f"{self.state}/{name}"
            if os.path.isfile(path) and name != ".lock" and os.path.getsize(path) == 0:
                os.unlink(path)

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
        self.renew_devices()
        map_state("linear")
        self.mount_disk(f"/dev/mapper/{MAPPED}")

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
