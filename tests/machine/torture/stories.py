# SPDX-License-Identifier: Apache-2.0
"""Lives with snapshots, groups of them and modifications; see KINDS."""

import json

from calls import fields
from life import KINDS, MIB, Broken, Life, pattern
from settings import SETTINGS, setting_of, settings_of
from writer import Writer, counts, torn


class Story(Life):
    """All its steps may be repeated, also after later ones, until it is deleted."""

    def rest(self, step, power_lost):
        steps = self.steps()
        names = [s.__name__ for s in steps]
        at = names.index(step)
        if not power_lost or step == "create" or at >= names.index("delete"):
            return steps[at:]
        return steps[names.index("stage") :]

    def suppose(self, step):
        names = [s.__name__ for s in self.steps()]
        at = names.index(step)
        self.over = step == names[-1]
        self.exists = 0 < at < names.index("delete")
        self.written = names.index("write") < at < names.index("delete")


class Snapshot:
    """One that is taken; its ID is known when that was reported."""

    def __init__(self, name):
        self.name = name
        self.id = None
        self.bounds = None  # of what a writer has counted while it was taken

    def learn(self, snapshot_id):
        if self.id and self.id != snapshot_id:
            raise AssertionError(f"{self.name} was taken again as {snapshot_id}, not {self.id}")
        self.id = snapshot_id


