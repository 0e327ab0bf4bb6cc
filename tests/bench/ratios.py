#!/usr/bin/python3
"""Reads "step side microseconds" lines; prints for each step the medians of both sides, their ratio and its limit."""
import statistics
import sys
from collections import defaultdict

# step: (sides of the driver, sides of the hand, limit or None)
STEPS = {
    "CreateVolume, lvm process at hand": ("create-ext4", ["create-ext4"], 0.6),
    "CreateVolume, lvm process to start": ("create-cold", ["create-cold"], 1.15),
    "NodeStageVolume ext4": ("stage-ext4", ["mkfs-ext4", "mount-ext4"], 0.85),
    "NodeStageVolume xfs": ("stage-xfs", ["mkfs-xfs", "mount-xfs"], None),
    "NodePublishVolume": ("publish-ext4", ["publish-ext4"], 0.4),
    "NodeUnpublishVolume": ("unpublish-ext4", ["unpublish-ext4"], None),
    "NodeUnstageVolume": ("unstage-ext4", ["unstage-ext4"], None),
    "GetCapacity": ("capacity", ["capacity"], 0.1),
    "DeleteVolume 256 MiB": ("delete-ext4", ["delete-ext4"], None),
    "DeleteVolume until it is erased": ("erased-ext4", ["delete-ext4"], None),
    "restart to ready": ("ready", ["ready"], 2.0),
    "restart to first volume": ("first-create", ["ready", "ready", "create-ext4"], None),
}


def main():
    times = defaultdict(list)
    for line in sys.stdin:
        step, side, us = line.split()
        times[step, side].append(int(us) / 1000)
    medians = {key: statistics.median(values) for key, values in times.items()}
    print(f"{'step':36} {'driver':>9} {'by hand':>9} {'ratio':>7}  limit")
    for name, (driver, hands, limit) in STEPS.items():
        mine = medians[driver, "driver"]
        theirs = sum(medians[hand, "hand"] for hand in hands)
        verdict = "" if limit is None else f"{limit:5}{'' if mine <= limit * theirs else '  MISSED'}"
        print(f"{name:36} {mine:7.1f}ms {theirs:7.1f}ms {mine / theirs:7.2f}  {verdict}")
    limit_ms = 2 * medians["ready", "hand"] + 1.15 * medians["create-ext4", "hand"]
    mine = medians["first-create", "driver"]
    print(f"restart to first volume may take 2 vgs + 1.15 lvcreate = {limit_ms:.1f} ms: "
          f"{'kept' if mine <= limit_ms else 'MISSED'}")


main()
