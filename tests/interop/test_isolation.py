"""pmem-csi-driver while all of its worker threads are held by a mkfs that does not end.

usage: test_isolation.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import grpc
    from prometheus_client.parser import text_string_to_metric_families
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-grpcio python3-protobuf python3-prometheus-client")
    sys.exit(77)

import csi_pb2

PATIENCE_S = 120
WORKERS = 32
MIB = 1 << 20
NODE = "host1"
MKFS = "/usr/sbin/mke2fs"
DRIVER = None

# Holds the device as mkfs does, says so, and waits at the gate: a FIFO that nobody opens before open_gate(). Without its
# driver it ends there, so that nobody finds the device free for a moment.
FAKE_MKFS = """#!/usr/bin/perl
use Fcntl;
my $parent = getppid;
sysopen(my $device, $ARGV[-1], O_RDWR | O_EXCL) or die "$ARGV[-1]: $!";
open(my $mark, ">", "FOLDER/mkfs/$$") or die;
open(my $gate, "<", "FOLDER/gate") or die unless -e "FOLDER/open";
unlink "FOLDER/mkfs/$$";
exit 1 if getppid != $parent;
exec "FOLDER/mkfs.ext4", @ARGV;
"""


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0.01)


def capability():
    return csi_pb2.VolumeCapability(mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
                                    access_mode=csi_pb2.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER"))


class Held(unittest.TestCase):
    """Each test has a driver of its own, and all of its workers are in NodeStageVolume."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-isolation-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in "mkfs", "staging":
            os.mkdir(f"{self.folder}/{name}")
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
        """Nobody has to wait any more."""
        if os.path.exists(f"{self.folder}/open"):
            return
        os.mknod(f"{self.folder}/open")
        while self.running():
            try:
                os.close(os.open(f"{self.folder}/gate", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                pass
            time.sleep(0.01)

    def start_driver(self):
        path = self.folder
        self.log = open(f"{path}/log", "a+")
        self.driver = subprocess.Popen(
            [DRIVER, "-mode=node", f"-nodeid={NODE}", "-deviceManager=fake", f"-fakePath={path}/fake-devices",
             "-fakeRegionSize=1Gi", f"-statePath={path}/state", f"-endpoint=unix://{path}/s",
             "-metricsListen=127.0.0.1:0"], stderr=self.log)
        self.channel = grpc.insecure_channel(f"unix://{path}/s")
        probe = csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse
        wait_for(lambda: self.call("Identity", "Probe", *probe, wait_for_ready=True).ready.value)
        self.port = int(re.findall(r"serving metrics .*port=(\d+)", self.logged())[-1])

    def stop_driver(self):
        self.driver.send_signal(signal.SIGTERM)
        status = self.driver.wait(PATIENCE_S)
        self.log.close()
        self.channel.close()
        self.assertEqual(status, 0)

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def future(self, service, method, request, reply, **more):
        stub = self.channel.unary_unary(f"/csi.v1.{service}/{method}", type(request).SerializeToString, reply.FromString)
        return stub.future(request, timeout=PATIENCE_S, **more)

    def call(self, *args, **more):
        return self.future(*args, **more).result()

    def create(self, name):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[capability()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=16 * MIB))
        return self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse)

    def stage(self, volume):
        path = f"{self.folder}/staging/{volume}"
        os.makedirs(path, exist_ok=True)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=path,
                                                 volume_capability=capability())
        return self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def delete_volumes(self):
        """What was staged is still at it when the gate has opened."""
        for volume in self.volumes:
            unstage = csi_pb2.NodeUnstageVolumeRequest(volume_id=volume,
                                                       staging_target_path=f"{self.folder}/staging/{volume}")
            delete = csi_pb2.DeleteVolumeRequest(volume_id=volume)
            self.insist("Node", "NodeUnstageVolume", unstage, csi_pb2.NodeUnstageVolumeResponse)
            self.insist("Controller", "DeleteVolume", delete, csi_pb2.DeleteVolumeResponse)
        # until then there are loop devices, which would outlive the driver
        wait_for(lambda: not self.has_images())

    def has_images(self):
        return any(name.endswith(".image") for name in os.listdir(f"{self.folder}/fake-devices"))

    def insist(self, *args):
        """As kubelet and provisioner: in place, for as long as the code says so."""
        def is_done():
            failure = self.future(*args).exception()
            if failure and failure.code() not in (grpc.StatusCode.ABORTED, grpc.StatusCode.UNAVAILABLE):
                raise failure
            return not failure
        wait_for(is_done)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path)
        reply = connection.getresponse()
        self.assertEqual(reply.status, 200)
        return reply.read().decode()

    def metric(self, name):
        (family,) = [f for f in text_string_to_metric_families(self.get("/metrics")) if f.name == name]
        (sample,) = family.samples
        return sample.value

    def assert_all_are_held(self):
        self.assertEqual(len(self.running()), WORKERS)
        self.assertEqual([stage for stage in self.stages if stage.done()], [])


