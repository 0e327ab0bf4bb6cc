# SPDX-License-Identifier: Apache-2.0
"""A controller, nodes and an API server, each in a network of its own, while links fail and programs are killed.

A caller asks for volumes and deletes some of them, and repeats each call as external-provisioner does, until the
answer is final. In the end every volume is on exactly the node that was returned to the caller, or it is gone.

usage: test_partitions.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
PARTITIONS_SEED in the environment repeats a run; it is printed.
"""
import concurrent.futures
import itertools
import os
import random
import sys
import tempfile
import time
import unittest

import api
import driver
import grpc
import hosts

import csi_pb2
from certs import Certs

HERE = os.path.dirname(os.path.abspath(__file__))
N_NODES = 3
N_CALLERS = 12
FAULTS_S = 40
PROGRAM = CERTS = None
TOPOLOGY = "pmem-csi.intel.com/node"


class Partitions(unittest.TestCase):
    def setUp(self):
        seed = os.environ.get("PARTITIONS_SEED") or str(random.SystemRandom().randrange(1 << 32))
        print(f"PARTITIONS_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        folder = tempfile.TemporaryDirectory(prefix="pmem-partitions-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(driver.detach_loops, self.folder)
        hosts.open_hub()
        self.addCleanup(hosts.close_hub)
        names = [f"n{i}" for i in range(1, N_NODES + 1)]
        self.api = self.host(N_NODES + 1, [sys.executable, f"{HERE}/outsiders.py", "api", "@:6443", CERTS.path("pmem-registry"),
                                           CERTS.path("pmem-registry-key"), *names])
        self.api.wait_for("serving")
        self.controller = self.host(0, self.driver(0, "-mode=controller", "-registryEndpoint=tcp://@:10000",
                                                   "-nodeAuthentication=role", "-namespace=default",
                                                   *CERTS.flags("pmem-registry")),
                                    api.write_kubeconfig(self.folder, CERTS.path("ca"), f"{self.api.address}:6443"))
        self.nodes = {name: self.host(i + 1, self.driver(i + 1, *self.node_flags(name))) for i, name in enumerate(names)}

    def host(self, number, command, env=None):
        host = hosts.Host(number, self.folder, command, env)
        self.addCleanup(host.stop)
        return host

    def driver(self, number, *flags):
        return [PROGRAM, *flags, f"-endpoint=unix://{self.folder}/{number}.sock"]

    def node_flags(self, name):
        path = f"{self.folder}/{name}"
        os.mkdir(path)
        return ["-mode=node", f"-nodeid={name}", "-deviceManager=fake", f"-fakePath={path}/devices",
                "-fakeRegionSize=4Gi", f"-statePath={path}/state", "-controllerEndpoint=tcp://@:10001",
                f"-registryEndpoint=tcp://{self.controller.address}:10000", *CERTS.flags("pmem-node-controller")]

    def insist(self, seed, method, request, reply):
        """As external-provisioner: in place, for as long as the code says so. It also tries again after RESOURCE_EXHAUSTED, which
        is the answer while the pool of a node is avoided, because a device could not be created there."""
        chance = random.Random(seed)
        end = time.monotonic() + 4 * driver.PATIENCE_S
        while True:
            try:
                return self.controller.call(method, request, reply, chance.choice((0.3, 1, 3, 10)))
            except grpc.RpcError as failure:
                again = failure.code() in driver.AGAIN or failure.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                if not again or time.monotonic() > end:
                    raise
                if failure.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                    print(f"{failure.details()}\n{self.avoided()}", flush=True)
            time.sleep(chance.random())

    @staticmethod
    def request(name, node=None):
        request = csi_pb2.CreateVolumeRequest(
            name=name, volume_capabilities=[driver.capability()],
            capacity_range=csi_pb2.CapacityRange(required_bytes=16 * driver.MIB))
        if node:
            topology = csi_pb2.Topology(segments={TOPOLOGY: node})
            request.accessibility_requirements.requisite.append(topology)
            request.accessibility_requirements.preferred.append(topology)
        return request

    def live(self, number):
        """A volume's life. Return: its ID and where its caller thinks it is; nowhere when it was deleted."""
        request = self.request(f"pvc-{number}", f"n{number % N_NODES + 1}" if number % 3 == 0 else None)
        volume = self.insist(number, "CreateVolume", request, csi_pb2.CreateVolumeResponse).volume
        (topology,) = volume.accessible_topology
        if number % 2 == 0:
            return volume.volume_id, topology.segments[TOPOLOGY]
        self.insist(number, "DeleteVolume", csi_pb2.DeleteVolumeRequest(volume_id=volume.volume_id),
                    csi_pb2.DeleteVolumeResponse)
        return volume.volume_id, None

    def fail_once(self):
        """Return: what repairs it."""
        host = self.random.choice([self.controller, self.api, *self.nodes.values()])
        # the stand-in for the API server keeps its objects in memory
        kind = self.random.choice(("link", "freeze") if host is self.api else ("link", "kill", "freeze"))
        if kind == "link":
            host.set_link("down")
            return lambda: host.set_link("up")
        if kind == "kill":
            host.restart()
            return lambda: None
        host.freeze()
        return host.thaw

    def logged_of(self, volumes):
        """What all programs have logged of them, on any node, in the order of time."""
        names = [volume.split(".")[0] for volume in volumes]
        lines = [(line.split()[1], number, line) for number, host in enumerate([self.controller, *self.nodes.values()])
                 for line in host.logged().splitlines()
                 if any(name in line for name in names) or "registered" in line or " starting" in line]
        return "\n".join(f"{number}: {line}" for _, number, line in sorted(lines))

    def avoided(self):
        """What nodes have logged of pools that they avoid."""
        return "\n".join(line for host in self.nodes.values() for line in host.logged().splitlines() if "avoided" in line)

    def live_on(self, end):
        """One life after the other. Return: what live() does, of each."""
        reported = []
        while time.monotonic() < end:
            reported.append(self.live(next(self.numbers)))
        return reported

    def test_a_request_that_has_not_arrived_ends_with_its_controller(self):
        """The kernel would go on to send it, and the node would make a volume that no controller knows of."""
        node = self.nodes["n1"]

        def make(name):
            return self.insist(1, "CreateVolume", self.request(name, "n1"), csi_pb2.CreateVolumeResponse).volume.volume_id

        wanted = {make("pvc-before")}
        node.cut()
        with concurrent.futures.ThreadPoolExecutor(1) as caller:
            call = caller.submit(self.controller.call, "CreateVolume", self.request("pvc-late", "n1"),
                                 csi_pb2.CreateVolumeResponse, driver.PATIENCE_S)
            # it has been handed to the kernel
            time.sleep(1)
            self.controller.restart()
            self.assertEqual(call.exception().code(), grpc.StatusCode.UNAVAILABLE)
        node.join()
        wanted.add(make("pvc-after"))
        # the kernel tries after 0.2, 0.4, 0.8, ... seconds
        time.sleep(10)
        self.assertEqual(node.volumes(), wanted)

    def test_a_request_that_has_not_arrived_in_time_does_not_arrive_later(self):
        """Its repetition goes another way, and after that the volume may be deleted. A call that has more time keeps the
        first connection in use."""
        node = self.nodes["n1"]

        def call(name, timeout):
            return self.controller.call("CreateVolume", self.request(name, "n1"), csi_pb2.CreateVolumeResponse, timeout)

        def make(name):
            return self.insist(1, "CreateVolume", self.request(name, "n1"), csi_pb2.CreateVolumeResponse).volume.volume_id

        # else the first packet of another connection would find the way again for all
        self.controller.know(node)
        node.know(self.controller)
        wanted = {make("pvc-before")}
        node.cut()
        with concurrent.futures.ThreadPoolExecutor(1) as caller:
            other = caller.submit(call, "pvc-other", driver.PATIENCE_S)
            with self.assertRaises(grpc.RpcError) as failed:
                call("pvc-late", 2)
            self.assertIn(failed.exception.code(), driver.AGAIN)
            # the kernel tries after 0.2, 0.6, 1.4, 3, 6.2, ... seconds
            time.sleep(1.5)
            node.join()
            late = make("pvc-late")
            self.insist(1, "DeleteVolume", csi_pb2.DeleteVolumeRequest(volume_id=late), csi_pb2.DeleteVolumeResponse)
            if other.exception():
                self.assertEqual(other.exception().code(), grpc.StatusCode.UNAVAILABLE)
        wanted.add(make("pvc-other"))
        time.sleep(10)
        self.assertEqual(node.volumes(), wanted)

    def test_every_volume_is_where_the_reply_said(self):
        faults = 0
        self.numbers = itertools.count()
        end = time.monotonic() + FAULTS_S
        with concurrent.futures.ThreadPoolExecutor(N_CALLERS) as callers:
            lives = [callers.submit(self.live_on, end) for _ in range(N_CALLERS)]
            while not all(life.done() for life in lives):
                mend = self.fail_once()
                time.sleep(self.random.uniform(0.2, 2))
                mend()
                faults += 1
                time.sleep(self.random.uniform(0.5, 2))
            reported = dict(volume for life in lives for volume in life.result())
        for name, node in self.nodes.items():
            found, wanted = node.volumes(), {v for v, at in reported.items() if at == name}
            self.assertEqual((sorted(found - wanted), sorted(wanted - found)), ([], []),
                             f"{name}\n{self.logged_of(found ^ wanted)}")
        self.assertIn("leading lease=", self.controller.logged())
        print(f"{len(reported)} volumes, {faults} faults", flush=True)
        self.assertGreater(faults, 5)
        self.assertGreater(len(reported), N_CALLERS)


if __name__ == "__main__":
    driver.enter_namespace("-n")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    CERTS = Certs(sys.argv.pop(1))
    unittest.main()
