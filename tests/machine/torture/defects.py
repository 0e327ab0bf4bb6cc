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
]
