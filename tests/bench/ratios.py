#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads "TIME step side microseconds" and "SIZE what KiB" lines; prints the medians of each side, ratios and limits.

usage: ratios.py lvm|direct|guests
"""
import statistics
import sys
from collections import defaultdict

USED = ["create-ext4", "stage-ext4", "publish-ext4"]
USED_BY_HAND = ["create-ext4", "mkfs-ext4", "mount-ext4", "publish-ext4"]
PAIR_BY_HAND = ["pair-create", "pair-zero", "pair-delete"]

# name, steps of the driver, steps by hand, limit of their ratio in each mode or None, least number of times that the Go
# driver takes or None. The limit of a pair is what the Go driver took once, 1.7 s (lvm) and 0.7 s
# (direct) where the tools took 0.8 s: five times its rate, and its rate.
STEPS = [
    ("node start, label areas are blank", ["blank"], ["blank"], {}, None),
    ("CreateVolume, lvm process at hand", ["create-ext4"], ["create-ext4"], {"lvm": 0.6}, None),
    ("CreateVolume, lvm process to start", ["create-cold"], ["create-cold"], {"lvm": 1.15}, None),
    ("NodeStageVolume ext4", ["stage-ext4"], ["mkfs-ext4", "mount-ext4"], {"lvm": 0.85, "direct": 0.85}, None),
    ("NodeStageVolume xfs", ["stage-xfs"], ["mkfs-xfs", "mount-xfs"], {}, None),
    ("NodePublishVolume", ["publish-ext4"], ["publish-ext4"], {"lvm": 0.4, "direct": 0.4}, None),
    ("Create, Stage and Publish, ext4", USED, USED_BY_HAND, {"lvm": 0.6, "direct": 0.8}, {"lvm": 7, "direct": 5}),
    ("NodeUnpublishVolume", ["unpublish-ext4"], ["unpublish-ext4"], {}, None),
    ("NodeUnstageVolume", ["unstage-ext4"], ["unstage-ext4"], {}, None),
    ("GetCapacity", ["capacity"], ["capacity"], {"lvm": 0.1}, None),
    ("DeleteVolume 256 MiB", ["delete-ext4"], ["zero-ext4", "delete-ext4"], {}, None),
    ("DeleteVolume until it is erased", ["erased-ext4"], ["zero-ext4", "delete-ext4"], {}, None),
    ("expand while mounted, ext4", ["expand", "expand-fs"], ["expand", "expand-fs"], {"lvm": 0.6}, None),
    ("clone of 512 MiB that are full", ["clone-full"], ["clone-full"], {"lvm": 1.1}, None),
    ("clone of 512 MiB, a quarter full", ["clone-quarter"], ["clone-quarter"], {"lvm": 0.4}, None),
    ("create+delete 64 MiB, 4 in flight", ["pair"], PAIR_BY_HAND, {"lvm": 0.42, "direct": 0.91}, {"lvm": 5, "direct": 1}),
    ("CreateVolume 4 MiB among a few", ["create-among-few"], ["create-among-few"], {}, None),
    ("CreateVolume 4 MiB among 300", ["create-among-300"], ["create-among-300"], {}, None),
    ("stores by MAP_SYNC to an image", ["stores"], ["stores"], {"guests": 1 / 0.9}, None),
    ("sequential writes to a direct volume", ["write"], ["write"], {"guests": 1 / 0.95}, None),
    ("sequential reads of a direct volume", ["read"], ["read"], {"guests": 1 / 0.95}, None),
    ("restart to ready", ["ready"], ["ready"], {"lvm": 2.0}, None),
    ("restart to first volume", ["first-create"], ["ready", "ready", "create-ext4"], {}, None),
]
# KiB
SIZES = {"pss": 8 * 1024, "pss-with-lvm": 20 * 1024, "growth-over-300-volumes": 1024}


def total(medians, steps, side):
    if all((step, side) in medians for step in steps):
        return sum(medians[step, side] for step in steps)
    return None


def cell(value, form):
    return form.format(value) if value is not None else ""


def print_steps(mode, medians):
    print(f"{'step':36} {'driver':>10} {'by hand':>10} {'ratio':>6} {'limit':>6} {'Go':>10} {'times':>6} {'least':>6}")
    for name, steps, hands, limits, leasts in STEPS:
        mine, theirs, go = (total(medians, *key) for key in ((steps, "driver"), (hands, "hand"), (steps, "go")))
        if mine is None:
            continue
        limit, least = limits.get(mode), (leasts or {}).get(mode)
        missed = (limit and mine > limit * theirs) or (least and go and go < least * mine)
        print(f"{name:36} {mine:8.1f}ms {theirs:8.1f}ms {mine / theirs:6.2f} {cell(limit, '{:6.2f}'):6} "
              f"{cell(go, '{:8.1f}ms'):10} {cell(go and go / mine, '{:6.1f}'):6} {cell(least, '{:6.1f}'):6}"
              f"{'  MISSED' if missed else ''}".rstrip())


def print_first_volume(medians):
    limit_ms = 2 * medians["ready", "hand"] + 1.15 * medians["create-ext4", "hand"]
    kept = medians["first-create", "driver"] <= limit_ms
    print(f"restart to first volume may take 2 lists + 1.15 creations by hand = {limit_ms:.1f} ms: {'kept' if kept else 'MISSED'}")


def print_crowd(medians):
    few, crowd = (medians[f"own-among-{number}", "driver"] for number in ("few", "300"))
    print(f"a creation's time in the driver itself: {few:.1f} ms among a few volumes, {crowd:.1f} ms among 300, limit the "
          f"same and 2 ms{'  MISSED' if crowd > few + 2 else ''}")


def percentile_99(values):
    return sorted(values)[len(values) * 99 // 100]


def print_clones(times):
    print(f"{'beside 100 clones of a volume':36} {'samples':>8} {'median':>10} {'99 %':>10} {'99 % of idle':>13} {'ratio':>6}")
    for step in "other-stage", "other-publish":
        idle, crowd = times[step, "idle"], times[step, "crowd"]
        before, beside = percentile_99(idle), percentile_99(crowd)
        print(f"{step:36} {len(crowd):8} {statistics.median(crowd):8.1f}ms {beside:8.1f}ms {before:11.1f}ms {beside / before:6.2f}"
              f"{'  MISSED' if beside > 2 * before else ''}")


def main():
    times, mode = defaultdict(list), sys.argv[1]
    sizes = {}
    for line in sys.stdin:
        kind, *words = line.split()
        if kind == "TIME":
            times[words[0], words[1]].append(int(words[2]) / 1000)
        elif kind == "SIZE":
            sizes[words[0]] = int(words[1])
    medians = {key: statistics.median(values) for key, values in times.items()}
    print_steps(mode, medians)
    if ("first-create", "driver") in medians:
        print_first_volume(medians)
    if ("own-among-300", "driver") in medians:
        print_crowd(medians)
    if ("other-stage", "idle") in times:
        print_clones(times)
    for what, kib in sizes.items():
        print(f"{what:36} {kib:7} KiB, limit {SIZES[what]}{'' if kib <= SIZES[what] else '  MISSED'}")


main()
