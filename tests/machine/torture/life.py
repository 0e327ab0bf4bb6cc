# SPDX-License-Identifier: Apache-2.0
"""The lives of volumes of each kind, call by call; see KINDS."""

import os

from calls import Failed, fields, until

MIB = 1 << 20
RETRY_S = 60
# Errors after which a caller retries by itself; "in use" is a mkfs that outlived its driver.
AGAIN = ("ABORTED", "UNAVAILABLE")
# A device of a fixed size, and a full pool: the volume stays as it is.
STAYS = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")
GROWTH = 16 * MIB

# create: flags of CreateVolume; block: is a device at its target; erases: nothing may be readable afterwards; cloned:
# clones of it are made; story: the class in stories.py, if it is not Life; crashes: the only steps in which they are tried
KINDS = {
    "ext4": {"create": ["-size", "16Mi", "-fs", "ext4"], "use": ["-fs", "ext4"]},
    "xfs": {"create": ["-size", "300Mi", "-fs", "xfs"], "use": ["-fs", "xfs"]},
    "fileio": {
        "create": ["-size", "16Mi", "-fs", "ext4", "-parameter", "usage=FileIO"],
        "use": ["-fs", "ext4", "-parameter", "usage=FileIO"],
    },
    "kept": {
        "create": ["-size", "16Mi", "-fs", "ext4", "-parameter", "eraseafter=false"],
        "use": ["-fs", "ext4", "-parameter", "eraseafter=false"],
        "erases": False,
    },
    # its erasure is recorded on the way (volumes_erase.c, CHECKPOINT_BYTES)
    "large": {"create": ["-size", "1100Mi", "-fs", "ext4"], "use": ["-fs", "ext4"], "cloned": False},
    "block": {"create": ["-size", "16Mi", "-block"], "use": ["-block"], "block": True},
    "sector-block": {
        "create": ["-size", "16Mi", "-block", "-parameter", "usage=FileIO"],
        "use": ["-block", "-parameter", "usage=FileIO"],
        "block": True,
    },
    "ephemeral": {
        "use": ["-fs", "ext4", "-parameter", "csi.storage.k8s.io/ephemeral=true", "-parameter", "size=16Mi"],
        "ephemeral": True,
    },
}

GROWS = ["expand", "expand_again"]
CLONED = ["clone", "clone_unused"]
SNAPSHOTS = ["take_used", "restore_used", "take_unused", "restore_unused", "delete_snapshots"]
for of in ("ext4", "xfs", "block"):
    KINDS[f"grown-{of}"] = {**KINDS[of], "crashes": GROWS}
    KINDS[f"cloned-{of}"] = {**KINDS[of], "crashes": CLONED}
    KINDS[f"snapshots-{of}"] = {**KINDS[of], "story": "Snapshots", "crashes": SNAPSHOTS}
KINDS["group"] = {"story": "Group", "crashes": ["take_group", "restore_group", "delete_group"]}
IMAGES = ["publish", "unpublish", "take_used", "expand_unused", "publish_grown"]
DIRECT = ["publish", "expand_used", "unpublish", "outlive", "stage_again"]
# the smallest device that has room for an image with that file system, and some
for of, size in ("ext4", "48Mi"), ("xfs", "440Mi"):
    for guests, parameter, story, steps in (
        ("image", "kataContainers=true", "Images", IMAGES),
        ("direct", "directVolume=true", "Direct", DIRECT),
    ):
        KINDS[f"{guests}-{of}"] = {
            "create": ["-size", size, "-fs", of, "-parameter", parameter],
            "use": ["-fs", of],
            "story": story,
            "crashes": steps,
        }
KINDS["modified"] = {
    **KINDS["kept"],
    "story": "Modified",
    "erases": True,
    "crashes": ["modify", "use_modified", "modify_again"],
}


class Broken(Exception):
    """What a call did breaks an invariant."""

    def __init__(self, invariant, text):
        super().__init__(text)
        self.invariant = invariant


