# SPDX-License-Identifier: Apache-2.0
"""A driver with fake devices, and what kubelet, provisioner and an administrator do to its node."""
import json
import os
import signal
import subprocess

import driver
from driver import MIB, PATIENCE_S, csi_pb2, grpc, wait_for

Code = grpc.StatusCode


class Node(driver.DriverTest):
    """The driver runs, and what the test has left mounted goes at its end."""

    def setUp(self):
        super().setUp()
        self.state = f"{self.folder}/state"
        os.mkdir(f"{self.folder}/pods")
        self.driver = None
        self.addCleanup(self.end)
        self.start_driver()

    def end(self):
        if self.driver and self.driver.poll() is None:
            self.driver.send_signal(signal.SIGTERM)
            self.driver.wait(PATIENCE_S)
            self.log.close()
            self.channel.close()
        for path in reversed([mount for mount, _ in self.mounts()]):
            subprocess.run(["umount", path], check=True)

    def kill_driver(self):
        self.driver.kill()
        self.end_driver(-signal.SIGKILL)

    def restart_driver(self, *flags):
        self.kill_driver()
        self.start_driver(*flags)

    # --- what there is

    def mounts(self):
        """Path and device number of each mount below the folder, in the order of the kernel."""
        with open("/proc/self/mountinfo") as table:
            lines = [line.split() for line in table]
        return [(line[4], line[2]) for line in lines if line[4].startswith(f"{self.folder}/")]

    def mounted(self, path):
        return [device for mount, device in self.mounts() if mount == path]

    def images(self):
        return sorted(name for name in os.listdir(f"{self.folder}/fake-devices") if name.endswith(".image"))

    def listed(self):
        reply = self.call("Controller", "ListVolumes", csi_pb2.ListVolumesRequest(), csi_pb2.ListVolumesResponse)
        return sorted(entry.volume.volume_id for entry in reply.entries)

    def command(self, *words):
        """check and its like: status and what they say as JSON."""
        run = subprocess.run([self.program, *words, *self.devices(), f"-statePath={self.state}", "-v=0", "-o=json"],
                             capture_output=True, text=True, timeout=PATIENCE_S)
        return run.returncode, json.loads(run.stdout or "{}")

    # --- what kubelet and provisioner do

    def make(self, name):
        return self.insist(self.create, name).volume.volume_id

    def staging(self, volume):
        return f"{self.folder}/staging/{volume}"

    def target(self, volume, pod="pod"):
        return f"{self.folder}/pods/{volume}.{pod}"

    def publish(self, volume, pod="pod", **more):
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id=volume, staging_target_path=self.staging(volume), target_path=self.target(volume, pod),
            volume_capability=driver.capability())
        request.MergeFrom(csi_pb2.NodePublishVolumeRequest(**more))
        return self.future("Node", "NodePublishVolume", request, csi_pb2.NodePublishVolumeResponse)

    def unpublish(self, volume, pod="pod"):
        request = csi_pb2.NodeUnpublishVolumeRequest(volume_id=volume, target_path=self.target(volume, pod))
        return self.future("Node", "NodeUnpublishVolume", request, csi_pb2.NodeUnpublishVolumeResponse)

    def use(self, volume, text="kept"):
        """Staged and published, with a file."""
        self.stage(volume).result()
        self.publish(volume).result()
        with open(f"{self.target(volume)}/file", "w") as file:
            file.write(text)

    def unuse(self, volume):
        self.unpublish(volume).result()
        self.unstage(volume).result()

    def assert_kept(self, volume, text="kept", pod="pod"):
        with open(f"{self.target(volume, pod)}/file") as file:
            self.assertEqual(file.read(), text)

    def assert_refused(self, future, code, text="."):
        failure = future.exception(PATIENCE_S)
        self.assertIsNotNone(failure, "was not refused")
        self.assertEqual(failure.code(), code, failure.details())
        self.assertRegex(failure.details(), text)

    def delete_all(self):
        """In the end nothing is left of any volume."""
        for volume in self.listed():
            self.insist(self.delete, volume)
        wait_for(lambda: not self.images())
        wait_for(lambda: self.available() == 2 * 1024 * MIB)
        self.assertEqual([name for name in os.listdir(self.state) if name.endswith((".json", ".creating", ".erasing"))], [])
        self.assertEqual(self.mounts(), [])
