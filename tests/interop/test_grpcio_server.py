# SPDX-License-Identifier: Apache-2.0
"""Our client against servers of grpc-core (python3-grpcio), over each transport.

usage: test_grpcio_server.py GRPC_CLIENT MAKE_CERTS [unittest options]
"""
import concurrent.futures
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import grpc
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-grpcio python3-protobuf")
    sys.exit(77)

import csi_pb2
from certs import Certs

Info = csi_pb2.GetPluginInfoResponse
PATIENCE_S = 60
MAX_MESSAGE = 4 << 20
CODES = {code.value[0]: code for code in grpc.StatusCode}
OUR_NAMES = {grpc.StatusCode.DATA_LOSS: "UNKNOWN"}  # of codes that we have no name for
CLIENT = None


class Echo(grpc.GenericRpcHandler):
    """The service of echo_service.h, and Hold: it ends when the gate is opened or its caller is gone."""

    def __init__(self):
        self.held, self.gone, self.gate = queue.Queue(), queue.Queue(), threading.Event()

    def service(self, details):
        handle = getattr(self, details.method.rsplit("/", 1)[1].lower(), None)
        return handle and grpc.unary_unary_rpc_method_handler(handle, Info.FromString, Info.SerializeToString)

    def echo(self, request, _):
        return request

    def fail(self, request, context):
        number, text = request.name.split(" ", 1)
        context.abort(CODES[int(number)], text)

    def grow(self, request, _):
        return Info(vendor_version="x" * int(request.name))

    def hold(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        self.held.put(context.time_remaining())
        while not self.gate.is_set() and not ended.wait(0.001):
            pass
        self.gone.put(ended.is_set())
        return request


class Client:
    """A running grpc_client."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([CLIENT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.answers, self.last = {}, 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            number, code, size, text = line.rstrip("\n").split(" ", 3)
            self.answers.pop(int(number)).put((code, int(size), text))

    def start(self, method, name, size=0, timeout_ms=0):
        self.last += 1
        self.answers[self.last] = answer = queue.Queue()
        self.write(f"call {self.last} {method} {timeout_ms} {size} {name}")
        return answer

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def call(self, *arguments):
        return self.start(*arguments).get(timeout=PATIENCE_S)

    def stop(self):
        self.process.stdin.close()
        self.reader.join()
        self.process.stdout.close()
        return self.process.wait(PATIENCE_S)


class Called(unittest.TestCase):
    transport = "unix"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pmem-interop-")
        self.addCleanup(self.folder.cleanup)
        self.port = 0
        self.serve()
        self.addCleanup(lambda: self.server.stop(None).wait())
        arguments = []
        if self.transport == "mtls":
            arguments = [*certs.flags("pmem-node-controller"), "-serverName=pmem-registry"]
        self.client = Client(*arguments, self.endpoint)
        self.addCleanup(lambda: self.assertEqual(self.client.stop(), 0))

    def serve(self):
        """Starts the server, again at the same place if it had one."""
        self.echo = Echo()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=[self.echo],
                                  options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1),
                                           ("grpc.max_send_message_length", -1)])
        if self.transport == "unix":
            self.endpoint = "unix://" + os.path.join(self.folder.name, "s")
            self.server.add_insecure_port(self.endpoint)
        elif self.transport == "tcp":
            self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        else:
            self.port = self.server.add_secure_port(f"127.0.0.1:{self.port}", certs.server_credentials("pmem-registry"))
        if self.port:
            self.endpoint = f"tcp://127.0.0.1:{self.port}"
        self.server.start()

    def until_ok(self):
        while (answer := self.client.call("Echo", "x"))[0] != "OK":
            self.assertEqual(answer[0], "UNAVAILABLE", answer)

    def test_unary(self):
        self.assertEqual(self.client.call("Echo", "some name", 7), ("OK", 7, "some name"))
        self.assertEqual(self.client.call("Nothing", "x")[0], "UNIMPLEMENTED")

    def test_errors(self):
        for number, code in CODES.items():
            for text in ("plain", "50% off", "größer als 4 €", "\U0001f4be") if number else ():
                answer = (OUR_NAMES.get(code, code.name), 0, text)
                self.assertEqual(self.client.call("Fail", f"{number} {text}"), answer)

    def test_sizes(self):
        largest = MAX_MESSAGE - 8
        self.assertEqual(self.client.call("Echo", "n", largest), ("OK", largest, "n"))
        self.assertEqual(self.client.call("Grow", "4000000"), ("OK", 4000000, ""))
        self.assertEqual(self.client.call("Echo", "n", MAX_MESSAGE)[0], "RESOURCE_EXHAUSTED")
        self.assertEqual(self.client.call("Grow", str(MAX_MESSAGE))[0], "RESOURCE_EXHAUSTED")
        self.assertEqual(self.client.call("Echo", "next"), ("OK", 0, "next"))

    def test_deadline(self):
        self.client.call("Echo", "x")
        self.assertEqual(self.client.call("Hold", "x", 0, 1000)[0], "DEADLINE_EXCEEDED")
        self.assertLessEqual(self.echo.held.get(timeout=PATIENCE_S), 1)
        self.assertTrue(self.echo.gone.get(timeout=PATIENCE_S))

    def test_cancel(self):
        answer = self.client.start("Hold", "x")
        self.echo.held.get(timeout=PATIENCE_S)
        self.client.write(f"cancel {self.client.last}")
        self.assertEqual(answer.get(timeout=PATIENCE_S)[0], "CANCELLED")
        self.assertTrue(self.echo.gone.get(timeout=PATIENCE_S))
        self.assertEqual(self.client.call("Echo", "next"), ("OK", 0, "next"))

    def test_many_calls(self):
        answers = [self.client.start("Echo", str(i), i) for i in range(500)]
        self.assertEqual([a.get(timeout=PATIENCE_S) for a in answers], [("OK", i, str(i)) for i in range(500)])

    def test_graceful_stop(self):
        answer = self.client.start("Hold", "finished")
        self.echo.held.get(timeout=PATIENCE_S)
        old, stopped = self.echo, self.server.stop(PATIENCE_S)
        while self.client.call("Echo", "x")[0] == "OK":
            pass
        old.gate.set()
        self.assertEqual(answer.get(timeout=PATIENCE_S), ("OK", 0, "finished"))
        stopped.wait()
        self.serve()
        self.until_ok()

    def test_loss_of_the_server(self):
        for _ in range(3):
            answer = self.client.start("Hold", "x")
            self.echo.held.get(timeout=PATIENCE_S)
            self.server.stop(None).wait()
            # grpc-core cancels what runs; what it did not see any more is the connection's end.
            self.assertIn(answer.get(timeout=PATIENCE_S)[0], ("UNAVAILABLE", "CANCELLED", "UNKNOWN"))
            self.serve()
            self.until_ok()


class CalledOverTcp(Called):
    transport = "tcp"


class CalledOverMtls(Called):
    transport = "mtls"


if __name__ == "__main__":
    CLIENT = sys.argv.pop(1)
    certs = Certs(sys.argv.pop(1))
    unittest.main()
