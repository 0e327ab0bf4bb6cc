"""Why lives on fake devices do not come to a point of the sources, and what does."""

import re

REASONS = [
    (r"convert-", "pmem-ns-init convert: killed there by tests/vm/convert.sh"),
    (r"(nd-undo|file-drop|folder-unmake|target-undo)", "taken back after an error: tests/unit/inject"),
    (r"nd-", "namespaces: --vm"),
    (r"(lvm|child)-", "LVM: --vm"),
    (r"repair-", "check --repair: tests/unit/volume/test_repair.c"),
    (r"kata-", "volumes that the Go driver made for Kata: tests/unit/volume/test_kata.c"),
]


def reason_of(point):
    for pattern, reason in REASONS:
        if re.match(pattern, point):
            return reason
    return "not chosen with this number of kills and seed"
