# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver while lvm dies, does not answer, or sends invalid output.

usage: test_lvm.py PMEM_CSI_DRIVER_LVM [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import json
import os
import subprocess

import driver
from driver import MIB, wait_for

LVM = "/usr/sbin/lvm"
HERE = os.path.dirname(os.path.realpath(__file__))
SIZE = 256 * MIB


class Lvm(driver.DriverTest):
    def setUp(self):
        super().setUp()
        self.group = os.path.basename(self.folder)
        os.mkdir(f"{self.folder}/lvm")
        os.mkdir(f"{self.folder}/lvm/images")
        os.mkdir(f"/dev/{self.group}")
        self.addCleanup(os.rmdir, f"/dev/{self.group}")
        self.install()
        self.be("work")
        self.start_driver()
        self.addCleanup(self.stop_driver)

    def install(self):
        with open(f"{HERE}/fake_lvm") as file:
            text = file.read().replace("FOLDER", f"{self.folder}/lvm").replace("GROUP-NAME", self.group)
        with open(f"{self.folder}/fake", "w") as file:
            file.write(text)
        os.chmod(f"{self.folder}/fake", 0o755)
        subprocess.run(["mount", "--bind", f"{self.folder}/fake", LVM], check=True)
        self.addCleanup(subprocess.run, ["umount", LVM], check=True)

    def devices(self):
        return ["-deviceManager=lvm"]

    def be(self, mode):
        with open(f"{self.folder}/lvm/mode.new", "w") as file:
            file.write(mode)
        os.rename(f"{self.folder}/lvm/mode.new", f"{self.folder}/lvm/mode")

    def volumes(self):
        try:
            with open(f"{self.folder}/lvm/volumes") as file:
                return sorted(json.load(file))
        except FileNotFoundError:
            return []

    def recorded(self):
        """Records in every phase, but not the folder of what is kept about volume groups."""
        names = os.listdir(f"{self.folder}/state")
        return sorted(name for name in names if name[0] != "." and name != "lvm")

    def make(self, name):
        return self.insist(self.create, name).volume.volume_id

    def assert_exactly(self, *volumes):
        self.assertEqual(self.volumes(), sorted(volumes))
        self.assertEqual(self.recorded(), sorted(f"{volume}.json" for volume in volumes))
        self.assertEqual(self.available(), SIZE - len(volumes) * 16 * MIB)

    def end(self, *volumes):
        for volume in volumes:
            self.insist(self.delete, volume)
        wait_for(lambda: not self.volumes() and not self.recorded())
        self.assert_exactly()

    def fail_and_recover(self, mode):
        """With a process per command, as a driver begins, and with the shell, which takes its second command."""
        volumes = []
        for name in "cold", "warm":
            if name == "warm":
                self.stop_driver()
                self.start_driver()
                volumes += [self.make("first"), self.make("second")]
            self.be(mode)
            self.assert_retried(self.create(name).exception(), "lvm|LVM")
            self.assert_retried(self.create(name).exception(), "lvm|LVM")
            self.assert_memory_is_read()
            self.be("work")
            volumes.append(self.make(name))
            self.assert_exactly(*volumes)
        self.assertGreater(self.metric("pmem_lvm_restarts"), 0)
        self.end(*volumes)

    def test_lvm_that_dies(self):
        self.fail_and_recover("dead")

    def test_lvm_that_talks_garbage(self):
        self.fail_and_recover("garbage")

    def test_lvm_that_is_killed_when_it_has_done_its_work(self):
        """The logical volume exists, but lvm did not report it."""
        self.fail_and_recover("killed")

    def test_a_start_without_lvm_says_so(self):
        self.stop_driver()
        self.be("dead")
        self.is_up = lambda: not self.probe()
        self.start_driver()
        wait_for(lambda: "the last attempt failed" in self.create("pvc").exception().details())
        self.assert_retried(self.create("pvc").exception(), "still starting.*the last attempt failed: .*lvm")
        self.be("work")
        wait_for(self.probe)
        self.end(self.make("pvc"))

    def test_lvm_that_says_nothing(self):
        volumes = [self.make("first"), self.make("second")]
        self.be("silent")
        failure = self.create("third", timeout=4).exception()
        self.assert_retried(failure, r"no answer before the deadline; .*lvm lvcreate for \d s")
        self.assert_memory_is_read()
        self.assert_retried(self.create("third").exception(), r"in progress: creating its device for \d+ s")
        # what needs no lvm goes on; the logical volumes of this lvm have no DAX
        self.stage(volumes[0], "dax=never").result()
        self.unstage(volumes[0]).result()
        self.be("work")
        volumes.append(self.make("third"))
        self.assert_exactly(*volumes)
        self.end(*volumes)

    def test_volumes_are_deleted_when_lvm_is_back(self):
        volumes = [self.make("first"), self.make("second")]
        self.be("dead")
        self.delete(volumes[0]).result()
        # by then the eraser may have met the dead lvm, after which nothing is taken for granted
        refusal = self.delete(volumes[1]).exception()
        if refusal:
            self.assert_retried(refusal, "lvm pvs")
        self.assertEqual(self.volumes(), sorted(volumes))
        self.assert_memory_is_read()
        self.assert_retried(self.create("first").exception(), "still being erased")
        self.be("work")
        self.end(*volumes)

    def test_driver_without_lvm_is_not_ready_until_it_is_there(self):
        volume = self.make("first")
        self.stop_driver()
        self.be("dead")
        self.is_up = lambda: not self.probe() and "was killed by signal 9" in self.logged()
        self.start_driver()
        self.be("work")
        wait_for(self.probe)
        self.assert_exactly(volume)
        self.end(volume)


if __name__ == "__main__":
    driver.main()
