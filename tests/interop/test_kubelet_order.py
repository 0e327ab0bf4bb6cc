# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver with a kubelet that repeats its calls, makes them out of order and at the same time, and whose folders are changed by hand.

usage: test_kubelet_order.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import os
import shutil
import subprocess
import threading

import driver
from driver import csi_pb2, wait_for
from node import Code, Node

MANY = 12


def run(*command):
    subprocess.run(command, check=True)


class Order(Node):
    def test_everything_is_repeated_at_once(self):
        """After a restart of kubelet and driver: each volume is mounted once, and has its data."""
        volumes = [self.make(f"v{i}") for i in range(MANY)]
        for volume in volumes:
            self.use(volume, volume)
        before = sorted(self.mounts())
        self.restart_driver()
        threads = []
        for volume in volumes:
            for call in self.stage, self.publish, self.stage, self.publish:
                threads.append(threading.Thread(target=self.insist, args=(call, volume)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.mounts()), before)
        for volume in volumes:
            self.assert_kept(volume, volume)
            self.unuse(volume)
        self.delete_all()

    def test_publish_before_stage(self):
        volume = self.make("volume")
        self.assert_refused(self.publish(volume), Code.FAILED_PRECONDITION, "staged")
        self.assertEqual(self.mounts(), [])
        self.use(volume)
        self.unuse(volume)
        self.delete_all()

    def test_unstage_before_unpublish(self):
        """The pod keeps its mount, whatever the reply is; calls in the right order then remove everything."""
        volume = self.make("volume")
        self.use(volume)
        self.unstage(volume).exception()
        self.assert_kept(volume)
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        self.unpublish(volume).result()
        self.unstage(volume).result()
        self.delete_all()

    def test_undoing_twice_and_what_never_was(self):
        volume = self.make("volume")
        self.unpublish(volume).result()
        os.makedirs(self.staging(volume))
        self.unstage(volume).result()
        self.use(volume)
        for _ in range(2):
            self.unpublish(volume).result()
        for _ in range(2):
            self.unstage(volume).result()
        self.delete(volume).result()
        wait_for(lambda: not self.images())
        self.unpublish(volume).result()
        self.delete_all()

    def test_delete_before_unpublish(self):
        """A claim that was removed by force."""
        volume = self.make("volume")
        self.use(volume)
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        self.unpublish(volume).result()
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        self.unstage(volume).result()
        self.delete_all()

    def test_one_target_for_two_volumes(self):
        """The second one is refused, and nothing is mounted over the first one."""
        first, second = self.make("first"), self.make("second")
        self.use(first)
        self.stage(second).result()
        failure = self.publish(second, target_path=self.target(first)).exception()
        self.assertIsNotNone(failure)
        self.assert_kept(first)
        self.assertEqual(len(self.mounted(self.target(first))), 1)
        request = csi_pb2.NodeUnpublishVolumeRequest(volume_id=second, target_path=self.target(first))
        self.future("Node", "NodeUnpublishVolume", request, csi_pb2.NodeUnpublishVolumeResponse).exception()
        self.assert_kept(first)
        self.unstage(second).result()
        self.unuse(first)
        self.delete_all()

    def test_one_staging_path_for_two_volumes(self):
        first, second = self.make("first"), self.make("second")
        self.use(first)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=second, staging_target_path=self.staging(first),
                                                 volume_capability=driver.capability())
        failure = self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse).exception()
        self.assertIsNotNone(failure)
        self.assertEqual(len(self.mounted(self.staging(first))), 1)
        self.assert_kept(first)
        self.unuse(first)
        self.delete_all()

    def test_calls_of_one_volume_cross(self):
        """Opposite calls at the same time, repeatedly: in the end, the volume is in the state that the last call requests."""
        volume = self.make("volume")
        self.stage(volume).result()
        for _ in range(10):
            calls = [call(volume) for call in (self.publish, self.unpublish, self.publish, self.unpublish)]
            for call in calls:
                failure = call.exception()
                self.assertTrue(failure is None or failure.code() in driver.AGAIN, failure)
        self.insist(self.publish, volume)
        self.assertEqual(len(self.mounted(self.target(volume))), 1)
        self.insist(self.unpublish, volume)
        self.assertEqual(self.mounted(self.target(volume)), [])
        self.unstage(volume).result()
        self.delete_all()

    def test_a_call_that_was_given_up_is_repeated(self):
        """Its deadline passes at once, repeatedly; in the end the work was done once."""
        volume = self.make("volume")
        os.makedirs(self.staging(volume))
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                 volume_capability=driver.capability())
        for _ in range(20):
            self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse, timeout=0.02).exception()
        self.insist(self.stage, volume)
        self.assertEqual(len(self.mounted(self.staging(volume))), 1)
        self.insist(self.publish, volume)
        self.unuse(volume)
        self.delete_all()