class Answers(Held):
    def test_methods_that_only_read_memory_answer(self):
        answers = [
            self.call("Identity", "Probe", csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse).ready.value,
            self.call("Identity", "GetPluginInfo", csi_pb2.GetPluginInfoRequest(), csi_pb2.GetPluginInfoResponse).name,
            self.call("Controller", "GetCapacity", csi_pb2.GetCapacityRequest(),
                      csi_pb2.GetCapacityResponse).available_capacity,
            self.call("Node", "NodeGetInfo", csi_pb2.NodeGetInfoRequest(), csi_pb2.NodeGetInfoResponse).node_id,
            self.call("Node", "NodeGetCapabilities", csi_pb2.NodeGetCapabilitiesRequest(),
                      csi_pb2.NodeGetCapabilitiesResponse).capabilities,
            self.get("/healthz"),
            self.get("/metrics/simple"),
        ]
        self.assertNotIn(False, map(bool, answers))
        self.assertEqual(self.metric("pmem_csi_workers_busy"), WORKERS)
        self.assertEqual(self.metric("pmem_csi_workers_limit"), WORKERS)
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
        self.assertRegex(failure.details(), f"^{NODE}: no answer before the deadline; the work goes on: "
                         f"volume {self.volumes[WORKERS]}: mkfs.ext4 for . s")
        failure = stub.future(request, timeout=PATIENCE_S).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.ABORTED)
        self.assertRegex(failure.details(), f"^{NODE}: an operation on volume {self.volumes[WORKERS]} is in progress: "
                         "mkfs.ext4 for . s")
        self.open_gate()
        unstage = csi_pb2.NodeUnstageVolumeRequest(volume_id=request.volume_id,
                                                   staging_target_path=request.staging_target_path)
        self.insist("Node", "NodeUnstageVolume", unstage, csi_pb2.NodeUnstageVolumeResponse)


class Ends(Held):
    def test_the_driver_ends_all_the_same_and_the_next_one_goes_on(self):
        self.driver.send_signal(signal.SIGTERM)
        self.assertEqual(self.driver.wait(PATIENCE_S), 1)
        self.assertIn("ending in the middle of work that does not end", self.logged())
        self.assertEqual(len(self.running()), WORKERS)
        self.log.close()
        self.channel.close()
        self.start_driver()
        failure = self.stage(self.volumes[0]).exception()
        self.assertEqual(failure.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("another program holds the device", failure.details())
        self.open_gate()
        for volume in self.volumes:
            path = f"{self.folder}/staging/{volume}"
            os.makedirs(path, exist_ok=True)
            request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=path,
                                                     volume_capability=capability())
            self.insist("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)


def enter_namespace():
    """Again, where nobody else sees what is mounted."""
    if os.geteuid() != 0:
        print("SKIP: needs root, for loop devices and mounts")
        sys.exit(77)
    if "PMEM_ISOLATION_INSIDE" in os.environ:
        return
    os.environ["PMEM_ISOLATION_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])


if __name__ == "__main__":
    enter_namespace()
    DRIVER = sys.argv.pop(1)
    unittest.main(verbosity=2)
