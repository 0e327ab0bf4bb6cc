# SPDX-License-Identifier: Apache-2.0
"""The central controller between a client in grpcio and two nodes of ours, over mutual TLS.

usage: test_controller.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
"""
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import api
import driver
import grpc
from prometheus_client.parser import text_string_to_metric_families

import csi_pb2 as csi
from certs import Certs

DRIVER_NAME = "pmem-csi.example.org"
NODES = "host1", "host2"
MIB = 1 << 20
CERTS = PROGRAM = None


class Process:
    """One driver, and what it logs."""

    def __init__(self, folder, env, name, *flags):
        self.path = f"{folder}/{name}.log"
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([PROGRAM, f"-drivername={DRIVER_NAME}", *flags], stderr=log,
                                            env={**os.environ, **env})

    def logged(self):
        with open(self.path, encoding="utf-8") as log:
            return log.read()

    def wait_for(self, pattern):
        driver.wait_for(lambda: re.search(pattern, self.logged()))
        return re.search(pattern, self.logged())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(driver.PATIENCE_S)

    def kill(self):
        self.process.kill()
        self.process.wait(driver.PATIENCE_S)


class Controller(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-controller-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = api.start(self, self.folder, CERTS, *NODES)
        self.controller = self.start(
            "controller", "-mode=controller", "-registryEndpoint=tcp://127.0.0.1:0", f"-endpoint=unix://{self.folder}/c",
            "-nodeAuthentication=role", "-metricsListen=127.0.0.1:0", *CERTS.flags("pmem-registry"))
        self.registry = self.controller.wait_for(r"serving endpoint=tcp\S+ port=(\d+)").group(1)
        self.port = int(self.controller.wait_for(r"serving metrics .*port=(\d+)").group(1))
        self.channel = grpc.insecure_channel(f"unix://{self.folder}/c")
        self.addCleanup(self.channel.close)
        self.nodes = {name: self.start_node(name) for name in NODES}
        for name in NODES:
            self.controller.wait_for(rf"node registered node={name} ")
        driver.wait_for(lambda: self.metrics("pmem_node_amount_available").keys() == set(NODES))

    def start(self, name, *flags):
        process = Process(self.folder, self.env, name, *flags)
        self.addCleanup(process.kill)
        return process

    def start_node(self, name, endpoint="-controllerEndpoint=tcp://127.0.0.1:0"):
        path = f"{self.folder}/{name}"
        return self.start(name, "-mode=node", f"-nodeid={name}", "-deviceManager=fake", "-fakeRegionSize=64Mi",
                          f"-statePath={path}", f"-endpoint=unix://{path}.sock",
                          f"-registryEndpoint=tcp://127.0.0.1:{self.registry}",
                          endpoint, *CERTS.flags("pmem-node-controller"))

    def call(self, method, request, reply):
        stub = self.channel.unary_unary(f"/csi.v1.Controller/{method}", type(request).SerializeToString, reply.FromString)
        return stub(request, timeout=driver.PATIENCE_S, wait_for_ready=True)

    def create(self, name, *nodes, size=16 * MIB):
        where = [csi.Topology(segments={f"{DRIVER_NAME}/node": node}) for node in nodes]
        request = csi.CreateVolumeRequest(
            name=name, volume_capabilities=[driver.capability()],
            capacity_range=csi.CapacityRange(required_bytes=size),
            accessibility_requirements=csi.TopologyRequirement(requisite=where, preferred=where) if where else None)
        return self.call("CreateVolume", request, csi.CreateVolumeResponse).volume

    def delete(self, volume_id):
        self.call("DeleteVolume", csi.DeleteVolumeRequest(volume_id=volume_id), csi.DeleteVolumeResponse)

    def listed(self):
        return {e.volume.volume_id
                for e in self.call("ListVolumes", csi.ListVolumesRequest(), csi.ListVolumesResponse).entries}

    def metrics(self, name):
        """By the value of the only label."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=driver.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        self.assertEqual(reply.status, 200)
        families = {f.name: f for f in text_string_to_metric_families(reply.read().decode())}
        return {next(iter(s.labels.values())): s.value for s in families[name].samples}

    def test_volumes_are_made_where_they_were_asked_for_and_deleted(self):
        before = self.metrics("pmem_node_amount_available")
        volumes = {node: self.create(f"pvc-{node}", node) for node in NODES}
        for node, volume in volumes.items():
            (topology,) = volume.accessible_topology
            self.assertEqual(dict(topology.segments), {f"{DRIVER_NAME}/node": node})
            self.assertEqual(self.create(f"pvc-{node}", node).volume_id, volume.volume_id)
        self.assertEqual(self.listed(), {v.volume_id for v in volumes.values()})
        driver.wait_for(lambda: all(self.metrics("pmem_node_amount_available")[n] == before[n] - 16 * MIB for n in NODES))
        self.assertEqual(self.metrics("pmem_node_volumes"), {node: 1 for node in NODES})
        for volume in volumes.values():
            self.delete(volume.volume_id)
            self.delete(volume.volume_id)
        driver.wait_for(lambda: self.metrics("pmem_node_amount_available") == before)
        self.assertEqual(self.listed(), set())

    def test_csi_over_tcp_is_for_the_name_of_a_controller_only(self):
        controller = self.start(
            "remote", "-mode=controller", "-registryEndpoint=tcp://127.0.0.1:0", "-endpoint=tcp://localhost:0",
            *CERTS.flags("pmem-registry"))
        driver.wait_for(lambda: len(re.findall(r"serving endpoint=tcp", controller.logged())) == 2)
        port = re.findall(r"serving endpoint=tcp\S+ port=(\d+)", controller.logged())[1]

        def ask(name):
            options = [("grpc.ssl_target_name_override", "pmem-registry")]
            with grpc.secure_channel(f"127.0.0.1:{port}", CERTS.channel_credentials(name), options) as channel:
                stub = channel.unary_unary("/csi.v1.Identity/GetPluginInfo", csi.GetPluginInfoRequest.SerializeToString,
                                           csi.GetPluginInfoResponse.FromString)
                return stub(csi.GetPluginInfoRequest(), timeout=driver.PATIENCE_S).name
        self.assertEqual(ask("pmem-registry"), DRIVER_NAME)
        with self.assertRaises(grpc.RpcError) as refused:
            ask("pmem-node-controller")
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAVAILABLE)
        controller.wait_for("bears pmem-node-controller, but pmem-registry is expected")

    def test_a_node_with_an_ipv6_address_is_reached(self):
        """As Kubernetes writes tcp://$(POD_IP):PORT in a cluster with IPv6 only; ports below 10000 need brackets."""
        if not socket.has_ipv6:
            self.skipTest("no IPv6 here")
        with socket.socket(socket.AF_INET6) as free:
            free.bind(("::1", 0))
            port = free.getsockname()[1]
        self.assertGreaterEqual(port, 10000)
        self.start_node("host6", f"-controllerEndpoint=tcp://::1:{port}")
        self.controller.wait_for(rf"node registered node=host6 .*\[::1\]:{port}")
        volume = self.create("pvc-6", "host6")
        self.assertEqual(volume.accessible_topology[0].segments[f"{DRIVER_NAME}/node"], "host6")

    def test_the_next_node_is_taken_when_one_is_full(self):
        self.create("pvc-fill-1", "host1", size=48 * MIB)
        self.create("pvc-fill-2", "host1", size=48 * MIB)
        volume = self.create("pvc-next", "host1", "host2", size=48 * MIB)
        self.assertEqual(volume.accessible_topology[0].segments[f"{DRIVER_NAME}/node"], "host2")
        with self.assertRaises(grpc.RpcError) as failed:
            self.create("pvc-full", "host1", size=48 * MIB)
        self.assertEqual(failed.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("host1", failed.exception.details())

    def test_metrics_tell_of_nodes_that_come_and_go(self):
        self.assertEqual(self.metrics("pmem_nodes"), {"live": 2, "gone": 0})
        ages = self.metrics("pmem_registry_age_seconds")
        self.assertEqual(ages.keys(), set(NODES))
        self.assertTrue(all(0 <= age < driver.PATIENCE_S for age in ages.values()))
        for name in "managed", "available", "max_volume_size":
            amounts = self.metrics(f"pmem_node_amount_{name}")
            self.assertTrue(all(0 < amounts[node] <= 128 * MIB for node in NODES), amounts)
        self.assertEqual(self.nodes["host2"].stop(), 0)
        driver.wait_for(lambda: self.metrics("pmem_nodes") == {"live": 1, "gone": 1})
        self.assertEqual(self.metrics("pmem_node_amount_available").keys(), {"host1"})
        self.assertEqual(self.metrics("pmem_registry_age_seconds").keys(), set(NODES))

    def test_a_delete_waits_for_the_node(self):
        volume = self.create("pvc-away", "host2")
        self.assertEqual(self.nodes["host2"].stop(), 0)
        with self.assertRaises(grpc.RpcError) as failed:
            self.delete(volume.volume_id)
        self.assertEqual(failed.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("host2", failed.exception.details())

    def test_the_end_is_orderly(self):
        self.create("pvc-one", "host1")
        self.assertEqual(self.controller.stop(), 0)


class Usage(unittest.TestCase):
    def refused(self, *flags):
        done = subprocess.run([PROGRAM, "-mode=controller", *flags], capture_output=True, text=True,
                              timeout=driver.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_wrong_flags_are_named(self):
        self.assertIn("-nodeSelector", self.refused("-nodeSelector={storage:pmem}"))
        self.assertIn("-nodeSelector", self.refused('-nodeSelector={"storage":1}'))
        self.assertIn("-nodeSelector", self.refused('-nodeSelector=[{"storage":"pmem"},1]'))
        self.assertIn("-nodeSelector", self.refused('-nodeSelector={"storage":"pmem"} x'))
        self.assertIn("-nodeAuthentication", self.refused("-nodeAuthentication=none"))
        self.assertIn("-kube-api-qps", self.refused("-kube-api-qps=0"))
        self.assertIn("must differ", self.refused("-endpoint=tcp://:1", "-registryEndpoint=tcp://:1"))

    def starts_not(self, *flags, **env):
        """Return: why not"""
        with tempfile.TemporaryDirectory() as folder:
            nowhere = api.write_kubeconfig(folder, CERTS.path("ca"))
            done = subprocess.run([PROGRAM, "-mode=controller", f"-endpoint=unix://{folder}/c", *flags], capture_output=True,
                                  text=True, timeout=driver.PATIENCE_S, check=False, env={**os.environ, **nowhere, **env})
        self.assertEqual(done.returncode, 1)
        return done.stderr

    def test_without_kubernetes_there_is_no_controller(self):
        said = self.starts_not(*CERTS.flags("pmem-registry"), KUBECONFIG="", KUBERNETES_SERVICE_HOST="")
        self.assertIn("neither $KUBECONFIG nor the account of a pod leads to one; without Kubernetes, volumes are created on "
                      "each node", said)

    def test_tcp_without_tls_is_refused(self):
        for host in "", "127.0.0.1":
            self.assertIn("-insecure", self.starts_not(f"-registryEndpoint=tcp://{host}:0"))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    CERTS = Certs(sys.argv.pop(1))
    unittest.main(verbosity=2)
