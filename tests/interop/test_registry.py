# SPDX-License-Identifier: Apache-2.0
"""The controller's registry before nodes in grpcio, over mutual TLS, and openssl at its port.

usage: test_registry.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import api
import driver
import grpc
from prometheus_client.parser import text_string_to_metric_families

import csi_pb2 as csi
import registry_pb2 as registry
from certs import Certs

NODES = "pmem-node-controller"
WEBHOOK = "pmem-csi-webhook"
LEAVES = "pmem-registry", NODES, WEBHOOK, "node-a", "node-b"
GIB = 1 << 30
LEASE_S = 90
HERE, THERE = "tcp://192.0.2.1:10001", "tcp://192.0.2.2:10001"
Code = grpc.StatusCode
CERTS = PROGRAM = None


class Served(unittest.TestCase):
    host = "127.0.0.1"
    flags = ["-nodeAuthentication=role"]
    cluster = []  # Nodes of an API server that answers, which CSI calls need

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-registry-")
        self.addCleanup(folder.cleanup)
        self.log_path = f"{folder.name}/log"
        where = api.start(self, folder.name, CERTS, *self.cluster) if self.cluster else api.write_kubeconfig(folder.name, CERTS.path("ca"))
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-mode=controller", f"-registryEndpoint=tcp://{self.host}:0",
                 f"-endpoint=unix://{folder.name}/c", "-metricsListen=127.0.0.1:0", *self.flags,
                 *CERTS.flags("pmem-registry")], stderr=log,
                env={**os.environ, **where})
        self.addCleanup(self.stop)
        driver.wait_for(lambda: re.search(r"serving endpoint=tcp\S+ port=(\d+)", self.logged()))
        self.port = int(re.search(r"serving endpoint=tcp\S+ port=(\d+)", self.logged()).group(1))
        driver.wait_for(lambda: re.search(r"serving metrics .*port=(\d+)", self.logged()))
        self.metrics_port = int(re.search(r"serving metrics .*port=(\d+)", self.logged()).group(1))
        self.csi_endpoint = f"unix://{folder.name}/c"

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(driver.PATIENCE_S), 0, self.logged())

    def logged(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def connect(self, certificate):
        return grpc.secure_channel(f"{self.host}:{self.port}", CERTS.channel_credentials(certificate),
                                   [("grpc.ssl_target_name_override", "pmem-registry")])

    def call(self, certificate, method, request, reply, pack=None):
        with self.connect(certificate) as channel:
            stub = channel.unary_unary(f"/registry.v0.Registry/{method}", pack or type(request).SerializeToString,
                                       reply.FromString)
            return stub(request, timeout=driver.PATIENCE_S)

    def register(self, node_id, endpoint, certificate=NODES, **more):
        request = registry.RegisterControllerRequest(node_id=node_id, endpoint=endpoint, **more)
        return self.call(certificate, "RegisterController", request, registry.RegisterControllerReply)

    def register_ours(self, node_id, endpoint, certificate=NODES, **more):
        """With what a driver of ours says."""
        more = {"lease_seconds": LEASE_S, "inventory": registry.Inventory(), "boot_id": "1", **more}
        return self.register(node_id, endpoint, certificate, **more)

    def unregister(self, node_id, certificate=NODES, **more):
        request = registry.UnregisterControllerRequest(node_id=node_id, **more)
        return self.call(certificate, "UnregisterController", request, registry.UnregisterControllerReply)

    def nodes(self):
        """{node: {metric: value}} of those that have a lease."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=driver.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        nodes = {}
        for family in text_string_to_metric_families(connection.getresponse().read().decode()):
            name = re.fullmatch(r"pmem_node_(?:amount_)?(managed|available|max_volume_size|volumes)", family.name)
            for sample in family.samples if name else ():
                nodes.setdefault(sample.labels["node"], {})[name.group(1)] = sample.value
        return nodes

    def ask(self, method, request, reply):
        """As external-provisioner does."""
        with grpc.insecure_channel(self.csi_endpoint) as channel:
            stub = channel.unary_unary(f"/csi.v1.Controller/{method}", type(request).SerializeToString, reply.FromString)
            return stub(request, timeout=driver.PATIENCE_S)

    def await_answers(self):
        """Until the controller has read what it needs from the API server."""
        def answers():
            try:
                return self.listed() is not None
            except grpc.RpcError as failed:
                self.assertEqual(failed.code(), Code.UNAVAILABLE, failed.details())
                return False
        driver.wait_for(answers)

    def capacity(self, **parameters):
        return self.ask("GetCapacity", csi.GetCapacityRequest(parameters=parameters), csi.GetCapacityResponse)

    def listed(self):
        reply = self.ask("ListVolumes", csi.ListVolumesRequest(), csi.ListVolumesResponse)
        return {entry.volume.volume_id: entry.volume.capacity_bytes for entry in reply.entries}

    def assert_fails(self, code, text, call, *args, **more):
        with self.assertRaises(grpc.RpcError) as failed:
            call(*args, **more)
        self.assertEqual(failed.exception.code(), code, failed.exception.details())
        self.assertIn(text, failed.exception.details())


