# SPDX-License-Identifier: Apache-2.0
"""pmem-csi-driver while volumes grow: used by a writer, staged nowhere, killed at each durable step, repeated, refused.

usage: test_expansion.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own. ext4 grows only where this process
has CAP_SYS_RESOURCE, which a container may lack; xfs grows everywhere.
"""
import fcntl
import json
import os
import struct
import threading
import zlib

import driver
from driver import MIB, csi_pb2, wait_for
from node import Code, Node

CAP_SYS_RESOURCE = 24
OLD, NEW = 320 * MIB, 600 * MIB
BLKGETSIZE64 = 0x80081272


def may_grow_ext4():
    with open("/proc/self/status") as status:
        (capabilities,) = [line.split()[1] for line in status if line.startswith("CapEff:")]
    return int(capabilities, 16) >> CAP_SYS_RESOURCE & 1 == 1


TYPES = ["ext4", "xfs"] if may_grow_ext4() else ["xfs"]
if len(TYPES) == 1:
    print("SKIP of online growth with ext4: no CAP_SYS_RESOURCE")


class Writer(threading.Thread):
    """Writes numbers with checksums, and reads each back, until stop()."""

    def __init__(self, path):
        super().__init__()
        self.path, self.n, self.failure, self.ending = path, 0, None, False
        self.start()

    def run(self):
        try:
            with open(self.path, "w+b", buffering=0) as file:
                while not self.ending:
                    at = self.n % 1000 * 4096
                    number = struct.pack("<Q", self.n)
                    block = (number + struct.pack("<L", zlib.crc32(number))).ljust(4096, b"\0")
                    os.pwrite(file.fileno(), block, at)
                    os.fsync(file.fileno())
                    if os.pread(file.fileno(), 4096, at) != block:
                        raise AssertionError(f"block {self.n} is not what was written")
                    self.n += 1
        except BaseException as failure:  # pylint: disable=broad-except
            self.failure = failure

    def progress(self):
        before = self.n
        wait_for(lambda: self.failure or self.n > before + 2)

    def stop(self):
        self.ending = True
        self.join()
        if self.failure:
            raise self.failure


