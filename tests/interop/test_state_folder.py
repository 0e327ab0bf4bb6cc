# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver while the file system of its state folder is full, read-only or broken.

usage: test_state_folder.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import fcntl
import os
import struct
import subprocess

import grpc

import driver
from driver import MIB, wait_for

SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN of linux/ext4.h


class StateFolder(driver.DriverTest):
    def setUp(self):
        super().setUp()
        self.state = f"{self.folder}/state"
        self.image = f"{self.folder}/state.image"
        os.mkdir(self.state)

    def begin(self, mount):
        """With one volume. mount() mounts the state folder."""
        mount()
        self.addCleanup(subprocess.run, ["umount", self.state], check=True)
        self.start_driver()
        self.addCleanup(self.stop_driver)
        self.volume = self.create("before").result().volume.volume_id

    def mount_memory(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.state], check=True)

    def mount_disk(self):
        if not os.path.exists(self.image):
            with open(self.image, "xb") as file:
                file.truncate(16 * MIB)
            subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        subprocess.run(["mount", "-o", "loop,errors=remount-ro", self.image, self.state], check=True)

    def mend_disk(self):
        """Only a new mount helps, for which the driver has to end."""
        self.stop_driver()
        subprocess.run(["umount", self.state], check=True)
        self.mount_disk()
        self.start_driver()

    def images(self):
        return sorted(name for name in os.listdir(f"{self.folder}/fake-devices") if name.endswith(".image"))

    def recorded(self):
        return sorted(name for name in os.listdir(self.state) if name.endswith((".json", ".creating", ".erasing", ".tmp")))

    def assert_sent_away(self, error, reason):
        """The call fails so that another node is chosen: no volume is here, and none can be created here."""
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error.details())
        self.assertRegex(error.details(), reason)

    def assert_nothing_is_done(self, cause, reason):
        """But the error is reported, and calls that only read memory are answered. @reason: of new volumes; None: whether one is there is not known."""
        before = self.images()
        for _ in range(2):
            if reason:
                self.assert_sent_away(self.create("new").exception(), reason)
                self.assertEqual(self.available(), 0)
            else:
                self.assert_retried(self.create("new").exception(), f"in {self.state}: .*{cause}")
            self.assert_retried(self.stage(self.volume).exception(), f"in {self.state}: .*{cause}")
        self.assert_memory_is_read()
        self.assertEqual(self.images(), before)
        with open("/proc/self/mountinfo") as mounts:
            self.assertNotIn(f"{self.folder}/staging", mounts.read())

    def assert_all_works(self):
        self.assertEqual(self.recorded(), [f"{self.volume}.json"])
        new = self.create("new").result().volume.volume_id
        self.stage(self.volume).result()
        self.unstage(self.volume).result()
        for volume in self.volume, new:
            self.delete(volume).result()
        # until then there are loop devices, which would outlive the driver
        wait_for(lambda: not self.images() and not self.recorded())

    def test_full(self):
        self.begin(self.mount_memory)
        filler = f"{self.state}/filler"
        with open(filler, "xb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        self.assert_nothing_is_done("No space left on device", "is full")
        os.unlink(filler)
        self.assert_all_works()

    def test_read_only(self):
        """As the kernel makes it, with errors=remount-ro, for a disk that is not in order."""
        self.begin(self.mount_disk)
        device = subprocess.run(["findmnt", "-no", "SOURCE", self.state], check=True, capture_output=True, text=True).stdout
        trigger = f"/sys/fs/ext4/{os.path.basename(device.strip())}/trigger_fs_error"
        if not os.access(trigger, os.W_OK):
            self.skipTest(f"no {trigger}")
        with open(trigger, "w") as file:
            file.write("1")
        self.assert_nothing_is_done("Read-only file system", "Read-only file system")
        self.assert_retried(self.delete(self.volume).exception(), f"in {self.state}: .*Read-only file system")
        self.mend_disk()
        self.assert_all_works()

    def test_broken(self):
        """As after an I/O error in its journal."""
        self.begin(self.mount_disk)
        fd = os.open(self.state, os.O_RDONLY)
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", 0))
        os.close(fd)
        self.assert_nothing_is_done("Input/output error", None)
        self.assert_retried(self.delete(self.volume).exception(), f"in {self.state}: .*Input/output error")
        self.mend_disk()
        self.assert_all_works()


if __name__ == "__main__":
    driver.main()
