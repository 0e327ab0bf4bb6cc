# SPDX-License-Identifier: Apache-2.0
"""Programs that each have a network of their own: a network namespace, linked to the others by a bridge.

The test itself runs in a network namespace of its own, driver.enter_namespace("-n").
"""
import os
import signal
import subprocess

import driver
import grpc

import csi_pb2

NET = "10.111.0"


def run(*command):
    subprocess.run(command, check=True)


def open_hub():
    run("ip", "link", "add", "hub", "type", "bridge")
    run("ip", "link", "set", "hub", "up")
    run("ip", "addr", "add", f"{NET}.254/24", "dev", "hub")


def close_hub():
    run("ip", "link", "delete", "hub")


class Host:
    """A program at an address of its own, which is "@" in its arguments. @folder has its log and socket."""

    def __init__(self, number, folder, command, env=None):
        self.space, self.link = f"pmem-{os.getpid()}-{number}", f"host{number}"
        self.address = f"{NET}.{number + 1}"
        self.mac = f"02:00:00:00:00:{number + 1:02x}"
        self.socket = f"{folder}/{number}.sock"
        self.log = open(f"{folder}/{number}.log", "a+", encoding="utf-8", errors="replace")
        self.env = {**os.environ, **(env or {})}
        self.command = [word.replace("@", self.address) for word in command]
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "address", self.mac, "netns",
            self.space)
        run("ip", "link", "set", self.link, "master", "hub", "up")
        for words in (f"addr add {self.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            run("ip", "-n", self.space, *words.split())
        self.start()

    def start(self):
        self.process = subprocess.Popen(["ip", "netns", "exec", self.space, *self.command], stderr=self.log,
                                        env=self.env)

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def set_link(self, state):
        run("ip", "link", "set", self.link, state)

    def know(self, *others):
        """Their addresses, for ever: packets to a host that was cut off vanish without "no route to host"."""
        for other in others:
            run("ip", "-n", self.space, "neigh", "replace", other.address, "lladdr", other.mac, "dev", "eth0", "nud",
                "permanent")

    def cut(self):
        """No packet comes or goes any more, and no peer is notified."""
        run("ip", "link", "set", self.link, "nomaster")

    def join(self):
        run("ip", "link", "set", self.link, "master", "hub")

    def stop(self):
        self.thaw()
        self.process.kill()
        self.process.wait()
        self.log.close()
        # The kernel ends a network namespace at its leisure, and its links with it.
        run("ip", "link", "delete", self.link)
        run("ip", "netns", "delete", self.space)

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for(self, text, times=1):
        driver.wait_for(lambda: self.logged().count(text) >= times)

    def call(self, method, request, reply, timeout, service="Controller"):
        with grpc.insecure_channel(f"unix://{self.socket}") as channel:
            stub = channel.unary_unary(f"/csi.v1.{service}/{method}", type(request).SerializeToString, reply.FromString)
            return stub(request, timeout=timeout)

    def volumes(self):
        request = csi_pb2.ListVolumesRequest()
        return {e.volume.volume_id for e in self.call("ListVolumes", request, csi_pb2.ListVolumesResponse, 60).entries}
