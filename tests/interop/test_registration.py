# SPDX-License-Identifier: Apache-2.0
"""The driver of a node against registries in grpcio (grpc-core) over mutual TLS.

usage: test_registration.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import threading
import time

import driver
import grpc

import csi_pb2
import registry_pb2 as registry
from certs import Certs

HEARTBEAT_S = 30
PHASE = registry.InventoryVolume.Phase
CERTS = None


class Registry:
    """What a controller has heard, in order."""

    def __init__(self, credentials, address="127.0.0.1", port=0):
        self.heard, self.gone, self.peers = [], [], set()
        self.refuse = None
        self.changed = threading.Condition()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
        handlers = {
            "RegisterController": grpc.unary_unary_rpc_method_handler(
                self.register, registry.RegisterControllerRequest.FromString,
                registry.RegisterControllerReply.SerializeToString),
            "UnregisterController": grpc.unary_unary_rpc_method_handler(
                self.unregister, registry.UnregisterControllerRequest.FromString,
                registry.UnregisterControllerReply.SerializeToString),
        }
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("registry.v0.Registry", handlers)])
        self.port = self.server.add_secure_port(f"{address}:{port}", credentials)
        if not self.port:
            raise AssertionError(f"{address}:{port} is taken")
        self.server.start()

    def register(self, request, context):
        with self.changed:
            self.heard.append(request)
            self.peers.update(context.auth_context().get("x509_subject_alternative_name", []))
            self.changed.notify_all()
        if self.refuse:
            context.abort(self.refuse, "refused by the test")
        return registry.RegisterControllerReply()

    def unregister(self, request, context):
        with self.changed:
            self.gone.append(request.node_id)
        return registry.UnregisterControllerReply()

    def wait_for(self, condition, patience_s=driver.PATIENCE_S):
        """Until the last report satisfies @condition. Return: it."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.heard and condition(self.heard[-1]), patience_s):
                raise AssertionError(f"waited {patience_s} s; heard last: {self.heard[-1:]}")
            return self.heard[-1]

    def wait_for_reports(self, n, patience_s=driver.PATIENCE_S):
        return self.wait_for(lambda _: len(self.heard) >= n, patience_s)

    def stop(self):
        self.server.stop(None).wait()


def by_name(report):
    return {volume.name: volume for volume in report.inventory.volumes}


