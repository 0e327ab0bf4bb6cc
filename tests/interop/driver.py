# SPDX-License-Identifier: Apache-2.0
"""A pmem-csi-driver for tests: started with fake devices in a folder of its own, and its clients.

Needs root, for loop devices and mounts, which stay in a mount namespace of their own (enter_namespace()).
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
MIB = 1 << 20
NODE = "host1"
AGAIN = grpc.StatusCode.ABORTED, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0.01)


def capability():
    return csi_pb2.VolumeCapability(mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
                                    access_mode=csi_pb2.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER"))


def detach_loops(folder):
    """Those that a driver has left for the next one: over files in @folder."""
    listed = subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"], check=True,
                            capture_output=True, text=True).stdout
    # one that another process detaches just now has no file any more
    for name, file in (line.split(maxsplit=1) for line in listed.splitlines() if len(line.split()) > 1):
        if file.startswith(f"{folder}/"):
            subprocess.run(["losetup", "--detach", name], check=True)


class DriverTest(unittest.TestCase):
    """Each test has a driver of its own, which it starts."""

    program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-interop-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.addCleanup(detach_loops, self.folder)
        os.mkdir(f"{self.folder}/staging")

    def devices(self):
        """Flags that say which."""
        return ["-deviceManager=fake", f"-fakePath={self.folder}/fake-devices", "-fakeRegionSize=1Gi"]

    def start_driver(self, *flags):
        path = self.folder
        self.log = open(f"{path}/log", "a+")
        self.driver = subprocess.Popen(
            [self.program, "-mode=node", f"-nodeid={NODE}", *self.devices(), f"-statePath={path}/state",
             f"-endpoint=unix://{path}/s", "-metricsListen=127.0.0.1:0", *flags], stderr=self.log)
        self.channel = grpc.insecure_channel(f"unix://{path}/s")
        wait_for(self.is_up)
        self.port = int(re.findall(r"serving metrics .*port=(\d+)", self.logged())[-1])

    def stop_driver(self):
        self.driver.send_signal(signal.SIGTERM)
        self.end_driver(0)

    def end_driver(self, wanted):
        status = self.driver.wait(PATIENCE_S)
        self.log.close()
        self.channel.close()
        self.assertEqual(status, wanted)

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def future(self, service, method, request, reply, timeout=PATIENCE_S, **more):
        stub = self.channel.unary_unary(f"/csi.v1.{service}/{method}", type(request).SerializeToString, reply.FromString)
        return stub.future(request, timeout=timeout, **more)

    def call(self, *args, **more):
        return self.future(*args, **more).result()

    def probe(self):
        return self.call("Identity", "Probe", csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse,
                         wait_for_ready=True).ready.value

    def is_up(self):
        """What start_driver() waits for."""
        return self.probe()

    def available(self):
        return self.call("Controller", "GetCapacity", csi_pb2.GetCapacityRequest(),
                         csi_pb2.GetCapacityResponse).available_capacity

    def create(self, name, **more):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[capability()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=16 * MIB))
        return self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse, **more)

    def stage(self, volume, *flags):
        path = f"{self.folder}/staging/{volume}"
        os.makedirs(path, exist_ok=True)
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=path,
                                                 volume_capability=capability())
        request.volume_capability.mount.mount_flags.extend(flags)
        return self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)

    def unstage(self, volume):
        request = csi_pb2.NodeUnstageVolumeRequest(volume_id=volume,
                                                   staging_target_path=f"{self.folder}/staging/{volume}")
        return self.future("Node", "NodeUnstageVolume", request, csi_pb2.NodeUnstageVolumeResponse)

    def delete(self, volume):
        return self.future("Controller", "DeleteVolume", csi_pb2.DeleteVolumeRequest(volume_id=volume),
                           csi_pb2.DeleteVolumeResponse)

    def insist(self, call, *args):
        """As kubelet and provisioner: in place, for as long as the code says so."""
        done = []

        def is_done():
            future = call(*args)
            failure = future.exception()
            if failure and failure.code() not in AGAIN:
                raise failure
            done.append(future)
            return not failure
        wait_for(is_done)
        return done[-1].result()

    def assert_retried(self, failure, cause):
        """Kubernetes makes the call again here, and people see why."""
        self.assertIn(failure.code(), AGAIN, failure)
        self.assertRegex(failure.details(), cause)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path)
        reply = connection.getresponse()
        self.assertEqual(reply.status, 200)
        return reply.read().decode()

    def metric(self, name, **labels):
        (family,) = [f for f in text_string_to_metric_families(self.get("/metrics")) if f.name == name]
        (sample,) = [s for s in family.samples if labels.items() <= s.labels.items()]
        return sample.value

    def assert_memory_is_read(self):
        """What needs no device answers."""
        answers = [
            self.probe(),
            self.call("Identity", "GetPluginInfo", csi_pb2.GetPluginInfoRequest(), csi_pb2.GetPluginInfoResponse).name,
            self.available() >= 0,
            self.call("Node", "NodeGetInfo", csi_pb2.NodeGetInfoRequest(), csi_pb2.NodeGetInfoResponse).node_id,
            self.call("Node", "NodeGetCapabilities", csi_pb2.NodeGetCapabilitiesRequest(),
                      csi_pb2.NodeGetCapabilitiesResponse).capabilities,
            self.get("/healthz"),
            self.get("/metrics"),
            self.get("/metrics/simple"),
        ]
        self.assertNotIn(False, map(bool, answers))


def enter_namespace(*more):
    """Runs the program again in a mount namespace of its own. @more: further flags of unshare"""
    if os.geteuid() != 0:
        print("SKIP: needs root, for loop devices and mounts")
        sys.exit(77)
    if "PMEM_INTEROP_INSIDE" in os.environ:
        return
    os.environ["PMEM_INTEROP_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-m", *more, "--propagation", "private", sys.executable, *sys.argv])


def main():
    """For a script whose first argument is the driver."""
    enter_namespace()
    DriverTest.program = sys.argv.pop(1)
    unittest.main(verbosity=2)
