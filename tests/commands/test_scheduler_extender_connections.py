# SPDX-License-Identifier: Apache-2.0
"""Connections to scheduler-extender: which peers are accepted over TLS, a certificate that is replaced, and many at once.

usage: test_scheduler_extender_connections.py SCHEDULER_EXTENDER MAKE_CERTS [unittest options]
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE_S = 120
# More than LIMIT_HTTP1_CONNECTIONS and LIMIT_NEWCOMERS: clients keep idle connections for what they ask next.
CROWD = 300
# More than there is room for, several times over; with a sanitizer each of them takes several times as long
STALLED = 2600
STALLED_SANITIZED = 600
# common/net/limits.h: bytes of requests that wait
PIPELINED = 64 << 10
# manifests/: timeoutSeconds of webhook and probes, httpTimeout of kube-scheduler
ANSWER_S = 5
SERVER, CLIENT = "server", "client"
EXTENDER = MAKE_CERTS = None


def stalled_peers():
    with open(EXTENDER, "rb") as program:
        return STALLED_SANITIZED if b"__asan_init" in program.read() else STALLED


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0.01)


class Authority:
    """Any two have the same name and differ in their keys."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory(prefix="scheduler-extender.")
        test.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.make(f"{SERVER}=IP:127.0.0.1", CLIENT)

    def make(self, *words):
        subprocess.run([MAKE_CERTS, "-o", self.folder, *words], check=True, stdout=subprocess.DEVNULL)

    def path(self, name):
        return f"{self.folder}/{name}.pem"

    def pair(self, name):
        return self.path(name), self.path(name + "-key")

    def certificate(self, name):
        """As SSLSocket.getpeercert() has it."""
        with open(self.path(name), encoding="ascii") as file:
            return ssl.PEM_cert_to_DER_cert(file.read())


class Served(unittest.TestCase):
    """An extender whose API server refuses connections: it serves what needs no cluster."""

    def setUp(self):
        self.authority = Authority(self)
        unused = socket.socket()
        self.addCleanup(unused.close)
        unused.bind(("127.0.0.1", 0))
        self.nowhere = f"127.0.0.1:{unused.getsockname()[1]}"

    def start(self, *flags, ports=2):
        """Returns the port of each listener, in the order TLS, plain, and of the webhook and probes if there are any."""
        return self.start_only("-schedulerListen=127.0.0.1:0", "-insecureSchedulerListen=127.0.0.1:0",
                               *flags, ports=ports)

    def start_only(self, *flags, ports):
        certificate, key = self.authority.pair(SERVER)
        self.process = subprocess.Popen(
            [EXTENDER, f"-certFile={certificate}", f"-keyFile={key}", *flags],
            env={"KUBECONFIG": self.write_config()}, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        logged, self.ports = "", []
        while len(self.ports) < ports:
            line = self.process.stderr.readline()
            logged += line
            self.assertTrue(line, logged)
            self.ports += map(int, re.findall(r" serving listen=\S+ port=(\d+)", line))
        return self.ports

    def write_config(self):
        path = f"{self.authority.folder}/config"
        cluster = {"server": f"https://{self.nowhere}", "certificate-authority": self.authority.path("ca")}
        with open(path, "w", encoding="ascii") as file:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": cluster}],
                       "users": [{"name": "u", "user": {"token": "t"}}]}, file)
        return path

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, logged = self.process.communicate(timeout=PATIENCE_S)
        self.assertEqual(self.process.returncode, 0, logged)

    def connect(self, port, tls=None, host="127.0.0.1"):
        """A connection that is lost stays so: http.client would make another one."""
        if tls:
            connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE_S, context=tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.connect()
        connection.auto_open = False
        return connection

    def assert_served(self, connection):
        connection.request("GET", "/healthz")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.read()), (200, b"ok"))

    def trust(self, certificate=()):
        """Of a client that knows the authority of the server, and offers no protocol. @certificate: its own, with the key"""
        tls = ssl.create_default_context(cafile=self.authority.path("ca"))
        if certificate:
            tls.load_cert_chain(*certificate)
        return tls


class Probes(Served):
    def test_they_have_a_port_that_no_client_fills(self):
        self.start("-probeListen=127.0.0.1:0", ports=3)
        plain, probes = self.ports[1:]
        crowd = [socket.create_connection(("127.0.0.1", plain)) for _ in range(CROWD)]
        for peer in crowd:
            self.addCleanup(peer.close)
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        self.assert_served(self.connect(probes))
        connection = self.connect(probes)
        connection.request("GET", "/status")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.getheader("Connection")), (503, "close"))
        connection = self.connect(probes)
        connection.request("POST", "/filter", b"{}")
        self.assertEqual(connection.getresponse().status, 404)