class Leases(Served):
    cluster = ["a"]

    def test_a_node_registers_repeats_that_and_unregisters(self):
        region = registry.RegionCapacity(name="region0", total_bytes=8 * GIB, available_bytes=5 * GIB,
                                         max_volume_bytes=4 * GIB, max_sector_volume_bytes=3 * GIB)
        for _ in range(2):
            self.register_ours("a", HERE, regions=[region], device_mode="fake")
        self.assertEqual({"a": {"managed": 8 * GIB, "available": 5 * GIB, "max_volume_size": 4 * GIB, "volumes": 0}}, self.nodes())
        self.await_answers()
        self.assertEqual((5 * GIB, 4 * GIB), (self.capacity().available_capacity, self.capacity().maximum_volume_size.value))
        self.assertEqual(3 * GIB, self.capacity(usage="FileIO").maximum_volume_size.value)
        self.assertEqual(self.logged().count("node registered"), 1)
        self.unregister("a", endpoint=HERE)
        self.unregister("a", endpoint=HERE)
        self.unregister("b", endpoint=HERE)
        self.assertEqual(self.nodes(), {})

    def test_another_endpoint_is_refused_until_the_lease_is_given_back(self):
        self.register_ours("a", HERE)
        self.assert_fails(Code.ABORTED, HERE, self.register_ours, "a", THERE)
        self.assertNotIn("node has moved", self.logged())
        self.unregister("a", endpoint=HERE)
        self.register_ours("a", THERE)

    def test_another_endpoint_is_taken_when_the_lease_is_over(self):
        self.register_ours("a", HERE, lease_seconds=5)
        self.assert_fails(Code.ABORTED, HERE, self.register_ours, "a", THERE)
        driver.wait_for(lambda: "lease of a node has expired" in self.logged())
        self.register_ours("a", THERE)

    def test_a_driver_that_gives_no_lease_time_is_refused(self):
        """As Go drivers of 0.5 to 0.8 register: with two fields."""
        self.assert_fails(Code.INVALID_ARGUMENT, "lease_seconds", self.register, "a", HERE)
        self.assertEqual(self.nodes(), {})


class Names(Served):
    def test_who_may_register_what(self):
        for certificate, node_id in ((WEBHOOK, "a"), ("pmem-registry", "a"), ("node-a", "b"), ("node-a", "node-a")):
            self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.register_ours, node_id, HERE,
                              certificate)
            self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.unregister, node_id, certificate)
        self.register_ours("a", HERE, "node-a")
        self.assert_fails(Code.PERMISSION_DENIED, "node-a", self.register_ours, "a", HERE)
        self.assert_fails(Code.PERMISSION_DENIED, "node-a", self.unregister, "a")
        self.assertEqual(list(self.nodes()), ["a"])
        self.unregister("a", "node-a", endpoint=HERE)

    def test_an_address_that_another_node_has_now(self):
        """Only a node that calls from there gets it while the lease of the other one lasts."""
        own = "tcp://127.0.0.1:10001"
        self.register_ours("a", HERE)
        self.assert_fails(Code.ABORTED, HERE, self.register_ours, "b", HERE, "node-b")
        self.assertEqual(list(self.nodes()), ["a"])
        self.register_ours("c", own)
        self.register_ours("d", own)
        self.assertIn("the endpoint of a node is another node's now", self.logged())

    def test_a_client_without_a_certificate_is_not_served(self):
        self.assert_fails(Code.UNAVAILABLE, "", self.register_ours, "a", HERE, certificate=None)
        driver.wait_for(lambda: "TLS handshake failed" in self.logged())


