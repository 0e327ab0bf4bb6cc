#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the scheduler extender learns of a cluster: the lists of an API server in which nothing changes, with the objects in which
controllers show nodes and volumes. Each node has the volumes of VOLUMES claims, which pods use; PODS pods wait, each with a claim of
its own.

usage: fake_cluster.py CERTS FOLDER NODES VOLUMES PODS
Writes FOLDER/kubeconfig when all is served.
"""
import asyncio
import hashlib
import json
import os
import ssl
import sys
import urllib.parse

import h2.config
import h2.connection
import h2.events

DRIVER = "pmem-csi.intel.com"
RESOURCES = "/apis/pmem-csi.intel.com/v1alpha1"
CLASS = "late"
GIB = 1 << 30
# Of the report that objects show.
REPORT = 1700000000000000
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


def conditions(*kinds):
    return [{"type": kind, "status": "True", "reason": "Registered", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in kinds]


def pmem_node(node, volumes):
    free = 48 * GIB
    regions = [{"name": f"region{i}", "total": str(64 * GIB), "managed": str(64 * GIB), "available": str(free),
                "largestVolume": str(free), "largestFileIOVolume": str(free), "erasing": "0", "freeExtents": 1,
                "freeExtentSizes": [str(free)], "unit": str(4 << 20), "pageMapAlign": "0", "bttStart": "0", "complete": True}
               for i in range(2)]
    return {"metadata": meta(f"{node}.{DRIVER}", labels={"pmem-csi.intel.com/driver": DRIVER}), "spec": {"node": node, "driver": DRIVER},
            "status": {"deviceMode": "lvm", "driverVersion": "2.0.0", "bootID": node, "report": REPORT,
                       "lastContactTime": "2026-01-01T00:00:00Z", "capacity": "128Gi", "available": "96Gi", "largestVolume": "48Gi",
                       "volumes": {"count": volumes}, "regions": regions, "conditions": conditions("Ready", "DevicesHealthy")}}


def pmem_volume(name, node):
    key = hashlib.sha224(name.encode()).hexdigest()[:47]
    return {"metadata": meta(f"{key}.{DRIVER}", labels={"pmem-csi.intel.com/driver": DRIVER}, finalizers=["pmem-csi.intel.com/copies"]),
            "spec": {"driver": DRIVER, "volumeName": name, "origin": "CreateVolume", "size": str(16 << 20), "nodes": [node], "attempts": 1},
            "status": {"volumeHandle": name + "-handle", "phase": "Ready", "claim": "default/" + name[4:], "size": str(16 << 20),
                       "nodes": [{"node": node, "phase": "Ready", "size": str(16 << 20), "report": REPORT}],
                       "conditions": conditions("Ready")}}


class Cluster:
    def __init__(self, nodes, volumes, pods):
        names = [f"node-{i}" for i in range(nodes)]
        owned = [(f"{node}-{i}", node) for node in names for i in range(volumes)]
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
            f"{RESOURCES}/pmemnodes": (lambda _, node: pmem_node(node, volumes), [("", node) for node in names]),
            f"{RESOURCES}/pmemvolumes": (lambda name, node: pmem_volume("pvc-" + name, node), owned),
        }

    def page(self, path, query):
        if path == RESOURCES:
            names = ("pmemnodes", "pmemnodes/status", "pmemvolumes", "pmemvolumes/status")
            return json.dumps({"resources": [{"name": name} for name in names]}).encode()
        make, objects = self.lists[path]
        first, limit = int(query.get("continue", 0)), int(query["limit"])
        more = {"continue": str(first + limit)} if first + limit < len(objects) else {}
        return json.dumps({"metadata": {"resourceVersion": "7", **more},
                           "items": [make(*each) for each in objects[first:first + limit]]}).encode()


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


async def serve(certs, folder, cluster):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(f"{certs}/pmem-registry.pem", f"{certs}/pmem-registry-key.pem")
    tls.set_alpn_protocols(["h2"])
    api = await asyncio.get_running_loop().create_server(lambda: Connection(cluster), "127.0.0.1", 0, ssl=tls)
    config = {"current-context": "bench", "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
              "clusters": [{"name": "bench", "cluster": {"certificate-authority": f"{certs}/ca.pem",
                                                         "server": "https://127.0.0.1:%u" % api.sockets[0].getsockname()[1],
                                                         "tls-server-name": "pmem-registry"}}],
              "users": [{"name": "bench", "user": {"token": "bench"}}]}
    with open(f"{folder}/kubeconfig.new", "w", encoding="ascii") as file:
        json.dump(config, file)
    os.rename(f"{folder}/kubeconfig.new", f"{folder}/kubeconfig")
    await api.serve_forever()


def main():
    certs, folder, *sizes = sys.argv[1:]
    asyncio.run(serve(certs, folder, Cluster(*map(int, sizes))))


main()
