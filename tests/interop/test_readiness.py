# SPDX-License-Identifier: Apache-2.0
"""A pmem-csi-driver that cannot become ready reports the reason in all places, and is alive meanwhile.

usage: test_readiness.py PMEM_CSI_DRIVER [unittest options]
"""
import http.client
import os
import re
import signal
import socket
import subprocess

import grpc

import csi_pb2
import driver
from driver import MIB, wait_for



class Readiness(driver.DriverTest):
    def is_up(self):
        return not self.probe() if self.is_broken else self.probe()

    def start(self, *flags, is_broken=False):
        self.is_broken = is_broken
        self.start_driver("-probeListen=127.0.0.1:0", *flags)
        wait_for(lambda: "serving probes" in self.logged())
        self.probe_port = int(re.findall(r"serving probes .*port=(\d+)", self.logged())[-1])
        self.addCleanup(self.stop_driver)

    def answer(self, port, path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=driver.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    def assert_not_ready(self, reason):
        """All places report it, with the same text."""
        wait_for(lambda: "the last attempt failed" in self.answer(self.probe_port, "/readyz")[1])
        for port in self.port, self.probe_port:
            self.assertEqual(self.answer(port, "/healthz"), (200, "ok"))
            status, text = self.answer(port, "/readyz")
            self.assertEqual(status, 503)
            self.assertRegex(text, rf"\Athe driver is still starting.*; the last attempt failed: .*{reason}.*\n\Z")
        self.assertFalse(self.probe())
        self.assertEqual(self.metric("pmem_ready"), 0)
        self.assert_retried(self.create("pvc").exception(), reason)
        failure = self.future("Controller", "GetCapacity", csi_pb2.GetCapacityRequest(), csi_pb2.GetCapacityResponse)
        self.assert_retried(failure.exception(), reason)

    def assert_ready(self):
        wait_for(lambda: self.answer(self.probe_port, "/readyz") == (200, "ok"))
        self.assertEqual(self.answer(self.port, "/readyz"), (200, "ok"))
        self.assertTrue(self.probe())
        self.assertEqual(self.metric("pmem_ready"), 1)
        self.assertEqual(self.create("pvc").result().volume.capacity_bytes, 16 * MIB)

    def test_ready(self):
        self.start()
        self.assert_ready()

    def test_a_state_path_that_is_a_file(self):
        with open(f"{self.folder}/state", "w", encoding="ascii"):
            pass
        self.start(is_broken=True)
        self.assert_not_ready("Not a directory")
        os.unlink(f"{self.folder}/state")
        self.assert_ready()

    def test_a_state_folder_that_another_driver_has(self):
        other = subprocess.Popen([self.program, "-mode=node", "-nodeid=other", "-deviceManager=fake",
                                  f"-statePath={self.folder}/state", f"-endpoint=unix://{self.folder}/other"],
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(other.wait, driver.PATIENCE_S)
        self.addCleanup(other.kill)
        wait_for(lambda: os.path.exists(f"{self.folder}/state/.lock"))
        self.start(is_broken=True)
        self.assert_not_ready(f"held by process {other.pid}")
        other.send_signal(signal.SIGTERM)
        self.assert_ready()

    def test_no_persistent_memory_is_no_reason(self):
        """Otherwise the roll-out of a DaemonSet would wait for ever for a node that has none."""
        if os.path.exists("/sys/bus/nd/devices") and os.listdir("/sys/bus/nd/devices"):
            self.skipTest("this host has persistent memory")
        self.devices = lambda: ["-deviceManager=direct"]
        self.start()
        self.assertEqual(self.answer(self.probe_port, "/readyz"), (200, "ok"))
        self.assertEqual(self.available(), 0)

    def asked_for_its_set_up(self, target):
        """Return: the status, and what was said."""
        with grpc.insecure_channel(target) as channel:
            call = channel.unary_unary("/inspect.v0.Inspect/GetSetup", lambda m: m, lambda m: m).future(
                b"", timeout=driver.PATIENCE_S, wait_for_ready=True)
            return call.code(), call.result() if call.code() == grpc.StatusCode.OK else b""

    def test_the_set_up_is_shown_on_the_unix_socket_only(self):
        """Paths of the host must not be visible elsewhere."""
        self.start("-controllerEndpoint=tcp://127.0.0.1:0", "-insecure")
        code, said = self.asked_for_its_set_up(f"unix://{self.folder}/s")
        self.assertEqual(code, grpc.StatusCode.OK)
        self.assertIn(f"{self.folder}/state".encode(), said)
        port = [line for line in self.listening() if line not in (self.port, self.probe_port)]
        self.assertEqual(len(port), 1)
        self.assertEqual(self.asked_for_its_set_up(f"127.0.0.1:{port[0]}"), (grpc.StatusCode.UNIMPLEMENTED, b""))

    def listening(self):
        """TCP ports of the driver."""
        sockets = {os.readlink(f"/proc/{self.driver.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.driver.pid}/fd")}
        with open(f"/proc/{self.driver.pid}/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
        return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]

    def test_a_csi_socket_on_tcp_tells_no_set_up(self):
        self.is_broken = False
        log = open(f"{self.folder}/tcp.log", "w+", encoding="utf-8")
        self.addCleanup(log.close)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.driver = subprocess.Popen([self.program, "-mode=node", "-nodeid=n", *self.devices(), f"-endpoint=tcp://127.0.0.1:{port}",
                                        f"-statePath={self.folder}/state", "-insecure"], stderr=log)
        self.addCleanup(self.driver.wait, driver.PATIENCE_S)
        self.addCleanup(self.driver.terminate)
        self.assertEqual(self.asked_for_its_set_up(f"127.0.0.1:{port}"), (grpc.StatusCode.UNIMPLEMENTED, b""))


if __name__ == "__main__":
    driver.main()
