# SPDX-License-Identifier: Apache-2.0
"""Counts what was tried and what was found."""

import time
from collections import Counter, defaultdict

from elsewhere import tell_coverage
from invariants import INVARIANTS
from plan import name_of

TOLD_EVERY = 50


class Tally:
    def __init__(self):
        self.started = time.monotonic()
        self.passed = self.failed = self.skipped = 0
        self.tried = Counter()
        self.missed = Counter()
        self.bad = Counter()
        self.names = set()
        self.found = defaultdict(list)

    def add(self, kind, point, findings, met):
        """A crash that was tried; met: it came."""
        self.tried[kind] += 1
        if met:
            self.names.update(name_of(part) for part in point.split("+"))
        if sum(self.tried.values()) % TOLD_EVERY == 0:
            print(f"{sum(self.tried.values())} tried, {time.monotonic() - self.started:.0f} s", flush=True)
        if findings:
            self.failed += 1
            self.bad[kind] += 1
            for invariant, text in findings:
                self.found[invariant].append(f"{kind} {point}: {text}")
                print(f"FAIL {kind} {point}: {invariant}: {text}", flush=True)
        elif met:
            self.passed += 1
        else:
            self.missed[kind] += 1
            self.skipped += 1
            print(f"not met {kind} {point}: the life that was traced came to it, the later ones did not", flush=True)

    def skip(self, what, why):
        self.skipped += 1
        print(f"skip {what}: {why}", flush=True)

    def check(self, what, problem):
        """One result of another sort."""
        if problem:
            self.failed += 1
            print(f"FAIL {what}: {problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {what}", flush=True)

    def table(self, points, all_names):
        print(f"\n{'kind':<12}{'points':>8}{'crashes':>9}{'not met':>9}{'failed':>8}")
        for kind in points:
            row = points[kind], self.tried[kind], self.missed[kind], self.bad[kind]
            print(f"{kind:<12}{row[0]:>8}{row[1]:>9}{row[2]:>9}{row[3]:>8}")
        print(f"\n{'invariant':<12}{'broken':>8}")
        for name, meaning in INVARIANTS.items():
            print(f"{name:<12}{len(self.found[name]):>8}   {meaning}")
        if all_names:
            tell_coverage(all_names, self.names)
        print(f"{time.monotonic() - self.started:.0f} s")
