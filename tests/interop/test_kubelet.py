# SPDX-License-Identifier: Apache-2.0
"""Recorded connections of a kubelet (tests/data/kubelet) replayed to the driver, in every possible pair of pieces.

usage: test_kubelet.py PMEM_CSI_DRIVER DATA_DIR [unittest options]

The volume of the recording is made again: same name, same node, same ID. Needs root, for loop devices and mounts, which
stay in a mount namespace of their own.
"""
import array
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

try:
    import grpc
    import hpack
    import hyperframe.frame as frames
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-grpcio python3-protobuf python3-h2")
    sys.exit(77)

import csi_pb2

PATIENCE_S = 60
KUBELET = "/var/lib/kubelet"
VOLUME = "static-0f456f189700695a47a96b08630947c43c40f1bc374fcbf.7cffea80"
OK, NOT_FOUND, UNIMPLEMENTED = "0", "5", "12"

# In the order of kubelet. All calls of CSI may be repeated.
LIFE = ["node-get-info", "node-get-capabilities", "node-stage-volume", "node-publish-volume", "node-unpublish-volume",
        "node-unstage-volume"]
# What the driver may answer to the others depends on what it offers.
OTHERS = {
    "registration": {OK, UNIMPLEMENTED},
    "node-publish-volume-inline": {OK},
    "node-unpublish-volume-inline": {OK},
    "node-get-volume-stats": {NOT_FOUND, UNIMPLEMENTED},
    "node-expand-volume": {NOT_FOUND, UNIMPLEMENTED},
}


def recorded(name):
    with open(f"{DATA}/{name}.bin", "rb") as file:
        return file.read()


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0)


def unread(sock):
    """Bytes that the peer of a unix socket has not read yet."""
    number = array.array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, number)
    return number[0]


def replies(data):
    """grpc-status and length of the message of each stream, from all that a server sent."""
    decoder, got = hpack.Decoder(), {}
    while data:
        frame, length = frames.Frame.parse_frame_header(memoryview(data[:9]))
        frame.parse_body(memoryview(data[9:9 + length]))
        data = data[9 + length:]
        # RFC 9113 section 8.1: NO_ERROR after a reply that came before the end of the request
        if isinstance(frame, frames.RstStreamFrame) and (frame.error_code or not got[frame.stream_id].get("ended")):
            raise AssertionError(f"stream reset: {frame}")
        if isinstance(frame, frames.GoAwayFrame) and frame.error_code:
            raise AssertionError(f"connection given up: {frame}")
        if not frame.stream_id or not isinstance(frame, (frames.HeadersFrame, frames.DataFrame)):
            continue
        reply = got.setdefault(frame.stream_id, {"body": b""})
        if "END_STREAM" in frame.flags:
            reply["ended"] = True
        if isinstance(frame, frames.DataFrame):
            reply["body"] += frame.data
        else:
            reply.update(decoder.decode(frame.data))
    return got


def check(reply):
    """Raises unless it is an answer by the book; returns its status."""
    assert reply[":status"] == "200", reply
    assert reply["content-type"] == "application/grpc", reply
    assert reply["ended"], reply
    if reply["grpc-status"] == OK:
        assert reply["body"][:1] == b"\0" and int.from_bytes(reply["body"][1:5], "big") == len(reply["body"]) - 5
    else:
        assert not reply["body"] and reply["grpc-message"], reply
    return reply["grpc-status"]


