# SPDX-License-Identifier: Apache-2.0
"""Hostile peers of pmem-csi-driver over sockets: the replies that they get, that other peers are served, and that the log stays short.

usage: test_hostile.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]

What needs no socket is tested in tests/unit/net.
"""
import socket
import ssl
import struct
import sys
import unittest

import csi_pb2
import hostile
from hostile import (CONTINUATION, CONTROLLER, DATA, END_HEADERS, END_STREAM, HEADERS, IDENTITY, PATIENCE_S, PING,
                     PREFACE, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, block, call, field, frame, greeting, head,
                     message, settings, text)

CROWD = 1000
STALLED = 300
# What kubelet waits for a probe, as the manifests say.
PROBE_S = 5
# Refused peers and calls have quotas per second (limits.h); a case lasts a few.
MAX_LINES = 1000
PROBE = IDENTITY + "Probe"
PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 1, 2, 3, 9, 11
OK, EXHAUSTED, UNIMPLEMENTED, INTERNAL, BAD_TEXT = "0", "8", "12", "13", "3"
DRIVER = MAKE_CERTS = None


class Served(unittest.TestCase):
    """After each test normal calls succeed and the log has grown by few lines."""

    certs = False

    @classmethod
    def setUpClass(cls):
        cls.driver = hostile.Driver(DRIVER, MAKE_CERTS if cls.certs else None)
        cls.addClassCleanup(cls.driver.stop)
        cls.addresses = [cls.driver.tcp, cls.driver.unix]

    def setUp(self):
        self.lines = self.driver.log().count("\n")
        self.addCleanup(self.check)

    def check(self):
        self.driver.check()
        self.assertLess(self.driver.log().count("\n") - self.lines, MAX_LINES)

    def peer(self, address, *pieces):
        peer = self.driver.peer(address)
        self.addCleanup(peer.close)
        peer.send(*pieces)
        return peer

    def ends(self, *pieces):
        """How connections end that send this after a greeting, on each kind of socket."""
        return {self.peer(address, greeting(), *pieces).end() for address in self.addresses}

    def statuses(self, wanted, *pieces):
        """Of the replies by stream, on each kind of socket."""
        replies = [self.peer(address, greeting(), *pieces).replies(wanted) for address in self.addresses]
        return [{stream: reply.get("grpc-status") for stream, reply in got.items()} for got in replies]


class Crowd(Served):
    def crowd(self, address, data, n=CROWD):
        peers = []
        for _ in range(n):
            peers.append(hostile.Peer(address))
            peers[-1].send(data)
        for _ in range(3):
            self.driver.check()
        for peer in peers:
            peer.close()


class Plain(Crowd):
    def test_silent_peers_keep_no_other_peer_out(self):
        for address in self.addresses:
            self.crowd(address, b"")

    def test_half_prefaces_keep_no_other_peer_out(self):
        self.crowd(self.driver.unix, PREFACE[:12])

    def test_greeted_peers_without_a_request_keep_no_other_peer_out(self):
        self.crowd(self.driver.tcp, greeting())


