# SPDX-License-Identifier: Apache-2.0
"""Peak memory of pmem-csi-driver while peers try to make it use as much memory as possible.

usage: test_hostile_memory.py PMEM_CSI_DRIVER LIMITS_H MAKE_CERTS [unittest options]

Bounds follow from limits.h and from what the parts of a connection cost, in KiB:

  CONNECTION  8 for the state of socket, server and nghttp2; 8 for the HPACK tables of both directions, 4 each
  HEADERS     20 for a header block that is being read: LIMIT_HEADER_BYTES, and the smaller block that it outgrew
  STREAMS     40 for LIMIT_STREAMS that are open, or closed and remembered by nghttp2: 0.4 each
  CALL        2 for a request that is being read, besides its message
  TLS         48 for mbedtls' state, certificates and both buffers
  SLACK       4096 for the free memory that malloc keeps, threads, and what one round of the loop needs

What is held for the peers is LIMIT_HELD_BYTES at most, with LIMIT_RESERVED_BYTES for each connection beyond, in
buffers of up to twice that size.
"""
import re
import select
import sys
import time
import unittest

import csi_pb2
import hostile
from hostile import (CONTROLLER, DATA, END_HEADERS, HEADERS, IDENTITY, PING, PREFACE, block, call, field,
                     frame, greeting, head, message, text)

CROWD = 1000
KIB = 1 << 10
CONNECTION, HEADER_BLOCK, STREAMS, CALL, TLS, SLACK = 16, 20, 40, 2, 48, 4096
# What may stay when all have left.
KEPT_KIB = 6 * KIB
# Nothing moves any more when nothing has moved for so long.
STILL_S = 0.3
BIG_WINDOW = (1 << 31) - 1
ALL_STREAMS = range(1, 200, 2)
PROBE = IDENTITY + "Probe"
DRIVER = MAKE_CERTS = LIMITS = None


def read_limits(path):
    """LIMIT_ names and their numbers, such as (4u << 20)."""
    with open(path) as file:
        lines = re.findall(r"^#define (LIMIT_\w+)\s+\(?(\d+)u?(?: << (\d+)\))?", file.read(), re.M)
    return {name: int(n) << int(shift or 0) for name, n, shift in lines}


class Memory(unittest.TestCase):
    certs = False

    def setUp(self):
        self.driver = hostile.Driver(DRIVER, MAKE_CERTS if self.certs else None)
        self.addCleanup(self.driver.stop)
        self.peers = []
        for _ in range(10):
            self.driver.check()

    def crowd(self, address, n, *pieces):
        """So many connections that send the same and never read."""
        data = b"".join(pieces)
        for _ in range(n):
            self.peers.append(self.driver.peer(address))
            self.peers[-1].send(data)

    def pour(self, endless):
        """All peers continue to send until no bytes are accepted any more."""
        left, moved = {}, time.monotonic()
        for peer in self.peers:
            peer.socket.setblocking(False)
            left[peer.socket] = 0
        while left and time.monotonic() - moved < STILL_S:
            for sock in select.select([], list(left), [], STILL_S)[1]:
                try:
                    left[sock] += sock.send(endless[left[sock]:left[sock] + 8192])
                    moved = time.monotonic()
                    if left[sock] == len(endless):
                        del left[sock]
                except BlockingIOError:
                    continue
                except ConnectionError:
                    del left[sock]

    def leave(self):
        for peer in self.peers:
            peer.close()
        self.peers.clear()

    def measure(self, bound_kib, attack):
        idle = self.driver.status("VmRSS")
        self.driver.forget_peak()
        attack()
        self.driver.check()
        peak = self.driver.status("VmHWM")
        self.leave()
        self.driver.check()
        hostile.until(lambda: self.driver.status("VmRSS") <= idle + KEPT_KIB,
                      f"memory to go from {self.driver.status('VmRSS')} to {idle} KiB")
        print(f"{self.id()}: idle {idle} KiB, peak +{peak - idle} of {bound_kib + SLACK}, "
              f"afterwards +{self.driver.status('VmRSS') - idle}", flush=True)
        self.assertLessEqual(peak - idle, bound_kib + SLACK)

    @staticmethod
    def held(n):
        """For so many connections. What counts is length; buffers double when they grow (base/buf.c)."""
        return 2 * (LIMITS["LIMIT_HELD_BYTES"] + n * LIMITS["LIMIT_RESERVED_BYTES"]) // KIB


