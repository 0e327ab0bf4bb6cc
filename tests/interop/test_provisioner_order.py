# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver with a provisioner that runs twice, gives up and repeats calls, and deletes volumes that it is still creating.

usage: test_provisioner_order.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import random
import threading
import time

import driver
from driver import MIB, csi_pb2, wait_for
from node import Code, Node

TOPOLOGY = "pmem-csi.intel.com/node"
SEED = 1


class Provisioner(Node):
    def request(self, name, **more):
        return csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[driver.capability()],
                                           capacity_range=csi_pb2.CapacityRange(required_bytes=16 * MIB), **more)

    def create_as(self, request, **more):
        return self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse, **more)

    def test_there_twice(self):
        """Two replicas that both act as the leader make the same call at once: they get one volume, with the same reply."""
        calls = [self.create("volume") for _ in range(16)]
        answers = set()
        for call in calls:
            failure = call.exception()
            if failure:
                self.assertEqual(failure.code(), Code.ABORTED, failure)
            else:
                answers.add(call.result().volume.volume_id)
        self.assertEqual(len(answers), 1)
        self.assertEqual(self.listed(), list(answers))
        self.assertEqual(len(self.images()), 1)
        self.delete_all()

    def test_gives_up_and_repeats(self):
        """After a reply that was lost, the next call gets the same reply, and no orphan is left."""
        for _ in range(30):
            self.create("volume", timeout=0.003).exception()
        volume = self.insist(self.create, "volume").volume.volume_id
        self.assertEqual(self.listed(), [volume])
        self.assertEqual(len(self.images()), 1)
        self.delete_all()

    def test_deletes_what_it_creates(self):
        """By ID, which it has from an earlier answer, while others create the same name again."""
        volume = self.make("volume")
        dice = random.Random(SEED)
        end = time.monotonic() + 4

        def call():
            while time.monotonic() < end:
                future = self.create("volume") if dice.random() < 0.5 else self.delete(volume)
                failure = future.exception()
                self.failures.append(failure) if failure and failure.code() not in driver.AGAIN else None

        self.failures = []
        threads = [threading.Thread(target=call) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.failures, [])
        self.insist(self.delete, volume)
        wait_for(lambda: self.images() == [])
        self.assertEqual(self.insist(self.create, "volume").volume.volume_id, volume)
        self.use(volume)
        self.unuse(volume)
        self.delete_all()

    def test_other_topology_keys(self):
        """As allowedTopologies by zone, with which no node is found: refused, also beside the driver's own key."""
        def requirement(**keys):
            return csi_pb2.TopologyRequirement(requisite=[csi_pb2.Topology(segments=keys)])
        request = self.request("volume", accessibility_requirements=requirement(**{TOPOLOGY: "elsewhere"}))
        self.assert_refused(self.create_as(request), Code.RESOURCE_EXHAUSTED)
        for keys in {"topology.kubernetes.io/zone": "a"}, {TOPOLOGY: driver.NODE, "topology.kubernetes.io/zone": "a"}:
            request = self.request("volume", accessibility_requirements=requirement(**keys))
            self.assert_refused(self.create_as(request), Code.INVALID_ARGUMENT)
        self.assertEqual(self.images(), [])

    def test_other_parameters_of_one_name(self):
        """A class that was replaced meanwhile: the volume stays as it was made."""
        volume = self.make("volume")
        for parameters in {"eraseafter": "false"}, {"usage": "FileIO"}:
            self.assert_refused(self.create_as(self.request("volume", parameters=parameters)), Code.ALREADY_EXISTS)
        self.assertEqual(self.listed(), [volume])
        self.delete_all()

    def test_deletes_what_has_no_owner(self):
        """Handles of other drivers and of volumes that are long gone are deleted already."""
        volume = self.make("volume")
        gone = self.make("gone")
        self.insist(self.delete, gone)
        wait_for(lambda: len(self.images()) == 1)
        for handle in gone, "csi-hostpath-1", "/dev/sda", "../../etc", "pvc-0", "a" * 128:
            self.insist(self.delete, handle)
        self.assertEqual(self.listed(), [volume])
        self.delete_all()


if __name__ == "__main__":
    driver.main()
