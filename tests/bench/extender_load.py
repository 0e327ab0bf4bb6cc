#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls the scheduler extender and a peer of it, alternately, as kube-scheduler does: one connection each that stays open, filter
and then prioritize with the same body. CPU is the server's as the kernel counts it; wall time has the client's part in it.

usage: extender_load.py REQUESTS ROUNDS NODES PODS PID:PORT PEER-PID:PEER-PORT      of ours, with fake_cluster.py; of TopoLVM's
"""
import copy
import http.client
import json
import statistics
import sys
import time

NODE_BYTES = 6300
CAPACITY = "capacity.topolvm.io/"
GROWTH_PAIRS = 50000
GROWTH_NODES = 100
SYNC_S = 60
# What is wanted: ms of filter and prioritize together, times that the peer takes, KiB.
NAMES_MS, TIMES, RSS_KIB = 2.0, 8, 40 * 1000 * 1000 // 1024


class Extender:
    def __init__(self, where, filter_path):
        self.pid, self.port = map(int, where.split(":"))
        self.paths = filter_path, "/prioritize"
        self.connect()

    def connect(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def post(self, path, body):
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def pair(self, body):
        """filter and prioritize; @return: both texts"""
        replies = [self.post(path, body) for path in self.paths]
        assert all(status == 200 for status, _ in replies), replies
        return [text for _, text in replies]

    def cpu_ms(self):
        # CPUCLOCK_SCHED of a process: linux/posix-timers.h
        return time.clock_gettime(~self.pid << 3 | 2) * 1000

    def measure(self, bodies):
        """@return: ms of CPU and of wall time, for filter and prioritize together"""
        before, times = self.cpu_ms(), []
        for body in bodies:
            began = time.perf_counter()
            self.pair(body)
            times.append((time.perf_counter() - began) * 1000)
        return (self.cpu_ms() - before) / len(bodies), statistics.median(times)

    def memory_kib(self, key="Rss"):
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

    def peak_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


class Requests:
    def __init__(self, folder):
        with open(f"{folder}/nodes.json", encoding="utf-8") as file:
            self.base = json.load(file)
        self.node = self.base["Nodes"]["items"][0]
        self.node["metadata"]["annotations"][CAPACITY + "00default"] = str(48 << 30)
        images = self.node["status"].setdefault("images", [])
        while len(self.text(self.node)) < NODE_BYTES:
            images.append({"names": [f"registry.example/some/image@sha256:{len(images):064}"], "sizeBytes": 12345678})

    @staticmethod
    def text(value):
        return json.dumps(value, separators=(",", ":")).encode()

    def body(self, pod, nodes, whole):
        """@pod: number, of those of fake_cluster.py; @whole: Node objects instead of names"""
        request = copy.deepcopy({"Pod": self.base["Pod"], "Nodes": None, "NodeNames": None})
        name = f"bench-{pod}"
        request["Pod"]["metadata"].update(name=name, uid=name)
        request["Pod"]["metadata"]["annotations"][CAPACITY + "00default"] = str(16 << 20)
        request["Pod"]["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": name}})
        names = [f"node-{i}" for i in range(nodes)]
        if whole:
            items = [{**self.node, "metadata": {**self.node["metadata"], "name": each}} for each in names]
            request["Nodes"] = {"metadata": {}, "items": items}
        else:
            request["NodeNames"] = names
        return self.text(request)


def say(what, value, unit, kept=None):
    print(f"{what:72} {value:>9} {unit}{'  MISSED' if kept is False else ''}", flush=True)


def show(what, rounds, wanted_ms=None):
    """@rounds: of (CPU, wall); @return: the median of the CPU"""
    cpu_ms, wall_ms = map(statistics.median, zip(*rounds))
    say(f"{what}: server CPU", f"{cpu_ms:.2f}", "ms", wanted_ms is None or cpu_ms <= wanted_ms)
    say(f"{what}: wall, client included", f"{wall_ms:.2f}", "ms")
    return cpu_ms


def await_sync(ours, body):
    end = time.monotonic() + SYNC_S
    while error := json.loads(ours.post("/filter", body)[1])["Error"]:
        assert time.monotonic() < end, error
        time.sleep(0.1)


def lower(text):
    """JSON whose keys differ in case, which means nothing to Go."""
    return json.loads(text, object_hook=lambda members: {key.lower(): value for key, value in members.items()})


def names_of(message):
    return message.get("nodenames") or [item["metadata"]["name"] for item in message["nodes"]["items"]]


def check(ours, peer, requests, nodes):
    """Both say the same: all nodes pass, and have a score."""
    bodies = (ours, requests.body(0, nodes, False)), (ours, requests.body(0, 500, True)), (peer, requests.body(0, 500, True))
    for extender, body in bodies:
        result, scores = map(lower, extender.pair(body))
        expected = names_of(lower(body))
        assert names_of(result) == expected and not result.get("failednodes"), str(result)[:500]
        assert len(scores) == len(expected) and all(each["score"] > 0 for each in scores), str(scores)[:500]


def measure_names(ours, requests, rounds, nodes, pods):
    alone, many = ([requests.body(i % count, nodes, False) for i in range(100)] for count in (1, pods))
    print(f"filter and prioritize, {nodes} node names, {len(alone[0]) / 1e3:.0f} KB:")
    ours.measure(alone)
    show("  one pod", [ours.measure(alone) for _ in range(rounds)], NAMES_MS)
    say("  RSS after that", ours.memory_kib(), "KiB", ours.memory_kib() <= RSS_KIB)
    ours.measure(many)
    show(f"  with {pods} pods in flight", [ours.measure(many) for _ in range(rounds)], NAMES_MS)
    say("  RSS after that", ours.memory_kib(), "KiB", ours.memory_kib() <= RSS_KIB)


def measure_whole(ours, peer, requests, rounds):
    body = requests.body(0, 500, True)
    print(f"filter and prioritize, 500 Node objects, {len(body) / 1e6:.1f} MB:")
    peer.connect()  # it ends what is idle for 30 s
    peer.measure([body] * 3)
    ours.measure([body] * 3)
    theirs, mine = zip(*[(peer.measure([body] * 5), ours.measure([body] * 20)) for _ in range(rounds)])
    their_ms, my_ms = show("  TopoLVM", theirs), show("  ours", mine)
    say("  TopoLVM / ours, server CPU", f"{their_ms / my_ms:.1f}", "times", their_ms >= TIMES * my_ms)


def measure_most(ours, peer, requests, rounds):
    body = requests.body(0, 2000, True)
    print(f"filter and prioritize, 2000 Node objects, {len(body) / 1e6:.1f} MB:")
    try:
        status, _ = peer.post(peer.paths[0], body)
        say("  TopoLVM answers with status", status, "")
    except OSError as error:
        say("  TopoLVM ends the connection", type(error).__name__, "")
    peer.connect()
    before = ours.memory_kib()
    show("  ours", [ours.measure([body] * 5) for _ in range(rounds)])
    say("  ours: peak of memory above what it was", ours.peak_kib() - before, "KiB")
    say("  ours: memory that is kept", ours.memory_kib() - before, "KiB")


def measure_growth(ours, requests, pods):
    bodies = [requests.body(i, GROWTH_NODES, False) for i in range(pods)]
    for i in range(1000):
        ours.pair(bodies[i % pods])
    before = ours.memory_kib("Private_Dirty")
    for i in range(GROWTH_PAIRS):
        ours.pair(bodies[i % pods])
    say(f"growth over {2 * GROWTH_PAIRS} requests", ours.memory_kib("Private_Dirty") - before, "KiB")


def main():
    folder, rounds, nodes, pods, mine, theirs = sys.argv[1:]
    rounds, nodes, pods = int(rounds), int(nodes), int(pods)
    requests = Requests(folder)
    ours, peer = Extender(mine, "/filter"), Extender(theirs, "/predicate")
    await_sync(ours, requests.body(0, 1, False))
    say("RSS when all is known, ours", ours.memory_kib(), "KiB", ours.memory_kib() <= RSS_KIB)
    say("RSS at the start, TopoLVM", peer.memory_kib(), "KiB")
    check(ours, peer, requests, nodes)
    measure_names(ours, requests, rounds, nodes, pods)
    measure_whole(ours, peer, requests, rounds)
    measure_most(ours, peer, requests, rounds)
    say("RSS at the end, ours", ours.memory_kib(), "KiB")
    say("RSS at the end, TopoLVM", peer.memory_kib(), "KiB")
    measure_growth(ours, requests, pods)


main()
