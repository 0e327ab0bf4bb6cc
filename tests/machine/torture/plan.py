# SPDX-License-Identifier: Apache-2.0
"""Which points are met, and in which order they are tried."""

import os
import random
from collections import defaultdict

SECOND_MAX = 40


def read_trace(path):
    """The points of a trace, each with its hit: NAME:HIT."""
    if not os.path.exists(path):
        return []
    with open(path) as trace:
        lines = [line.split() for line in trace]
    os.unlink(path)
    return [f"{point}:{hit}" for _, point, hit in lines]


class Steps:
    """In which step of a life each point of its trace was met: on_step is for an Episode."""

    def __init__(self, trace):
        self.trace = trace
        self.begun = []

    def on_step(self, name):
        with open(self.trace, "a+") as f:
            f.seek(0)
            self.begun.append((len(f.readlines()), name))

    def read(self, wanted=None):
        """Points as read_trace() returns them, of some steps only; and the step of each."""
        points = read_trace(self.trace)
        step_of = {}
        for i, point in enumerate(points):
            step_of[point] = [name for at, name in self.begun if at <= i][-1]
        return [point for point in points if not wanted or step_of[point] in wanted], step_of


def name_of(point):
    return point.split(":")[0]


class Recovery:
    """Points that only those drivers come to that find what another one has left."""

    def __init__(self, points):
        """All that lives without a crash come to, in whatever step."""
        self.known = {name_of(point) for point in points}

    def crashes(self, kind, first, points):
        """Of the driver after a crash at the first point: (kind, first, second) for what was not known before."""
        found = []
        for point in points:
            if name_of(point) not in self.known:
                self.known.add(name_of(point))
                found.append((kind, first, point))
        return found


def spread(traces, rng):
    """All (kind, point), such that the first of them have as many names and kinds as possible."""
    strata = defaultdict(list)
    for kind, points in traces.items():
        for point in points:
            strata[kind, name_of(point)].append((kind, point))
    for members in strata.values():
        rng.shuffle(members)
    order = []
    keys = sorted(strata)
    rng.shuffle(keys)
    seen = defaultdict(int)
    for key in keys:
        for member in strata[key]:
            order.append((seen[key[1]], len(order), member))
            seen[key[1]] += 1
    return [member for _, _, member in sorted(order)]


def choose(traces, n, seed):
    """n crashes as (kind, point, second): after all points were met once, crashes of the recovery are added."""
    rng = random.Random(seed)
    chosen = []
    while len(chosen) < n:
        again = bool(chosen)
        round_of = spread(traces, rng)
        if not round_of:
            break
        for kind, point in round_of[: n - len(chosen)]:
            chosen.append((kind, point, rng.randint(1, SECOND_MAX) if again else None))
    return chosen


def choose_with(prefix, traces, n, seed):
    """As choose(), but every other crash is at a point of that prefix, while there are any."""
    crashes = choose(traces, sum(map(len, traces.values())), seed)
    own = [crash for crash in crashes if crash[1].startswith(prefix)]
    others = [crash for crash in crashes if not crash[1].startswith(prefix)]
    mixed = [crash for pair in zip(own, others) for crash in pair]
    both = min(len(own), len(others))
    return (mixed + own[both:] + others[both:])[:n]
