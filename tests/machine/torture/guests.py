# SPDX-License-Identifier: Apache-2.0
"""Lives of volumes for guests: images that a guest maps, and devices that it is given; see KINDS."""

import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys

from calls import Failed, fields
from life import GROWTH, MIB, Broken
from stories import Snapshot, Story

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "interop"))

from shim import Shim, entry_name

IMAGE = "kata-containers-pmem-csi-vm.img"
FS_OFFSET = 2 * MIB
MAY_GROW = ("SYS_RESOURCE", "not implemented")


def digest_of(path, length):
    """Of what is not zero up to that length: reading leaves holes as they are."""
    found = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        for at in range(0, length, MIB):
            piece = f.read(min(MIB, length - at))
            if piece.count(0) != len(piece):
                found.update(b"%d:" % at + piece)
    return found.hexdigest()


@contextlib.contextmanager
def attached(image):
    """The NVDIMM of a guest: a loop device of its own, since mount(8) takes any that is there."""
    attach = ["losetup", "--find", "--show", "--offset", str(FS_OFFSET), image]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextlib.contextmanager
def mounted(device, folder, *options):
    """As a guest mounts it: no host has it mounted for writing."""
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-o", ",".join(options) or "rw", device, folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


class Guests(Story):
    """What both have in common: content is written by the guest, and what a copy has is seen in its own way."""

    def guest_writes(self, path, *options):
        with mounted(path, self.world.guest_folder, *options) as folder:
            fd = os.open(folder + "/data", os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(fd, self.pattern * (MIB // len(self.pattern)), 0)
            os.fsync(fd)
            os.close(fd)
        self.written = True

    def guest_sees(self, path, *options):
        """What is wrong with the content; else None."""
        with mounted(path, self.world.guest_folder, "ro", *options) as folder:
            return self.other_content(folder + "/data")

    def is_xfs(self):
        return "xfs" in self.spec["use"]

    def content_is_lost(self):
        """What is written lies in what guest_problem() looks at."""
        return None

    def guest_problem(self):
        """(invariant, text) of what is not as its guest has left it; else None."""
        return None

    def require_untouched(self):
        problem = self.guest_problem()
        if problem:
            raise Broken(*problem)

    def expand_fs(self, path):
        """Where that is possible at all."""
        try:
            self.call("node-expand", self.id, path)
        except Failed as failure:
            if not any(reason in str(failure) for reason in MAY_GROW):
                raise


class Images(Guests):
    """A volume with an image, which is used by guests, grown and copied."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.image = None  # inode, size and digest, once it is on record
        self.grows = False
        self.published = False
        self.copy = None
        self.snapshot = Snapshot(self.name + "-snapshot")

    def steps(self):
        return [
            self.create,
            self.stage,
            self.publish,
            self.write,
            self.unpublish,
            self.clone_unused,
            self.publish_again,
            self.take_used,
            self.unpublish_again,
            self.expand_unused,
            self.publish_grown,
            self.unpublish_grown,
            self.restore_used,
            self.delete_snapshot,
            self.unstage,
            self.delete,
        ]

    def paths(self):
        shown = [volume for volume in (self.id if self.published else None, self.copy) if volume]
        return [*super().paths(), *map(self.world.image_folder, shown)]

    def snapshots(self):
        return [self.snapshot.id] if self.snapshot.id else []

    def options(self):
        """The pod's mount has the same file system."""
        return ["nouuid"] if self.is_xfs() else []

    def image_path(self):
        return f"{self.staging}/{IMAGE}"

    def look(self):
        size = os.stat(self.image_path()).st_size
        return os.stat(self.image_path()).st_ino, size, digest_of(self.image_path(), size)

    def guest_problem(self):
        """What is on record was made and is complete; only a guest and growing change it."""
        recorded = self.world.content_of_records().get(self.id, {}).get("imageBytes", 0)
        if not recorded or not self.world.shows_volume(self.staging):
            return None
        if not os.path.exists(self.image_path()):
            return "image", f"{self.name}: its image is gone"
        is_now = self.look()
        if not self.image:
            self.image = is_now
        if is_now[0] != self.image[0]:
            return "image", f"{self.name}: its image was made again"
        if is_now[1] < max(recorded, self.image[1]):
            return "image", f"{self.name}: its image has {is_now[1]} bytes, on record are {recorded}"
        if not self.grows:
            return ("image", f"{self.name}: its image has changed") if is_now != self.image else None
        with attached(self.image_path()) as device:
            other = self.guest_sees(device, "norecovery" if self.is_xfs() else "noload", *self.options())
        return ("image", other) if other else None

    def publish(self):
        self.published = True
        super().publish()
        self.require_untouched()
        if not self.image:
            raise Broken("image", f"{self.name}: its image is not on record")

    def write(self):
        with attached(self.image_path()) as device:
            self.guest_writes(device, *self.options())
        self.image = self.look()

    def publish_again(self):
        self.publish()
        other = self.other_content(self.targets[0] + "/data")
        if other:
            raise Broken("image", other)

    def unpublish(self):
        super().unpublish()
        self.published = False
        self.require_untouched()

    def unpublish_again(self):
        self.unpublish()

    def expand_unused(self):
        if self.grow_to(self.capacity + GROWTH):
            self.expand_fs(self.staging)

    def publish_grown(self):
        self.grows = True
        self.publish_again()
        self.grows = False
        self.image = self.look()

    def unpublish_grown(self):
        self.unpublish()

    def take_used(self):
        self.snapshot.learn(fields(self.call("create-snapshot", self.snapshot.name, self.id))["snapshot_id"][0])
        self.world.saw_device(self)

    def restore_used(self):
        if self.snapshot.id:
            self.make_copy("-snapshot", self.snapshot.id, larger=True)

    def delete_snapshot(self):
        self.snapshot.id = None
        snapshot = self.world.id_of(self.snapshot.name)
        if snapshot:
            self.call("delete-snapshot", snapshot)

    def other_copy(self, copy, check):
        self.copy = copy
        self.call(*self.use_flags(), "publish", copy, self.clone_staging, self.targets[1])
        other = self.other_content(self.targets[1] + "/data")
        self.call("unpublish", copy, self.targets[1])
        self.copy = None
        return other


class Direct(Guests):
    """A volume whose device a guest has, which outlives its pod."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.shim = None
        self.device = None  # length and digest of its content, for as long as the guest may have it

    def steps(self):
        return [
            self.create,
            self.stage,
            self.publish,
            self.begin_guest,
            self.ask,
            self.expand_used,
            self.unpublish,
            self.outlive,
            self.end_shim,
            self.end_guest,
            self.stage_again,
            self.clone_unused,
            self.unstage,
            self.delete,
        ]

    def let_go(self):
        super().let_go()
        if self.shim:
            self.end_answers()
            self.shim.end_guest()

    def guest_problem(self):
        if not self.device:
            return None
        length, digest = self.device
        if digest_of(self.world.image(self.id), length) != digest:
            return "guest", f"{self.name}: its device has changed while a guest had it"
        return None

    def begin_guest(self):
        if self.shim:
            return
        self.guest_writes(self.world.loop_of(self.id))
        path = self.world.image(self.id)
        length = os.stat(path).st_size
        self.device = (length, digest_of(path, length))
        self.shim = Shim(f"guest{self.number}", pathlib.Path(self.world.direct, entry_name(self.targets[0])))

    def ask(self):
        total = fields(self.call("stats", self.id, self.targets[0]))["total"]
        if total[0] != "12":
            raise Broken("guest", f"{self.name}: the guest's answer is 12, and {total} was given")

    def expand_used(self):
        if self.grow_to(self.capacity + GROWTH):
            self.expand_fs(self.targets[0])
        self.require_untouched()

    def require_refused(self, what, *arguments):
        try:
            self.driver.call(*arguments)
        except Failed as failure:
            if failure.code not in ("FAILED_PRECONDITION", "ABORTED", "UNAVAILABLE"):
                raise
            self.require_untouched()
            return
        raise Broken("guest", f"{self.name} was {what} while a guest had its device")

    def outlive(self):
        self.stage()
        self.require_untouched()
        self.require_refused("deleted", "delete", self.id)
        self.require_refused(
            "published", *self.use_flags(), "publish", self.id, self.staging, self.targets[1]
        )

    def end_answers(self):
        if self.shim.folder.exists():
            self.shim.end_answers()

    def end_shim(self):
        self.end_answers()
        self.require_refused("deleted", "delete", self.id)

    def end_guest(self):
        if self.shim:
            self.require_untouched()
            self.device = None
            self.shim.end_guest()
            self.shim = None

    def stage_again(self):
        self.stage()
        other = self.guest_sees(self.world.loop_of(self.id))
        if other:
            raise Broken("guest", other)

    def other_copy(self, copy, check):
        return self.guest_sees(self.world.loop_of(copy))


STORIES = {"Images": Images, "Direct": Direct}
