# SPDX-License-Identifier: Apache-2.0
"""grpc-core (python3-grpcio) and bare HTTP/2 (python3-h2) as clients of echo_server, over each transport.

usage: test_grpcio.py ECHO_SERVER MAKE_CERTS [unittest options]
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

try:
    import grpc
    import h2.config
    import h2.connection
    import h2.events
    import h2.settings
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-grpcio python3-protobuf python3-h2")
    sys.exit(77)

import csi_pb2
from certs import Certs

Info = csi_pb2.GetPluginInfoResponse
ECHO = "/pmem.test.Echo/"
PATIENCE_S = 60
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
CLIENT_NAME = "pmem-node-controller"
SERVER = None


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s for {what}")
        time.sleep(0.001)


def call_on(channel, method, request=Info(), path=ECHO):
    """A callable for one method, as generated stubs have it."""
    return channel.unary_unary(
        path + method,
        request_serializer=type(request).SerializeToString,
        response_deserializer=Info.FromString,
    )


class Raw:
    """An HTTP/2 connection for one request with exactly the headers that are given."""

    def __init__(self, address, window=65535):
        config = h2.config.H2Configuration(
            client_side=True,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self.h2 = h2.connection.H2Connection(config)
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(address)
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        if window > 65535:
            self.h2.increment_flow_control_window(window - 65535)

    def send(self, headers, message):
        self.h2.send_headers(1, headers)
        self.h2.send_data(1, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
        self.socket.sendall(self.h2.data_to_send())

    def reply(self):
        """dict of the reply's headers and trailers, bytes of its body"""
        got, body = {}, b""
        while True:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("closed by the server")
            for event in self.h2.receive_data(data):
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    got.update(event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                elif isinstance(event, h2.events.StreamReset):
                    got["reset"] = int(event.error_code)
                    return got, body
                elif isinstance(event, h2.events.StreamEnded):
                    return got, body


def raw_call(address, headers, message=b""):
    raw = Raw(address)
    with raw.socket:
        raw.send(headers, message)
        return raw.reply()


def raw_headers(method, authority, *more):
    pseudo = [(":method", "POST"), (":scheme", "http"), (":path", ECHO + method)]
    if authority is not None:
        pseudo.append((":authority", authority))
    return pseudo + [("content-type", "application/grpc"), ("te", "trailers"), *more]


class Served(unittest.TestCase):
    """Each test has a server of its own, on a unix socket and a TCP port, which with mtls has TLS."""

    transport = "unix"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pmem-interop-")
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "s")
        arguments = [f"unix://{self.path}", "tcp://127.0.0.1:0"]
        if self.transport == "mtls":
            arguments = [*certs.flags("pmem-registry"), f"-peerName={CLIENT_NAME}", *arguments]
        self.log = tempfile.TemporaryFile(mode="w+")
        self.addCleanup(self.log.close)
        self.server = subprocess.Popen([SERVER, *arguments], stdout=subprocess.PIPE, stderr=self.log)
        self.addCleanup(self.stop)
        ready, port = self.server.stdout.readline().split()
        self.assertEqual(ready, b"ready")
        self.port = int(port)
        self.channel = self.connect()

    def stop(self):
        """A server that does not drain, or that a sanitizer complains about, fails the test."""
        self.channel.close()
        self.server.send_signal(signal.SIGTERM)
        while self.server.poll() is None:
            self.server.send_signal(signal.SIGUSR1)
            try:
                self.server.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        self.server.stdout.close()
        self.log.seek(0)
        self.assertEqual(self.server.returncode, 0, self.log.read())

    def connect(self, *options):
        own = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0), *options]
        if self.transport == "unix":
            return grpc.insecure_channel(f"unix://{self.path}", options=own)
        target = f"127.0.0.1:{self.port}"
        if self.transport == "tcp":
            return grpc.insecure_channel(target, options=own)
        own.append(("grpc.ssl_target_name_override", "pmem-registry"))
        return grpc.secure_channel(target, certs.channel_credentials(CLIENT_NAME), options=own)

    def call(self, method, request=Info(), channel=None, timeout=PATIENCE_S):
        return call_on(channel or self.channel, method, request)(request, timeout=timeout)

    def assert_fails(self, code, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as caught:
            self.call(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        return caught.exception.details()

    def waiting(self):
        return int(self.call("Waiting").name)

    def until_waiting(self, n):
        until(lambda: self.waiting() == n, f"{n} calls that wait")

    def release(self, n=1):
        """Signals that come too fast become one."""
        for _ in range(n):
            left = self.waiting() - 1
            self.server.send_signal(signal.SIGUSR1)
            self.until_waiting(left)


class Calls(Served):
    def test_unary(self):
        request = Info(name="a", vendor_version="b", manifest={"k": "v", "l": "w"})
        for method in ("Echo", "Work"):
            self.assertEqual(self.call(method, request), request)

    def test_csi_identity(self):
        request = csi_pb2.GetPluginInfoRequest()
        reply = call_on(self.channel, "GetPluginInfo", request, "/csi.v1.Identity/")(request, timeout=PATIENCE_S)
        self.assertEqual(reply.name, "echo.pmem-csi.test")

    def test_unknown_method(self):
        details = self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, "Nothing")
        self.assertIn("/pmem.test.Echo/Nothing", details)

    def test_errors_have_code_and_text(self):
        texts = ["plain", "50% off", "no\nsuch\tvolume", "größer als 4 €", "\U0001f4be", " blanks ", ""]
        codes = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
        for text in texts:
            for code in codes:
                request = Info(name=str(code.value[0]), vendor_version=text)
                line = text.replace("\n", " ").replace("\t", " ")
                self.assertEqual(self.assert_fails(code, "Fail", request), line)

    def test_long_error_text_is_cut(self):
        text = "ä" * 100000
        details = self.assert_fails(grpc.StatusCode.ABORTED, "Fail", Info(name="10", vendor_version=text))
        self.assertEqual(details, "ä" * 1024)


class Sizes(Served):
    def test_900_kb(self):
        request = Info(name="x" * 900_000)
        for method in ("Echo", "Work"):
            self.assertEqual(self.call(method, request), request)

    def test_almost_4_mib(self):
        request = Info(name="x" * ((4 << 20) - 5))
        self.assertEqual(len(request.SerializeToString()), 4 << 20)
        with self.connect(*UNLIMITED) as channel:
            self.assertEqual(self.call("Echo", request, channel), request)

    def test_request_beyond_4_mib(self):
        with self.connect(*UNLIMITED) as channel:
            request = Info(name="x" * (4 << 20))
            self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "Echo", request, channel)
            self.assertEqual(self.call("Echo", Info(name="next"), channel).name, "next")

    def test_reply_beyond_4_mib(self):
        with self.connect(*UNLIMITED) as channel:
            self.assert_fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "Grow", Info(name=str(4 << 20)), channel)
            self.assertEqual(len(self.call("Grow", Info(name="4000000"), channel).vendor_version), 4000000)

    def test_large_messages_in_parallel(self):
        """As many as worker threads take at a time."""
        request = Info(name="x" * 900_000)
        for method in ("Echo", "Work"):
            echo = call_on(self.channel, method, request)
            for future in [echo.future(request, timeout=PATIENCE_S) for _ in range(4)]:
                self.assertEqual(future.result(), request)

    def test_client_that_reads_late(self):
        """The reply fills the socket long before the client takes it."""
        raw = Raw(self.path, window=1 << 30)
        with raw.socket:
            raw.send(raw_headers("Grow", "localhost"), Info(name="4000000").SerializeToString())
            for _ in range(100):
                self.call("Work")
            got, body = raw.reply()
        self.assertEqual((got["grpc-status"], len(body)), ("0", 4000010))