class Tls(Crowd):
    certs = True

    def hello(self):
        """The first bytes of a client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.driver.tls.wrap_bio(incoming, outgoing, server_hostname="pmem-node-controller")
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        return outgoing.read()

    def test_half_a_client_hello_keeps_no_other_peer_out(self):
        hello = self.hello()
        self.crowd(self.driver.tcp, hello[:len(hello) // 2])

    def test_handshakes_that_stop_after_the_hello_keep_no_other_peer_out(self):
        self.crowd(self.driver.tcp, self.hello(), CROWD // 4)

    def test_who_speaks_no_tls_is_not_served(self):
        for data in greeting() + call(1, PROBE), b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)):
            with hostile.Peer(self.driver.tcp) as peer:
                peer.send(data)
                peer.socket.shutdown(socket.SHUT_WR)
                self.assertEqual([kind for kind, *_ in peer.frames() if kind in (HEADERS, SETTINGS)], [])


class Floods(Served):
    def test_continuations_without_an_end(self):
        for payload in b"", field("a", "b"), field("a", "x" * 8000):
            self.assertLessEqual(
                self.ends(frame(HEADERS, 0, 1, block(PROBE)), frame(CONTINUATION, 0, 1, payload) * 2000),
                {"closed", ENHANCE_YOUR_CALM, PROTOCOL_ERROR, INTERNAL_ERROR})

    def test_rapid_resets(self):
        """CVE-2023-44487"""
        flood = b"".join(head(s, CONTROLLER + "ListVolumes") + frame(RST_STREAM, 0, s, bytes(4))
                         for s in range(1, 20001, 2))
        for address in self.addresses:
            peer = self.peer(address, greeting(), flood)
            self.assertIn(peer.end(), ("closed", ENHANCE_YOUR_CALM, INTERNAL_ERROR))

    def test_calls_that_are_reset_while_they_run(self):
        for address in self.addresses:
            for _ in range(50):
                with self.driver.peer(address) as peer:
                    peer.send(greeting(), *(call(s, CONTROLLER + "ListVolumes") + frame(RST_STREAM, 0, s, bytes(4))
                                            for s in range(1, 40, 2)))

    def test_settings_and_pings_without_reading(self):
        for flood in settings(a=65535) * 20000, frame(PING, 0, 0, bytes(8)) * 20000:
            for address in self.addresses:
                self.peer(address, greeting()).send(flood)

    def test_small_frames_that_mean_nothing(self):
        floods = [
            frame(PRIORITY, 0, 7, b"\0\0\0\0\1") * 5000,
            frame(0xfa, 0, 0, b"x") * 5000,
            b"".join(frame(PRIORITY, 0, s, b"\0\0\0\0\1") for s in range(1, 10001, 2)),
            frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 5000,
            frame(SETTINGS, 1, 0) * 5000,
        ]
        for flood in floods:
            for address in self.addresses:
                self.peer(address, greeting(), flood, frame(PING, 0, 0, b"12345678"))

    def test_empty_data(self):
        for got in self.statuses(1, head(1, PROBE), frame(DATA, 0, 1) * 5000, frame(DATA, 1, 1, message())):
            self.assertEqual(got, {1: OK})

    def test_bad_calls_do_not_fill_the_log(self):
        for address in self.addresses:
            for path in "/no/such", "/csi.v1.Controller/ValidateVolumeCapabilities":
                for start in range(0, 20):
                    peer = self.peer(address, greeting(), *(call(s, path) for s in range(1, 200, 2)))
                    self.assertEqual(len(peer.replies(100)), 100)


class Windows(Served):
    def test_an_increment_of_zero(self):
        self.assertEqual(self.ends(frame(WINDOW_UPDATE, 0, 0, bytes(4))), {PROTOCOL_ERROR})

    def test_a_window_beyond_its_maximum(self):
        self.assertEqual(self.ends(frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")), {FLOW_CONTROL_ERROR})
        self.assertEqual(self.ends(settings(a=1 << 31)), {FLOW_CONTROL_ERROR})

    def test_a_stream_window_beyond_its_maximum(self):
        for address in self.addresses:
            peer = self.peer(address, greeting(), head(1, PROBE), frame(WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff"))
            self.assertEqual(peer.reply()["reset"], FLOW_CONTROL_ERROR)

    def test_data_beyond_the_window(self):
        """The clients do not wait for the server's updates, and there is more than the message has."""
        body = frame(DATA, 0, 1, message(bytes(16000), length=4 << 20)) + frame(DATA, 0, 1, bytes(16384)) * 500
        for got in self.statuses(1, head(1, PROBE), body):
            self.assertEqual(got, {1: INTERNAL})

    def test_a_reply_byte_by_byte(self):
        """Windows that open by one byte."""
        for address in self.addresses:
            peer = self.peer(address, greeting(0), call(1, IDENTITY + "GetPluginInfo"))
            peer.send(frame(WINDOW_UPDATE, 0, 1, b"\0\0\0\1") * 200)
            self.assertEqual(peer.reply()["grpc-status"], OK)

    def test_windows_that_become_negative(self):
        """RFC 9113 section 6.9.2"""
        for address in self.addresses:
            peer = self.peer(address, greeting(3), call(1, IDENTITY + "GetPluginInfo"), settings(a=0),
                             frame(WINDOW_UPDATE, 0, 1, b"\0\0\1\0"))
            self.assertEqual(peer.reply()["grpc-status"], OK)


class Headers(Served):
    def test_references_to_a_big_value(self):
        """4 KB in the table, 16 times in each request: more than 8 KiB of headers that take 16 bytes."""
        add = b"\x40" + text("a") + text("x" * 4000)
        for address in self.addresses:
            peer = self.peer(address, greeting(), head(1, PROBE), frame(DATA, 1, 1, message()),
                             frame(HEADERS, END_HEADERS | END_STREAM, 3, block(PROBE) + add),
                             *(frame(HEADERS, END_HEADERS | END_STREAM, s, block(PROBE) + b"\xbe" * 16)
                               for s in range(5, 45, 2)))
            got = peer.replies(22)
            self.assertEqual(got[1]["grpc-status"], OK)
            self.assertEqual({got[s][":status"] for s in range(5, 45, 2)}, {"431"})

    def test_table_sizes(self):
        for size, ends in ((b"\x20", False), (b"\x3f\xe1\x1f", False), (b"\x3f\xe2\x1f", True),
                           (b"\x3f" + b"\xff" * 20 + b"\x01", True)):
            for address in self.addresses:
                peer = self.peer(address, greeting(), frame(HEADERS, END_HEADERS, 1, size + block(PROBE)),
                                 frame(DATA, 1, 1, message()))
                if ends:
                    self.assertIn(peer.end(), (COMPRESSION_ERROR, PROTOCOL_ERROR))
                else:
                    self.assertEqual(peer.reply()["grpc-status"], OK)

    def test_timeouts_that_are_none(self):
        for timeout in "", "1", "S", "-1S", "1s", "123456789S", "1 S", "0x1S", b"\xff\xfeS", "1.5S", "1Sm":
            for got in self.statuses(1, call(1, PROBE, b"", ("grpc-timeout", timeout))):
                self.assertEqual(got, {1: INTERNAL}, timeout)

    def test_other_content_types_and_methods(self):
        for kwargs, status in ({"content_type": "text/plain"}, "415"), ({"method": "GET"}, "405"):
            for address in self.addresses:
                peer = self.peer(address, greeting(), head(1, PROBE, **kwargs), frame(DATA, 1, 1, message()))
                self.assertEqual(peer.reply()[":status"], status)

    def test_unknown_methods(self):
        for path in "/", "/csi.v1.Identity", PROBE + "/", "/%00", "/" + "x" * 7000:
            for got in self.statuses(1, call(1, path)):
                self.assertEqual(got, {1: UNIMPLEMENTED}, path)


