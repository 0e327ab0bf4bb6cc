# SPDX-License-Identifier: Apache-2.0
"""The controller's registry between nodes and a scheduler extender in grpcio, over mutual TLS, and openssl at its port.

usage: test_registry.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
"""
import concurrent.futures
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import driver
import grpc

import csi_pb2 as csi
import registry_pb2 as registry
from certs import Certs

NODES = "pmem-node-controller"
SCHEDULER = "pmem-scheduler"
LEAVES = "pmem-registry", NODES, SCHEDULER, "node-a", "node-b"
GIB = 1 << 30
LEASE_S = 90
Code = grpc.StatusCode
CERTS = PROGRAM = None


class Node:
    """What the controller finds at a node's endpoint: Probe, ListVolumes and GetCapacity, as a Go driver serves them."""

    def __init__(self, test, certificate=NODES, host="127.0.0.1", volumes=()):
        self.volumes, self.asked, self.refuse = volumes, [], None
        self.changed = threading.Condition()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        self.serve("Identity", Probe=(self.probe, csi.ProbeRequest))
        self.serve("Controller", ListVolumes=(self.list_volumes, csi.ListVolumesRequest),
                   GetCapacity=(self.get_capacity, csi.GetCapacityRequest))
        port = self.server.add_secure_port(f"{host}:0", CERTS.server_credentials(certificate))
        self.endpoint = f"tcp://{host}:{port}"
        self.server.start()
        test.addCleanup(self.stop)

    def serve(self, service, **methods):
        handlers = {name: grpc.unary_unary_rpc_method_handler(
            handle, request.FromString, lambda reply: reply.SerializeToString())
            for name, (handle, request) in methods.items()}
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"csi.v1.{service}", handlers)])

    def note(self, method, context):
        with self.changed:
            self.asked.append(method)
            self.changed.notify_all()
        if self.refuse:
            context.abort(self.refuse, "refused by the test")

    def probe(self, _, context):
        self.note("Probe", context)
        return csi.ProbeResponse()

    def list_volumes(self, request, context):
        """A page for each volume."""
        self.note("ListVolumes", context)
        at = int(request.starting_token or 0)
        if at >= len(self.volumes):
            return csi.ListVolumesResponse()
        name, volume_id = self.volumes[at]
        volume = csi.Volume(volume_id=volume_id, capacity_bytes=GIB, volume_context={"name": name})
        return csi.ListVolumesResponse(entries=[csi.ListVolumesResponse.Entry(volume=volume)],
                                       next_token=str(at + 1) if at + 1 < len(self.volumes) else "")

    def get_capacity(self, _, context):
        self.note("GetCapacity", context)
        return csi.GetCapacityResponse(available_capacity=7 * GIB)

    def stop(self):
        self.server.stop(None).wait()


class Served(unittest.TestCase):
    host = "127.0.0.1"
    flags = ["-nodeAuthentication=role"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-registry-")
        self.addCleanup(folder.cleanup)
        self.log_path = f"{folder.name}/log"
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-mode=controller", f"-registryEndpoint=tcp://{self.host}:0",
                 f"-endpoint=unix://{folder.name}/c", "-expectedNodes=a,b", *self.flags,
                 *CERTS.flags("pmem-registry")], stderr=log)
        self.addCleanup(self.stop)
        driver.wait_for(lambda: re.search(r"serving endpoint=tcp\S+ port=(\d+)", self.logged()))
        self.port = int(re.search(r"serving endpoint=tcp\S+ port=(\d+)", self.logged()).group(1))

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

    def watch(self, after=registry.WatchNodesReply(), certificate=SCHEDULER, timeout_ms=0):
        request = registry.WatchNodesRequest(instance=after.instance, generation=after.generation, timeout_ms=timeout_ms)
        return self.call(certificate, "WatchNodes", request, registry.WatchNodesReply)

    def nodes(self):
        return {entry.node_id: entry for entry in self.watch().changed}

    def assert_fails(self, code, text, call, *args, **more):
        with self.assertRaises(grpc.RpcError) as failed:
            call(*args, **more)
        self.assertEqual(failed.exception.code(), code, failed.exception.details())
        self.assertIn(text, failed.exception.details())


