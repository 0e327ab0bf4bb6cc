# SPDX-License-Identifier: Apache-2.0
"""Metrics and probes of pmem-csi-driver, read by Prometheus' own parser and asked for in good and bad HTTP.

usage: test_metrics.py PMEM_CSI_DRIVER [unittest options]
"""
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import grpc
    from prometheus_client.parser import text_string_to_metric_families
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-grpcio python3-protobuf python3-prometheus-client")
    sys.exit(77)

import csi_pb2

PATIENCE_S = 60
MIB = 1 << 20
REGIONS, REGION_BYTES = 2, 64 * MIB
DRIVER_NAME, NODE = "pmem-csi.example.org", "node-1.example_2"
PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
LABELS = {"driver_name": DRIVER_NAME, "node": NODE}
BUCKETS = ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "15", "25", "50", "120", "300", "600", "+Inf"]
DRIVER = None


class Lines(threading.Thread):
    """The driver's log: what it has said so far, and waiting for a line."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.text, self.changed = pipe, "", threading.Condition()
        self.start()

    def run(self):
        for line in self.pipe:
            with self.changed:
                self.text += line
                self.changed.notify_all()
        self.pipe.close()

    def wait_for(self, pattern):
        with self.changed:
            if not self.changed.wait_for(lambda: re.search(pattern, self.text), PATIENCE_S):
                raise AssertionError(f"no line with {pattern} in: {self.text}")
            return re.search(pattern, self.text)


class Served(unittest.TestCase):
    """Each test has a driver of its own; a driver that does not end well fails the test."""

    flags = []

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pmem-metrics-")
        self.addCleanup(self.folder.cleanup)
        path = self.folder.name
        self.driver = subprocess.Popen(
            [DRIVER, "-mode=node", f"-nodeid={NODE}", f"-drivername={DRIVER_NAME}", "-deviceManager=fake",
             f"-fakeRegionSize={REGION_BYTES}", f"-statePath={path}/state", f"-endpoint=unix://{path}/s",
             "-metricsListen=127.0.0.1:0", *self.flags],
            stderr=subprocess.PIPE, text=True)
        self.log = Lines(self.driver.stderr)
        self.addCleanup(self.stop)
        self.port = int(self.log.wait_for(r"serving metrics .*port=(\d+)").group(1))
        self.log.wait_for(r" ready\b")
        self.channel = grpc.insecure_channel(f"unix://{path}/s")
        self.addCleanup(self.channel.close)

    def stop(self):
        self.driver.send_signal(signal.SIGTERM)
        status = self.driver.wait(PATIENCE_S)
        self.log.join(PATIENCE_S)
        self.assertEqual(status, 0, self.log.text)

    def call(self, service, method, request, reply):
        stub = self.channel.unary_unary(f"/csi.v1.{service}/{method}", type(request).SerializeToString, reply.FromString)
        return stub(request, timeout=PATIENCE_S)

    def http(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def get(self, path, method="GET", **more):
        """status, headers, body"""
        connection = self.http()
        connection.request(method, path, **more)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()

    def scrape(self, path="/metrics"):
        """Families by name."""
        status, headers, text = self.get(path)
        self.assertEqual((status, headers["Content-Type"]), (200, PROMETHEUS_TEXT))
        families = list(text_string_to_metric_families(text))
        names = [family.name for family in families]
        self.assertEqual(len(names), len(set(names)), "a family comes twice")
        return {family.name: family for family in families}

    def scrape_until(self, name):
        """A thread of its own reads what some families report."""
        end = time.monotonic() + PATIENCE_S
        while name not in (families := self.scrape()):
            self.assertLess(time.monotonic(), end)
        return families

    def raw(self, *pieces):
        """All that comes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as s:
            for piece in pieces:
                s.sendall(piece)
            reply = b""
            while data := s.recv(65536):
                reply += data
            return reply.decode()


