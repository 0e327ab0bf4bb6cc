# SPDX-License-Identifier: Apache-2.0
"""What has to be true after a crash, whatever was interrupted. Each finding is (invariant, text)."""

import json
from collections import defaultdict

from calls import Failed, Timeout, fields, until
from settings import settings_of

SETTLE_S = 60
CAPACITY_S = 10

INVARIANTS = {
    "leak": "no device, mount, loop device or file is left that belongs to no volume",
    "lost": "every volume whose creation was reported to the client is there, with its content",
    "foreign": "no byte of foreign data has changed",
    "erased": "nothing of a deleted volume can be read",
    "size": "a volume has the size from before it was expanded, or the new one; device and record agree",
    "moment": "a copy is what its source was at one moment, and each of a group at the same",
    "others": "no byte of anything else is in a copy, in a new block volume, or in what one gained",
    "group": "a group of snapshots is there as a whole, or not at all",
    "modified": "a volume that was modified is in all as before, or in all as asked",
    "image": "an image that is on record is neither made again nor changed, but by its guest and by growing",
    "guest": "no byte of a device that a guest has is changed, and it is given to no second one",
    "entry": "an entry for guests is there for each target of a direct volume, and for nothing else",
    "capacity": "the capacity is what is free",
    "retry": "the interrupted call succeeds when it is repeated",
    "before": "when all is deleted, everything is as before",
}


def check_records(world, life, bystander, listed):
    """State folder, devices, and what the driver lists are the same volumes."""
    records, devices = set(world.records()), set(world.devices())
    if devices - records:
        yield "leak", f"devices without state: {sorted(devices - records)}"
    if records - devices:
        yield "lost", f"state without device: {sorted(records - devices)}"
    if set(listed) != records:
        yield "leak", f"listed are {sorted(listed)}, on record {sorted(records)}"
    for volume in (bystander, *life.volumes()):
        # kubelet names the others, and no call lists them by that name
        if volume.exists and not volume.spec.get("ephemeral") and volume.id not in records:
            yield "lost", f"{volume.id} is gone, and was not deleted"
    for snapshot in life.snapshots():
        if snapshot not in records:
            yield "lost", f"snapshot {snapshot} is gone, and was not deleted"
    for text in world.leaks():
        yield "leak", text


def check_mounts(world, life, bystander):
    """Mounts are where volumes are in use, once each."""
    allowed = [bystander.staging, bystander.targets[0]]
    # no volume is left when it is over; before that, what was interrupted may have mounted or not
    if not life.over or not world.is_settled():
        allowed += life.paths()
    elif life.spec.get("ephemeral"):
        allowed += life.targets
    mounts = world.mounts()
    for path in mounts:
        if path not in allowed:
            yield "leak", f"mount at {path}"
        elif mounts.count(path) > 1:
            yield "leak", f"{mounts.count(path)} mounts at {path}"


def check_foreign(world, before):
    now = world.foreign()
    for path, content in before.items():
        if now.get(path) != content:
            yield "foreign", f"{path} has changed"


def check_capacity(world, driver):
    found = []

    def adds_up():
        found[:] = fields(driver.call("capacity"))["available_capacity"]
        return int(found[0]) == world.free_bytes()

    try:
        until("capacity", adds_up, CAPACITY_S)
    except Timeout:
        yield "capacity", f"{found[0]} bytes are said to be free, {world.free_bytes()} are"


def check_erased(world, life, bystander):
    is_gone = not set(world.records()) - {bystander.id}
    if life.erases() and life.over and is_gone:
        for pattern in life.patterns():
            for place in world.readable(pattern):
                yield "erased", f"content of {life.name} is readable at {place}"


def check_sizes(world, life):
    devices = {} if world.has_raw_sizes else world.devices()
    for volume, content in world.content_of_records().items():
        size = content["size"]
        if devices.get(volume, size) != size:
            yield "size", f"{volume}: {size} bytes on record, and its device has {devices[volume]}"
        if "resizing" in content:
            yield "size", f"{volume}: still being resized to {content['resizing']}"
        for known in life.volumes():
            if known.id == volume and known.sizes and size not in known.sizes:
                yield "size", f"{volume}: {size} bytes, and not one of {known.sizes}"


def check_groups(world, life):
    members = defaultdict(list)
    for content in world.content_of_records().values():
        if "group" in content:
            members[content["group"]].append(content["groupSize"])
    for group, sizes in members.items():
        if set(sizes) != {len(sizes)} and not life.group_ends():
            yield "group", f"{group}: {len(sizes)} snapshots of {sizes[0]}"


def check_modified(world, life):
    content = world.content_of_records().get(life.id)
    if life.settings and content and settings_of(content) not in life.settings:
        yield "modified", f"{life.id}: {settings_of(content)} is none of {life.settings}"


def check_guests(world, life):
    for volume in life.volumes():
        problem = volume.guest_problem()
        if problem:
            yield problem
    for text in world.entry_problems():
        yield "entry", text


def check_writer(life):
    """Its file system was frozen when the driver died, and a driver that starts thaws it."""
    if life.writer and not life.writer.goes_on():
        yield "retry", f"{life.name}: its writer stands still"


def list_all(driver):
    """IDs of volumes and snapshots."""
    volumes = json.loads(driver.call("-o", "json", "list")).get("entries", [])
    snapshots = json.loads(driver.call("-o", "json", "list-snapshots")).get("entries", [])
    return [e["volume"]["volumeId"] for e in volumes] + [e["snapshot"]["snapshotId"] for e in snapshots]


def check_settled(world, driver):
    def settled():
        driver.check()
        return world.is_settled()

    try:
        until("unfinished volumes are cleared away", settled, SETTLE_S)
    except Timeout:
        yield "leak", f"unfinished: {world.records()}"


def check_all(world, driver, life, bystander, foreign):
    """After a crash and the start that follows. Raises calls.Died if the driver is killed meanwhile."""
    findings = list(check_settled(world, driver))
    try:
        listed = list_all(driver)
    except Failed as failure:
        return [("retry", str(failure))]
    findings += check_records(world, life, bystander, listed)
    findings += check_mounts(world, life, bystander)
    findings += check_foreign(world, foreign)
    findings += check_capacity(world, driver)
    findings += check_erased(world, life, bystander)
    findings += check_sizes(world, life)
    findings += check_groups(world, life)
    findings += check_modified(world, life)
    findings += check_guests(world, life)
    findings += check_writer(life)
    for volume in (bystander, *life.volumes()):
        lost = volume.content_is_lost()
        if lost:
            findings.append(("lost", lost))
    return findings


def check_end(world, before):
    """When the life is over."""
    now = world.remains()
    for what, wanted in before.items():
        if now[what] != wanted:
            return [("before", f"{what}: {now[what]}, before {wanted}")]
    return []
