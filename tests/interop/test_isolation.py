# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver while all of the worker threads of the Node service are held by a mkfs that does not end.

usage: test_isolation.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import os
import re
import signal
import subprocess
import time

import driver
from driver import NODE, PATIENCE_S, capability, csi_pb2, grpc, wait_for

WORKERS = 32
MKFS = "/usr/sbin/mke2fs"

# Holds the device as mkfs does, says so, and waits at the gate: a FIFO that is not opened before open_gate(). Without its
# driver it ends there, so that the device is not free for a moment. A program that looks for a free loop device holds each for
# a moment (drivers/block/loop.c, loop_configure()).
FAKE_MKFS = """#!/usr/bin/perl
use Fcntl;
my $parent = getppid;
my $device;
for (1 .. 500) {
	last if sysopen($device, $ARGV[-1], O_RDWR | O_EXCL);
	undef $device;
	select(undef, undef, undef, 0.01);
}
die "$ARGV[-1]: $!" unless $device;
open(my $mark, ">", "FOLDER/mkfs/$$") or die;
open(my $gate, "<", "FOLDER/gate") or die unless -e "FOLDER/open";
unlink "FOLDER/mkfs/$$";
exit 1 if getppid != $parent;
exec "FOLDER/mkfs.ext4", @ARGV;
"""


class Held(driver.DriverTest):
    """Each test has a driver of its own, and all workers of its Node service are in NodeStageVolume."""

    def setUp(self):
        super().setUp()
        os.mkdir(f"{self.folder}/mkfs")
        self.install_mkfs()
        self.start_driver()
        self.addCleanup(self.stop_driver)
        made = [self.create(f"v{i}") for i in range(WORKERS)]
        made = [volume.result() for volume in made] + [self.create("last").result()]
        self.volumes = [reply.volume.volume_id for reply in made]
        self.addCleanup(self.delete_volumes)
        self.addCleanup(self.open_gate)
        self.stages = [self.stage(volume) for volume in self.volumes[:WORKERS]]
        wait_for(lambda: len(self.running()) == WORKERS)

    def install_mkfs(self):
        os.mkfifo(f"{self.folder}/gate")
        subprocess.run(["cp", MKFS, f"{self.folder}/mkfs.ext4"], check=True)
        with open(f"{self.folder}/fake", "w") as script:
            script.write(FAKE_MKFS.replace("FOLDER", self.folder))
        os.chmod(f"{self.folder}/fake", 0o755)
        subprocess.run(["mount", "--bind", f"{self.folder}/fake", MKFS], check=True)
        self.addCleanup(subprocess.run, ["umount", MKFS], check=True)

    def running(self):
        return os.listdir(f"{self.folder}/mkfs")

    def open_gate(self):
        """Ends all waiting."""
        if os.path.exists(f"{self.folder}/open"):
            return
        os.mknod(f"{self.folder}/open")
        while self.running():
            try:
                os.close(os.open(f"{self.folder}/gate", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass
            time.sleep(0.01)

    def delete_volumes(self):
        """What was staged is still being done when the gate has opened."""
        for volume in self.volumes:
            self.insist(self.unstage, volume)
            self.insist(self.delete, volume)
        # until then there are loop devices, which would outlive the driver
        wait_for(lambda: not self.has_images())

    def has_images(self):
        return any(name.endswith(".image") for name in os.listdir(f"{self.folder}/fake-devices"))

    def assert_all_are_held(self):
        self.assertEqual(len(self.running()), WORKERS)
        self.assertEqual([stage for stage in self.stages if stage.done()], [])


class Answers(Held):
    def test_methods_that_only_read_memory_answer(self):
        self.assert_memory_is_read()
        for service, busy in ("Node", WORKERS), ("other", 0):
            self.assertEqual(self.metric("pmem_csi_workers_busy", service=service), busy)
            self.assertEqual(self.metric("pmem_csi_workers_limit", service=service), WORKERS)
        self.assertEqual(self.metric("pmem_csi_calls_in_flight"), WORKERS)
        self.assertEqual(self.metric("pmem_csi_connections"), 1)
        self.assert_all_are_held()

    def test_no_free_worker_is_unavailable_and_the_cause_is_named(self):
        failure = self.stage(self.volumes[WORKERS]).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertRegex(failure.details(), f"^{NODE}: all worker threads are busy: volume .*: mkfs.ext4 for .* s")
        unknown = self.future("Node", "Unknown", csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse).exception()
        self.assertRegex(unknown.details(), f"^{NODE}: unknown method")
        self.assert_all_are_held()
        self.open_gate()
        for stage in self.stages:
            stage.result()
        self.stage(self.volumes[WORKERS]).result()

    def test_calls_of_the_controller_service_have_other_workers(self):
        self.delete(self.create("beside").result().volume.volume_id).result()
        self.assert_all_are_held()

    def test_a_call_that_takes_too_long_hears_what_is_slow(self):
        volume = self.volumes[0]
        self.open_gate()
        for stage in self.stages:
            stage.result()
        os.unlink(f"{self.folder}/open")
        request = csi_pb2.NodeStageVolumeRequest(
            volume_id=self.volumes[WORKERS], staging_target_path=f"{self.folder}/staging/{volume}-2",
            volume_capability=capability())
        os.mkdir(request.staging_target_path)
        stub = self.channel.unary_unary("/csi.v1.Node/NodeStageVolume", type(request).SerializeToString,
                                        csi_pb2.NodeStageVolumeResponse.FromString)
        failure = stub.future(request, timeout=4).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertRegex(failure.details(), f"^{NODE}: no answer before the deadline; the operation continues: "
                         f"volume {self.volumes[WORKERS]}: mkfs.ext4 for . s")
        failure = stub.future(request, timeout=PATIENCE_S).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.ABORTED)
        self.assertRegex(failure.details(), f"^{NODE}: an operation on volume {self.volumes[WORKERS]} is in progress: "
                         "mkfs.ext4 for . s")
        self.open_gate()
        unstage = csi_pb2.NodeUnstageVolumeRequest(volume_id=request.volume_id,
                                                   staging_target_path=request.staging_target_path)
        self.insist(self.future, "Node", "NodeUnstageVolume", unstage, csi_pb2.NodeUnstageVolumeResponse)


class Ends(Held):
    def test_the_driver_ends_all_the_same_and_the_next_one_goes_on(self):
        self.driver.send_signal(signal.SIGTERM)
        self.assertEqual(self.driver.wait(PATIENCE_S), 1)
        self.assertIn("ending although operations are still running", self.logged())
        self.assertEqual(len(self.running()), WORKERS)
        self.log.close()
        self.channel.close()
        self.start_driver()
        failure = self.stage(self.volumes[0]).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("another program holds the device", failure.details())
        self.open_gate()
        for volume in self.volumes:
            self.insist(self.stage, volume)


if __name__ == "__main__":
    driver.main()
