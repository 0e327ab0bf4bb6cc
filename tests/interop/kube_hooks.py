# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an API server that has one MutatingWebhookConfiguration, in a thread of its own: it can be listed by its name,
watched and patched, as an account can that may do nothing else. All other lists are empty."""
import asyncio
import copy
import json
import ssl
import threading
import urllib.parse

import h2.config
import h2.connection
import h2.events

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.requests = server, {}
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections.add(self)
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, exc):
        self.server.connections.discard(self)
        self.server.watches = [watch for watch in self.server.watches if watch[0] is not self]

    def flush(self):
        self.transport.write(self.h2.data_to_send())

    def data_received(self, data):
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = dict(event.headers), bytearray()
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][1].extend(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                headers, body = self.requests.pop(event.stream_id)
                self.server.answer(self, event.stream_id, headers, body)
        self.flush()

    def say(self, stream, document, end):
        self.h2.send_data(stream, json.dumps(document).encode() + b"\n", end_stream=end)
        self.flush()

    def reply(self, stream, status, document):
        self.h2.send_headers(stream, [(":status", str(status)), ("content-type", "application/json")])
        if document is not None:
            self.say(stream, document, end=True)


class ApiServer:
    """What a test changes, it changes through the methods, from its own thread."""

    def __init__(self, certificate, key, name):
        self.name, self.version, self.object, self.refusal, self.patches = name, 1, None, None, 0
        self.connections, self.watches, self.lock = set(), [], threading.Lock()
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(certificate, key)
        self.tls.set_alpn_protocols(["h2"])
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.port = 0
        self.start()

    def run(self, function, *args):
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result
        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(60)

    def start(self):
        async def listen():
            self.server = await self.loop.create_server(lambda: Connection(self), "127.0.0.1", self.port, ssl=self.tls)
            self.port = self.server.sockets[0].getsockname()[1]
        self.run(listen)

    def stop(self):
        def close():
            self.server.close()
            for connection in list(self.connections):
                connection.transport.abort()
        self.run(close)

    def put(self, change):
        """@change: of the object, a dict or None, to the new one."""
        def apply():
            was_there = self.object is not None
            with self.lock:
                self.object = change(copy.deepcopy(self.object)) or None
                self.version += 1
                if self.object:
                    self.object["metadata"]["resourceVersion"] = str(self.version)
            if self.object or was_there:
                self.tell("DELETED" if not self.object else "MODIFIED" if was_there else "ADDED",
                          self.object or {"metadata": {"name": self.name, "resourceVersion": str(self.version)}})
        self.run(apply)

    def get(self):
        with self.lock:
            return copy.deepcopy(self.object)

    def tell(self, kind, document):
        for connection, stream in self.watches:
            connection.say(stream, {"type": kind, "object": document}, end=False)

    def answer(self, connection, stream, headers, body):
        path, _, query = headers[":path"].partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        if path == f"{HOOKS}/{self.name}" and headers[":method"] == "PATCH":
            connection.reply(stream, *self.patch(headers["content-type"], json.loads(body)))
        elif "watch" in query:
            connection.reply(stream, 200, None)
            if path == HOOKS:
                self.watches.append((connection, stream))
                # what has happened since
                if self.object and int(query["resourceVersion"]) < self.version:
                    connection.say(stream, {"type": "MODIFIED", "object": self.object}, end=False)
        else:
            connection.reply(stream, *self.list(path, query))

    def list(self, path, query):
        # RBAC: a rule with resourceNames allows a list by that name only
        if path == HOOKS and query.get("fieldSelector") != f"metadata.name={self.name}":
            return self.failure(403, "may be listed by its name only")
        items = [self.object] if path == HOOKS and self.object else []
        return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def patch(self, kind, patch):
        """RFC 7396 but for the list, whose items are found by their names (apimachinery util/strategicpatch)."""
        self.patches += 1
        if self.refusal:
            return self.failure(self.refusal, "refused")
        if not self.object:
            return self.failure(404, "not found")
        if kind != "application/strategic-merge-patch+json" or set(patch) != {"metadata", "webhooks"}:
            return self.failure(415, "not a patch of webhooks")
        if patch["metadata"] != {"resourceVersion": self.object["metadata"]["resourceVersion"]}:
            return self.failure(409, "the object has been modified")
        with self.lock:
            for change in patch["webhooks"]:
                (hook,) = [hook for hook in self.object["webhooks"] if hook["name"] == change["name"]]
                hook["clientConfig"].update(change["clientConfig"])
            self.version += 1
            self.object["metadata"]["resourceVersion"] = str(self.version)
        self.tell("MODIFIED", self.object)
        return 200, self.object

    @staticmethod
    def failure(code, message):
        return code, {"kind": "Status", "code": code, "message": message}
