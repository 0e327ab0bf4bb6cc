# SPDX-License-Identifier: Apache-2.0
"""What tests with hostile peers share: the driver as a process, and peers that send whatever bytes they like."""
import os
import re
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

try:
    import hpack
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-h2")
    sys.exit(77)

PATIENCE_S = 60

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
FRAME_BYTES = 16384
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

IDENTITY, CONTROLLER = "/csi.v1.Identity/", "/csi.v1.Controller/"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(**values):
    """SETTINGS; of the names only the initial window is used here."""
    return frame(SETTINGS, 0, 0, b"".join(INITIAL_WINDOW_SIZE.to_bytes(2, "big") + v.to_bytes(4, "big")
                                          for v in values.values()))


def greeting(window=65535):
    return PREFACE + settings(initial_window=window)


def text(s):
    """An HPACK string without Huffman coding."""
    data = s if isinstance(s, bytes) else s.encode()
    n, head = len(data), b""
    if n < 127:
        return bytes([n]) + data
    n -= 127
    while n >= 128:
        head += bytes([n & 127 | 128])
        n >>= 7
    return b"\x7f" + head + bytes([n]) + data


def field(name, value):
    """A literal that is not indexed."""
    return b"\0" + text(name) + text(value)


def block(path, *more, content_type="application/grpc", method="POST"):
    pairs = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost"),
             ("content-type", content_type), ("te", "trailers"), *more]
    return b"".join(field(name, value) for name, value in pairs)


def head(stream, path, *more, flags=END_HEADERS, **kwargs):
    return frame(HEADERS, flags, stream, block(path, *more, **kwargs))


def message(data=b"", compressed=0, length=None):
    return bytes([compressed]) + (len(data) if length is None else length).to_bytes(4, "big") + data


def call(stream, path, data=b"", *more):
    """A whole request."""
    body = message(data)
    last = (len(body) - 1) // FRAME_BYTES * FRAME_BYTES
    return head(stream, path, *more) + b"".join(
        frame(DATA, END_STREAM if i == last else 0, stream, body[i:i + FRAME_BYTES])
        for i in range(0, len(body), FRAME_BYTES))


class Peer:
    """One connection. Reads only on request."""

    def __init__(self, address, tls=None, timeout=PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="pmem-node-controller")
        self.data, self.decoder = b"", hpack.Decoder()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, *pieces):
        """False when the server has hung up or refuses to read on."""
        try:
            self.socket.sendall(b"".join(pieces))
            return True
        except (ConnectionError, ssl.SSLError, TimeoutError):
            return False

    def frames(self):
        """Kind, flags, stream and payload of each frame until the server closes the connection."""
        while True:
            while len(self.data) >= 9 and len(self.data) >= 9 + (n := int.from_bytes(self.data[:3], "big")):
                got = self.data[:9 + n]
                self.data = self.data[9 + n:]
                yield got[3], got[4], int.from_bytes(got[5:9], "big"), got[9:]
            try:
                more = self.socket.recv(1 << 20)
            except (ConnectionError, ssl.SSLError):
                return
            if not more:
                return
            self.data += more

    def end(self):
        """How it ends: the code of the GOAWAY, "closed" without one."""
        code = "closed"
        for kind, _, _, payload in self.frames():
            if kind == GOAWAY:
                code = int.from_bytes(payload[4:8], "big")
        return code

    def replies(self, wanted):
        """Replies by stream, until so many streams have ended: headers and trailers, and "body" or "reset"."""
        got, ended = {}, set()
        for kind, flags, stream, payload in self.frames():
            reply = got.setdefault(stream, {"body": b""})
            if kind == HEADERS:
                reply.update(self.decoder.decode(payload))
            elif kind == DATA:
                reply["body"] += payload
            elif kind == RST_STREAM and stream not in ended:
                reply["reset"] = int.from_bytes(payload, "big")
            if stream and (kind == RST_STREAM or kind in (HEADERS, DATA) and flags & END_STREAM):
                ended.add(stream)
                if len(ended) == wanted:
                    return {stream: reply for stream, reply in got.items() if stream in ended}
        raise ConnectionError(f"closed by the server after {got}")

    def reply(self):
        (reply,) = self.replies(1).values()
        return reply


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s for {what}")
        select.select([], [], [], 0.01)


def listening_ports(pid):
    """TCP ports of a process."""
    sockets = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
    with open(f"/proc/{pid}/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


class Driver:
    """pmem-csi-driver with fake devices on a unix socket, a TCP port (with mutual TLS if certs is true) and HTTP."""

    def __init__(self, program, make_certs=None):
        # The driver's own descriptors, and as many of ours.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
        self.folder = tempfile.TemporaryDirectory(prefix="pmem-hostile-")
        path = self.folder.name
        self.unix, self.tls = f"{path}/s", None
        flags = self.make_certs(make_certs) if make_certs else ["-insecure"]
        self.log_path = f"{path}/log"
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [program, "-mode=node", "-nodeid=n", "-deviceManager=fake", "-fakeRegionSize=64Gi",
                 f"-statePath={path}/state", f"-endpoint=unix://{self.unix}", "-controllerEndpoint=tcp://127.0.0.1:0",
                 "-metricsListen=127.0.0.1:0", "-probeListen=127.0.0.1:0", *flags], stderr=log)
        until(lambda: re.search(r" ready\b", self.log()) or self.process.poll() is not None, "the driver")
        self.http = ("127.0.0.1", int(re.search(r"serving metrics .*port=(\d+)", self.log()).group(1)))
        self.probes = ("127.0.0.1", int(re.search(r"serving probes .*port=(\d+)", self.log()).group(1)))
        (port,) = listening_ports(self.process.pid) - {self.http[1], self.probes[1]}
        self.tcp = ("127.0.0.1", port)

    def make_certs(self, script):
        path = self.folder.name
        subprocess.run([script, "-o", f"{path}/certs", "pmem-registry", "pmem-node-controller"], check=True,
                       stdout=subprocess.DEVNULL)
        self.tls = ssl.create_default_context(cafile=f"{path}/certs/ca.pem")
        self.tls.load_cert_chain(f"{path}/certs/pmem-registry.pem", f"{path}/certs/pmem-registry-key.pem")
        self.tls.set_alpn_protocols(["h2"])
        names = {"-caFile": "ca", "-certFile": "pmem-node-controller", "-keyFile": "pmem-node-controller-key"}
        return [f"{flag}={path}/certs/{name}.pem" for flag, name in names.items()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        log = self.log()
        self.folder.cleanup()
        assert status == 0, log[-10000:]

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def peer(self, address):
        return Peer(address, self.tls if address == self.tcp else None)

    def status(self, key):
        """KiB, from /proc/PID/status"""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(rf"^{key}:\s*(\d+)", file.read(), re.M).group(1))

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")

    def check(self):
        """A normal call on a new connection of each kind."""
        for address in self.unix, self.tcp:
            with self.peer(address) as peer:
                peer.send(greeting(), call(1, IDENTITY + "GetPluginInfo"))
                reply = peer.reply()
                assert reply.get("grpc-status") == "0" and b"pmem-csi" in reply["body"], (address, reply)
