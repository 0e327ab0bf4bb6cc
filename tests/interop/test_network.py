# SPDX-License-Identifier: Apache-2.0
"""A controller and nodes while the network, the name server, the API server, certificates and each other fail for real: each
program has a network of its own, and stand-ins of outsiders.py have theirs.

Cases run at the same time, since most of their time is time limits.

usage: test_network.py PMEM_CSI_DRIVER MAKE_CERTS [CASE]
"""
import concurrent.futures
import datetime
import http.client
import itertools
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import api
import driver
import grpc
import hosts

import csi_pb2
from certs import Certs

HERE = os.path.dirname(os.path.abspath(__file__))
TOPOLOGY = "pmem-csi.intel.com/node"
# common/nodes/registration_peer.c; a heartbeat begins every 30 s, and an attempt after a failure soon
REPORT_S = 30
# common/kube/lease.c
RENEW_S = 10
RETRY_S = 5
LEASE_S = 15
# common/net/limits.h
HANDSHAKE_S = 10
METRICS_CONNECTIONS = 64
# Each of them costs RETRY_S
API_RECORDS = 8
# What a busy machine may add
SLACK_S = 10
REGISTERED = "registered with the controller"
LEADING = "leading lease="
READY = ": ready"
WAITING = "waiting for the controller"
PROGRAM = MAKE_CERTS = CERTS = None


class Timed:
    def __init__(self, test, limit_s):
        self.test, self.limit_s = test, limit_s

    def __enter__(self):
        self.begin = time.monotonic()

    def __exit__(self, failed, *_):
        if not failed:
            self.test.assertLess(time.monotonic() - self.begin, self.limit_s)