class Ends(Served):
    def test_deadline_at_the_client(self):
        self.call("Echo")
        self.assert_fails(grpc.StatusCode.DEADLINE_EXCEEDED, "Wait", timeout=1)
        self.assertEqual(self.waiting(), 1)
        self.release()
        self.assertEqual(self.call("Work", Info(name="next")).name, "next")

    def test_deadline_at_the_server(self):
        headers = raw_headers("Wait", "localhost", ("grpc-timeout", "50m"))
        got, body = raw_call(self.path, headers)
        self.assertEqual((got["grpc-status"], body), ("4", b""))
        self.assertEqual(self.waiting(), 1)
        self.release()

    def test_deadline_that_has_passed(self):
        got, _ = raw_call(self.path, raw_headers("Wait", "localhost", ("grpc-timeout", "0n")))
        self.assertEqual(got["grpc-status"], "4")
        self.assertEqual(self.waiting(), 0)

    def test_cancel(self):
        future = call_on(self.channel, "Wait").future(Info())
        self.until_waiting(1)
        future.cancel()
        self.assertEqual(future.code(), grpc.StatusCode.CANCELLED)
        self.assertEqual(self.waiting(), 1)
        self.release()
        self.assertEqual(self.call("Work", Info(name="next")).name, "next")

    def test_client_that_closes_its_connection(self):
        channel = self.connect()
        future = call_on(channel, "Wait").future(Info())
        self.until_waiting(1)
        channel.close()
        self.assertTrue(future.done())
        self.release()
        self.assertEqual(self.call("Work", Info(name="next")).name, "next")

    def test_drain_on_sigterm(self):
        waiting = call_on(self.channel, "Wait").future(Info(name="finished"))
        self.until_waiting(1)
        self.server.send_signal(signal.SIGTERM)
        until(lambda: not os.path.exists(self.path), "the socket to go away")
        with self.connect() as channel:
            self.assert_fails(grpc.StatusCode.UNAVAILABLE, "Echo", channel=channel)
        self.assertIsNone(self.server.poll())
        self.server.send_signal(signal.SIGUSR1)
        self.assertEqual(waiting.result(PATIENCE_S).name, "finished")
        self.assertEqual(self.server.wait(PATIENCE_S), 0)

    def test_drain_without_calls(self):
        self.call("Echo")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(PATIENCE_S), 0)
        self.assertFalse(os.path.exists(self.path))