class Folders(Node):
    """Of kubelet, which the driver gets by its flags."""

    def start_in(self, *roots):
        self.kill_driver()
        self.start_driver(*[f"-kubeletDir={root}" for root in roots])

    def root(self, name):
        for sub in "staging", "pods":
            os.makedirs(f"{self.folder}/{name}/{sub}")
        return f"{self.folder}/{name}"

    def use_in(self, root, volume):
        self.staging = lambda volume: f"{root}/staging/{volume}"
        self.target = lambda volume, pod="pod": f"{root}/pods/{volume}.{pod}"
        os.makedirs(self.staging(volume), exist_ok=True)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                 volume_capability=driver.capability())
        return self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def unuse_in(self, volume):
        self.unpublish(volume).result()
        request = csi_pb2.NodeUnstageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume))
        self.future("Node", "NodeUnstageVolume", request, csi_pb2.NodeUnstageVolumeResponse).result()

    def test_two_folders(self):
        """Each of two kubelets has its own, a third one has none."""
        one, two, other = self.root("one"), self.root("two"), self.root("other")
        self.start_in(one, two)
        for root in one, two:
            volume = self.make(os.path.basename(root))
            self.use_in(root, volume).result()
            self.publish(volume).result()
            self.assertEqual(len(self.mounted(self.target(volume))), 1)
            self.unuse_in(volume)
        volume = self.make("other")
        self.assert_refused(self.use_in(other, volume), Code.INVALID_ARGUMENT)
        self.assertEqual(self.mounts(), [])
        self.delete_all()

    def test_a_link_to_it(self):
        """kubelet may use either name, also one for one call and the other one for the next."""
        real = self.root("real")
        link = f"{self.folder}/link"
        os.symlink(real, link)
        self.start_in(link)
        volume = self.make("volume")
        self.use_in(link, volume).result()
        self.use_in(real, volume).result()
        self.assertEqual([path for path, _ in self.mounts()], [f"{real}/staging/{volume}"])
        self.publish(volume).result()
        self.use_in(link, volume).result()
        self.publish(volume).result()
        self.assertEqual(len(self.mounts()), 2)
        self.unuse_in(volume)
        self.delete_all()

    def test_it_was_moved(self):
        """Mounts move with it. A driver with the new name unmounts what it finds there."""
        old = self.root("old")
        self.start_in(old)
        volume = self.make("volume")
        self.use_in(old, volume).result()
        self.publish(volume).result()
        self.kill_driver()
        os.rename(old, f"{self.folder}/new")
        self.start_driver(f"-kubeletDir={self.folder}/new")
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        new = f"{self.folder}/new"
        self.staging = lambda volume: f"{new}/staging/{volume}"
        self.target = lambda volume, pod="pod": f"{new}/pods/{volume}.{pod}"
        self.unuse_in(volume)
        self.delete_all()