class Strict(Served):
    flags = ["-nodeAuthentication=certificate"]

    def test_the_certificate_of_all_nodes_speaks_for_none(self):
        for call in lambda: self.register_ours("a", HERE), lambda: self.unregister("a"):
            self.assert_fails(Code.PERMISSION_DENIED, 'needs one for "node-a"', call)
        self.register_ours("a", HERE, "node-a")
        self.assertEqual(list(self.nodes()), ["a"])


class Pods(Served):
    cluster = ["a", "b"]

    def describe(self, node_id, namespace, name="kata", certificate=NODES, uid="uid-kata"):
        request = registry.DescribePodRequest(node_id=node_id, endpoint=HERE, instance="1", namespace=namespace, name=name, uid=uid)
        return self.call(certificate, "DescribePod", request, registry.DescribePodReply)

    def knows_nodes(self):
        """Before that, the controller can say of no pod whether it runs on the node."""
        try:
            return self.describe("a", "a")
        except grpc.RpcError as failed:
            self.assertEqual(failed.code(), Code.UNAVAILABLE, failed.details())
            return None

    def test_a_node_learns_about_its_own_pods(self):
        driver.wait_for(self.knows_nodes)
        for certificate in NODES, "node-a":
            reply = self.describe("a", "a", certificate=certificate)
            self.assertEqual(("kata", True, 2000, ""),
                             (reply.runtime_class, reply.has_fs_group, reply.fs_group, reply.fs_group_change_policy))
        self.assert_fails(Code.PERMISSION_DENIED, 'does not run on node "a"', self.describe, "a", "b")
        self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.describe, "b", "b", certificate="node-a")
        self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.describe, "a", "a", certificate=WEBHOOK)
        self.assert_fails(Code.NOT_FOUND, "404", self.describe, "a", "nowhere")
        self.assert_fails(Code.NOT_FOUND, "successor", self.describe, "a", "a", uid="uid-before")
        self.assert_fails(Code.INVALID_ARGUMENT, "namespace", self.describe, "a", "a/pods/x")


class PodsOfNoCluster(Pods):
    """The API server does not answer."""
    cluster = []

    def test_a_node_learns_about_its_own_pods(self):
        self.assert_fails(Code.UNAVAILABLE, "kube: get pods a/kata", self.describe, "a", "a")


class Runs(Served):
    def test_a_driver_ends_its_own_lease_only(self):
        self.register_ours("a", HERE, instance="1")
        for more in {}, {"endpoint": HERE}, {"endpoint": HERE, "instance": "2"}, \
                {"endpoint": "tcp://127.0.0.1:1", "instance": "1"}:
            self.unregister("a", **more)
            self.assertEqual(list(self.nodes()), ["a"], more)
        self.unregister("a", endpoint=HERE, instance="1")
        self.assertEqual(self.nodes(), {})