class Snapshots(Story):
    """A volume of which snapshots are taken, while it is used and while it is not. One outlives it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.used, self.unused = Snapshot(self.name + "-used"), Snapshot(self.name + "-unused")
        self.least = None

    def steps(self):
        return [
            self.create,
            self.stage,
            self.publish,
            self.write,
            self.take_used,
            self.restore_used,
            self.unpublish,
            self.unstage,
            self.take_unused,
            self.delete,
            self.restore_unused,
            self.delete_snapshots,
        ]

    def snapshots(self):
        return [snapshot.id for snapshot in (self.used, self.unused) if snapshot.id]

    def take_used(self):
        """Which is refused for a block volume whose writers cannot be stopped."""
        if self.is_block() and not self.world.stops_block_writers:
            self.require_refusal()
            return
        if self.world.writes and not self.writer and not self.is_block():
            self.writer = Writer([self.targets[0]])
            self.least = self.writer.count
        self.take(self.used)
        if self.writer:
            self.used.bounds = (self.least, self.writer.count)
            self.let_go()

    def take_unused(self):
        self.take(self.unused)

    def take(self, snapshot):
        answer = fields(self.call("create-snapshot", snapshot.name, self.id))
        snapshot.learn(answer["snapshot_id"][0])
        self.world.saw_device(self)
        self.require_nothing_else(snapshot.id)
        if self.is_block():
            self.require_same_device(snapshot.id)

    def require_same_device(self, snapshot_id):
        devices = [self.world.read_device(volume, MIB) for volume in (self.id, snapshot_id)]
        for (at, wanted), (_, found) in zip(*devices, strict=True):
            if found != wanted:
                raise Broken("moment", f"{snapshot_id} differs from its source at {at}")

    def restore_used(self):
        if not self.is_block():
            self.restore(self.used)

    def restore_unused(self):
        self.restore(self.unused)

    def restore(self, snapshot):
        def check(folder):
            return torn(counts([folder]), *snapshot.bounds) if snapshot.bounds else None

        # of an earlier boot
        self.make_copy("-snapshot", snapshot.id or self.world.id_of(snapshot.name), larger=True, check=check)

    def delete(self):
        super().delete()
        self.over = False

    def delete_snapshots(self):
        self.over = True
        for snapshot in (self.used, self.unused):
            found = snapshot.id or self.world.id_of(snapshot.name)
            snapshot.id = None
            if found:
                self.call("delete-snapshot", found)


class Group(Story):
    """Two volumes that are used and one that is not, of which snapshots are taken at the same moment."""

    spec = KINDS["ext4"]

    def __init__(self, world, driver, kind, number):
        super().__init__(world, driver, kind, number)
        self.members = [Life(world, driver, of, number) for of in ("ext4", "ext4", "block")]
        for i, member in enumerate(self.members):
            member.name = f"{self.name}-{i}"
            member.pattern = pattern(number * len(self.members) + i)
            member.staging = world.kubelet_path(f"staging/{member.name}")
            member.clone_staging = member.staging + "-clone"
            member.targets = [world.kubelet_path(f"pods/{member.name}")]
        self.used = self.members[:2]
        self.group = None
        self.taken = {}  # snapshots by ID of their volume
        self.ends = False
        self.least = self.bounds = None

    def steps(self):
        return [
            self.create,
            self.stage,
            self.publish,
            self.write,
            self.take_group,
            self.restore_group,
            self.unpublish,
            self.unstage,
            self.delete,
            self.delete_group,
        ]

    def suppose(self, step):
        super().suppose(step)
        for i, member in enumerate(self.members):
            member.exists, self.exists = self.exists, False
            member.written = self.written and i < len(self.used)

    def recall(self):
        for member in self.members:
            member.recall()

    def volumes(self):
        return self.members

    def patterns(self):
        return [member.pattern for member in self.used]

    def paths(self):
        return [path for member in self.members for path in member.paths()]

    def snapshots(self):
        return list(self.taken.values())

    def group_ends(self):
        return self.ends

    def create(self):
        for member in self.members:
            member.create()

    def stage(self):
        for member in self.used:
            member.stage()

    def publish(self):
        for member in self.used:
            member.publish()

    def write(self):
        for member in self.used:
            member.write()

    def take_group(self):
        if self.world.writes and not self.writer:
            self.writer = Writer([member.targets[0] for member in self.used])
            self.least = self.writer.count
        ids = [member.id for member in self.members]
        group = json.loads(self.call("-o", "json", "create-group", self.name, *ids))["groupSnapshot"]
        if self.group not in (None, group["groupSnapshotId"]):
            raise AssertionError(f"taken again as {group['groupSnapshotId']}, not {self.group}")
        self.group = group["groupSnapshotId"]
        self.taken = {s["sourceVolumeId"]: s["snapshotId"] for s in group["snapshots"]}
        if set(self.taken) != set(ids):
            raise Broken("group", f"{self.group} is of {sorted(self.taken)}, not of {sorted(ids)}")
        self.world.saw_device(self)
        if self.writer:
            self.bounds = (self.least, self.writer.count)
            self.let_go()
        for snapshot in self.taken.values():
            self.members[0].require_nothing_else(snapshot)

    def restore_group(self):
        """The counts of the first come before those of the second."""
        found = []

        def read(folder):
            found.extend(counts([folder]))

        for member in self.members:
            check = read if self.bounds and member in self.used else None
            member.make_copy("-snapshot", self.taken[member.id], larger=True, check=check)
        wrong = torn(found, *self.bounds) if found else None
        if wrong:
            raise Broken("moment", f"{self.group}: {wrong}")

    def unpublish(self):
        for member in self.used:
            member.unpublish()

    def unstage(self):
        for member in self.used:
            member.unstage()

    def delete(self):
        for member in self.members:
            member.delete()

    def delete_group(self):
        self.over = self.ends = True
        group = self.group or self.world.group_of(self.name)
        taken, self.taken = self.taken, {}
        if group:
            self.call("delete-group", group, *taken.values())


class Modified(Story):
    """A volume whose parameters change while it is used. What was last asked for says how it is erased."""

    first = {"eraseafter": "true", "eraseBandwidth": "900Mi", "copyBandwidth": "800Mi"}
    second = {"eraseBandwidth": "700Mi", "copyBandwidth": "600Mi"}

    def steps(self):
        return [
            self.create,
            self.stage,
            self.publish,
            self.write,
            self.modify,
            self.unpublish,
            self.unstage,
            self.use_modified,
            self.modify_again,
            self.delete,
        ]

    def modify(self):
        self.ask({"usage": "FileIO", **self.first} if self.world.changes_usage else self.first)

    def modify_again(self):
        self.ask({"usage": "AppDirect", **self.second} if self.world.changes_usage else self.second)

    def ask(self, wanted):
        """Until it is answered, either may be on record."""
        before = settings_of(self.world.content_of_records()[self.id])
        pairs = zip(SETTINGS, before, strict=True)
        after = tuple(setting_of(key, wanted[key]) if key in wanted else old for key, old in pairs)
        if self.settings and before not in self.settings:
            raise Broken("modified", f"{self.id}: {before} is none of {self.settings}")
        self.settings = (before, after)
        self.call("modify", self.id, *(f"{key}={value}" for key, value in wanted.items()))
        self.settings = (after,)

    def use_modified(self):
        """Mounted as it is to be used now, with its content."""
        self.stage()
        self.unstage()


STORIES = {"Snapshots": Snapshots, "Group": Group, "Modified": Modified}


def begin(world, driver, kind, number):
    """The life of a volume, or of a group of them, of this kind."""
    return STORIES.get(KINDS[kind].get("story"), Life)(world, driver, kind, number)
