# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver with file systems that others made or changed, and without the programs that make them.

usage: test_file_systems.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import os
import subprocess

import driver
from driver import MIB, csi_pb2
from node import Code, Node

MKE2FS = "/usr/sbin/mke2fs"
UNKNOWN_FEATURE = 0x80000000


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class FileSystems(Node):
    def device(self, volume):
        """Its loop device."""
        (image,) = [name for name in self.images() if volume in name]
        return run("losetup", "--associated", f"{self.folder}/fake-devices/{image}", "--noheadings", "--output", "NAME").strip()

    @staticmethod
    def superblock(device):
        with open(device, "rb", buffering=0) as disk:
            return os.pread(disk.fileno(), 4096, 0)[1024:2048]

    def xfs(self):
        capability = driver.capability()
        capability.mount.fs_type = "xfs"
        return capability

    def make_xfs(self, name):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[self.xfs()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=300 * MIB))
        return self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse).result().volume.volume_id

    def stage_xfs(self, volume):
        os.makedirs(self.staging(volume), exist_ok=True)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                 volume_capability=self.xfs())
        return self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def test_program_is_not_there(self):
        """An image without mkfs: the error says so, and the volume is as new when it is there."""
        volume = self.make("volume")
        empty = f"{self.folder}/empty"
        with open(empty, "w"):
            pass
        run("mount", "--bind", empty, MKE2FS)
        self.addCleanup(subprocess.run, ["umount", MKE2FS], check=False, stderr=subprocess.DEVNULL)
        failure = self.stage(volume).exception()
        self.assertIsNotNone(failure)
        self.assertIn("mkfs", failure.details())
        self.assertEqual(self.mounted(self.staging(volume)), [])
        run("umount", MKE2FS)
        self.use(volume)
        self.unuse(volume)
        self.delete_all()

    def test_mount_flags_as_in_fstab(self):
        """Lists with commas, and words that only mount(8) knows, as external-provisioner hands them on from mountOptions."""
        flags = ["noatime,nodiratime", "nofail", "x-systemd.device-timeout=10,_netdev"]
        request = csi_pb2.CreateVolumeRequest(name="volume", volume_capabilities=[driver.capability()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=16 * MIB))
        request.volume_capabilities[0].mount.mount_flags.extend(flags)
        created = self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse).result()
        volume = created.volume.volume_id
        self.stage(volume, *flags).result()
        options = run("findmnt", "--noheadings", "--output", "VFS-OPTIONS", self.staging(volume)).strip().split(",")
        self.assertLessEqual({"noatime", "nodiratime"}, set(options))
        self.unstage(volume).result()
        self.assertIn("bind", self.stage(volume, "noatime,bind").exception().details())
        self.delete_all()

    def test_feature_that_the_kernel_does_not_know(self):
        """Of a newer mkfs: the error is the kernel's, and nothing is formatted."""
        volume = self.make("volume")
        self.use(volume)
        self.unuse(volume)
        device = self.device(volume)
        before = self.superblock(device)
        known = int.from_bytes(before[0x60:0x64], "little")
        run("debugfs", "-w", "-R", f"set_super_value feature_incompat {known | UNKNOWN_FEATURE}", device)
        changed = self.superblock(device)
        self.assertNotEqual(changed, before)
        for _ in range(2):
            failure = self.stage(volume).exception()
            self.assertIsNotNone(failure)
            self.assertEqual(self.mounted(self.staging(volume)), [])
        self.assertEqual(self.superblock(device), changed)
        with open(device, "r+b", buffering=0) as disk:
            block = os.pread(disk.fileno(), 4096, 0)
            os.pwrite(disk.fileno(), block[:1024] + before + block[2048:], 0)
            os.fsync(disk.fileno())
        self.stage(volume).result()
        self.publish(volume).result()
        self.assert_kept(volume)
        self.unuse(volume)
        self.delete_all()

    def copy(self, source, target):
        run("dd", f"if={self.device(source)}", f"of={self.device(target)}", "bs=1M", "conv=fsync", "status=none")

    def test_copy_of_an_ext4_volume(self):
        """Two with one UUID: both are used, each with its own content."""
        first, second = self.make("first"), self.make("second")
        for volume in first, second:
            self.use(volume, "both")
            self.unuse(volume)
        self.copy(first, second)
        for volume in first, second:
            self.stage(volume).result()
            self.publish(volume).result()
        with open(f"{self.target(second)}/file", "w") as file:
            file.write("second")
        self.assert_kept(first, "both")
        self.assert_kept(second, "second")
        for volume in first, second:
            self.unuse(volume)
        self.delete_all()

    def test_copy_of_an_xfs_volume(self):
        """The kernel mounts one of the two only: the other one is refused until the first is not in use any more, and
        the refusal names the UUID and the first."""
        first, second = self.make_xfs("first"), self.make_xfs("second")
        for volume in first, second:
            self.stage_xfs(volume).result()
            self.unstage(volume).result()
        self.copy(first, second)
        self.stage_xfs(first).result()
        failure = self.stage_xfs(second).exception()
        self.assertIsNotNone(failure)
        self.assertEqual(failure.code(), Code.FAILED_PRECONDITION, failure.details())
        self.assertIn(first, failure.details())
        self.assertRegex(failure.details(), "UUID [0-9a-f]{8}-")
        self.assertIn("xfs_admin -U generate", failure.details())
        self.assertEqual(self.mounted(self.staging(second)), [])
        self.unstage(first).result()
        self.stage_xfs(second).result()
        self.unstage(second).result()
        self.delete_all()

    def test_other_file_system_than_recorded(self):
        """An administrator has made another one in its place: it is not mounted as ours, and not formatted."""
        volume = self.make("volume")
        self.use(volume)
        self.unuse(volume)
        run("mke2fs", "-q", "-t", "ext2", "-F", self.device(volume))
        with open(self.device(volume), "rb") as disk:
            before = disk.read(65536)
        failure = self.stage(volume).exception()
        self.assertIsNotNone(failure)
        with open(self.device(volume), "rb") as disk:
            self.assertEqual(disk.read(65536), before)
        self.delete_all()


if __name__ == "__main__":
    driver.main()