class Webhook(Served):
    """What the API server may reach is not what kube-scheduler asks, which the API's users could fill with made-up pods."""

    SCHEDULER = ("/filter", "/prioritize", "/preempt")
    MUTATE = "/pod/mutate"

    def status(self, port, path, tls=None):
        connection = self.connect(port, tls)
        connection.request("POST", path, b"{}")
        return connection.getresponse().status

    def test_with_a_port_of_its_own_it_is_served_there_alone(self):
        listeners = self.start("-webhookListen=127.0.0.1:0", ports=3)
        tls = self.trust()
        # 503: what there is has not come from the API server yet
        self.assertEqual(self.status(listeners[2], self.MUTATE, tls), 503)
        for path in self.SCHEDULER:
            self.assertEqual(self.status(listeners[2], path, tls), 404)
        for port, trust in zip(listeners, (tls, None)):
            self.assertEqual(self.status(port, self.MUTATE, trust), 404)
            self.assertEqual(self.status(port, "/filter", trust), 200)

    def test_it_may_be_all_that_is_served(self):
        port, = self.start_only("-webhookListen=127.0.0.1:0", ports=1)
        tls = self.trust()
        self.assertEqual(self.status(port, self.MUTATE, tls), 503)
        for path in self.SCHEDULER:
            self.assertEqual(self.status(port, path, tls), 404)
        connection = self.connect(port, tls)
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read()
        self.assertIn(b"pmem_scheduler_synced 0", metrics)
        self.assertNotIn(b"pmem_nodes", metrics)

    def test_loopback_may_be_that_of_ipv6(self):
        plain, webhook = self.start_only("-insecureSchedulerListen=[::1]:0", "-webhookListen=[::1]:0", ports=2)
        self.assert_served(self.connect(plain, host="::1"))
        with self.assertRaises(ConnectionRefusedError):
            self.connect(plain)
        tls = self.trust()
        tls.check_hostname = False
        self.assert_served(self.connect(webhook, tls, host="::1"))

    def test_without_one_it_is_served_beside_the_rest(self):
        port, plain = self.start()
        self.assertEqual(self.status(port, self.MUTATE, self.trust()), 503)
        self.assertEqual(self.status(plain, self.MUTATE), 503)
        self.assertEqual(self.status(plain, "/preempt"), 400)


class Clients(Served):
    """With -clientCAFile."""

    def setUp(self):
        super().setUp()
        self.port, self.plain = self.start(f"-clientCAFile={self.authority.path('ca')}")

    def assert_refused(self, tls, alert):
        with self.assertRaises(ssl.SSLError) as refused:
            self.assert_served(self.connect(self.port, tls))
        self.assertRegex(str(refused.exception), alert)

    def test_only_those_of_the_authority_are_served(self):
        self.assert_refused(self.trust(), "ALERT_(HANDSHAKE_FAILURE|CERTIFICATE_REQUIRED)")
        self.assert_refused(self.trust(Authority(self).pair(CLIENT)), "ALERT_UNKNOWN_CA")
        self.assert_served(self.connect(self.port, self.trust(self.authority.pair(CLIENT))))

    def test_the_plain_listener_asks_for_none(self):
        self.assert_served(self.connect(self.plain))


class Certificate(Served):
    def test_a_new_one_is_for_new_connections(self):
        port, _ = self.start()
        tls, old = self.trust(), self.authority.certificate(SERVER)

        def shown():
            connection = self.connect(port, tls)
            self.assert_served(connection)
            return connection.sock.getpeercert(binary_form=True)
        first = self.connect(port, tls)
        self.assert_served(first)
        self.assertEqual(shown(), old)
        self.authority.make("-e", "20491231235959Z", f"{SERVER}=IP:127.0.0.1")
        new = self.authority.certificate(SERVER)
        self.assertNotEqual(new, old)
        wait_for(lambda: shown() == new)
        self.assert_served(first)
        self.assertEqual(first.sock.getpeercert(binary_form=True), old)


class Crowd(Served):
    def test_idle_connections_are_kept(self):
        _, plain = self.start()
        connections = []
        for _ in range(CROWD):
            connections.append(self.connect(plain))
            self.assert_served(connections[-1])
        for connection in connections:
            self.assert_served(connection)

    def stall(self, port):
        """A peer that asks for more than the buffers take, and reads nothing of it."""
        peer = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.addCleanup(peer.close)
        peer.setblocking(False)
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        try:
            peer.send(request * (PIPELINED // len(request)))
        except OSError:
            pass

    def starved_s(self):
        """How long this program and the server have waited for a processor, which other programs of the machine had."""
        files = [pathlib.Path(f"/proc/{pid}/schedstat") for pid in (os.getpid(), self.process.pid)]
        return sum(int(file.read_text(encoding="ascii").split()[1]) for file in files if file.exists()) / 1e9

    def assert_answered(self, connection, method, path, wanted):
        begin = time.monotonic() - self.starved_s()
        connection.request(method, path, b"{}" if method == "POST" else None)
        reply = connection.getresponse()
        reply.read()
        self.assertEqual(reply.status, wanted)
        self.assertLess(time.monotonic() - self.starved_s() - begin, ANSWER_S, path)

    def test_thousands_that_do_not_read_hold_up_no_other_peer(self):
        """Whoever asks is answered in time, on a connection that exists and on one of its own behind the crowd."""
        secure, plain, probes = self.start("-probeListen=127.0.0.1:0", ports=3)
        tls, old = self.trust(), self.connect(plain)
        # 503: what there is has not come from the API server yet
        self.assert_answered(old, "POST", "/pod/mutate", 503)
        for _ in range(stalled_peers()):
            self.stall(plain)
        self.assert_answered(old, "POST", "/filter", 200)
        for _ in range(3):
            self.assert_answered(self.connect(probes), "GET", "/healthz", 200)
            self.assert_answered(self.connect(plain), "GET", "/healthz", 200)
            self.assert_answered(self.connect(plain), "POST", "/filter", 200)
            self.assert_answered(self.connect(plain), "POST", "/pod/mutate", 503)
            self.assert_answered(self.connect(secure, tls), "POST", "/pod/mutate", 503)


if __name__ == "__main__":
    EXTENDER, MAKE_CERTS = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
