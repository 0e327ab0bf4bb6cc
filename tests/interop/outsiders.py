# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for parties outside, to be run at an address of their own (hosts.py). What they do is written in a file, MODE,
which they read again for each request or connection.

usage: outsiders.py dns ADDRESS MODE                     "silent", "servfail", or the address that all names have
       outsiders.py proxy ADDRESS:PORT TARGET:PORT MODE  "forward", "silent", or the number of the TLS record of
                                                         which half is forwarded before the connection is reset on both
                                                         sides; reports what it does with each record
       outsiders.py api ADDRESS:PORT CERTIFICATE KEY [NODE]...
                                                         an API server that keeps leases, and whose only other objects are
                                                         Nodes on which the driver is registered
"""
import asyncio
import json
import socket
import ssl
import struct
import sys
import threading
import urllib.parse

RESET = struct.pack("ii", 1, 0)
RECORDS = {22: "handshake", 23: "data"}


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def place(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def say_serving(server):
    print(f"serving port={server.getsockname()[1]}", file=sys.stderr, flush=True)


def answer_dns(query, mode):
    """RFC 1035 section 4.1; names are not compressed in the question."""
    end = query.index(b"\0", 12) + 5
    if mode == "servfail":
        return query[:2] + b"\x81\x82" + b"\0\1\0\0\0\0\0\0" + query[12:end]
    is_a = query[end - 4:end - 2] == b"\0\1"
    answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(mode) if is_a else b""
    return query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0" + query[12:end] + answer


def serve_dns(address, mode_file):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        say_serving(server)
        while True:
            query, peer = server.recvfrom(512)
            mode = read(mode_file)
            if mode != "silent":
                server.sendto(answer_dns(query, mode), peer)


class Forwarding:
    """Of a connection with TLS, record by record (RFC 5246 section 6.2.1), counted in the order in which they pass."""

    n_connections = 0

    def __init__(self, client, target, mode):
        self.client = client
        self.server = socket.create_connection(target)
        self.number = Forwarding.n_connections
        Forwarding.n_connections += 1
        self.cut_at = None if mode == "forward" else int(mode)
        self.n_records = 0
        self.lock = threading.Lock()
        for sender, source, sink in (("client", self.client, self.server), ("server", self.server, self.client)):
            threading.Thread(target=self.forward, args=(sender, source, sink), daemon=True).start()

    def forward(self, sender, source, sink):
        try:
            with source.makefile("rb") as stream:
                while len(head := stream.read(5)) == 5:
                    record = head + stream.read(int.from_bytes(head[3:], "big"))
                    if not self.pass_on(sender, sink, record):
                        self.reset()
                        return
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self.reset()

    def pass_on(self, sender, sink, record):
        """Return: whether the connection goes on"""
        with self.lock:
            n = self.n_records
            self.n_records += 1
            is_cut = n == self.cut_at
            print("cut" if is_cut else "passed", n, self.number, sender, RECORDS.get(record[0], "other"), file=sys.stderr,
                  flush=True)
            sink.sendall(record[:len(record) // 2] if is_cut else record)
        return not is_cut

    def reset(self):
        for end in (self.client, self.server):
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RD)
                end.close()
            except OSError:
                pass


def serve_proxy(listen, target, mode_file):
    held = []
    with socket.create_server(place(listen)) as server:
        say_serving(server)
        while True:
            client, _ = server.accept()
            mode = read(mode_file)
            try:
                held.append(client if mode == "silent" else Forwarding(client, place(target), mode))
            except OSError:
                client.close()


class ApiConnection(asyncio.Protocol):
    leases, records, nodes, version = {}, {}, (), 7

    def __init__(self):
        import h2.config
        import h2.connection
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        self.requests = {}
        self.bodies = {}  # of streams: what is not sent yet

    def connection_made(self, transport):
        self.transport = transport
        self.h2.initiate_connection()
        transport.write(self.h2.data_to_send())

    def data_received(self, data):
        import h2.events
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = dict(event.headers), bytearray()
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][1].extend(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(event.stream_id, *self.requests.pop(event.stream_id))
            elif isinstance(event, h2.events.StreamReset):
                self.bodies.pop(event.stream_id, None)
        self.flush()
        self.transport.write(self.h2.data_to_send())

    def flush(self):
        for stream, body in list(self.bodies.items()):
            while body and (room := self.h2.local_flow_control_window(stream)) > 0:
                room = min(room, self.h2.max_outbound_frame_size)
                self.h2.send_data(stream, body[:room], end_stream=len(body) <= room)
                body = body[room:]
            self.bodies[stream] = body
            if not body:
                del self.bodies[stream]

    def answer(self, stream, headers, body):
        status, reply = self.handle(headers[":method"], headers[":path"], body)
        self.h2.send_headers(stream, [(":status", str(status)), ("content-type", "application/json")])
        # a watch, in which nothing happens
        if reply is not None:
            self.bodies[stream] = json.dumps(reply).encode()

    def handle(self, method, target, body):
        path, _, query = target.partition("?")
        if "watch" in query:
            return 200, None
        if "/leases" in path:
            return self.handle_lease(method, path.rpartition("/leases")[2], body)
        if "/pmemvolumes" in path:
            return self.handle_record(method, path.rpartition("/pmemvolumes")[2].lstrip("/").removesuffix("/status"), body)
        if method == "GET" and "/pods/" in path:
            return self.find_pod(*path.removeprefix("/api/v1/namespaces/").split("/pods/"))
        if method == "GET":
            label = urllib.parse.parse_qs(query).get("labelSelector", ["none"])[0]
            items = [{"metadata": {"name": node, "uid": node, "resourceVersion": "7", "labels": {label: node}}}
                     for node in self.nodes if path == "/api/v1/nodes"]
            return 200, {"metadata": {"resourceVersion": "7"}, "items": items}
        return 201, json.loads(body)

    def find_pod(self, namespace, name):
        """Each pod runs on the node that its namespace is called after, and its runtime class is called like it."""
        if namespace not in self.nodes:
            return 404, {"kind": "Status", "code": 404, "reason": "NotFound"}
        return 200, {"metadata": {"namespace": namespace, "name": name, "uid": "uid-" + name, "resourceVersion": "7"},
                     "spec": {"nodeName": namespace, "runtimeClassName": name, "securityContext": {"fsGroup": 2000}}}

    def handle_lease(self, method, name, body):
        old = self.leases.get(name)
        if method == "GET":
            return (200, old) if old else (404, {"kind": "Status", "code": 404, "reason": "NotFound"})
        lease = json.loads(body)
        name = name or "/" + lease["metadata"]["name"]
        old = self.leases.get(name)
        if old and lease["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
            return 409, {"kind": "Status", "code": 409, "reason": "Conflict"}
        ApiConnection.version += 1
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.leases[name] = lease
        return 200, lease


    def handle_record(self, method, name, body):
        """Records of volumes, with merge patches that carry the version that was read."""
        sent = json.loads(body or b"{}")
        old = self.records.get(name)
        if method == "GET" and not name:
            return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.records.values())}
        if method != "POST" and not old:
            return 404, {"kind": "Status", "code": 404, "reason": "NotFound"}
        if method == "GET":
            return 200, old
        ApiConnection.version += 1
        if method == "POST":
            name = sent["metadata"]["name"]
            if name in self.records:
                return 409, {"kind": "Status", "code": 409, "reason": "AlreadyExists"}
            self.records[name] = merged(sent, {"metadata": {"uid": name, "resourceVersion": str(self.version)}})
            return 201, self.records[name]
        if method == "DELETE":
            return 200, self.records.pop(name)
        if sent["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            return 409, {"kind": "Status", "code": 409, "reason": "Conflict"}
        self.records[name] = merged(merged(old, sent), {"metadata": {"resourceVersion": str(self.version)}})
        return 200, self.records[name]


def merged(target, patch):
    """RFC 7396"""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        result[key] = merged(result.get(key), value)
    return {key: value for key, value in result.items() if value is not None}


async def serve_api(listen, certificate, key, *nodes):
    ApiConnection.nodes = nodes
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["h2"])
    server = await asyncio.get_running_loop().create_server(ApiConnection, *place(listen), ssl=tls)
    say_serving(server.sockets[0])
    await server.serve_forever()


def main():
    kind, *args = sys.argv[1:]
    if kind == "api":
        asyncio.run(serve_api(*args))
    else:
        {"dns": serve_dns, "proxy": serve_proxy}[kind](*args)


main()
