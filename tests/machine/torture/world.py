# SPDX-License-Identifier: Apache-2.0
"""What there is beside the driver: files, devices and mounts as the kernel shows them, and things of strangers."""

import base64
import glob
import hashlib
import json
import os
import subprocess

MIB = 1 << 20
PHASES = ("creating", "json", "snapshot", "erasing")
READY = ("json", "snapshot")
# At the beginning of what marks all memory that was never used; the place follows, in eight digits.
STAMP = b"\xb5medium:"


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def contains(path, pattern):
    """Whether a file or device has the pattern anywhere; holes are passed over."""
    with open(path, "rb", buffering=0) as f:
        end, at, rest = f.seek(0, os.SEEK_END), 0, b""
        while at < end:
            try:
                data = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:  # ENXIO: only holes are left; devices have none
                return False
            rest = rest if data == at else b""
            f.seek(data)
            chunk = f.read(4 * MIB)
            if not chunk:
                return False
            if pattern in rest + chunk:
                return True
            rest = chunk[-len(pattern) :]
            at = data + len(chunk)
    return False


def mount_list(below):
    """(path, source) of mounts beneath a folder."""
    with open("/proc/self/mountinfo") as table:
        for line in table:
            path = line.split()[4].encode().decode("unicode_escape")
            if path.startswith(below + "/"):
                yield path, line.split(" - ")[1].split()[1]


def mount_points(below, source=""):
    """Paths of mounts beneath a folder, once for each mount, whose source begins so."""
    return sorted(path for path, of in mount_list(below) if of.startswith(source))


def mount_sources(below):
    return {source for _, source in mount_list(below)}


def loops():
    """Files by loop device."""
    found = {}
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            with open(path) as f:
                found["/dev/" + path.split("/")[3]] = f.read().strip()
        except OSError:
            continue
    return found


def entry_of(target):
    """The name of the entry of a direct volume for the path of a pod."""
    return base64.urlsafe_b64encode(target.encode()).decode()


def tree(folder):
    """Every path beneath a folder, without what is mounted there."""
    found = []
    mounted = set(mount_points(folder))
    for path, folders, files in os.walk(folder):
        found += [os.path.join(path, name) for name in folders + files]
        folders[:] = [name for name in folders if os.path.join(path, name) not in mounted]
    return sorted(found)


class World:
    """A state folder and a kubelet's folder beneath a working folder; its subclasses add the devices."""

    program_arguments = []
    has_raw_sizes = False  # devices() are larger than volumes
    changes_usage = True  # of a volume that exists
    writes = False  # while volumes are copied
    stops_block_writers = False  # block volumes in use are copied
    kinds = ["ext4", "xfs", "fileio", "kept", "block", "ephemeral"]

    def __init__(self, work):
        self.work = work
        self.state = work + "/state"
        self.kubelet = work + "/kubelet"
        for folder in (self.kubelet + "/staging", self.kubelet + "/pods"):
            os.makedirs(folder, exist_ok=True)

    def kubelet_path(self, name):
        return f"{self.kubelet}/{name}"

    def mounts(self):
        return mount_points(self.kubelet)

    def shows_volume(self, path):
        return path in self.mounts()

    def records(self):
        """Phases in the state folder, by ID."""
        found = {}
        for name in os.listdir(self.state):
            stem, _, phase = name.rpartition(".")
            if stem and phase in PHASES:
                found.setdefault(stem, []).append(phase)
        return found

    def is_settled(self):
        return all(phases in (["json"], ["snapshot"]) for phases in self.records().values())

    def content_of_records(self):
        """What the state files say of each volume and snapshot that is ready."""
        found = {}
        for volume, phases in self.records().items():
            if phases[0] in READY:
                with open(f"{self.state}/{volume}.{phases[0]}") as f:
                    found[volume] = json.load(f)
        return found

    def size_on_record(self, volume):
        return self.content_of_records()[volume]["size"]

    def id_of(self, name):
        """Of a volume or snapshot on record, in whatever phase."""
        for volume, phases in self.records().items():
            for phase in phases:
                with open(f"{self.state}/{volume}.{phase}") as f:
                    if f'"{name}"' in f.read():
                        return volume
        return None

    def group_of(self, name):
        """ID of a group on record; the names of its snapshots begin with its own."""
        for content in self.content_of_records().values():
            if "group" in content and content["parameters"]["name"].startswith(name):
                return content["group"]
        return None

    def entry_problems(self):
        """What is wrong with the entries of direct volumes, where there are any."""
        return []

    def soil(self):
        """Fills what is free with stamps, where that is not done when a device is made."""

    def state_files(self):
        """All but the lock, which holds no data, what is kept about regions and volume groups, which outlives the volumes, and a
        folder of mounts."""
        found = {}
        for name in sorted(os.listdir(self.state)):
            if name not in (".lock", "durability", "lvm", "mount"):
                with open(f"{self.state}/{name}", "rb") as f:
                    found[name] = f.read().decode("latin-1")
        return found

    def remains(self):
        """Everything that must be as before when all volumes of a life are gone."""
        return {
            "state": self.state_files(),
            "mounts": self.mounts(),
            "kubelet": tree(self.kubelet),
            "devices": self.devices(),
            "beside": self.beside(),
        }