class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="pmem-kubelet-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "s")
        cls.log = open(os.path.join(cls.folder.name, "log"), "w+")
        cls.driver = subprocess.Popen(
            [DRIVER, "-mode=node", "-nodeid=host1", f"-endpoint=unix://{cls.path}", f"-kubeletDir={KUBELET}",
             f"-statePath={cls.folder.name}/state", "-deviceManager=fake", f"-fakePath={cls.folder.name}/fake",
             "-fakeRegionSize=1Gi"], stderr=cls.log)
        cls.addClassCleanup(cls.stop)
        channel = grpc.insecure_channel(f"unix://{cls.path}")
        with channel:
            probe = channel.unary_unary("/csi.v1.Identity/Probe", csi_pb2.ProbeRequest.SerializeToString,
                                        csi_pb2.ProbeResponse.FromString)
            wait_for(lambda: probe(csi_pb2.ProbeRequest(), wait_for_ready=True).ready.value)
            create = channel.unary_unary("/csi.v1.Controller/CreateVolume",
                                         csi_pb2.CreateVolumeRequest.SerializeToString,
                                         csi_pb2.CreateVolumeResponse.FromString)
            capability = csi_pb2.VolumeCapability(
                mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
                access_mode=csi_pb2.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER"))
            volume = create(csi_pb2.CreateVolumeRequest(
                name="static-1", capacity_range=csi_pb2.CapacityRange(required_bytes=64 << 20),
                volume_capabilities=[capability])).volume
        assert volume.volume_id == VOLUME, volume.volume_id

    @classmethod
    def delete_volumes(cls):
        """The recorded end of an inline volume is another one's."""
        inline = recorded("node-publish-volume-inline")
        gone = csi_pb2.NodeUnpublishVolumeRequest(
            volume_id=re.search(rb"csi-[0-9a-f]{64}", inline).group().decode(),
            target_path=re.search(rb"/var/lib/kubelet/pods/[\w./~-]+/mount", inline).group().decode())
        with grpc.insecure_channel(f"unix://{cls.path}") as channel:
            unpublish = channel.unary_unary("/csi.v1.Node/NodeUnpublishVolume",
                                            csi_pb2.NodeUnpublishVolumeRequest.SerializeToString,
                                            csi_pb2.NodeUnpublishVolumeResponse.FromString)
            unpublish(gone, timeout=PATIENCE_S)
            delete = channel.unary_unary("/csi.v1.Controller/DeleteVolume",
                                         csi_pb2.DeleteVolumeRequest.SerializeToString,
                                         csi_pb2.DeleteVolumeResponse.FromString)
            delete(csi_pb2.DeleteVolumeRequest(volume_id=VOLUME), timeout=PATIENCE_S)
        # until then there are loop devices, which would outlive the driver
        wait_for(lambda: not any(name.endswith(".image") for name in os.listdir(f"{cls.folder.name}/fake")))

    @classmethod
    def stop(cls):
        try:
            cls.delete_volumes()
        finally:
            cls.driver.send_signal(signal.SIGTERM)
        status = cls.driver.wait(PATIENCE_S)
        cls.log.seek(0)
        assert status == 0, cls.log.read()
        cls.log.close()

    def replay(self, *pieces):
        """Sends the pieces, each when the one before was read; returns the statuses of the calls."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(self.path)
            data = b""
            for piece in pieces:
                client.sendall(piece)
                wait_for(lambda: unread(client) == 0)
            while more := client.recv(65536):
                data += more
        return [check(reply) for _, reply in sorted(replies(data).items())]

    def replay_in_all_ways(self, name):
        data = recorded(name)
        whole = self.replay(data)
        for i in range(1, len(data)):
            self.assertEqual(self.replay(data[:i], data[i:]), whole, i)
        self.assertEqual(self.replay(*(data[i:i + 1] for i in range(len(data)))), whole)
        return whole

    def test_life_of_a_volume(self):
        # What kubelet makes before it calls.
        publish = recorded("node-publish-volume")
        for path in (rb"/var/lib/kubelet/plugins/[\w./-]+/globalmount", rb"/var/lib/kubelet/pods/[\w./~-]+(?=/mount)"):
            os.makedirs(re.search(path, publish).group())
        for name in LIFE:
            with self.subTest(name):
                self.assertEqual(self.replay_in_all_ways(name), [OK])

    def test_other_calls(self):
        inline = recorded("node-publish-volume-inline")
        os.makedirs(re.search(rb"/var/lib/kubelet/pods/[\w./~-]+(?=/mount)", inline).group(), exist_ok=True)
        for name, allowed in OTHERS.items():
            with self.subTest(name):
                statuses = self.replay_in_all_ways(name)
                self.assertEqual(len(statuses), 2 if name == "registration" else 1)
                self.assertLessEqual(set(statuses), allowed)

    def test_everything_is_replayed(self):
        self.assertEqual(sorted(f"{name}.bin" for name in [*LIFE, *OTHERS]),
                         sorted(f for f in os.listdir(DATA) if f.endswith(".bin")))


def enter_namespace():
    """Runs the program again in a mount namespace of its own, where /var/lib/kubelet is empty."""
    if os.geteuid() != 0:
        print("SKIP: needs root, for loop devices and mounts")
        sys.exit(77)
    if "PMEM_REPLAY_INSIDE" in os.environ:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib"], check=True)
        os.mkdir(KUBELET)
        return
    os.environ["PMEM_REPLAY_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])


if __name__ == "__main__":
    enter_namespace()
    DRIVER, DATA = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
