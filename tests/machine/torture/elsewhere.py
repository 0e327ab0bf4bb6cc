# SPDX-License-Identifier: Apache-2.0
"""Why no life comes to a point of the sources, and what does."""

import re
from collections import defaultdict

REASONS = [
    (r"(convert|lvm-group|lvm-pv|group-recorded)", "pmem-ns-init convert: killed there by tests/machine/vm/convert.sh"),
    (r"nd-seed", "what a killed pmem-ns-init left; tests/machine/vm/direct.sh passes there without a kill"),
    (r"nd-load-driver", "a node without udev, where nothing has loaded the module"),
    (r"nd-undo", "undone after an error of the kernel, which nothing provokes"),
    (r"(file-drop|folder-unmake|target-undo)", "undone after an error: tests/unit/inject"),
    (r"nd-", "namespaces: --direct"),
    (r"(lvm|child)-", "LVM: --lvm"),
    (r"repair-", "check --repair: tests/unit/inspect/test_repair.c"),
    (r"kata-flush", "what an ordinary pod has written to an image; here every pod runs in a guest"),
    (r"kata-shorten", "a file system with less space than it says"),
]


def reason_of(point):
    for pattern, reason in REASONS:
        if re.match(pattern, point):
            return reason
    return "not chosen with this number of crashes and seed"


def tell_coverage(all_names, met):
    """Which points of the sources drivers died at, and why not at the others."""
    never = sorted(all_names - met)
    print(f"\n{len(all_names) - len(never)} of {len(all_names)} points of the sources met")
    names = defaultdict(list)
    for point in never:
        names[reason_of(point)].append(point)
    for reason, points in names.items():
        print(f"  {len(points):>3} not met, {reason}: {' '.join(points)}")