class Messages(Served):
    def test_what_is_not_one_message(self):
        name = csi_pb2.CreateVolumeRequest(name="x").SerializeToString()
        cases = {
            b"": INTERNAL,
            message()[:4]: INTERNAL,
            message(name)[:-1]: INTERNAL,
            message() + message(): INTERNAL,
            message() + b"x": INTERNAL,
            message(compressed=1): INTERNAL,
            message(compressed=2): INTERNAL,
            message(length=(4 << 20) + 1): EXHAUSTED,
            message(length=0xffffffff): EXHAUSTED,
            message(b"\xff" * 10): INTERNAL,
            message(b"\x0a\x02\xff\xfe"): BAD_TEXT,
            message(b"\x0a\x01\0"): BAD_TEXT,
        }
        for body, status in cases.items():
            for got in self.statuses(
                    1, head(1, CONTROLLER + "ValidateVolumeCapabilities"), frame(DATA, END_STREAM, 1, body)):
                self.assertEqual(got, {1: status}, body)

    def test_clients_that_vanish_in_the_middle(self):
        data = greeting() + call(1, CONTROLLER + "ListVolumes") + call(3, IDENTITY + "GetPluginInfo")
        for address in self.addresses:
            for n in range(1, len(data), 7):
                with self.driver.peer(address) as peer:
                    peer.send(data[:n])
                    if n % 2:
                        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Http(Served):
    def http(self, data):
        peer = hostile.Peer(self.driver.http)
        self.addCleanup(peer.close)
        peer.send(data)
        return peer

    def test_garbage_ends_the_connection(self):
        for data in greeting(), bytes(range(256)) * 100, b"\x16\x03\x01\x02\0\x01" + bytes(600), b"\r\n" * 50000:
            peer = self.http(data)
            try:
                while peer.socket.recv(65536):
                    pass
            except ConnectionResetError:
                continue

    def test_slow_requests_keep_no_other_peer_out(self):
        for data in b"", b"GET /metrics HTTP/1.1\r\nA: ":
            slow = [self.http(data) for _ in range(CROWD)]
            with hostile.Peer(self.driver.http) as peer:
                peer.send(b"GET /metrics/simple HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(peer.socket.recv(65536).startswith(b"HTTP/1.1 200"))
            for peer in slow:
                peer.close()

    def assert_alive(self, address, seconds):
        """As kubelet probes: on a connection of its own."""
        with socket.create_connection(address, timeout=seconds) as probe:
            probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertTrue(probe.recv(65536).startswith(b"HTTP/1.1 200"))

    def test_readers_that_stall_keep_no_probe_out(self):
        """They ask for more than socket buffers take, and read nothing of it."""
        for address in self.driver.http, self.driver.probes:
            slow = []
            for _ in range(STALLED):
                slow.append(hostile.Peer(address))
                slow[-1].socket.setblocking(False)
                try:
                    slow[-1].socket.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1500)
                except (BlockingIOError, ConnectionError):
                    pass
            self.assert_alive(self.driver.probes, PROBE_S)
            for peer in slow:
                peer.close()

    def test_readers_that_stall_make_room(self):
        """On the port that they fill."""
        slow = [self.http(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 1500) for _ in range(STALLED)]
        self.assert_alive(self.driver.http, PATIENCE_S // 2)
        for peer in slow:
            peer.close()

    def test_served_peers_that_stay_keep_no_other_peer_out(self):
        """Each has made a request; beyond the places of that server the one that idles longest goes."""
        request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        for _ in range(200):
            self.assertTrue(self.http(request).socket.recv(65536).startswith(b"HTTP/1.1 200"))


class End(unittest.TestCase):
    def test_replies_that_are_not_read_do_not_keep_the_driver(self):
        driver = hostile.Driver(DRIVER)
        peers = [driver.peer(address) for address in (driver.unix, driver.tcp)]
        for peer in peers:
            self.addCleanup(peer.close)
            peer.send(greeting(0), call(1, IDENTITY + "GetPluginInfo"))
            self.assertEqual(peer.frames().__next__()[0], SETTINGS)
        driver.check()
        driver.stop()


if __name__ == "__main__":
    DRIVER, MAKE_CERTS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