class Garbage(Served):
    cluster = ["a", "b"]

    def refused(self, node_id="a", endpoint="tcp://10.0.0.1:1", text="", **more):
        self.assert_fails(Code.INVALID_ARGUMENT, text, self.register_ours, node_id, endpoint, **more)

    def test_what_makes_no_sense_is_refused_and_named(self):
        volume = registry.InventoryVolume
        self.refused(node_id="", text="node_id")
        self.refused(node_id="x" * 254, text="node_id")
        self.refused(node_id="a\nb", text="node_id")
        for endpoint in "", "10.0.0.1", "tcp://:1", "tcp://10.0.0.1", "unix:///run/x", "tcp://10.0.0.1:0", "x" * 300:
            self.refused(endpoint=endpoint, text="endpoint")
        self.refused(version="1" * 256, text="version")
        self.refused(regions=[registry.RegionCapacity(name="\x1b[2J")], text="region")
        self.refused(regions=[registry.RegionCapacity()] * 257, text="256 regions")
        self.refused(inventory=registry.Inventory(volumes=[volume(id="../x")]), text="id of a volume")
        self.refused(inventory=registry.Inventory(volumes=[volume(id="a", name="n" * 1000)]), text="volume a: volume name is longer than 128 bytes")
        self.refused(inventory=registry.Inventory(volumes=[volume(id=f"v{i}") for i in range(10001)]), text="10000")
        self.assertEqual(self.nodes(), {})

    def test_bytes_that_are_no_message_do_no_harm(self):
        def send(data):
            return self.call(NODES, "RegisterController", data, registry.RegisterControllerReply, pack=bytes)
        for code, data in ((Code.INTERNAL, b"\xff" * 100), (Code.RESOURCE_EXHAUSTED, b"\x0a" * (5 << 20)),
                           (Code.INVALID_ARGUMENT, b"\x0a\x02\xc3\x28\x12\x01x"), (Code.INVALID_ARGUMENT, b"")):
            self.assert_fails(code, "", send, data)
        self.register_ours("a", "tcp://10.0.0.1:1")
        self.assertEqual(list(self.nodes()), ["a"])

    def test_numbers_at_their_ends_are_kept(self):
        most = 1 << 52  # what a machine can address
        region = registry.RegionCapacity(total_bytes=most, available_bytes=most, max_volume_bytes=most)
        # a phase that a later release has added is that of no volume that callers can use
        volumes = [registry.InventoryVolume(id="later", size_bytes=most, phase=99),
                   registry.InventoryVolume(id="v", size_bytes=most >> 1, phase=registry.InventoryVolume.READY)]
        self.refused(regions=[registry.RegionCapacity(total_bytes=most + 1)], text="larger than any memory")
        self.register_ours("a", "tcp://10.0.0.1:1", regions=[region] * 256, lease_seconds=(1 << 32) - 1,
                           inventory=registry.Inventory(volumes=volumes))
        self.register_ours("b", "tcp://10.0.0.2:1")
        shown = self.nodes()["a"]
        self.assertEqual(2, shown["volumes"])
        self.assertAlmostEqual(1, shown["max_volume_size"] / most, 9)
        self.await_answers()
        self.assertEqual({"v": most >> 1}, self.listed())


class Ipv6(Served):
    host = "[::1]"

    def test_nodes_with_ipv6_register(self):
        self.register_ours("a", "tcp://[2001:db8::1]:10001")
        self.assert_fails(Code.ABORTED, "[2001:db8::1]", self.register_ours, "a", HERE)
        self.assertEqual(self.nodes().keys(), {"a"})


class Openssl(Served):
    def shake(self, *flags, certificate=NODES):
        """Status and output of s_client that reads once, so that a refusal after its own Finished is seen too."""
        files = ["-cert", CERTS.path(certificate), "-key", CERTS.path(certificate + "-key")] if certificate else []
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"{self.host}:{self.port}", "-CAfile", CERTS.path("ca"),
             "-verify_return_error", "-verify_hostname", "pmem-registry", *files, *flags],
            input="Q\n", capture_output=True, text=True, timeout=driver.PATIENCE_S, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_refused(self, pattern, *flags, **more):
        before = self.logged().count("TLS handshake failed")
        _, said = self.shake(*flags, **more)
        driver.wait_for(lambda: self.logged().count("TLS handshake failed") > before)
        self.assertRegex(self.logged().splitlines()[-1], pattern, said)

    def test_what_is_served(self):
        status, said = self.shake("-alpn", "h2")
        self.assertEqual(status, 0, said)
        self.assertIn("ALPN protocol: h2", said)
        self.assertRegex(said, r"Cipher +: ECDHE-ECDSA-[A-Z0-9-]*(GCM|POLY1305)")

    def test_no_certificate(self):
        self.assert_refused("certificate", "-alpn", "h2", certificate=None)

    def test_old_versions(self):
        self.assert_refused("does not speak TLS 1.2", "-alpn", "h2", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")

    def test_another_protocol(self):
        self.assert_refused("ALPN", "-alpn", "http/1.1")

    def test_ciphers_without_authentication_of_what_they_hide(self):
        for suite in "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "AES128-GCM-SHA256":
            self.assert_refused("cipher", "-alpn", "h2", "-tls1_2", "-cipher", f"{suite}:@SECLEVEL=0")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    CERTS = Certs(sys.argv.pop(1), *LEAVES)
    unittest.main(verbosity=2)