class Crowds(Served):
    def in_flight(self, method, total, most):
        """Calls answered with their own request, as many at a time."""
        call = call_on(self.channel, method)
        places = threading.Semaphore(most)
        futures = []
        for i in range(total):
            places.acquire()
            future = call.future(Info(name=str(i)), timeout=PATIENCE_S)
            future.add_done_callback(lambda _: places.release())
            futures.append(future)
        self.assertEqual([future.result().name for future in futures], [str(i) for i in range(total)])

    def test_32_in_flight_inline(self):
        self.in_flight("Echo", 3000, 32)

    def test_32_in_flight_on_workers(self):
        self.in_flight("Work", 3000, 32)

    def test_33rd_worker(self):
        wait = call_on(self.channel, "Wait")
        futures = [wait.future(Info(name=str(i)), timeout=PATIENCE_S) for i in range(32)]
        self.until_waiting(32)
        self.assert_fails(grpc.StatusCode.UNAVAILABLE, "Work")
        self.assertEqual(self.call("Echo", Info(name="inline")).name, "inline")
        self.release(32)
        self.assertEqual([f.result().name for f in futures], [str(i) for i in range(32)])

    def test_many_connections_with_one_call_each(self):
        for start in range(0, 100 if self.transport == "mtls" else 1000, 50):
            channels = [self.connect() for _ in range(50)]
            futures = [call_on(c, "Echo").future(Info(name="x"), timeout=PATIENCE_S) for c in channels]
            self.assertEqual([f.result().name for f in futures], ["x"] * 50, start)
            for channel in channels:
                channel.close()


class Authority(Served):
    """What clients of the field send: a socket path, an encoded one, nothing."""

    def test_default(self):
        self.assertEqual(self.call("Echo", Info(name="x")).name, "x")

    def test_given_to_grpc_core(self):
        for authority in ("localhost", self.path, urllib.parse.quote(self.path, safe=""), "127.0.0.1:80"):
            with self.connect(("grpc.default_authority", authority)) as channel:
                self.assertEqual(self.call("Echo", Info(name="x"), channel).name, "x", authority)

    def test_by_hand(self):
        message = Info(name="x").SerializeToString()
        for authority in (None, "", "localhost", self.path, urllib.parse.quote(self.path, safe="")):
            got, body = raw_call(self.path, raw_headers("Echo", authority), message)
            self.assertEqual((got.get("grpc-status"), body[5:]), ("0", message), authority)

    def test_strict_on_tcp(self):
        got, _ = raw_call(("127.0.0.1", self.port), raw_headers("Echo", "localhost"))
        self.assertEqual(got["grpc-status"], "0")
        got, _ = raw_call(("127.0.0.1", self.port), raw_headers("Echo", self.path))
        self.assertEqual(got, {"reset": 1})


class Strangers(Served):
    """Peers that may not call where there is TLS."""

    transport = "mtls"

    def test_another_name(self):
        target = f"127.0.0.1:{self.port}"
        options = [("grpc.ssl_target_name_override", "pmem-registry")]
        for credentials in (certs.channel_credentials("pmem-registry"), certs.channel_credentials(None)):
            with grpc.secure_channel(target, credentials, options=options) as channel:
                self.assert_fails(grpc.StatusCode.UNAVAILABLE, "Echo", channel=channel)

    def test_no_tls(self):
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            self.assert_fails(grpc.StatusCode.UNAVAILABLE, "Echo", channel=channel)

    def test_a_server_of_another_name(self):
        with grpc.secure_channel(f"127.0.0.1:{self.port}", certs.channel_credentials(CLIENT_NAME)) as channel:
            self.assert_fails(grpc.StatusCode.UNAVAILABLE, "Echo", channel=channel)


def on(transport, tests):
    return type(f"{tests.__name__}_{transport}", (tests,), {"transport": transport, "__module__": __name__})


for each in (Calls, Sizes, Ends, Crowds):
    for other in ("tcp", "mtls"):
        globals()[f"{each.__name__}_{other}"] = on(other, each)
del each

if __name__ == "__main__":
    SERVER = sys.argv.pop(1)
    certs = Certs(sys.argv.pop(1))
    unittest.main()