class Registration(driver.DriverTest):
    def serve(self, name="pmem-registry", **where):
        server = Registry(CERTS.server_credentials(name), **where)
        self.addCleanup(server.stop)
        return server

    def start(self, port, host="127.0.0.1"):
        self.start_driver(f"-registryEndpoint=tcp://{host}:{port}", "-controllerEndpoint=tcp://127.0.0.1:0",
                          *CERTS.flags("pmem-node-controller"))

    def test_a_node_says_what_it_has(self):
        server = self.serve()
        self.start(server.port)
        report = server.wait_for(lambda r: r.HasField("inventory"))
        self.assertEqual((report.node_id, report.device_mode, report.lease_seconds), (driver.NODE, "fake", 90))
        self.assertRegex(report.endpoint, r"^tcp://127\.0\.0\.1:[1-9][0-9]*$")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self.assertEqual(report.boot_id, file.read().strip())
        self.assertTrue(report.version)
        self.assertEqual(len(report.regions), 2)
        for region in report.regions:
            self.assertGreater(region.total_bytes, 0)
            self.assertGreaterEqual(region.available_bytes, region.max_volume_bytes)
            self.assertGreater(region.max_sector_volume_bytes, 0)
        self.assertEqual(list(report.inventory.volumes), [])
        self.assertEqual(server.peers, {b"pmem-node-controller"})
        self.assertEqual(self.metric_by_address("pmem_registry_registered"), {f"tcp://127.0.0.1:{server.port}": 1})
        self.assertGreater(
            self.metric_by_address("pmem_registry_last_success_timestamp_seconds").popitem()[1], time.time() - 3600)
        self.stop_driver()
        self.assertEqual(server.gone, [driver.NODE])

    def metric_by_address(self, name):
        found = re.findall(rf'^{name}{{.*address="([^"]*)".*}} (\S+)$', self.get("/metrics"), re.MULTILINE)
        return {address: float(value) for address, value in found}

    def test_changes_are_reported_at_once(self):
        server = self.serve()
        self.start(server.port)
        before = server.wait_for(lambda r: r.HasField("inventory"))
        begin = time.monotonic()
        volume = self.create("pvc-local").result().volume.volume_id
        report = server.wait_for(lambda r: "pvc-local" in by_name(r) and by_name(r)["pvc-local"].phase == PHASE.READY)
        reported = by_name(report)["pvc-local"]
        self.assertEqual(reported.id, volume)
        self.assertFalse(reported.ever_staged)
        self.assertFalse(reported.made_by_controller)
        self.assertEqual(sum(r.available_bytes for r in before.regions) - sum(r.available_bytes for r in report.regions),
                         reported.size_bytes)
        self.stage(volume).result()
        server.wait_for(lambda r: by_name(r)["pvc-local"].ever_staged)
        self.unstage(volume).result()
        self.delete(volume).result()
        server.wait_for(lambda r: not r.inventory.volumes)
        # otherwise heartbeats alone could have shown it
        self.assertLess(time.monotonic() - begin, 3 * HEARTBEAT_S * 0.8)
        self.stop_driver()

    def test_what_the_controller_asks_for_is_marked(self):
        server = self.serve()
        self.start(server.port)
        target = server.wait_for_reports(1).endpoint.removeprefix("tcp://")
        with grpc.secure_channel(target, CERTS.channel_credentials("pmem-registry"),
                                 [("grpc.ssl_target_name_override", "pmem-node-controller")]) as channel:
            local, self.channel = self.channel, channel
            self.create("pvc-remote").result()
            self.channel = local
        self.create("pvc-local").result()
        report = server.wait_for(lambda r: len(r.inventory.volumes) == 2)
        self.assertTrue(by_name(report)["pvc-remote"].made_by_controller)
        self.assertFalse(by_name(report)["pvc-local"].made_by_controller)
        self.stop_driver()

    def test_heartbeats_repeat_the_report(self):
        server = self.serve()
        self.start(server.port)
        first = server.wait_for(lambda r: r.HasField("inventory"))
        n = len(server.heard)
        self.assertEqual(server.wait_for_reports(n + 1), first)
        self.stop_driver()

    def test_a_registry_that_comes_back_gets_another_report(self):
        server = self.serve()
        self.start(server.port)
        server.wait_for(lambda r: r.HasField("inventory"))
        server.stop()
        again = self.serve(port=server.port)
        again.wait_for_reports(1)
        self.stop_driver()
        self.assertEqual((server.gone, again.gone), ([], [driver.NODE]))

    def test_a_server_of_another_name_gets_no_report(self):
        evil = self.serve("pmem-csi-webhook")
        self.start(evil.port)
        driver.wait_for(lambda: "waiting for the controller" in self.logged())
        self.assertIn("pmem-registry", self.logged())
        self.assertEqual(evil.heard, [])
        evil.stop()
        self.serve(port=evil.port).wait_for_reports(1)
        self.stop_driver()
        self.assertEqual(evil.heard, [])

    def test_a_refusal_is_said_loudly_and_tried_again(self):
        server = self.serve()
        server.refuse = grpc.StatusCode.INVALID_ARGUMENT
        self.start(server.port)
        server.wait_for_reports(3)
        self.assertEqual(self.logged().count("the controller refuses to register this node"), 1)
        server.refuse = None
        driver.wait_for(lambda: "registered with the controller" in self.logged())
        self.stop_driver()

    def test_without_a_registry_the_node_serves_and_says_once_what_it_waits_for(self):
        with_none = self.serve()
        with_none.stop()
        self.start(with_none.port)
        driver.wait_for(lambda: "waiting for the controller" in self.logged())
        self.create("pvc-1").result()
        self.assertEqual(self.metric_by_address("pmem_registry_registered"), {f"tcp://127.0.0.1:{with_none.port}": 0})
        self.stop_driver()

    def test_every_address_of_the_name_gets_a_report_and_what_is_gone_is_dropped(self):
        self.name_addresses("127.0.0.2", "127.0.0.3")
        one = self.serve(address="127.0.0.2")
        two = self.serve(address="127.0.0.3", port=one.port)
        self.start(one.port, host="registry.test")
        one.wait_for_reports(1)
        two.wait_for_reports(1)
        self.name_addresses("127.0.0.3")
        driver.wait_for(lambda: "the controller's name no longer resolves to an address" in self.logged())
        n = len(one.heard)
        self.create("pvc-1").result()
        two.wait_for(lambda r: "pvc-1" in by_name(r))
        self.assertEqual(len(one.heard), n)
        self.stop_driver()
        self.assertEqual((one.gone, two.gone), ([], [driver.NODE]))

    def name_addresses(self, *addresses):
        """What the name registry.test leads to, in this mount namespace."""
        path = f"{self.folder}/hosts"
        is_new = not os.path.exists(path)
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{address} registry.test\n" for address in addresses)
        if is_new:
            subprocess.run(["mount", "--bind", path, "/etc/hosts"], check=True)
            self.addCleanup(subprocess.run, ["umount", "/etc/hosts"], check=True)
            os.environ["RESOLV_MULTI"] = "on"

    def test_flags_that_cannot_work_are_refused(self):
        tls = CERTS.flags("pmem-node-controller")
        for flag, flags in (
                ("-registryEndpoint", ["-registryEndpoint=registry:1", "-controllerEndpoint=tcp://10.0.0.1:1", *tls]),
                ("-controllerEndpoint", ["-registryEndpoint=tcp://registry:1", *tls]),
                ("-controllerEndpoint", ["-registryEndpoint=tcp://registry:1", "-controllerEndpoint=tcp://:1", *tls]),
                ("-controllerEndpoint",
                 ["-registryEndpoint=tcp://registry:1", "-controllerEndpoint=tcp://0.0.0.0:1", *tls]),
                ("-insecure", ["-registryEndpoint=tcp://registry:1", "-controllerEndpoint=tcp://10.0.0.1:1"]),
                ("-insecure", ["-registryEndpoint=tcp://127.0.0.1:1", "-controllerEndpoint=tcp://127.0.0.1:2"]),
                ("-clientKeyFile", ["-clientCertFile=x", *tls])):
            done = subprocess.run([self.program, "-mode=node", "-nodeid=n", "-deviceManager=fake", *flags],
                                  stderr=subprocess.PIPE, text=True, timeout=driver.PATIENCE_S)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(flag, done.stderr)


if __name__ == "__main__":
    LEAVES = "pmem-registry", "pmem-node-controller", "pmem-csi-webhook"
    CERTS = Certs(sys.argv.pop(2), *LEAVES) if "PMEM_INTEROP_INSIDE" in os.environ else None
    driver.main()