class Metrics(Served):
    def value(self, families, name):
        (sample,) = families[name].samples
        return sample.value

    def amounts(self):
        families, got = self.scrape(), {}
        for name in "max_volume_size", "available", "managed", "total":
            (sample,) = families["pmem_amount_" + name].samples
            self.assertEqual((families[sample.name].type, sample.labels), ("gauge", LABELS))
            got[name] = sample.value
        return got

    def test_the_version_is_a_label(self):
        (sample,) = self.scrape()["build_info"].samples
        version = subprocess.run([DRIVER, "-version"], check=True, capture_output=True, text=True).stdout.strip()
        self.assertEqual((sample.labels, sample.value), ({"version": version}, 1))

    def test_amounts_follow_volumes(self):
        before = self.amounts()
        self.assertEqual(before["managed"], before["total"])
        self.assertEqual(before["managed"], before["available"])
        self.assertTrue(0 < before["max_volume_size"] <= REGION_BYTES)
        self.assertTrue(before["max_volume_size"] < before["managed"] <= REGIONS * REGION_BYTES)
        request = csi_pb2.CreateVolumeRequest(name="v")
        request.capacity_range.required_bytes = 16 * MIB
        capability = request.volume_capabilities.add()
        capability.mount.fs_type = "ext4"
        capability.access_mode.mode = csi_pb2.VolumeCapability.AccessMode.SINGLE_NODE_WRITER
        volume = self.call("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse).volume
        after = self.amounts()
        self.assertTrue(before["available"] - after["available"] >= volume.capacity_bytes >= 16 * MIB)
        self.assertEqual((after["managed"], after["total"]), (before["managed"], before["total"]))

    def test_volumes_are_counted_by_phase(self):
        samples = self.scrape()["pmem_volumes"].samples
        self.assertEqual([sample.labels["phase"] for sample in samples], ["creating", "ready", "missing", "erasing", "damaged",
                                                                          "device-without-state"])
        for sample in samples:
            self.assertEqual((sample.labels, sample.value), ({**LABELS, "phase": sample.labels["phase"]}, 0))

    def test_pools_are_counted_by_their_durability(self):
        samples = self.scrape()["pmem_pools"].samples
        self.assertEqual([(sample.labels, sample.value) for sample in samples],
                         [({**LABELS, "durability": name}, value) for name, value in (("unknown", 2), ("synchronous", 0), ("fsync", 0))])

    def test_volumes_are_counted_by_what_is_wrong_with_them(self):
        samples = self.scrape()["pmem_volumes_unhealthy"].samples
        self.assertEqual([sample.labels["reason"] for sample in samples],
                         ["MediaError", "DeviceMissing", "StateDamaged", "FileSystemReadOnly", "FileSystemFull", "FileSystemError",
                          "FileSystemShutDown", "FileSystemHangs", "DimmLostData", "DirtyShutdown", "DimmDegraded"])
        for sample in samples:
            self.assertEqual((sample.labels, sample.value), ({**LABELS, "reason": sample.labels["reason"]}, 0))

    def test_what_the_driver_does_is_counted(self):
        wanted = {"pmem_csi_calls_in_flight": ("gauge", 0), "pmem_csi_connections": ("gauge", 0),
                  "pmem_pools_failing": ("gauge", 0), "pmem_erasures_running": ("gauge", 0), "pmem_erase_bytes_left": ("gauge", 0),
                  "pmem_erased_bytes": ("counter", 0), "pmem_lvm_restarts": ("counter", 0)}
        families = self.scrape()
        for name, (kind, value) in wanted.items():
            self.assertEqual((families[name].type, self.value(families, name)), (kind, value), name)
            self.assertEqual(families[name].samples[0].labels, LABELS)
        for name, value in ("pmem_csi_workers_busy", 0), ("pmem_csi_workers_limit", 32):
            self.assertEqual([(s.labels, s.value) for s in families[name].samples],
                             [({**LABELS, "service": service}, value) for service in ("other", "Node")], name)
        name = "pmem_last_refresh_timestamp_seconds"
        listed = self.value(self.scrape_until(name), name)
        self.assertAlmostEqual(listed, time.time(), delta=PATIENCE_S)

    def test_process_metrics_tell_of_the_driver(self):
        families = self.scrape_until("process_open_fds")
        with open(f"/proc/{self.driver.pid}/stat") as stat:
            virtual = int(stat.read().rpartition(")")[2].split()[20])
        self.assertEqual(families["process_cpu_seconds"].type, "counter")
        self.assertGreater(self.value(families, "process_cpu_seconds"), 0)
        virtual_metric = self.value(families, "process_virtual_memory_bytes")
        # another sample may be taken before the threads were started
        self.assertTrue(virtual / 16 < virtual_metric < virtual * 2)
        self.assertTrue(0 < self.value(families, "process_resident_memory_bytes") < virtual_metric)
        self.assertEqual(self.value(families, "process_max_fds"), os.sysconf("SC_OPEN_MAX"))
        self.assertTrue(3 < self.value(families, "process_open_fds") < 100)
        started = os.stat(f"/proc/{self.driver.pid}").st_ctime
        self.assertAlmostEqual(self.value(families, "process_start_time_seconds"), started, delta=PATIENCE_S)

    def operations(self):
        """{(method, code): {suffix or le: value}}"""
        family, got = self.scrape()["csi_plugin_operations_seconds"], {}
        self.assertEqual(family.type, "histogram")
        for sample in family.samples:
            labels = dict(sample.labels)
            self.assertEqual(labels.pop("driver_name"), DRIVER_NAME)
            key = labels.pop("method_name"), labels.pop("grpc_status_code")
            what = labels.pop("le", sample.name.rpartition("_")[2])
            self.assertEqual(labels, {})
            got.setdefault(key, {})[what] = sample.value
        return got

    def test_calls_are_counted_by_method_and_code(self):
        self.assertEqual(self.operations(), {})
        for _ in range(3):
            self.call("Identity", "GetPluginInfo", csi_pb2.GetPluginInfoRequest(), csi_pb2.GetPluginInfoResponse)
        for service, method, request, reply in (
                ("Controller", "CreateVolume", csi_pb2.CreateVolumeRequest(), csi_pb2.CreateVolumeResponse),
                ("Node", "Unknown", csi_pb2.GetPluginInfoRequest(), csi_pb2.GetPluginInfoResponse)):
            with self.assertRaises(grpc.RpcError):
                self.call(service, method, request, reply)
        got = self.operations()
        info, failed = ("/csi.v1.Identity/GetPluginInfo", "OK"), ("/csi.v1.Controller/CreateVolume", "InvalidArgument")
        self.assertEqual(set(got), {info, failed})
        self.assertEqual((got[info]["count"], got[failed]["count"]), (3, 1))
        self.assertEqual([le for le in got[info] if le not in ("sum", "count")], BUCKETS)
        self.assertEqual(got[info]["+Inf"], 3)
        self.assertGreater(got[info]["sum"], 0)
        self.assertEqual(sorted(got[info][le] for le in BUCKETS), [got[info][le] for le in BUCKETS])

    def test_simple_tells_the_version_only(self):
        self.assertEqual(list(self.scrape("/metrics/simple")), ["build_info"])

    def test_it_is_healthy(self):
        self.assertEqual(self.get("/healthz")[::2], (200, "ok"))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class ForControllers(Served):
    port_of_node = free_port()
    flags = [f"-controllerEndpoint=tcp://127.0.0.1:{port_of_node}", "-insecure"]

    def test_calls_of_controllers_are_counted_too(self):
        channel = grpc.insecure_channel(f"127.0.0.1:{self.port_of_node}")
        self.addCleanup(channel.close)
        grpc.channel_ready_future(channel).result(PATIENCE_S)
        paths = "/csi.v1.Identity/Probe", "/csi.v1.Controller/ListVolumes", "/registry.v0.NodeVolumes/DeleteIfNeverStaged"
        for path in paths:
            # field 1 of DeleteIfNeverStagedRequest, and nothing in the others
            request = b"\x0a\x04gone" if "Never" in path else b""
            channel.unary_unary(path)(request, timeout=PATIENCE_S)
        counts = {sample.labels["method_name"]: sample.value
                  for sample in self.scrape()["csi_plugin_operations_seconds"].samples if sample.name.endswith("_count")}
        self.assertEqual(counts, {path: 1 for path in paths})


class OtherPath(Served):
    flags = ["-metricsPath=/m"]

    def test_the_path_can_be_chosen(self):
        self.assertIn("pmem_amount_total", self.scrape("/m"))
        self.assertEqual(list(self.scrape("/m/simple")), ["build_info"])
        self.assertEqual(self.get("/metrics")[0], 404)
        self.assertEqual(self.get("/healthz")[0], 200)


class Protocol(Served):
    def test_one_connection_serves_many_requests(self):
        connection = self.http()
        connection.connect()
        address = connection.sock.getsockname()
        for path, status in ("/metrics", 200), ("/", 404), ("/healthz", 200), ("/metrics/simple?x=y", 200):
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read()
            self.assertEqual((reply.status, connection.sock.getsockname()), (status, address))

    def test_head_has_no_body(self):
        status, headers, body = self.get("/healthz", "HEAD")
        self.assertEqual((status, headers["Content-Length"], body), (200, "2", ""))

    def test_what_is_not_there_is_404(self):
        for path in "/", "/metric", "/metrics/", "/metrics/simple/", "/healthz/x", "//metrics", "/../metrics":
            self.assertEqual(self.get(path)[0], 404, path)

    def test_another_method_is_405(self):
        for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE":
            status, headers, _ = self.get("/metrics", method, body=None if method == "TRACE" else "x")
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)

    def test_a_hundred_thousand_headers_are_431(self):
        headers = b"".join(b"My-Header-%d: foobar\r\n" % i for i in range(100000))
        self.assertRegex(self.raw(b"GET /metrics HTTP/1.1\r\nHost: a\r\n", headers, b"\r\n"), r"\AHTTP/1\.1 431 ")

    def test_a_large_body_is_413(self):
        connection = self.http()
        connection.request("POST", "/metrics", body=b"x" * MIB)
        self.assertEqual(connection.getresponse().status, 413)

    def test_nonsense_is_400(self):
        for request in (b"\r\n\r\nnonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"):
            self.assertRegex(self.raw(request), r"\AHTTP/1\.1 400 Bad Request\r\n", request)
        self.assertRegex(self.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), r"\AHTTP/1\.1 505 ")

    def test_requests_may_be_pipelined(self):
        request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
        reply = self.raw((request + b"\r\n") * 999 + request + b"Connection: close\r\n\r\n")
        self.assertEqual(reply.count("HTTP/1.1 200 OK\r\n"), 1000)
        self.assertTrue(reply.endswith("\r\nok"))

    def test_http_1_0_gets_one_reply(self):
        self.assertRegex(self.raw(b"GET /healthz HTTP/1.0\r\n\r\n"), r"(?s)\AHTTP/1\.1 200 .*\r\n\r\nok\Z")

    def test_half_requests_keep_no_other_peer_out(self):
        halves = []
        for _ in range(400):
            halves.append(socket.create_connection(("127.0.0.1", self.port), PATIENCE_S))
            halves[-1].sendall(b"GET /metrics HTTP/1.1\r\n")
        self.assertEqual(self.get("/healthz")[0], 200)
        for half in halves:
            half.close()

    def test_the_driver_ends_while_connections_are_open(self):
        idle, half = self.http(), socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        half.sendall(b"GET / HTTP/1.1\r\n")
        with half:
            self.driver.send_signal(signal.SIGTERM)
            self.assertEqual(self.driver.wait(PATIENCE_S), 0)


class Flags(unittest.TestCase):
    def test_bad_addresses_and_paths_end_the_driver(self):
        with tempfile.TemporaryDirectory(prefix="pmem-metrics-") as path:
            for flag in "-metricsListen=nowhere", "-metricsListen=host.invalid:1", "-metricsPath=m":
                got = subprocess.run(
                    [DRIVER, "-mode=node", "-nodeid=n", "-deviceManager=fake", f"-statePath={path}/state",
                     f"-endpoint=unix://{path}/s", flag], capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertEqual(got.returncode, 2, got.stderr)
                self.assertIn(flag.partition("=")[2], got.stderr)


if __name__ == "__main__":
    DRIVER = sys.argv.pop(1)
    unittest.main(verbosity=2)