class Leases(Served):
    def test_a_node_registers_repeats_that_and_unregisters(self):
        node = Node(self)
        region = registry.RegionCapacity(name="region0", total_bytes=8 * GIB, available_bytes=5 * GIB,
                                         max_volume_bytes=4 * GIB, max_sector_volume_bytes=3 * GIB)
        for _ in range(2):
            self.register_ours("a", node.endpoint, regions=[region], device_mode="fake")
        told = self.nodes()["a"]
        self.assertEqual((told.device_mode, list(told.regions)), ("fake", [region]))
        self.assertTrue(told.HasField("inventory"))
        self.assertEqual(self.logged().count("node registered"), 1)
        self.unregister("a")
        self.unregister("a")
        self.unregister("b")
        self.assertEqual(self.nodes(), {})
        self.assertEqual(node.asked, [])

    def test_another_endpoint_is_refused_while_the_old_one_answers(self):
        old, new = Node(self), Node(self)
        self.register_ours("a", old.endpoint)
        self.assert_fails(Code.ABORTED, old.endpoint, self.register_ours, "a", new.endpoint)
        self.assertEqual((old.asked, new.asked), (["Probe"], []))
        self.assertNotIn("node has moved", self.logged())
        old.stop()
        self.register_ours("a", new.endpoint)
        self.assertIn("node has moved", self.logged())

    def test_the_old_endpoint_must_prove_its_name(self):
        stranger, new = Node(self, SCHEDULER), Node(self)
        self.register_ours("a", stranger.endpoint)
        self.register_ours("a", new.endpoint)
        self.assertEqual(stranger.asked, [])

    def test_an_old_endpoint_that_another_node_has_now_is_not_asked(self):
        shared, new = Node(self), Node(self)
        self.register_ours("a", shared.endpoint)
        self.register_ours("b", shared.endpoint)
        self.register_ours("a", new.endpoint)
        self.assertEqual(shared.asked, [])

    def test_a_lease_that_was_given_back_is_free(self):
        old, new = Node(self), Node(self)
        self.register_ours("a", old.endpoint)
        self.unregister("a")
        self.register_ours("a", new.endpoint)
        self.assertEqual(old.asked, [])


class GoNodes(Served):
    """Messages with the two fields that the Go driver's have."""

    def test_a_go_node_is_asked_for_its_volumes(self):
        node = Node(self, volumes=[("pvc-1", "pv-1-0a"), ("pvc-2", "pv-2-0b")])
        self.register("a", node.endpoint)
        told = self.nodes()["a"]
        self.assertEqual({v.name: v.id for v in told.inventory.volumes}, dict(node.volumes))
        self.assertTrue(all(v.ever_staged for v in told.inventory.volumes))
        self.assertEqual([r.available_bytes for r in told.regions], [7 * GIB])
        n = len(node.asked)
        self.register("a", node.endpoint)
        self.assertEqual(len(node.asked), n)
        self.unregister("a")
        self.assertEqual(self.nodes(), {})

    def test_a_go_node_that_cannot_be_asked_is_not_taken(self):
        node = Node(self)
        node.refuse = Code.INTERNAL
        self.assert_fails(Code.INTERNAL, "refused by the test", self.register, "a", node.endpoint)
        self.assertEqual(self.nodes(), {})
        node.stop()
        self.assert_fails(Code.UNAVAILABLE, '"a"', self.register, "a", node.endpoint)

    def test_a_go_node_becomes_one_of_ours(self):
        node = Node(self, volumes=[("pvc-1", "pv-1-0a")])
        self.register("a", node.endpoint)
        self.register_ours("a", node.endpoint)
        self.assertEqual(list(self.nodes()["a"].inventory.volumes), [])

    def test_a_list_that_is_not_valid_is_not_taken(self):
        node = Node(self, volumes=[("pvc-1", "../x")])
        self.assert_fails(Code.INVALID_ARGUMENT, "not valid", self.register, "a", node.endpoint)
        self.assertEqual(self.nodes(), {})


class Names(Served):
    def test_who_may_register_what(self):
        node = Node(self, "node-a")
        for certificate, node_id in ((SCHEDULER, "a"), ("pmem-registry", "a"), ("node-a", "b"), ("node-a", "node-a")):
            self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.register_ours, node_id, node.endpoint,
                              certificate)
            self.assert_fails(Code.PERMISSION_DENIED, "certificate", self.unregister, node_id, certificate)
        self.register_ours("a", node.endpoint, "node-a")
        self.assert_fails(Code.PERMISSION_DENIED, "node-a", self.register_ours, "a", node.endpoint)
        self.assert_fails(Code.PERMISSION_DENIED, "node-a", self.unregister, "a")
        self.assertEqual(list(self.nodes()), ["a"])
        self.unregister("a", "node-a")

    def test_a_node_with_its_own_certificate_is_called_by_that_name(self):
        old, new = Node(self, "node-a"), Node(self, "node-a")
        self.register_ours("a", old.endpoint, "node-a")
        self.assert_fails(Code.ABORTED, old.endpoint, self.register_ours, "a", new.endpoint, "node-a")
        self.assertEqual(old.asked, ["Probe"])

    def test_only_the_scheduler_watches(self):
        for certificate in NODES, "node-a", "pmem-registry":
            self.assert_fails(Code.PERMISSION_DENIED, SCHEDULER, self.watch, certificate=certificate)

    def test_a_client_without_a_certificate_is_not_served(self):
        self.assert_fails(Code.UNAVAILABLE, "", self.watch, certificate=None)
        driver.wait_for(lambda: "TLS handshake failed" in self.logged())