class Connections(Memory):
    def test_silent_peers(self):
        self.measure(LIMITS["LIMIT_NEWCOMERS"] * CONNECTION, lambda: self.crowd(self.driver.tcp, CROWD))

    def test_half_prefaces(self):
        self.measure(LIMITS["LIMIT_NEWCOMERS"] * CONNECTION,
                     lambda: self.crowd(self.driver.tcp, CROWD, PREFACE[:12]))

    def test_full_hpack_tables_and_open_header_blocks(self):
        add = b"".join(b"\x40" + text(f"a{i}") + text("x" * 1000) for i in range(3))
        rest = b"".join(field(f"b{i}", "x" * 900) for i in range(8))
        self.measure(CROWD * (CONNECTION + HEADER_BLOCK), lambda: self.crowd(
            self.driver.unix, CROWD, greeting(0), frame(HEADERS, END_HEADERS, 1, block(PROBE) + add),
            frame(HEADERS, 0, 3, block(PROBE) + rest)))

    def test_streams_without_an_end(self):
        calls = LIMITS["LIMIT_CALLS"] + CROWD * LIMITS["LIMIT_RESERVED_CALLS"]
        self.measure(CROWD * (CONNECTION + STREAMS) + calls * CALL, lambda: self.crowd(
            self.driver.tcp, CROWD, greeting(), *(head(s, PROBE) for s in ALL_STREAMS)))


class Queues(Memory):
    """Peers that never read."""

    def stall(self, n, address, window, endless):
        def attack():
            self.crowd(address, n, greeting(window))
            self.pour(endless)
        self.measure(n * (CONNECTION + STREAMS) + self.held(n), attack)

    def test_pings(self):
        self.stall(CROWD // 4, self.driver.unix, 0, frame(PING, 0, 0, bytes(8)) * 20000)

    def test_refused_streams(self):
        self.stall(CROWD // 4, self.driver.unix, 0, b"".join(
            frame(HEADERS, END_HEADERS | 1, s, b"\x82") for s in range(1, 40000, 2)))

    def test_long_errors(self):
        self.stall(CROWD // 20, self.driver.unix, BIG_WINDOW, b"".join(
            call(s, "/x/" + "%" * 120) for s in range(1, 4000, 2)))

    def test_big_errors_without_a_window(self):
        self.stall(CROWD, self.driver.tcp, 0, b"".join(call(s, "/x/" + "%" * 120) for s in ALL_STREAMS))