class Expansion(Node):
    def capability(self, kind):
        capability = driver.capability()
        if kind == "block":
            capability.block.SetInParent()
        else:
            capability.mount.fs_type = kind
        return capability

    def make_of(self, kind, name="volume", size=OLD, **parameters):
        request = csi_pb2.CreateVolumeRequest(
            name=name, volume_capabilities=[self.capability(kind)], parameters=parameters,
            capacity_range=csi_pb2.CapacityRange(required_bytes=size))
        return self.call("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse).volume.volume_id

    def stage_as(self, kind, volume, *flags):
        os.makedirs(self.staging(volume), exist_ok=True)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                 volume_capability=self.capability(kind))
        if flags:
            request.volume_capability.mount.mount_flags.extend(flags)
        self.call("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def publish_as(self, kind, volume, pod="pod", **more):
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id=volume, staging_target_path=self.staging(volume), target_path=self.target(volume, pod),
            volume_capability=self.capability(kind), **more)
        self.call("Node", "NodePublishVolume", request, csi_pb2.NodePublishVolumeResponse)

    def expand(self, volume, required, limit=0, **more):
        request = csi_pb2.ControllerExpandVolumeRequest(
            volume_id=volume, capacity_range=csi_pb2.CapacityRange(required_bytes=required, limit_bytes=limit), **more)
        return self.future("Controller", "ControllerExpandVolume", request, csi_pb2.ControllerExpandVolumeResponse)

    def node_expand(self, volume, path=None, required=0, limit=0):
        request = csi_pb2.NodeExpandVolumeRequest(
            volume_id=volume, volume_path=path or self.staging(volume), staging_target_path=self.staging(volume),
            capacity_range=csi_pb2.CapacityRange(required_bytes=required, limit_bytes=limit))
        return self.future("Node", "NodeExpandVolume", request, csi_pb2.NodeExpandVolumeResponse)

    def record(self, volume):
        with open(f"{self.state}/{volume}.json") as file:
            return json.load(file)

    def size_of(self, volume):
        """As ListVolumes says."""
        reply = self.call("Controller", "ListVolumes", csi_pb2.ListVolumesRequest(), csi_pb2.ListVolumesResponse)
        (size,) = [e.volume.capacity_bytes for e in reply.entries if e.volume.volume_id == volume]
        return size

    @staticmethod
    def total(path):
        fs = os.statvfs(path)
        return fs.f_blocks * fs.f_frsize

    def test_online(self):
        """Under a pod that writes, and with FileIO."""
        for kind in TYPES:
            for usage in "AppDirect", "FileIO":
                volume = self.make_of(kind, usage=usage)
                self.stage_as(kind, volume)
                self.publish_as(kind, volume)
                before = self.total(self.target(volume))
                writer = Writer(f"{self.target(volume)}/numbers")
                reply = self.expand(volume, NEW).result()
                self.assertEqual((reply.capacity_bytes, reply.node_expansion_required), (NEW, True))
                self.assertEqual(self.total(self.target(volume)), before)
                writer.progress()
                for _ in range(2):
                    reply = self.node_expand(volume, self.target(volume), required=NEW).result()
                    self.assertEqual(reply.capacity_bytes, NEW)
                self.assertGreater(self.total(self.target(volume)), before + (NEW - OLD) * 9 // 10)
                writer.progress()
                writer.stop()
                with open(f"{self.target(volume)}/large", "wb") as file:
                    file.write(b"x" * (OLD + 20 * MIB))
                self.unuse(volume)
                self.assertEqual(self.logged().count("file system expanded"), 1)
                self.assertEqual(self.record(volume)["size"], NEW)
                self.delete_all()
                self.log.truncate(0)

    def test_offline(self):
        """What was expanded while it was staged nowhere grows when it is staged; and NodeExpandVolume finds it done."""
        for kind in TYPES:
            volume = self.make_of(kind)
            self.stage_as(kind, volume)
            before = self.total(self.staging(volume))
            self.unstage(volume).result()
            self.assertTrue(self.expand(volume, NEW).result().node_expansion_required)
            self.restart_driver()
            self.stage_as(kind, volume)
            self.assertGreater(self.total(self.staging(volume)), before + (NEW - OLD) * 9 // 10)
            self.node_expand(volume).result()
            self.unstage(volume).result()
            self.delete_all()

    def test_block(self):
        """The pod sees the new size at once, with zeros; nothing is left to do on the node."""
        volume = self.make_of("block", size=16 * MIB)
        self.stage_as("block", volume)
        self.publish_as("block", volume)
        with open(self.target(volume), "r+b", buffering=0) as device:
            os.pwrite(device.fileno(), b"x" * 16 * MIB, 0)
            reply = self.expand(volume, 40 * MIB).result()
            self.assertEqual((reply.capacity_bytes, reply.node_expansion_required), (40 * MIB, False))
            (size,) = struct.unpack("Q", fcntl.ioctl(device, BLKGETSIZE64, bytes(8)))
            self.assertEqual(size, 40 * MIB)
            content = os.pread(device.fileno(), 40 * MIB, 0)
        self.assertEqual(content, b"x" * 16 * MIB + bytes(24 * MIB))
        for path in self.target(volume), self.staging(volume):
            self.assertEqual(self.node_expand(volume, path).result().capacity_bytes, 40 * MIB)
        self.unuse(volume)
        self.delete_all()

    def test_capability_decides_what_the_node_has_to_do(self):
        volume = self.make_of("block", size=16 * MIB)
        for size, kind, wanted in (20, "ext4", True), (24, "block", False), (28, None, False):
            more = {"volume_capability": self.capability(kind)} if kind else {}
            reply = self.expand(volume, size * MIB, **more).result()
            self.assertEqual(reply.node_expansion_required, wanted)
        self.delete_all()

    def test_sizes(self):
        """Never smaller; rounded up; limits; what fits at most."""
        volume = self.make_of("xfs")
        for required in 1, OLD - 1, OLD:
            self.assertEqual(self.expand(volume, required).result().capacity_bytes, OLD)
        granted = self.expand(volume, OLD + 1).result().capacity_bytes
        self.assertGreater(granted, OLD)
        self.assertLessEqual(granted, OLD + 4 * MIB)
        self.assertEqual(self.expand(volume, OLD + 1).result().capacity_bytes, granted)
        self.assert_refused(self.expand(volume, granted + 1, granted + 2), Code.OUT_OF_RANGE, "rounded up .*limit_bytes")
        self.assert_refused(self.expand(volume, 1, granted - 1), Code.OUT_OF_RANGE, "does not shrink")
        self.assert_refused(self.expand(volume, 2, 1), Code.INVALID_ARGUMENT, "larger than limit_bytes")
        self.assert_refused(self.expand(volume, 0), Code.INVALID_ARGUMENT, "neither required_bytes nor limit_bytes")
        self.assert_refused(self.expand(volume, 5000 * MIB), Code.RESOURCE_EXHAUSTED,
                            "not enough space in pool .* can grow to at most 1Gi there")
        self.assert_refused(self.expand("unknown", NEW), Code.NOT_FOUND, "does not exist")
        self.assertEqual(self.size_of(volume), granted)
        self.assertEqual(self.expand(volume, 1024 * MIB).result().capacity_bytes, 1024 * MIB)
        self.assert_refused(self.node_expand(volume), Code.NOT_FOUND, "neither staged nor published")
        self.stage_as("xfs", volume)
        self.assert_refused(self.node_expand(volume, required=2000 * MIB), Code.OUT_OF_RANGE, "comes first")
        self.assert_refused(self.node_expand(volume, limit=MIB), Code.OUT_OF_RANGE, "limit_bytes")
        self.assert_refused(self.node_expand("unknown"), Code.NOT_FOUND, "does not exist")
        self.unstage(volume).result()
        self.delete_all()

    def test_read_only(self):
        """A volume that is staged read-only says why it cannot grow; one that only its pod has read-only grows."""
        volume = self.make_of("xfs")
        self.stage_as("xfs", volume)
        self.publish_as("xfs", volume, readonly=True)
        before = self.total(self.target(volume))
        self.expand(volume, NEW).result()
        self.node_expand(volume, self.target(volume)).result()
        grown = self.total(self.target(volume))
        self.assertGreater(grown, before)
        self.unuse(volume)
        self.stage_as("xfs", volume, "ro")
        self.expand(volume, NEW + 100 * MIB).result()
        self.assert_refused(self.node_expand(volume), Code.FAILED_PRECONDITION, "mounted read-only, so it cannot be grown now")
        self.unstage(volume).result()
        self.stage_as("xfs", volume)
        self.assertGreater(self.total(self.staging(volume)), grown)
        self.unstage(volume).result()
        self.delete_all()

    def test_concurrent_calls(self):
        """One of them is done, and others get ABORTED or find it done."""
        volume = self.make_of("xfs")
        futures = [self.expand(volume, NEW) for _ in range(8)]
        codes = {future.code() for future in futures if not future.exception()}
        failures = {future.exception().code() for future in futures if future.exception()}
        self.assertEqual(codes, {Code.OK})
        self.assertLessEqual(failures, {Code.ABORTED})
        self.assertEqual(self.size_of(volume), NEW)
        self.assertEqual(self.logged().count("volume expanded"), 1)
        self.delete_all()

    def test_inline_volume(self):
        target = f"{self.folder}/pods/inline"
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id="csi-0123", target_path=target, volume_capability=self.capability("ext4"),
            volume_context={"csi.storage.k8s.io/ephemeral": "true", "size": "16Mi"})
        self.call("Node", "NodePublishVolume", request, csi_pb2.NodePublishVolumeResponse)
        (volume,) = self.listed()
        self.assert_refused(self.expand(volume, NEW), Code.INVALID_ARGUMENT, "is an inline volume, which cannot be expanded")
        request = csi_pb2.NodeUnpublishVolumeRequest(volume_id="csi-0123", target_path=target)
        self.call("Node", "NodeUnpublishVolume", request, csi_pb2.NodeUnpublishVolumeResponse)
        wait_for(lambda: not self.images())

    def points(self, kind):
        """Those that a growth goes through, each with the number of its hits."""
        trace = f"{self.folder}/trace"
        self.kill_driver()
        os.environ["PMEM_STEP_TRACE"] = trace
        try:
            self.start_driver()
        finally:
            del os.environ["PMEM_STEP_TRACE"]
        volume = self.make_of(kind, "traced")
        with open(trace) as file:
            before = len(file.readlines())
        self.expand(volume, NEW).result()
        with open(trace) as file:
            points = [line.split() for line in file.readlines()[before:]]
        self.insist(self.delete, volume)
        wait_for(lambda: not self.images())
        return [f"{point}:{hit}" for _, point, hit in points]

    def test_killed_at_each_step(self):
        """The volume has its old or its new size, all parts agree, and a retry finishes it."""
        points = self.points("xfs")
        self.assertIn("grow-recorded:1", points)
        self.assertIn("grow-done:1", points)
        for point in points:
            with self.subTest(point=point):
                self.kill_at(point, "xfs")

    def kill_at(self, point, kind):
        self.kill_driver()
        os.environ["PMEM_KILL_AT"] = point
        try:
            self.start_driver()
        finally:
            del os.environ["PMEM_KILL_AT"]
        volume = self.make_of(kind)
        self.assertIsNotNone(self.expand(volume, NEW).exception(), "was not killed")
        self.end_driver(-9)
        self.start_driver()
        record = self.record(volume)
        self.assertNotIn("resizing", record)
        self.assertIn(record["size"], (OLD, NEW))
        self.assertEqual(self.size_of(volume), record["size"])
        (image,) = self.images()
        self.assertEqual(os.stat(f"{self.folder}/fake-devices/{image}").st_size, record["size"])
        self.assertEqual(self.available(), 2 * 1024 * MIB - record["size"])
        self.assertEqual(self.expand(volume, NEW).result().capacity_bytes, NEW)
        self.stage_as(kind, volume)
        self.unstage(volume).result()
        self.delete_all()

    def test_state_of_an_expansion_that_an_earlier_release_has_kept(self):
        """`resizing` is settled whenever it is found: an earlier release and the Go driver keep or drop it."""
        volume = self.make_of("xfs")
        self.kill_driver()
        with open(f"{self.state}/{volume}.json") as file:
            record = json.load(file)
        with open(f"{self.state}/{volume}.json", "w") as file:
            json.dump({**record, "resizing": NEW}, file)
        self.start_driver()
        self.assertEqual(self.record(volume), record)
        self.expand(volume, NEW).result()
        self.kill_driver()
        with open(f"{self.state}/{volume}.json", "w") as file:
            json.dump(record, file)
        self.start_driver()
        self.assertEqual(self.record(volume)["size"], NEW)
        self.assertIn("larger than recorded", self.logged())
        self.delete_all()


if __name__ == "__main__":
    driver.main()