class Strict(Served):
    """Without Kubernetes and without another wish."""
    flags = []

    def test_the_certificate_of_all_nodes_speaks_for_none(self):
        node = Node(self)
        for call in lambda: self.register_ours("a", node.endpoint), lambda: self.unregister("a"):
            self.assert_fails(Code.PERMISSION_DENIED, 'needs one for "node-a"', call)
        self.register_ours("a", node.endpoint, "node-a")
        self.assertEqual(list(self.nodes()), ["a"])


class Runs(Served):
    def test_a_driver_ends_its_own_lease_only(self):
        node = Node(self)
        self.register_ours("a", node.endpoint, instance="1")
        for more in {}, {"endpoint": node.endpoint}, {"endpoint": node.endpoint, "instance": "2"}, \
                {"endpoint": "tcp://127.0.0.1:1", "instance": "1"}:
            self.unregister("a", **more)
            self.assertEqual(list(self.nodes()), ["a"], more)
        self.unregister("a", endpoint=node.endpoint, instance="1")
        self.assertEqual(self.nodes(), {})


class Watches(Served):
    def test_a_change_ends_the_wait(self):
        node = Node(self)
        first = self.watch()
        self.assertEqual((len(first.changed), bool(first.instance)), (0, True))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.watch, first, timeout_ms=60000)
            self.register_ours("a", node.endpoint)
            told = waiting.result()
            self.assertEqual([entry.node_id for entry in told.changed], ["a"])
            waiting = pool.submit(self.watch, told, timeout_ms=60000)
            self.unregister("a")
            gone = waiting.result()
        self.assertEqual((list(gone.changed), list(gone.removed_node_ids)), ([], ["a"]))
        self.assertEqual(gone.instance, first.instance)

    def test_without_a_change_the_reply_is_empty(self):
        first = self.watch()
        again = self.watch(first, timeout_ms=1)
        self.assertEqual(again, first)

    def test_who_knows_another_run_gets_all(self):
        self.register_ours("a", Node(self).endpoint)
        other = registry.WatchNodesReply(instance="of another run", generation=1 << 60)
        self.assertEqual([entry.node_id for entry in self.watch(other, timeout_ms=60000).changed], ["a"])

    def test_the_end_answers_who_waits(self):
        with self.connect(SCHEDULER) as channel:
            stub = channel.unary_unary("/registry.v0.Registry/WatchNodes",
                                       registry.WatchNodesRequest.SerializeToString, registry.WatchNodesReply.FromString)
            first = stub(registry.WatchNodesRequest(), timeout=driver.PATIENCE_S)
            waiting = stub.future(registry.WatchNodesRequest(
                instance=first.instance, generation=first.generation, timeout_ms=60000), timeout=driver.PATIENCE_S)
            # on the same connection: when it is answered, the one before has arrived
            stub(registry.WatchNodesRequest(), timeout=driver.PATIENCE_S)
            self.stop()
            self.assertEqual(waiting.result(), first)


class Garbage(Served):
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
        self.refused(inventory=registry.Inventory(volumes=[volume(id="a", name="n" * 1000)]), text="name of volume")
        self.refused(inventory=registry.Inventory(volumes=[volume(id=f"v{i}") for i in range(10001)]), text="10000")
        self.assertEqual(self.nodes(), {})

    def test_bytes_that_are_no_message_harm_nobody(self):
        def send(data):
            return self.call(NODES, "RegisterController", data, registry.RegisterControllerReply, pack=bytes)
        for code, data in ((Code.INTERNAL, b"\xff" * 100), (Code.RESOURCE_EXHAUSTED, b"\x0a" * (5 << 20)),
                           (Code.INVALID_ARGUMENT, b"\x0a\x02\xc3\x28\x12\x01x"), (Code.INVALID_ARGUMENT, b"")):
            self.assert_fails(code, "", send, data)
        self.register_ours("a", "tcp://10.0.0.1:1")
        self.assertEqual(list(self.nodes()), ["a"])

    def test_numbers_at_their_ends_are_kept(self):
        most = (1 << 64) - 1
        region = registry.RegionCapacity(total_bytes=most, available_bytes=most, max_volume_bytes=most)
        volume = registry.InventoryVolume(id="v", size_bytes=most, phase=99)
        self.register_ours("a", "tcp://10.0.0.1:1", regions=[region] * 256, lease_seconds=(1 << 32) - 1,
                           inventory=registry.Inventory(volumes=[volume]))
        told = self.nodes()["a"]
        self.assertEqual((len(told.regions), told.regions[255]), (256, region))
        # a phase that a later release has added is passed on as such
        self.assertEqual((told.inventory.volumes[0].size_bytes, told.inventory.volumes[0].phase), (most, -1))


class Ipv6(Served):
    host = "[::1]"

    def test_nodes_with_ipv6_register_and_are_asked(self):
        old, new = Node(self, host="[::1]"), Node(self, host="[::1]", volumes=[("pvc-1", "pv-1-0a")])
        self.register_ours("a", old.endpoint)
        self.assert_fails(Code.ABORTED, old.endpoint, self.register_ours, "a", new.endpoint)
        self.register("b", new.endpoint)
        self.assertEqual(self.nodes().keys(), {"a", "b"})


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
