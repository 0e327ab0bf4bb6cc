# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver in mount namespaces as container runtimes set them up, correctly or not.

usage: test_container.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import os
import random
import re
import signal
import subprocess
import threading
import time

import driver
from driver import wait_for
from node import Code, Node

SEED = 1


def run(*command):
    subprocess.run(command, check=True)


class Container(Node):
    """The test is the host: its mounts are shared below the folder."""

    def setUp(self):
        self.native = type(self).program
        super().setUp()
        self.kill_driver()
        run("mount", "--bind", self.folder, self.folder)
        self.addCleanup(run, "umount", "-l", self.folder)
        run("mount", "--make-shared", self.folder)

    def contain(self, propagation, before="true"):
        """The next driver is in a namespace of its own, where @before has been run."""
        path = f"{self.folder}/contained"
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\nexec unshare -m --propagation {propagation} "
                       f"sh -c '{before} && exec {self.native} \"$@\"' sh \"$@\"\n")
        os.chmod(path, 0o755)
        self.program = path

    def start_contained(self, propagation="shared", before="true"):
        self.contain(propagation, before)
        self.start_driver(f"-kubeletDir={self.folder}")

    def mounts(self):
        return [entry for entry in super().mounts() if entry[0] != self.folder]

    def test_mounts_spread(self):
        """As with mountPropagation Bidirectional: the host sees what the driver mounts, and the next container finds it."""
        self.start_contained()
        volume = self.make("volume")
        self.use(volume)
        self.assertEqual(len(self.mounts()), 2)
        self.restart_driver(f"-kubeletDir={self.folder}")
        self.assert_kept(volume)
        self.stage(volume).result()
        self.publish(volume).result()
        self.assertEqual(len(self.mounts()), 2)
        self.unuse(volume)
        self.delete_all()

    def test_mounts_do_not_spread(self):
        """The pod would write to the disk below: the log says so at the start."""
        self.start_contained("private")
        warning = f"mounts do not reach the pods.*{self.folder} is not shared.*Bidirectional"
        self.assertEqual(len(re.findall(warning, self.logged())), 1)
        self.kill_driver()
        self.start_contained()
        self.assertEqual(len(re.findall(warning, self.logged())), 1)

    def test_mounts_of_the_last_container(self):
        """The host has unmounted what the new container still has from before its start."""
        self.start_contained()
        volume = self.make("volume")
        self.use(volume)
        self.kill_driver()
        self.start_contained("private")
        for path in self.target(volume), self.staging(volume):
            run("umount", path)
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        self.unuse(volume)
        self.delete_all()

    def test_mounts_that_another_container_keeps(self):
        """Its namespace has copies of them: the volume is in use for as long as it runs."""
        self.start_contained()
        volume = self.make("volume")
        self.use(volume)
        other = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sleep", "1000"])
        wait_for(lambda: os.readlink(f"/proc/{other.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"))
        time.sleep(0.1)
        self.unuse(volume)
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        other.kill()
        other.wait()
        wait_for(lambda: self.delete(volume).exception() is None)
        self.delete_all()

    def test_dev_is_not_the_hosts(self):
        """Nothing can be made without loop-control, and the driver says what is missing."""
        self.start_contained("shared", "mount --make-private /dev && mount -t tmpfs tmpfs /dev && mknod /dev/null c 1 3")
        failure = self.create("volume").exception()
        self.assertIsNotNone(failure)
        self.assertIn("/dev", failure.details())
        self.assertEqual(self.images(), [])
        self.kill_driver()
        self.program = self.native
        self.start_driver()
        self.use(self.make("volume"))
        self.unuse(self.listed()[0])
        self.delete_all()

    def is_back(self):
        try:
            return self.probe()
        except driver.grpc.RpcError:
            return False

    def test_is_restarted_again_and_again(self):
        """At any moment of any call: in the end all volumes are there with their data, and nothing else is."""
        self.start_contained()
        volumes = [self.make(f"v{i}") for i in range(3)]
        stop = threading.Event()
        failures = []

        def live(volume):
            round_ = 0
            while not stop.is_set():
                round_ += 1
                try:
                    self.insist(self.stage, volume)
                    self.insist(self.publish, volume)
                    with open(f"{self.target(volume)}/file", "w") as file:
                        file.write(str(round_))
                    self.insist(self.unpublish, volume)
                    self.insist(self.unstage, volume)
                    self.insist(self.stage, volume)
                    with open(f"{self.staging(volume)}/file") as file:
                        self.assertEqual(file.read(), str(round_))
                    self.insist(self.unstage, volume)
                except Exception as error:
                    failures.append(error)
                    return

        threads = [threading.Thread(target=live, args=(volume,)) for volume in volumes]
        for thread in threads:
            thread.start()
        dice = random.Random(SEED)
        for _ in range(20):
            time.sleep(dice.random() / 3)
            self.driver.kill()
            self.assertEqual(self.driver.wait(), -signal.SIGKILL)
            self.driver = subprocess.Popen(self.driver.args, stderr=self.log)
        wait_for(self.is_back)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.listed(), sorted(volumes))
        self.delete_all()


if __name__ == "__main__":
    driver.main()