class Network(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-network-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(driver.detach_loops, self.folder)
        hosts.open_hub()
        self.n_hosts = 0

    def host(self, command, env=None):
        host = hosts.Host(self.n_hosts, self.folder, command, env)
        self.n_hosts += 1
        self.addCleanup(host.stop)
        return host

    def start(self, *flags, env=None):
        return self.host([PROGRAM, f"-endpoint=unix://{self.folder}/{self.n_hosts}.sock", *flags], env)

    def controller(self, *flags, tls=None, env=None):
        """@env: None: it has an API server of its own"""
        env = env or self.kubeconfig(self.api_server().address)
        return self.start("-mode=controller", "-registryEndpoint=tcp://@:10000", "-nodeAuthentication=role",
                          "-namespace=default", *flags,
                           *(tls or CERTS.flags("pmem-registry")), env=env)

    def node(self, name, registry, *flags, tls=None):
        path = f"{self.folder}/{name}"
        os.mkdir(path)
        return self.start("-mode=node", f"-nodeid={name}", "-deviceManager=fake", f"-fakePath={path}/devices",
                           "-fakeRegionSize=1Gi", f"-statePath={path}/state", "-controllerEndpoint=tcp://@:10001",
                           f"-registryEndpoint=tcp://{registry}:10000", *flags,
                           *(tls or CERTS.flags("pmem-node-controller")))

    def outsider(self, kind, *args):
        outsider = self.host([sys.executable, f"{HERE}/outsiders.py", kind, *args])
        outsider.wait_for("serving")
        return outsider

    def mode(self, text):
        """Of the one stand-in. Return: its file"""
        path = f"{self.folder}/mode"
        with open(f"{path}.new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(f"{path}.new", path)
        return path

    def within(self, limit_s):
        return Timed(self, limit_s + SLACK_S)

    def create(self, host, name, node=None, timeout=driver.PATIENCE_S):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[driver.capability()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=16 * driver.MIB))
        if node:
            request.accessibility_requirements.requisite.add().segments[TOPOLOGY] = node
        return host.call("CreateVolume", request, csi_pb2.CreateVolumeResponse, timeout).volume

    def insist(self, *args, **more):
        """As external-provisioner."""
        made = []

        def is_made():
            try:
                made.append(self.create(*args, timeout=5, **more))
            except grpc.RpcError as failure:
                self.assertIn(failure.code(), driver.AGAIN, failure)
            return made
        driver.wait_for(is_made)
        return made[0].volume_id

    def assert_fails(self, code, *args, **more):
        with self.assertRaises(grpc.RpcError) as failure:
            self.create(*args, **more)
        self.assertEqual(failure.exception.code(), code, failure.exception)

    def assert_answers(self, host):
        """Calls that need no network are answered at once."""
        with self.within(0):
            self.assertTrue(host.call("Probe", csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse, 5,
                                      service="Identity").ready.value)
            host.call("GetCapacity", csi_pb2.GetCapacityRequest(), csi_pb2.GetCapacityResponse, 5)

    def test_cut_between_node_and_controller(self):
        """One of two nodes is cut off: the other one is served, and the first one keeps running, notices it and registers again."""
        controller = self.controller()
        nodes = [self.node(name, controller.address) for name in ("n1", "n2")]
        for node in nodes:
            node.wait_for(REGISTERED)
            node.know(controller)
        controller.know(*nodes)
        self.insist(controller, "pvc-1", "n1")
        self.insist(controller, "pvc-0", "n2")
        nodes[0].cut()
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, controller, "pvc-2", "n1", timeout=3)
        self.create(controller, "pvc-3", "n2")
        with self.within(REPORT_S):
            self.create(nodes[0], "pvc-local")
            self.assert_answers(nodes[0])
            nodes[0].wait_for(WAITING)
        nodes[0].join()
        with self.within(REPORT_S):
            nodes[0].wait_for(REGISTERED, times=2)
            again = self.insist(controller, "pvc-2", "n1")
        self.assertIn(again, nodes[0].volumes())
        self.assertEqual((len(nodes[0].volumes()), len(nodes[1].volumes())), (3, 2))

    def kubeconfig(self, address):
        return api.write_kubeconfig(self.folder, CERTS.path("ca"), f"{address}:6443")

    def kube_controller(self, address):
        controller = self.controller(env=self.kubeconfig(address))
        controller.wait_for(LEADING)
        return controller

    def api_server(self):
        return self.outsider("api", "@:6443", CERTS.path("pmem-registry"), CERTS.path("pmem-registry-key"))

    def test_cut_between_controller_and_api_server(self):
        """Short: the lease is kept. Long: leading ends in time, and begins again soon after."""
        server = self.api_server()
        controller = self.kube_controller(server.address)
        node = self.node("n1", controller.address)
        node.wait_for(REGISTERED)
        controller.know(server)
        server.know(controller)
        server.cut()
        time.sleep(3)
        server.join()
        time.sleep(RENEW_S + 1)
        self.assertNotIn("not leading any more", controller.logged())
        server.cut()
        with self.within(RENEW_S):
            controller.wait_for("not leading any more")
        # registration needs no API server; a volume that could not be recorded is not made
        self.assert_fails(grpc.StatusCode.UNAVAILABLE, controller, "pvc-1", "n1", timeout=30)
        self.assertEqual(node.volumes(), set())
        server.join()
        with self.within(2 * RENEW_S):
            controller.wait_for(LEADING, times=2)
        self.insist(controller, "pvc-1", "n1")

    def test_api_server_that_is_stopped(self):
        """Its connections stay open: SIGSTOP for so short that the lease is kept, and longer."""
        server = self.api_server()
        controller = self.kube_controller(server.address)
        server.freeze()
        time.sleep(3)
        server.thaw()
        time.sleep(RENEW_S + 1)
        self.assertNotIn("not leading any more", controller.logged())
        server.freeze()
        with self.within(RENEW_S):
            controller.wait_for("not leading any more")
        self.assertIn("cannot read or renew the leader's Lease", controller.logged())
        server.thaw()
        with self.within(2 * RENEW_S):
            controller.wait_for(LEADING, times=2)

    def test_leader_that_is_stopped(self):
        """For longer than its lease: another replica leads, and the first one knows it as soon as it goes on."""
        server = self.api_server()
        first = self.kube_controller(server.address)
        second = self.controller(env=self.kubeconfig(server.address))
        second.wait_for("serving endpoint=tcp")
        time.sleep(RETRY_S + 1)
        self.assertNotIn(LEADING, second.logged())
        first.freeze()
        with self.within(LEASE_S + RETRY_S):
            second.wait_for(LEADING)
        first.thaw()
        with self.within(0):
            first.wait_for("not leading any more")
        time.sleep(LEASE_S)
        self.assertEqual((first.logged().count(LEADING), second.logged().count(LEADING)), (1, 1))
        self.assertNotIn("not leading any more", second.logged())

    def test_mtu_black_hole(self):
        """Small packets pass and large ones vanish, so that each handshake hangs half-way."""
        controller = self.controller()
        controller.wait_for("serving endpoint=tcp")
        # else the bridge lets the large ones through
        hosts.run("ip", "-n", controller.space, "link", "set", "eth0", "gso_max_segs", "1")
        node = self.node("n1", controller.address)
        hosts.run("ip", "link", "set", node.link, "mtu", "600")
        with self.within(HANDSHAKE_S):
            controller.wait_for("TLS handshake takes too long")
        self.assert_answers(node)
        with self.within(REPORT_S):
            node.wait_for(WAITING)
        self.assertNotIn(REGISTERED, node.logged())
        hosts.run("ip", "link", "set", node.link, "mtu", "1500")
        with self.within(SLACK_S):
            node.wait_for(REGISTERED)

    def test_registry_that_accepts_and_says_nothing(self):
        controller = self.controller()
        controller.wait_for("serving endpoint=tcp")
        proxy = self.outsider("proxy", "@:10000", f"{controller.address}:10000", self.mode("silent"))
        node = self.node("n1", proxy.address)
        self.assert_answers_soon(node)
        with self.within(REPORT_S):
            node.wait_for(WAITING)
        self.mode("forward")
        with self.within(REPORT_S):
            node.wait_for(REGISTERED)

    def assert_answers_soon(self, host):
        host.wait_for(READY)
        self.assert_answers(host)

    def records(self, proxy):
        """Those of the first connection, as the proxy reports them. Return: (sender, kind) of each to the last one with data
        of the server"""
        passed = [line.split()[3:] for line in proxy.logged().splitlines() if re.match(r"passed \d+ 0 ", line)]
        ends = [i for i, record in enumerate(passed) if record == ["server", "data"]]
        return [tuple(record) for record in passed[:ends[-1] + 1]]

    def assert_all_kinds(self, records):
        """Of the messages of a connection: handshake and data, both ways."""
        self.assertLessEqual(set(itertools.product(("client", "server"), ("handshake", "data"))), set(records))

    def test_resets_in_the_middle(self):
        """Each record that a registration takes is cut in two once: those of the handshake, of the greeting, of the request
        and of its reply."""
        controller = self.controller()
        controller.wait_for("serving endpoint=tcp")
        proxy = self.outsider("proxy", "@:10000", f"{controller.address}:10000", self.mode("forward"))
        node = self.node("n1", proxy.address)
        node.wait_for(REGISTERED)
        records = self.records(proxy)
        cut = []
        for n in range(len(records)):
            self.mode(str(n))
            registered = node.logged().count(REGISTERED)
            # each run makes its first attempt at once
            node.restart()
            proxy.wait_for(f"cut {n} ")
            node.wait_for(WAITING, times=n + 1)
            node.wait_for(": ready ", times=n + 2)
            self.assert_answers(node)
            if node.logged().count(REGISTERED) == registered:
                cut.append(records[n])
        # after the reply to the request come acknowledgements only
        self.assertEqual(cut, records[:len(cut)])
        self.assert_all_kinds(cut)
        registered = node.logged().count(REGISTERED)
        self.mode("forward")
        node.restart()
        with self.within(REPORT_S):
            node.wait_for(REGISTERED, times=registered + 1)
        # the inventory comes with the report that follows
        self.insist(controller, "pvc-1", "n1")
        self.assertEqual(len(node.volumes()), 1)

    def test_api_server_resets_in_the_middle(self):
        """Of each connection to it the same record is cut in two: those of the handshake, and of the first request and its
        reply. Between two such times it is there for so long that the lease can be renewed."""
        server = self.api_server()
        proxy = self.outsider("proxy", "@:6443", f"{server.address}:6443", self.mode("forward"))
        controller = self.kube_controller(proxy.address)
        # the lease has a connection of its own, which may be ahead of the first one
        driver.wait_for(lambda: re.search(r"passed \d+ 0 client data(.|\n)*passed \d+ 0 server data", proxy.logged()))
        records = self.records(proxy)
        self.assert_all_kinds(records)
        for n in range(min(len(records), API_RECORDS)):
            self.mode(str(n))
            proxy.restart()
            proxy.wait_for(f"cut {n} ")
            self.mode("forward")
            time.sleep(RETRY_S + 1)
        self.assertNotIn("not leading any more", controller.logged())
        self.assertIsNone(controller.process.poll())

    def test_name_server_that_hangs_or_fails(self):
        controller = self.controller()
        dns = self.outsider("dns", "@", self.mode("silent"))
        with open(f"{self.folder}/resolv.conf", "w", encoding="ascii") as file:
            file.write(f"nameserver {dns.address}\noptions timeout:2 attempts:2\n")
        hosts.run("mount", "--bind", f"{self.folder}/resolv.conf", "/etc/resolv.conf")
        self.addCleanup(hosts.run, "umount", "/etc/resolv.conf")
        node = self.node("n1", "registry.test")
        self.assert_answers_soon(node)
        self.create(node, "pvc-local")
        node.wait_for("no address of registry.test")
        self.assert_answers(node)
        self.mode("servfail")
        time.sleep(2)
        self.assert_answers(node)
        self.mode(controller.address)
        with self.within(REPORT_S):
            node.wait_for(REGISTERED)
        self.mode("silent")
        # while it is asked again, too
        node.restart()
        node.wait_for(READY, times=2)
        self.assert_answers(node)
        with self.within(5):
            node.process.send_signal(signal.SIGTERM)
            self.assertEqual(node.process.wait(driver.PATIENCE_S), 0)

    def test_controller_that_is_stopped(self):
        """While nodes register, and while a volume is made for it."""
        controller = self.controller()
        first = self.node("n1", controller.address)
        self.insist(controller, "pvc-0", "n1")
        first.freeze()
        with concurrent.futures.ThreadPoolExecutor(1) as caller:
            making = caller.submit(self.assert_fails, grpc.StatusCode.DEADLINE_EXCEEDED, controller, "pvc-1", "n1", timeout=3)
            time.sleep(1)
            controller.freeze()
            first.thaw()
            second = self.node("n2", controller.address)
            self.assert_answers_soon(second)
            making.result()
        self.assertNotIn(REGISTERED, second.logged())
        controller.thaw()
        with self.within(REPORT_S):
            second.wait_for(REGISTERED)
            volume = self.insist(controller, "pvc-1", "n1")
        self.assertIn(volume, first.volumes())
        self.assertEqual(len(first.volumes()), 2)
        self.assertEqual(second.volumes(), set())

    def test_node_that_is_stopped(self):
        """Its calls end at their deadlines, and the other node's do not wait; each volume is made once."""
        controller = self.controller()
        nodes = [self.node(name, controller.address) for name in ("n1", "n2")]
        for node in nodes:
            node.wait_for(REGISTERED)
        self.insist(controller, "pvc-0", "n1")
        self.insist(controller, "pvc-2", "n2")
        nodes[0].freeze()
        for _ in range(2):
            self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, controller, "pvc-1", "n1", timeout=3)
            with self.within(1):
                self.create(controller, "pvc-2", "n2")
        nodes[0].thaw()
        with self.within(5):
            self.insist(controller, "pvc-1", "n1")
        self.assertEqual([len(node.volumes()) for node in nodes], [2, 1])

    def secret(self, name, tls, **times):
        """A Secret as kubelet mounts it. @times: seconds from now, from and until which the certificate is valid."""
        folder = f"{self.folder}/{name}"
        version = f"..{time.monotonic_ns()}"
        os.makedirs(f"{folder}/{version}")
        flags = []
        for flag, seconds in times.items():
            at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
            flags += [f"-{flag}", at.strftime("%Y%m%d%H%M%SZ")]
        own = f"{self.folder}/ca"
        os.makedirs(own, exist_ok=True)
        for file in ("ca.pem", "ca-key.pem"):
            shutil.copy(f"{CERTS.folder.name}/{file}", own)
        hosts.run(MAKE_CERTS, "-o", own, *flags, tls)
        for file, wanted in (("ca", "ca.crt"), (tls, "tls.crt"), (f"{tls}-key", "tls.key")):
            shutil.copy(f"{own}/{file}.pem", f"{folder}/{version}/{wanted}")
            if not os.path.islink(f"{folder}/{wanted}"):
                os.symlink(f"..data/{wanted}", f"{folder}/{wanted}")
        os.symlink(version, f"{folder}/..data_tmp")
        os.rename(f"{folder}/..data_tmp", f"{folder}/..data")
        return [f"-caFile={folder}/ca.crt", f"-certFile={folder}/tls.crt", f"-keyFile={folder}/tls.key"]

    def begin_handshake(self, address, verify=True):
        """As a node. Return: what ends it, which has all that the server says first"""
        context = ssl.create_default_context(cafile=CERTS.path("ca"))
        context.load_cert_chain(CERTS.path("pmem-node-controller"), CERTS.path("pmem-node-controller-key"))
        context.set_alpn_protocols(["h2"])
        if not verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = socket.create_connection((address, 10000), timeout=driver.PATIENCE_S)
        self.addCleanup(connection.close)
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(heard, said, server_hostname="pmem-registry")

        def step(wanted):
            while True:
                try:
                    return wanted()
                except ssl.SSLWantReadError:
                    connection.sendall(said.read())
                    heard.write(connection.recv(65536))
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        connection.sendall(said.read())
        # its flight may come in pieces; ours is ready after the last one
        while not said.pending:
            heard.write(connection.recv(65536))
            with self.assertRaises(ssl.SSLWantReadError):
                tls.do_handshake()

        def end():
            step(tls.do_handshake)
            tls.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            # SETTINGS (RFC 9113 section 6.5)
            self.assertEqual(step(lambda: tls.read(9))[3], 4)
            return ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))
        return end

    def certificate_in(self, flags):
        with open(flags[1].partition("=")[2], encoding="ascii") as file:
            return re.search("-----BEGIN.*?-----END CERTIFICATE-----\n", file.read(), re.S)[0]

    def test_certificate_that_expires_and_is_renewed(self):
        """What is connected goes on; a new connection is refused until kubelet has swapped the Secret. Neither disturbs a
        handshake that is half-way."""
        env = self.kubeconfig(self.api_server().address)
        tls = self.secret("registry", "pmem-registry", b=-60, e=12)
        expiry = time.monotonic() + 12
        controller = self.controller(tls=tls, env=env)
        node = self.node("n1", controller.address)
        node.wait_for(REGISTERED)
        time.sleep(max(0, expiry - 2 - time.monotonic()))
        end_handshake = self.begin_handshake(controller.address)
        time.sleep(max(0, expiry + 2 - time.monotonic()))
        old = self.certificate_in(tls)
        self.assertEqual(end_handshake(), old)
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "expired"):
            self.begin_handshake(controller.address)
        before = self.create(node, "pvc-before")
        self.assert_answers(node)
        # the watches of the stand-in would not show the record that a controller makes of it
        node.call("DeleteVolume", csi_pb2.DeleteVolumeRequest(volume_id=before.volume_id), csi_pb2.DeleteVolumeResponse,
                  driver.PATIENCE_S)
        controller.restart()
        node.wait_for("expired")
        end_handshake = self.begin_handshake(controller.address, verify=False)
        self.secret("registry", "pmem-registry", b=-60, e=3600)
        driver.wait_for(lambda: self.begin_handshake(controller.address, verify=False)() == self.certificate_in(tls))
        self.assertEqual(end_handshake(), old)
        with self.within(REPORT_S):
            node.wait_for(REGISTERED, times=2)
        self.insist(controller, "pvc-after", "n1")

    def test_certificate_of_the_future(self):
        tls = self.secret("node", "pmem-node-controller", b=12, e=3600)
        controller = self.controller()
        node = self.node("n1", controller.address, tls=tls)
        controller.wait_for("is not valid before")
        self.assert_answers(node)
        with self.within(REPORT_S):
            node.wait_for(REGISTERED)

    def test_peers_that_never_cease_to_ask(self):
        """All places of a port are taken by clients that ask twice a second: others wait, which is accepted. Probes have
        their own port, memory is bounded, and it is over when they stop."""
        node = self.start("-mode=node", "-nodeid=n1", "-deviceManager=fake", f"-statePath={self.folder}/state",
                           f"-fakePath={self.folder}/devices", "-fakeRegionSize=64Mi", "-metricsListen=@:10010",
                           "-probeListen=@:10011")
        self.assert_answers_soon(node)
        stop = threading.Event()

        def get(connection):
            connection.request("GET", "/metrics/simple")
            return connection.getresponse().read()

        def ask_on():
            connection = http.client.HTTPConnection(node.address, 10010, timeout=driver.PATIENCE_S)
            while not stop.wait(0.5):
                get(connection)
            connection.close()
        memory = self.memory(node)
        with concurrent.futures.ThreadPoolExecutor(METRICS_CONNECTIONS) as crowd:
            asking = [crowd.submit(ask_on) for _ in range(METRICS_CONNECTIONS)]
            try:
                time.sleep(2)
                late = http.client.HTTPConnection(node.address, 10010, timeout=3)
                with self.assertRaises(TimeoutError):
                    get(late)
                late.close()
                with self.within(0):
                    probe = http.client.HTTPConnection(node.address, 10011, timeout=5)
                    probe.request("GET", "/healthz")
                    self.assertEqual(probe.getresponse().status, 200)
                self.assert_answers(node)
                self.assertLess(self.memory(node) - memory, METRICS_CONNECTIONS * (64 << 10))
            finally:
                stop.set()
            for one in asking:
                one.result()
        with self.within(1):
            get(http.client.HTTPConnection(node.address, 10010, timeout=driver.PATIENCE_S))

    def memory(self, host):
        with open(f"/proc/{host.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) << 10

    def tearDown(self):
        if self._outcome.result.errors or self._outcome.result.failures:
            for i in range(self.n_hosts):
                with open(f"{self.folder}/{i}.log", encoding="utf-8", errors="replace") as log:
                    print(f"--- {i}\n{log.read()[-3000:]}", file=sys.stderr)


def run_all(program, make_certs):
    """Each case in a process of its own. Return: exit status"""
    cases = unittest.defaultTestLoader.getTestCaseNames(Network)
    command = [sys.executable, os.path.abspath(__file__), program, make_certs]
    running = [subprocess.Popen([*command, f"Network.{case}"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
               for case in cases]
    status = 0
    for case, process in zip(cases, running):
        output = process.communicate()[0]
        took = re.findall(r"Ran 1 test in \S+", output)[-1:]
        print(f"{case}: {took if process.returncode == 0 else output}", flush=True)
        status = status or process.returncode
    return status


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(run_all(*sys.argv[1:]))
    driver.enter_namespace("-n")
    PROGRAM, MAKE_CERTS = map(os.path.abspath, (sys.argv.pop(1), sys.argv.pop(1)))
    CERTS = Certs(MAKE_CERTS)
    unittest.main()
