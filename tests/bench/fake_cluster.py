#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the scheduler extender learns of a cluster: the lists of an API server in which nothing changes, and WatchNodes of a
controller. Each node has the volumes of VOLUMES claims, which pods use; PODS pods wait, each with a claim of its own.

usage: fake_cluster.py CERTS FOLDER NODES VOLUMES PODS
Finds registry_pb2 by PYTHONPATH. Writes FOLDER/kubeconfig and, when all is served, FOLDER/registry, its endpoint.
"""
import asyncio
import json
import ssl
import sys
import time
import urllib.parse
from concurrent import futures

import grpc
import h2.config
import h2.connection
import h2.events
import registry_pb2

DRIVER = "pmem-csi.intel.com"
CLASS = "late"
GIB = 1 << 30
PAGE_NODES = 500
# What an object of a real cluster has besides, as its owners' fields.
BALLAST = [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:metadata": "x" * 900}}]


def meta(name, **more):
    return {"name": name, "uid": name, "resourceVersion": "7", "managedFields": BALLAST, **more}


def pod(name, claim, node):
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {"metadata": meta(name, namespace="default"), "spec": {"volumes": volumes, "nodeName": node},
            "status": {"phase": "Running" if node else "Pending"}}


def claim(name, volume):
    annotations = {"volume.kubernetes.io/storage-provisioner": DRIVER} if volume else {}
    return {"metadata": meta(name, namespace="default", annotations=annotations),
            "spec": {"storageClassName": CLASS, "volumeName": volume, "accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "16Mi"}}},
            "status": {"phase": "Bound" if volume else "Pending"}}


def volume(name, node):
    term = {"matchExpressions": [{"key": f"{DRIVER}/node", "operator": "In", "values": [node]}]}
    return {"metadata": meta(name, annotations={"pv.kubernetes.io/provisioned-by": DRIVER}),
            "spec": {"capacity": {"storage": "16Mi"}, "storageClassName": CLASS,
                     "csi": {"driver": DRIVER, "volumeHandle": name + "-handle", "fsType": "ext4"},
                     "claimRef": {"namespace": "default", "name": name[4:], "uid": name[4:]},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
            "status": {"phase": "Bound"}}


class Cluster:
    def __init__(self, nodes, volumes, pods):
        self.nodes = [f"node-{i}" for i in range(nodes)]
        self.volumes = volumes
        owned = [(f"{node}-{i}", node) for node in self.nodes for i in range(volumes)]
        waiting = [f"bench-{i}" for i in range(pods)]
        kind = {"metadata": meta(CLASS), "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
        driver = {"metadata": meta(DRIVER), "spec": {"volumeLifecycleModes": ["Persistent", "Ephemeral"]}}
        self.lists = {
            "/api/v1/pods": (lambda name, node: pod(name, name, node), owned + [(name, "") for name in waiting]),
            "/api/v1/persistentvolumeclaims": (lambda name, node: claim(name, node and "pvc-" + name),
                                               owned + [(name, "") for name in waiting]),
            "/api/v1/persistentvolumes": (lambda name, node: volume("pvc-" + name, node), owned),
            "/apis/storage.k8s.io/v1/storageclasses": (lambda *_: kind, [("", "")]),
            "/apis/storage.k8s.io/v1/csidrivers": (lambda *_: driver, [("", "")]),
        }

    def page(self, path, query):
        make, objects = self.lists[path]
        first, limit = int(query.get("continue", 0)), int(query["limit"])
        more = {"continue": str(first + limit)} if first + limit < len(objects) else {}
        return json.dumps({"metadata": {"resourceVersion": "7", **more},
                           "items": [make(*each) for each in objects[first:first + limit]]}).encode()

    def entry(self, node):
        volumes = [registry_pb2.InventoryVolume(id=f"{node}-{i}-handle", name=f"pvc-{node}-{i}", size_bytes=16 << 20,
                                                phase=registry_pb2.InventoryVolume.READY, made_by_controller=True)
                   for i in range(self.volumes)]
        free = 48 * GIB
        regions = [registry_pb2.RegionCapacity(name=f"region{i}", total_bytes=64 * GIB, available_bytes=free,
                                               max_volume_bytes=free, max_sector_volume_bytes=free, unit_bytes=4 << 20)
                   for i in range(2)]
        return registry_pb2.NodeEntry(node_id=node, device_mode="lvm", regions=regions,
                                      inventory=registry_pb2.Inventory(volumes=volumes))

    def watch_nodes(self, request, _context):
        if request.generation == len(self.nodes):
            time.sleep(request.timeout_ms / 1000)
        end = min(request.generation + PAGE_NODES, len(self.nodes))
        return registry_pb2.WatchNodesReply(instance="bench", generation=end,
                                            changed=[self.entry(node) for node in self.nodes[request.generation:end]])


class Connection(asyncio.Protocol):
    def __init__(self, cluster):
        self.cluster = cluster
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.bodies = {}  # of streams: what is not sent yet

    def connection_made(self, transport):
        self.transport = transport
        self.h2.initiate_connection()
        self.flush()

    def data_received(self, data):
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                self.answer(event.stream_id, dict(event.headers)[":path"])
            elif isinstance(event, h2.events.StreamReset):
                self.bodies.pop(event.stream_id, None)
        self.flush()

    def answer(self, stream, target):
        path, _, query = target.partition("?")
        query = dict(urllib.parse.parse_qsl(query))
        self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/json")])
        # a watch that never ends, and in which nothing happens
        if "watch" not in query:
            self.bodies[stream] = self.cluster.page(path, query)

    def flush(self):
        for stream, body in list(self.bodies.items()):
            while body and (room := self.h2.local_flow_control_window(stream)) > 0:
                room = min(room, self.h2.max_outbound_frame_size)
                self.h2.send_data(stream, body[:room], end_stream=len(body) <= room)
                body = body[room:]
            self.bodies[stream] = body
            if not body:
                del self.bodies[stream]
        self.transport.write(self.h2.data_to_send())


def serve_registry(cluster):
    method = grpc.unary_unary_rpc_method_handler(cluster.watch_nodes, registry_pb2.WatchNodesRequest.FromString,
                                                 registry_pb2.WatchNodesReply.SerializeToString)
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("registry.v0.Registry", {"WatchNodes": method})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


async def serve(certs, folder, cluster):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(f"{certs}/pmem-registry.pem", f"{certs}/pmem-registry-key.pem")
    tls.set_alpn_protocols(["h2"])
    api = await asyncio.get_running_loop().create_server(lambda: Connection(cluster), "127.0.0.1", 0, ssl=tls)
    registry, port = serve_registry(cluster)
    config = {"current-context": "bench", "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
              "clusters": [{"name": "bench", "cluster": {"certificate-authority": f"{certs}/ca.pem",
                                                         "server": "https://127.0.0.1:%u" % api.sockets[0].getsockname()[1],
                                                         "tls-server-name": "pmem-registry"}}],
              "users": [{"name": "bench", "user": {"token": "bench"}}]}
    with open(f"{folder}/kubeconfig", "w", encoding="ascii") as file:
        json.dump(config, file)
    with open(f"{folder}/registry", "w", encoding="ascii") as file:
        file.write(f"tcp://127.0.0.1:{port}\n")
    try:
        await api.serve_forever()
    finally:
        registry.stop(None)


def main():
    certs, folder, *sizes = sys.argv[1:]
    asyncio.run(serve(certs, folder, Cluster(*map(int, sizes))))


main()