class Messages(Memory):
    def pump(self, peers, most_bytes):
        """DATA of each peer's first unanswered stream as far as the windows go, and a little beyond."""
        chunk, sent, moved = bytes(16384), 0, time.monotonic()
        state = {peer.socket: [0, b""] for peer in peers}
        for peer in peers:
            peer.socket.setblocking(False)
        while state and sent < most_bytes and time.monotonic() - moved < STILL_S:
            readable, writable, _ = select.select(list(state), list(state), [], STILL_S)
            for sock in readable:
                try:
                    if not sock.recv(1 << 16):
                        del state[sock]
                except OSError:
                    state.pop(sock, None)
            for sock in [s for s in writable if s in state]:
                stream, rest = state[sock]
                if not rest:
                    state[sock] = [stream + 1, frame(DATA, 0, ALL_STREAMS[stream % 100], chunk)]
                try:
                    n = sock.send(state[sock][1])
                except BlockingIOError:
                    continue
                except OSError:
                    del state[sock]
                    continue
                state[sock][1] = state[sock][1][n:]
                sent, moved = sent + n, time.monotonic()

    def test_most_of_many_large_requests(self):
        """100 connections with 100 streams: the prefix of 4 MiB, and then as much of it as is taken."""
        def attack():
            begin = b"".join(head(s, CONTROLLER + "CreateVolume") + frame(DATA, 0, s, message(b"x", length=4 << 20))
                             for s in ALL_STREAMS)
            self.crowd(self.driver.unix, 100, greeting(), begin)
            self.pump(self.peers, 96 << 20)
        self.measure(100 * (CONNECTION + STREAMS) + self.held(100) + LIMITS["LIMIT_CALLS"] * CALL, attack)

    def test_requests_with_too_many_parts(self):
        """4 MiB of empty messages, which would be half a gigabyte of objects; and many smaller ones."""
        parts = b"\x1a\0" * ((4 << 20) // 2)
        smaller = parts[:LIMITS["LIMIT_BIG_MESSAGE_BYTES"] - 16]

        def attack():
            for path in "CreateVolume", "ValidateVolumeCapabilities":
                for body in parts, smaller:
                    for _ in range(LIMITS["LIMIT_BIG_CALLS"] * 2):
                        self.crowd(self.driver.unix, 1, greeting(), call(1, CONTROLLER + path, body))
                    statuses = {peer.reply()["grpc-status"] for peer in self.peers}
                    self.assertLessEqual(statuses, {"3", "8", "14"})
                    self.leave()
        arenas = LIMITS["LIMIT_BIG_CALLS"] * LIMITS["LIMIT_ARENA_BYTES"]
        self.measure(arenas // KIB + self.held(16), attack)

    def make_volumes(self, n):
        capability = csi_pb2.VolumeCapability(
            mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
            access_mode=csi_pb2.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER"))
        for start in range(0, n, 20):
            with self.driver.peer(self.driver.unix) as peer:
                peer.send(greeting(), *(call(2 * i + 1, CONTROLLER + "CreateVolume", csi_pb2.CreateVolumeRequest(
                    name=f"{start + i}-" + "x" * 110, capacity_range=csi_pb2.CapacityRange(required_bytes=1 << 20),
                    volume_capabilities=[capability]).SerializeToString()) for i in range(20)))
                self.assertEqual({r["grpc-status"] for r in peer.replies(20).values()}, {"0"})

    def test_lists_without_a_window(self):
        """Each peer asks for the list of volumes, one after the other, until no peer gets it any more."""
        self.make_volumes(400)

        def attack():
            self.crowd(self.driver.unix, 100, greeting(0))
            for stream in ALL_STREAMS:
                statuses = set()
                for peer in self.peers:
                    peer.send(call(stream, CONTROLLER + "ListVolumes"))
                    kind, _, _, payload = next(f for f in peer.frames() if f[0] == HEADERS)
                    statuses.add(dict(peer.decoder.decode(payload)).get("grpc-status", "0"))
                if statuses == {"14"}:
                    return
        self.measure(100 * (CONNECTION + STREAMS) + self.held(100), attack)

    def test_lists_that_are_not_read(self):
        """They fill the sockets, and what the server has ready for those."""
        self.make_volumes(400)
        n = CROWD // 2

        def attack():
            self.crowd(self.driver.unix, n, greeting(BIG_WINDOW))
            for stream in range(1, 17, 2):
                for peer in self.peers:
                    peer.send(call(stream, CONTROLLER + "ListVolumes"))
                self.driver.check()
        self.measure(n * (CONNECTION + STREAMS) + self.held(n), attack)


class Handshakes(Memory):
    certs = True

    def test_connections_with_mutual_tls(self):
        n = CROWD // 5
        self.measure(n * (CONNECTION + TLS), lambda: self.crowd(self.driver.tcp, n, greeting(), call(1, PROBE)))

    def test_garbage_instead_of_a_handshake(self):
        """A record header that announces more than comes."""
        def attack():
            for _ in range(CROWD):
                self.peers.append(hostile.Peer(self.driver.tcp))
                self.peers[-1].send(b"\x16\x03\x01\x40\0\x01\0\x3f\xfc\x03\x03" + bytes(15000))
        self.measure(LIMITS["LIMIT_NEWCOMERS"] * (CONNECTION + TLS), attack)


if __name__ == "__main__":
    DRIVER, LIMITS, MAKE_CERTS = sys.argv.pop(1), read_limits(sys.argv.pop(1)), sys.argv.pop(1)
    unittest.main(verbosity=2)
