# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the driver of defects.c, and which invariant finds it."""

from dataclasses import dataclass


@dataclass
class Defect:
    name: str  # PMEM_DEFECT
    breaks: str  # the invariant that must find it
    point: str  # where the driver is killed meanwhile
    kind: str = "ext4"
    soiled: bool = True  # whether new devices hold something


DEFECTS = [
    Defect("no-roll-back", "leak", "device-create.after"),
    Defect("drops-state", "lost", "device-create.after"),
    Defect("clears-strangers", "foreign", "device-create.after"),
    Defect("no-erase", "erased", "mount.after", soiled=False),
    Defect("counts-gaps", "capacity", "device-create.after"),
    Defect("late-record", "retry", "device-create.after"),
    Defect("keeps-target", "before", "mount.after"),
    Defect("early-size", "size", "grow-recorded", "grown-block"),
    Defect("no-freeze", "moment", "device-create.after", "group"),
    Defect("keeps-gaps", "others", "device-create.after", "cloned-block"),
    Defect("splits-group", "group", "group-member-ready", "group"),
    Defect("forgets-half", "modified", "modify-recorded", "modified"),
    Defect("makes-image-again", "image", "kata-link.after", "image-ext4"),
    Defect("keeps-image", "leak", "device-create.after:2", "image-ext4"),
    Defect("ignores-guest", "guest", "direct-entry.after", "direct-ext4"),
    Defect("keeps-entry", "entry", "device-create.after:2", "direct-ext4"),
    Defect("clears-entries", "foreign", "direct-entry-removed.after", "direct-ext4"),
]
