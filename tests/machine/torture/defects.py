# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with the driver of defects.c, and which invariant finds it."""

from dataclasses import dataclass


@dataclass
class Defect:
    name: str  # PMEM_DEFECT
    breaks: str  # the invariant that must find it
    point: str  # where the driver is killed meanwhile
    kind: str = "ext4"


DEFECTS = [
    Defect("no-roll-back", "leak", "device-create.after"),
    Defect("drops-state", "lost", "device-create.after"),
    Defect("clears-strangers", "foreign", "device-create.after"),
    Defect("no-erase", "erased", "mount.after"),
    Defect("counts-gaps", "capacity", "device-create.after"),
    Defect("late-record", "retry", "device-create.after"),
    Defect("keeps-target", "before", "mount.after"),
]
