# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver with direct volumes, and a stand-in for the shim of Kata Containers (shim.py).

usage: test_direct_volumes.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own, with a /run of its own.
"""
import os
import pathlib
import signal
import subprocess

import driver
from driver import MIB, csi_pb2
from node import Code, Node
from shim import Shim, entry_name

FOLDER = pathlib.Path("/run/kata-containers/shared/direct-volumes")
FOREIGN = FOLDER / entry_name("/run/kata-containers/shared/emptydir")
# Where the driver is killed: its own entries, the target, and the record that names both.
POINTS = ["direct-entry", "direct-entry-durable", "direct-sandbox", "direct-entry-removed", "mount-empty", "unmount"]


def entry(target):
    return FOLDER / entry_name(target)


class Direct(Node):
    def setUp(self):
        FOREIGN.mkdir(parents=True, exist_ok=True)
        (FOREIGN / "mountInfo.json").write_text("theirs")
        os.chmod(FOLDER, 0o700)
        super().setUp()

    def make_direct(self, name):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[driver.capability()], parameters={"directVolume": "true"},
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=64 * MIB))
        reply = self.call("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse)
        self.assertEqual(reply.volume.volume_context["directVolume"], "true")
        return reply.volume.volume_id

    def stats(self, volume):
        request = csi_pb2.NodeGetVolumeStatsRequest(volume_id=volume, volume_path=self.target(volume))
        return self.future("Node", "NodeGetVolumeStats", request, csi_pb2.NodeGetVolumeStatsResponse)

    def node_expand(self, volume):
        request = csi_pb2.NodeExpandVolumeRequest(volume_id=volume, volume_path=self.target(volume),
                                                  staging_target_path=self.staging(volume))
        return self.future("Node", "NodeExpandVolume", request, csi_pb2.NodeExpandVolumeResponse)

    def assert_entries(self, *wanted):
        self.assertEqual(sorted(FOLDER.iterdir()), sorted([FOREIGN, *wanted]))
        self.assertEqual((FOREIGN / "mountInfo.json").read_text(), "theirs")

    def assert_gone(self, volume):
        self.assert_entries()
        self.assertEqual(self.mounts(), [])
        self.assertFalse(os.path.exists(self.target(volume)))

    def test_life_of_a_guest(self):
        volume = self.make_direct("volume")
        target = self.target(volume)
        self.stage(volume).result()
        self.publish(volume).result()
        self.assert_refused(self.stats(volume), Code.UNAVAILABLE, "runtime")
        shim = Shim("4f0a", entry(target))
        self.addCleanup(lambda: shim.guest.poll() is None and shim.end())
        usage = {part.unit: (part.available, part.total, part.used) for part in self.stats(volume).result().usage}
        self.assertEqual(usage, {1: (7, 12, 5), 2: (2, 3, 1)})
        request = csi_pb2.ControllerExpandVolumeRequest(volume_id=volume,
                                                        capacity_range=csi_pb2.CapacityRange(required_bytes=128 * MIB))
        self.call("Controller", "ControllerExpandVolume", request, csi_pb2.ControllerExpandVolumeResponse)
        self.assert_refused(self.node_expand(volume), Code.FAILED_PRECONDITION, "not implemented in kata-agent")
        shim.grows = True
        self.node_expand(volume).result()
        self.assertEqual(shim.size, 128 * MIB)
        self.unpublish(volume).result()
        self.assert_gone(volume)
        self.restart_driver()
        # the pod is gone, its guest is not
        for call in self.publish, self.delete:
            self.assert_refused(call(volume), Code.FAILED_PRECONDITION, "4f0a")
        self.stage(volume).result()
        shim.end()
        self.unstage(volume).result()
        self.delete_all()
        self.assert_entries()

    def test_guest_that_hangs(self):
        volume = self.make_direct("volume")
        self.stage(volume).result()
        self.publish(volume).result()
        shim = Shim("77ee", entry(self.target(volume)))
        shim.shutdown()
        self.assert_refused(self.stats(volume), Code.DEADLINE_EXCEEDED, "in time")
        # nothing is held meanwhile
        pending = self.stats(volume)
        self.unpublish(volume).result()
        self.assert_gone(volume)
        pending.exception()
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "77ee")
        # a shim that is gone leaves its guest in some cases
        shim.server_close()
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, f"process {shim.guest.pid}")
        shim.end_guest()
        self.unstage(volume).result()
        self.delete_all()

    def test_driver_is_killed_at_each_step(self):
        volume = self.make_direct("volume")
        self.stage(volume).result()
        reached = []
        for number, point in enumerate(f"{name}.{when}" for name in POINTS for when in ("before", "after")):
            with self.subTest(point):
                self.kill_driver()
                os.environ["PMEM_KILL_AT"] = point
                try:
                    self.start_driver()
                finally:
                    del os.environ["PMEM_KILL_AT"]
                if not self.publish(volume).exception():
                    shim = Shim(f"5{number}", entry(self.target(volume)))
                    shim.end()
                    self.assertIsNotNone(self.unpublish(volume).exception(), "was not killed")
                self.end_driver(-signal.SIGKILL)
                reached.append(point)
                self.start_driver()
                # once as kubelet keeps the pod, once as it ends it
                if number % 2:
                    self.publish(volume).result()
                    self.assertEqual(len(self.mounted(self.target(volume))), 1)
                    self.assert_entries(entry(self.target(volume)))
                self.unpublish(volume).result()
                self.assert_gone(volume)
        self.assertEqual(len(reached), 2 * len(POINTS), reached)
        self.unstage(volume).result()
        self.delete_all()


if __name__ == "__main__":
    driver.enter_namespace()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    os.mkdir("/run/lock")
    driver.main()