class Hands(Node):
    """What an administrator does to mounts and folders between kubelet's calls."""

    def test_target_unmounted(self):
        """It can be unpublished, or published again."""
        volume = self.make("volume")
        self.use(volume)
        run("umount", self.target(volume))
        self.publish(volume).result()
        self.assert_kept(volume)
        run("umount", self.target(volume))
        self.unuse(volume)
        self.assertFalse(os.path.exists(self.target(volume)))
        self.delete_all()

    def test_staging_unmounted(self):
        """A stage that is repeated mounts it again; unstage is done already."""
        volume = self.make("volume")
        self.use(volume)
        self.unpublish(volume).result()
        run("umount", self.staging(volume))
        self.assert_refused(self.publish(volume), Code.FAILED_PRECONDITION)
        self.stage(volume).result()
        self.publish(volume).result()
        self.assert_kept(volume)
        self.unpublish(volume).result()
        run("umount", self.staging(volume))
        self.unstage(volume).result()
        self.delete_all()

    def test_staging_unmounted_under_a_pod(self):
        """The pod keeps running, and in the end everything is unmounted."""
        volume = self.make("volume")
        self.use(volume)
        run("umount", self.staging(volume))
        self.assert_kept(volume)
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
        self.unuse(volume)
        self.delete_all()

    def test_folders_removed(self):
        volume = self.make("volume")
        self.use(volume)
        run("umount", self.target(volume))
        os.rmdir(self.target(volume))
        run("umount", self.staging(volume))
        os.rmdir(self.staging(volume))
        self.unpublish(volume).result()
        self.unstage(volume).result()
        self.use(volume)
        self.unuse(volume)
        shutil.rmtree(f"{self.folder}/pods")
        self.unpublish(volume).result()
        os.mkdir(f"{self.folder}/pods")
        self.delete_all()

    def test_lazily_unmounted(self):
        """A process still has a file there, so the device is in use although no mount shows it."""
        volume = self.make("volume")
        self.use(volume)
        with open(f"{self.target(volume)}/file") as held:
            run("umount", "-l", self.target(volume))
            run("umount", "-l", self.staging(volume))
            self.unuse(volume)
            self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, "in use")
            self.assertEqual(held.read(), "kept")
        self.insist_unused(volume)
        self.delete_all()

    def insist_unused(self, volume):
        wait_for(lambda: self.delete(volume).exception() is None)

    def test_mounted_elsewhere(self):
        """A volume that is mounted by hand is in use; kubelet's own calls go on, and leave that mount alone."""
        volume = self.make("volume")
        self.use(volume)
        elsewhere = f"{self.folder}/elsewhere"
        os.mkdir(elsewhere)
        run("mount", "--bind", self.staging(volume), elsewhere)
        self.unuse(volume)
        with open(f"{elsewhere}/file") as file:
            self.assertEqual(file.read(), "kept")
        self.assert_refused(self.delete(volume), Code.FAILED_PRECONDITION, elsewhere)
        self.use(volume)
        self.unuse(volume)
        run("umount", elsewhere)
        self.delete_all()

    def test_mounted_twice_over_the_target(self):
        volume = self.make("volume")
        self.use(volume)
        run("mount", "--bind", self.staging(volume), self.target(volume))
        self.unuse(volume)
        self.assertEqual(self.mounts(), [])
        self.delete_all()

    def test_something_else_over_the_target(self):
        """What is not ours is not unmounted; errors name it until it is gone."""
        volume = self.make("volume")
        self.use(volume)
        run("mount", "-t", "tmpfs", "tmpfs", self.target(volume))
        self.assert_refused(self.unpublish(volume), Code.FAILED_PRECONDITION)
        self.assertEqual(len(self.mounted(self.target(volume))), 2)
        run("umount", self.target(volume))
        self.assert_kept(volume)
        self.unuse(volume)
        self.delete_all()

    def test_remounted_read_only(self):
        """As the kernel does after an error, too: the volume can be unmounted all the same."""
        volume = self.make("volume")
        self.use(volume)
        run("mount", "-o", "remount,ro", self.staging(volume))
        self.stage(volume).exception()
        self.assert_kept(volume)
        self.unuse(volume)
        self.use(volume)
        self.unuse(volume)
        self.delete_all()


if __name__ == "__main__":
    driver.main()
