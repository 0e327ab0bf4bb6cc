# SPDX-License-Identifier: Apache-2.0
"""LVM on emulated NVDIMMs."""

import glob
import hashlib
import mmap
import os
import re
import subprocess

from guest_world import GuestWorld, read_direct, run
from world import MIB, STAMP

# A life needs less.
SOIL_BYTES = 128 * MIB
SOIL_STEP = 16384
SOIL = "soil"
STORIES = [f"{life}-{of}" for life in ("grown", "cloned", "snapshots") for of in ("ext4", "block")]

GROUP = re.compile(r"ndbus\d+region\d+fsdax")


class Shell:
    """LVM's own, since to start a process costs most in the machine."""

    def __init__(self):
        self.process = None

    def run(self, command):
        """What the command printed, and some lines of others."""
        if not self.process:
            self.process = subprocess.Popen(
                ["lvm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        self.process.stdin.write(command + "\nversion\n")
        self.process.stdin.flush()
        lines = []
        while line := self.process.stdout.readline():
            if "Driver version:" in line:
                return lines
            lines.append(line)
        raise OSError(f"lvm ended: {lines}")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None


def stamp_at(place):
    return STAMP + b"%08x" % (place >> 12)


def write_stamps(path, start, length):
    """Past the page cache, which may have what was there before."""
    fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 4 * MIB) as piece:
            for at in range(start, start + length, len(piece)):
                for place in range(at, at + len(piece), SOIL_STEP):
                    stamp = stamp_at(place)
                    piece[place - at : place - at + len(stamp)] = stamp
                os.pwrite(fd, memoryview(piece)[: start + length - at], at)
    finally:
        os.close(fd)


class LvmWorld(GuestWorld):
    points = "lvm-"
    kinds = ["ext4", "kept", "block", "ephemeral", "group", "modified", *STORIES]
    stops_block_writers = True

    def __init__(self, disk, kubelet):
        self.shell = Shell()
        super().__init__(disk, kubelet)

    def look(self):
        report = self.shell.run(
            "pvs --segments --noheadings --nosuffix --units b"
            " -o vg_name,vg_free,pvseg_size,vg_extent_size,pv_name,pe_start,pvseg_start,lv_name"
        )
        self.segments = []
        self.groups = {}
        for line in report:
            words = line.split()
            if len(words) < 7 or not GROUP.fullmatch(words[0]):
                continue
            self.groups[words[0]] = int(words[1])
            if len(words) == 8:
                extent = int(words[3])
                start = int(words[5]) + int(words[6]) * extent
                self.segments.append((words[7], words[4], start, int(words[2]) * extent))
        return self.segments

    def add_stranger(self):
        """A volume in a group of ours."""
        self.look()
        run("lvm", "lvcreate", "-y", "-Zn", "-Wn", "-n", self.stranger, "-L", "4m", min(self.groups))
        path, start, _ = self.stranger_place()
        with open(path, "r+b") as device:
            device.seek(start)
            device.write(b"not ours" * (4 * MIB // 8))
            device.flush()
            os.fsync(device.fileno())

    def remove(self, name):
        for group in self.groups:
            if name in run("lvm", "lvs", "--noheadings", "-o", "lv_name", group).split():
                run("lvm", "lvremove", "-qq", "-y", f"{group}/{name}")

    def stranger_place(self):
        return next(place for name, place in self.places() if name == self.stranger)

    def stranger_facts(self):
        return hashlib.sha256(read_direct(*self.stranger_place())).hexdigest()

    def places(self):
        return [(segment[0], segment[1:]) for segment in self.look()]

    def soil(self):
        """The extents that are allocated next."""
        self.look()
        for group, free in self.groups.items():
            size = min(free, SOIL_BYTES)
            self.shell.run(f"lvcreate -y -an -Zn -Wn -n {SOIL} -L {size}b {group}")
        for name, (path, start, length) in self.places():
            if name == SOIL:
                write_stamps(path, start, length)
        for group in self.groups:
            self.shell.run(f"lvremove -qq -y {group}/{SOIL}")

    def own_stamps(self, volume):
        """Whether the volume shows what soil() left where it lies."""
        found = []
        for name, (path, start, length) in self.places():
            if name == volume:
                content = read_direct(path, start, length)
                places = range(start, start + length, SOIL_STEP)
                found += [place for place in places if content.startswith(stamp_at(place), place - start)]
        return found

    def read_device(self, volume, piece):
        """By way of the volume, the segments of which may lie in any order."""
        path = next(iter(glob.glob(f"/dev/*fsdax/{volume}")))
        for at in range(0, self.devices()[volume], piece):
            yield at, read_direct(path, at, piece)

    def read_place(self, path, start, length):
        return read_direct(path, start, length)

    def free_bytes(self):
        self.look()
        return sum(self.groups.values())

    def beside(self):
        """Mapped devices but the stranger, which whoever has it maps again after a cut."""
        return sorted(path for path in glob.glob("/dev/mapper/*fsdax*") if not path.endswith("-" + self.stranger))

    def leaks(self):
        return []

    def renew_devices(self):
        """None is mapped after a start."""
        run("lvm", "vgchange", "-an", *self.groups)

    def let_go(self):
        self.shell.end()