def pattern(seed):
    """16 bytes that occur nowhere else, none of them zero: among zeros they are found fast."""
    return b"\xa7torture" + f"{seed:08x}".encode()


class Life:
    """One volume. Each step may be repeated; what is expected now is in known, mounted and written."""

    def __init__(self, world, driver, kind, number):
        self.world, self.driver, self.kind, self.number = world, driver, kind, number
        self.spec = KINDS[kind]
        self.name = f"life-{kind}-{number}"
        self.id = "csi-" + f"{number:064x}" if self.spec.get("ephemeral") else None
        self.pattern = pattern(number)
        self.staging = world.kubelet_path(f"staging/{self.name}")
        self.clone_staging = self.staging + "-clone"
        self.targets = [world.kubelet_path(f"pods/{self.name}-{i}") for i in range(2)]
        self.exists = False  # as the client has learned
        self.written = False
        self.touched = False
        self.over = False
        self.capacity = 0  # as it was created
        self.end = 0  # of a device when it was written first
        self.fs_blocks = 0  # of its file system when it was written first
        self.sizes = None  # of the volume: the smallest and the largest that it may have
        self.settings = None  # that it may have after it was modified: what is on record of SETTINGS
        self.writer = None
        self.context = []
        self.retries = 0

    def is_block(self):
        return self.spec.get("block", False)

    def erases(self):
        return self.spec.get("erases", True)

    def volumes(self):
        """Those that are created as themselves, and not as copies."""
        return [self]

    def patterns(self):
        return [self.pattern]

    def paths(self):
        """Where something of it may be mounted."""
        return [self.staging, self.clone_staging, *self.targets]

    def snapshots(self):
        """IDs that were reported and not deleted."""
        return []

    def group_ends(self):
        """Whether snapshots of a group may go one by one."""
        return False

    def let_go(self):
        """Ends what runs beside the driver."""
        if self.writer:
            self.writer.stop()
            self.writer = None

    def steps(self):
        if self.spec.get("ephemeral"):
            return [self.publish, self.write, self.unpublish]
        return [
            self.create,
            self.expand,
            self.stage,
            self.publish,
            self.write,
            self.expand_again,
            self.clone,
            self.publish_again,
            self.unpublish_again,
            self.unpublish,
            self.unstage,
            self.clone_unused,
            self.delete,
        ]

    def live_until(self, last):
        """The steps up to that one."""
        for step in self.steps():
            step()
            if step == last:
                return

    def rest(self, step, power_lost):
        """The steps from one that was interrupted on; with the power the mounts went, and kubelet stages again."""
        steps = self.steps()
        at = [s.__name__ for s in steps].index(step)
        if not power_lost or step in ("create", "expand", "delete"):
            return steps[at:]
        if self.spec.get("ephemeral"):
            return steps[at:] if step == "publish" else [self.unpublish]
        if step in ("stage", "publish", "write", "expand_again", "clone", "publish_again"):
            return steps[1:]
        return [*steps[at:-2], self.stage, self.unstage, *steps[-2:]]

    def suppose(self, step):
        """What is known when a step was interrupted of which nothing else is."""
        names = [s.__name__ for s in self.steps()]
        at = names.index(step)
        self.over = step == names[-1]
        self.exists = at > 0 and not self.over
        self.written = at > names.index("write") and not self.over

    def recall(self):
        """The ID that is on record, after another boot."""
        self.id = self.id or self.world.id_of(self.name)

    def call(self, *arguments):
        """A call, and again while the driver says that the time has not come."""
        refusals = []

        def attempt():
            try:
                return (self.driver.call(*arguments),)
            except Failed as failure:
                if failure.code not in AGAIN and "in use" not in str(failure):
                    raise
                refusals.append(failure)
                return None

        answer = until(f"{arguments}: {refusals}", attempt, RETRY_S)
        self.retries += len(refusals)
        return answer[0]

    def use_flags(self):
        return [*self.spec["use"], *self.context]

    def create(self):
        answer = fields(self.call(*self.spec["create"], "create", self.name))
        volume_id = answer["volume_id"][0]
        if self.id and self.id != volume_id:
            raise AssertionError(f"created again as {volume_id}, not {self.id}")
        self.id = volume_id
        self.context = []
        for key, values in answer.items():
            if key.startswith("volume_context."):
                self.context += ["-parameter", f"{key.split('.', 1)[1]}={values[0]}"]
        self.exists = True
        if not self.sizes:
            self.capacity = int(answer["capacity_bytes"][0])
            self.sizes = (self.capacity, self.capacity)
        self.world.saw_device(self)

    def expand(self):
        """Before anything uses it: what it gains is part of what a new block volume must not show of others."""
        self.grow_to(self.capacity + GROWTH)

    def expand_again(self):
        """While it is used; its file system grows then, or when it is staged next."""
        grown = self.grow_to(self.capacity + 2 * GROWTH)
        if self.is_block():
            self.require_zeros(self.targets[0], self.end)
        elif grown:
            self.grow_fs()

    def grow_to(self, size):
        """Returns whether it has grown. Until that is known, it may have either size."""
        before = self.sizes[0] if self.sizes else self.world.size_on_record(self.id)
        self.sizes = (before, max(size, before))
        try:
            answer = fields(self.call("-size", str(size), "expand", self.id))
        except Failed as failure:
            if failure.code not in STAYS:
                raise
            self.sizes = (before, before)
            return False
        got = int(answer["capacity_bytes"][0])
        if got < size:
            raise Broken("size", f"{self.name}: {got} bytes were granted, and {size} required")
        self.sizes = (got, got)
        return True

    def grow_fs(self):
        try:
            self.call("node-expand", self.id, self.targets[0])
        except Failed as failure:
            # that a container may lack
            if "SYS_RESOURCE" not in str(failure):
                raise
            return
        if os.statvfs(self.targets[0]).f_blocks <= self.fs_blocks:
            raise Broken("size", f"{self.name}: its file system has not grown")

    def stage(self):
        os.makedirs(self.staging, exist_ok=True)
        self.call(*self.use_flags(), "stage", self.id, self.staging)
        self.require_content()

    def publish(self):
        staging = "" if self.spec.get("ephemeral") else self.staging
        self.call(*self.use_flags(), "publish", self.id, staging, self.targets[0])
        if self.spec.get("ephemeral"):
            self.exists = True
            self.world.saw_device(self)

    def write(self):
        content = self.pattern * (MIB // len(self.pattern))
        path = self.targets[0] if self.is_block() else self.targets[0] + "/data"
        flags = os.O_WRONLY | (0 if self.is_block() else os.O_CREAT)
        if self.is_block() and not self.touched:
            self.require_zeros(path)
        self.touched = True
        fd = os.open(path, flags, 0o600)
        try:
            if not self.end:
                self.end = os.lseek(fd, 0, os.SEEK_END)
            for offset in self.offsets():
                os.pwrite(fd, content, offset)
            os.fsync(fd)
        finally:
            os.close(fd)
        self.written = True
        if not self.is_block():
            self.fs_blocks = self.fs_blocks or os.statvfs(path).f_blocks
        # what one driver wrote the next one has to serve
        self.driver.check()

    def offsets(self):
        """Where there is content: of a device also at its end when it was written first."""
        return [MIB, self.end - MIB] if self.is_block() else [0]

    def publish_again(self):
        self.call("-readonly", *self.use_flags(), "publish", self.id, self.staging, self.targets[1])

    def unpublish_again(self):
        self.call("unpublish", self.id, self.targets[1])

    def unpublish(self):
        if self.spec.get("ephemeral"):
            self.exists = self.written = False
            self.over = True
        self.call("unpublish", self.id, self.targets[0])

    def unstage(self):
        self.call("unstage", self.id, self.staging)
        if os.path.exists(self.staging):
            os.rmdir(self.staging)

    def delete(self):
        self.exists = self.written = False
        self.over = True
        # all was done before the boot, but for the answer
        if self.id:
            self.call("delete", self.id)

    def clone(self):
        """While it is used, which refuses the clone of a block volume whose writers cannot be stopped."""
        if self.is_block() and not self.world.stops_block_writers:
            self.require_refusal()
        else:
            self.make_copy("-source", self.id)

    def clone_unused(self):
        self.make_copy("-source", self.id, larger=True)

    def copy_arguments(self, kind, source, larger=False):
        """Of what was created with this size, or which is larger than the source."""
        size = ["-size", str(self.world.size_on_record(source) + GROWTH)] if larger else []
        return [*self.spec["create"], *size, kind, source, "create", self.name + "-clone"]

    def require_refusal(self):
        try:
            self.driver.call(*self.copy_arguments("-source", self.id))
        except Failed as failure:
            if failure.code not in ("FAILED_PRECONDITION", *AGAIN):
                raise
        else:
            raise AssertionError(f"{self.name} was cloned while it is in use")

    def make_copy(self, kind, source, larger=False, check=None):
        """A volume made of a volume (-source) or of a snapshot (-snapshot), looked at and deleted again."""
        if not self.spec.get("cloned", True):
            return
        try:
            answer = fields(self.call(*self.copy_arguments(kind, source, larger)))
        except Failed as failure:
            if failure.code != "RESOURCE_EXHAUSTED":
                raise
            return
        copy = answer["volume_id"][0]
        self.world.saw_device(self)
        self.require_nothing_else(copy)
        os.makedirs(self.clone_staging, exist_ok=True)
        self.call(*self.use_flags(), "stage", copy, self.clone_staging)
        other = self.other_copy(copy, check)
        self.call("unstage", copy, self.clone_staging)
        os.rmdir(self.clone_staging)
        self.call("delete", copy)
        if other:
            raise Broken("moment", other)

    def other_copy(self, copy, check):
        """What is wrong with a copy that is staged; else None."""
        if self.is_block():
            return self.other_device(copy)
        other = self.other_content(self.clone_staging + "/data")
        return other or (check(self.clone_staging) if check else None)

    def guest_problem(self):
        """(invariant, text) of what guests have; else None."""
        return None

    def require_nothing_else(self, copy):
        """What lay on its medium before is none of its content."""
        places = self.world.own_stamps(copy)
        if places:
            raise Broken("others", f"{copy} shows at {places[:3]} what was there before it")

    def other_device(self, copy):
        """How the device of a copy differs from what was written; else None."""
        wanted = self.pattern * (MIB // len(self.pattern))
        written = self.offsets() if self.touched else []
        for at, found in self.world.read_device(copy, MIB):
            # elsewhere there is what was written to a device that had another size
            if found != wanted and (at in written or found.count(0) != len(found)):
                return f"{copy}: other content at {at}"
        return None

    def require_zeros(self, path, start=0):
        """What a block volume gets shows nothing of those before it."""
        with open(path, "rb") as f:
            f.seek(start)
            while chunk := f.read(MIB):
                if chunk.count(0) != len(chunk):
                    raise Broken("others", f"{self.name}: a new block volume holds something")

    def require_content(self):
        lost = self.content_is_lost()
        if lost:
            raise Broken("lost", lost)

    def content_is_lost(self):
        """What is wrong with the content, where it can be seen; else None."""
        if not self.written:
            return None
        for path in [self.staging, *self.targets]:
            if not self.world.shows_volume(path):
                continue
            lost = self.other_content(path if self.is_block() else path + "/data")
            if lost:
                return lost
        return None

    def other_content(self, file):
        """What is wrong with the content of a file or device; else None."""
        try:
            fd = os.open(file, os.O_RDONLY)
            try:
                found = [os.pread(fd, MIB, offset) for offset in self.offsets()]
            finally:
                os.close(fd)
        except OSError as error:
            return f"{self.name}: {error}"
        if set(found) != {self.pattern * (MIB // len(self.pattern))}:
            return f"{self.name}: other content at {file}"
        return None