class FakeWorld(World):
    """Fake devices: loop devices over images. A deleted image stays readable through a link to it, as a medium does."""

    kinds = [
        *World.kinds,
        "large",
        "group",
        "modified",
        *(f"{life}-{of}" for life in ("grown", "cloned", "snapshots") for of in ("ext4", "xfs", "block")),
        *(f"{guests}-{of}" for guests in ("image", "direct") for of in ("ext4", "xfs")),
    ]
    writes = True
    regions, region_bytes = 2, 4 << 30
    stranger = "stranger-0123456789"
    strange_entry = entry_of("/run/kata-containers/shared/emptydir")

    def __init__(self, work):
        super().__init__(work)
        # images are for nodes whose state folder the host sees
        subprocess.run(["mount", "--make-shared", work], check=True)
        self.direct = work + "/direct"
        self.guest_folder = work + "/guest"
        self.folder = work + "/fake"
        self.seen = work + "/seen"
        self.file = work + "/foreign.img"
        os.makedirs(self.seen)
        self.arguments = [
            "-deviceManager=fake",
            f"-fakePath={self.folder}",
            f"-fakeRegionSize={self.region_bytes}",
            f"-directVolumesDir={self.direct}",
        ]

    def add_strangers(self):
        """A foreign device in a pool of ours, a file in the state folder, an entry among those of direct volumes, and a
        loop device on its own."""
        with open(self.folder + "/model.json") as f:
            model = json.load(f)
        size = 4 * MIB
        device = {
            "id": self.stranger,
            "identity": "8f6c8a1e-54a3-4f1b-9d58-0c5b6c3f2a11",
            "pool": model["pools"][0],
            "offset": self.region_bytes // 2,
            "size": size,
        }
        self.strange_image = f"{self.folder}/{self.stranger}.image"
        for path in (self.strange_image, self.file):
            with open(path, "wb") as f:
                f.write(b"not ours" * (size // 8))
        with open(f"{self.folder}/{self.stranger}.device", "w") as f:
            json.dump(device, f)
        with open(self.state + "/notes.txt", "w") as f:
            f.write("not ours\n")
        self.strange_files = [f"{self.direct}/{self.strange_entry}/{name}" for name in ("mountInfo.json", "77ee")]
        os.makedirs(os.path.dirname(self.strange_files[0]), mode=0o700)
        for path in self.strange_files:
            with open(path, "w") as f:
                f.write("not ours\n")
        attach = ["losetup", "--find", "--show", self.file]
        self.loop = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()

    def foreign(self):
        """What must never change."""
        files = [self.strange_image, f"{self.folder}/{self.stranger}.device", self.file, self.loop]
        files += [self.state + "/notes.txt", *self.strange_files]
        return {path: digest(path) if os.path.exists(path) else "gone" for path in files}

    def mounts(self):
        """Those of images, too."""
        return sorted(mount_points(self.kubelet) + mount_points(self.state))

    def image_folder(self, volume):
        return f"{self.state}/mount/{volume}"

    def entries(self):
        """Of direct volumes, but for that of a stranger."""
        names = os.listdir(self.direct) if os.path.isdir(self.direct) else []
        return sorted(set(names) - {self.strange_entry})

    def entry_problems(self):
        """An entry stands for a target, and each target has one."""
        wanted = sorted(entry_of(path) for path in mount_points(self.kubelet, "pmem-csi-direct-"))
        return [f"entries {self.entries()}, not {wanted}"] if self.entries() != wanted else []

    def devices(self):
        """Sizes by ID, ours only."""
        found = {}
        for path in glob.glob(self.folder + "/*.device"):
            with open(path) as f:
                device = json.load(f)
            found[device["id"]] = device["size"]
        found.pop(self.stranger, None)
        return found

    def free_bytes(self):
        return self.regions * self.region_bytes - 4 * MIB - sum(self.devices().values())

    def loops(self):
        """Names of the images under loop devices."""
        return sorted(os.path.basename(f) for f in loops().values() if os.path.dirname(f) == self.folder)

    def loop_of(self, volume):
        """The device of a volume."""
        return next(device for device, file in loops().items() if file == self.image(volume))

    def guest_loops(self):
        """Over images for guests, which a volume has in its file system."""
        return sorted(device for device, file in loops().items() if file.startswith(self.state + "/mount/"))

    def beside(self):
        """What belongs to devices and can be left over without them."""
        files = [name for name in os.listdir(self.folder) if name != ".lock"]
        folders = os.listdir(self.state + "/mount") if os.path.isdir(self.state + "/mount") else []
        return {
            "loops": [*self.loops(), *self.guest_loops()],
            "files": sorted(files),
            "image folders": folders,
            "entries": self.entries(),
        }

    def leaks(self):
        ours = sorted(volume + ".image" for volume in self.devices())
        found = []
        if self.loops() != ours:
            found.append(f"loop devices over {self.loops()}, not {ours}")
        wanted = sorted([*ours, self.stranger + ".image"])
        images = sorted(name for name in os.listdir(self.folder) if name.endswith((".image", ".tmp")))
        if images != wanted:
            found.append(f"images {images}, not {wanted}")
        shown = mount_sources(self.kubelet)
        found += [f"{loop} is over an image that no pod has" for loop in self.guest_loops() if loop not in shown]
        return found

    def saw_device(self, life):
        """Keeps hold of the medium of a life's volume."""
        for path in glob.glob(f"{self.folder}/*.image"):
            link = f"{self.seen}/{os.path.basename(path)}.{os.stat(path).st_ino}"
            if not os.path.exists(link) and self.stranger not in path and "bystander" not in path:
                os.link(path, link)

    def forget_devices(self):
        for path in glob.glob(self.seen + "/*"):
            os.unlink(path)

    def image(self, volume):
        return f"{self.folder}/{volume}.image"

    def read_device(self, volume, piece):
        with open(self.image(volume), "rb") as f:
            at = 0
            while chunk := f.read(piece):
                yield at, chunk
                at += len(chunk)

    def own_stamps(self, volume):
        """Whether the device shows what lay on its medium before (soiled.c)."""
        stamp = STAMP + b"%08x" % os.stat(self.image(volume)).st_ino
        return [self.image(volume)] if contains(self.image(volume), stamp) else []

    def readable(self, pattern):
        """Where a pattern can be read that was erased."""
        return [path for path in glob.glob(self.seen + "/*") if contains(path, pattern)]

    def clean_up(self):
        for path in reversed(self.mounts()):
            # of a driver with a defect, or of one that was not started again
            subprocess.run(["fsfreeze", "-u", path], check=False, stderr=subprocess.DEVNULL)
            subprocess.run(["umount", "-l", path], check=False)
        for device, file in loops().items():
            if file.startswith(self.work + "/"):
                subprocess.run(["losetup", "--detach", device], check=False)
