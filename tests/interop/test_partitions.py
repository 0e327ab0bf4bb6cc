# SPDX-License-Identifier: Apache-2.0
"""A controller and nodes, each in a network of its own, while links fail and programs are killed.

A caller asks for volumes and deletes some of them, and repeats each call as external-provisioner does, until the
answer is final. In the end every volume is on exactly the node that the caller was told, or it is gone.

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

import driver
import grpc
import hosts

import csi_pb2
from certs import Certs

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
        names = [f"n{i}" for i in range(1, N_NODES + 1)]
        self.controller = self.host(0, ["-mode=controller", "-registryEndpoint=tcp://@:10000", "-nodeAuthentication=role",
                                        f"-expectedNodes={','.join(names)}", *CERTS.flags("pmem-registry")])
        self.nodes = {name: self.host(i + 1, self.node_flags(name)) for i, name in enumerate(names)}

    def host(self, number, flags):
        host = hosts.Host(number, self.folder, [PROGRAM, *flags, f"-endpoint=unix://{self.folder}/{number}.sock"])
        self.addCleanup(host.stop)
        return host

    def node_flags(self, name):
        path = f"{self.folder}/{name}"
        os.mkdir(path)
        return ["-mode=node", f"-nodeid={name}", "-deviceManager=fake", f"-fakePath={path}/devices",
                "-fakeRegionSize=4Gi", f"-statePath={path}/state", "-controllerEndpoint=tcp://@:10001",
                f"-registryEndpoint=tcp://{self.controller.address}:10000", *CERTS.flags("pmem-node-controller")]

    def insist(self, seed, method, request, reply):
        """As external-provisioner: in place, for as long as the code says so."""
        chance = random.Random(seed)
        end = time.monotonic() + 4 * driver.PATIENCE_S
        while True:
            try:
                return self.controller.call(method, request, reply, chance.choice((0.3, 1, 3, 10)))
            except grpc.RpcError as failure:
                if failure.code() not in driver.AGAIN or time.monotonic() > end:
                    raise
            time.sleep(chance.random())

    def live(self, number):
        """A volume's life. Return: its ID and where its caller thinks it is; nowhere when it was deleted."""
        request = csi_pb2.CreateVolumeRequest(
            name=f"pvc-{number}", volume_capabilities=[driver.capability()],
            capacity_range=csi_pb2.CapacityRange(required_bytes=16 * driver.MIB))
        if number % 3 == 0:
            topology = csi_pb2.Topology(segments={TOPOLOGY: f"n{number % N_NODES + 1}"})
            request.accessibility_requirements.requisite.append(topology)
            request.accessibility_requirements.preferred.append(topology)
        volume = self.insist(number, "CreateVolume", request, csi_pb2.CreateVolumeResponse).volume
        (topology,) = volume.accessible_topology
        if number % 2 == 0:
            return volume.volume_id, topology.segments[TOPOLOGY]
        self.insist(number, "DeleteVolume", csi_pb2.DeleteVolumeRequest(volume_id=volume.volume_id),
                    csi_pb2.DeleteVolumeResponse)
        return volume.volume_id, None

    def fail_once(self):
        """Return: what mends it."""
        host = self.random.choice([self.controller, *self.nodes.values()])
        kind = self.random.choice(("link", "kill", "freeze"))
        if kind == "link":
            host.set_link("down")
            return lambda: host.set_link("up")
        if kind == "kill":
            host.restart()
            return lambda: None
        host.freeze()
        return host.thaw

    def live_on(self, end):
        """One life after the other. Return: what live() does, of each."""
        told = []
        while time.monotonic() < end:
            told.append(self.live(next(self.numbers)))
        return told

    def test_every_volume_is_where_its_caller_was_told(self):
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
            told = dict(volume for life in lives for volume in life.result())
        found = {name: node.volumes() for name, node in self.nodes.items()}
        wanted = {name: {v for v, at in told.items() if at == name} for name in self.nodes}
        self.assertEqual(found, wanted)
        print(f"{len(told)} volumes, {faults} faults", flush=True)
        self.assertGreater(faults, 5)
        self.assertGreater(len(told), N_CALLERS)


if __name__ == "__main__":
    driver.enter_namespace("-n")
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    CERTS = Certs(sys.argv.pop(1))
    unittest.main()
