# SPDX-License-Identifier: Apache-2.0
"""Namespaces of emulated NVDIMMs, one for each volume."""

import glob
import hashlib
import mmap
import os

from guest_world import GuestWorld, read_direct, run
from world import MIB

ND = "/sys/bus/nd/devices"
UNIT = 16 * MIB
STORIES = ["group", "modified", "cloned-ext4", "snapshots-ext4", "snapshots-block"]
STRANGER_BYTES = 32 * MIB


def read_value(path):
    with open(path) as f:
        return f.read().strip()


def read_memory(start, length):
    """What no device covers any more. The kernel refuses it for memory that a driver has (CONFIG_IO_STRICT_DEVMEM)."""
    fd = os.open("/dev/mem", os.O_RDONLY)
    try:
        with mmap.mmap(fd, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=start) as memory:
            return memory[:]
    finally:
        os.close(fd)


class DirectWorld(GuestWorld):
    points = "nd-"
    has_raw_sizes = True
    changes_usage = False
    # nothing grows, and copies are what they are in other modes
    kinds = ["ext4", "fileio", "kept", "block", "sector-block", "ephemeral", *STORIES]
    arguments = ["-deviceManager=direct"]

    def look(self):
        """(name, sysfs folder, start, size) of each namespace that has a size."""
        found = []
        for path in sorted(glob.glob(f"{ND}/namespace*")):
            size = int(read_value(path + "/size"))
            if size > 0:
                start = int(read_value(path + "/resource"), 0)
                found.append((read_value(path + "/alt_name"), path, start, size))
        return found

    def add_stranger(self):
        """A namespace in a region of ours."""
        size = str(STRANGER_BYTES)
        run("ndctl", "create-namespace", "-r", "region0", "-m", "fsdax", "-n", self.stranger, "-s", size)
        with open(self.stranger_device(), "r+b") as device:
            device.write(b"not ours" * (4 * MIB // 8))
            device.flush()
            os.fsync(device.fileno())

    def remove(self, name):
        for found, path, _, _ in self.look():
            if found == name:
                run("ndctl", "destroy-namespace", "-f", os.path.basename(path))

    def stranger_device(self):
        return self.block_device(self.stranger)

    def block_device(self, wanted):
        path = next(path for name, path, _, _ in self.look() if name == wanted)
        holder = read_value(path + "/holder")
        return "/dev/" + os.path.basename(glob.glob(f"{ND}/{holder}/block/*")[0])

    def stranger_facts(self):
        facts = [
            (read_value(path + "/uuid"), start, size)
            for name, path, start, size in self.look()
            if name == self.stranger
        ]
        content = read_direct(self.stranger_device(), 0, 4 * MIB) if facts else b""
        return f"{facts} {hashlib.sha256(content).hexdigest()}"

    def places(self):
        return [(name, (start, size)) for name, _, start, size in self.look()]

    def own_stamps(self, volume):
        """Memory outside of namespaces cannot be written."""
        return []

    def read_device(self, volume, piece):
        path = self.block_device(volume)
        with open(path, "rb") as device:
            end = device.seek(0, os.SEEK_END)
        for at in range(0, end, piece):
            yield at, read_direct(path, at, piece)

    def read_place(self, start, length):
        return read_memory(start, length)

    def free_bytes(self):
        """In whole units, as the driver counts."""
        return sum(int(read_value(path)) // UNIT * UNIT for path in glob.glob(f"{ND}/region*/available_size"))

    def beside(self):
        """What is put before namespaces: by kind, the names of those."""
        names = {os.path.basename(path): name for name, path, _, _ in self.look()}
        found = []
        for path in glob.glob(f"{ND}/*/namespace"):
            kind = os.path.basename(os.path.dirname(path)).rstrip("0123456789.")
            claimed = read_value(path)
            if claimed:
                found.append(f"{kind} of {names.get(claimed, claimed)}")
        return sorted(found)

    def leaks(self):
        raw = [name for name, path, _, _ in self.look() if read_value(path + "/force_raw") == "1"]
        return [f"{name} is left raw" for name in raw]

    def renew_devices(self):
        """The kernel reads the labels again, and forgets what is not in them."""
        run("ndctl", "disable-region", "all")
        run("ndctl", "enable-region", "all")
