# SPDX-License-Identifier: Apache-2.0
"""grpcio (grpc-core) as the kubelet that finds the driver's registration socket, asks, and says what the result was.

As recorded of kubelet 1.34: :authority is the percent-encoded path of the socket, GetInfo and the notification
come over one connection, and between them NodeGetInfo over another one to the socket that GetInfo named.

usage: test_plugin.py PMEM_CSI_DRIVER [unittest options]
"""
import ctypes
import os
import re
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import driver
import grpc

import csi_pb2
import pluginregistration_pb2 as plugin

NAME = "pmem-csi.intel.com"


class Kubelet:
    def __init__(self, path):
        authority = urllib.parse.quote(path, safe="")
        self.channel = grpc.insecure_channel(f"unix://{path}", [("grpc.default_authority", authority)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def call(self, method, request, reply, timeout):
        return self.channel.unary_unary(f"/pluginregistration.Registration/{method}", type(request).SerializeToString,
                                        reply.FromString)(request, timeout=timeout, wait_for_ready=True)

    def info(self):
        return self.call("GetInfo", plugin.InfoRequest(), plugin.PluginInfo, driver.PATIENCE_S)

    def notify(self, **status):
        return self.call("NotifyRegistrationStatus", plugin.RegistrationStatus(**status),
                         plugin.RegistrationStatusResponse, driver.PATIENCE_S)


def node_id(endpoint):
    with grpc.insecure_channel(f"unix://{endpoint}") as channel:
        call = channel.unary_unary("/csi.v1.Node/NodeGetInfo", csi_pb2.NodeGetInfoRequest.SerializeToString,
                                   csi_pb2.NodeGetInfoResponse.FromString)
        return call(csi_pb2.NodeGetInfoRequest(), timeout=driver.PATIENCE_S).node_id


class Plugin(driver.DriverTest):
    def setUp(self):
        super().setUp()
        self.registry = f"{self.folder}/plugins_registry"
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot_id:
            self.socket = f"{self.registry}/{NAME}-{boot_id.read(4)}.sock"
        os.mkdir(self.registry)

    def is_there(self):
        return os.path.exists(self.socket)

    def start(self, *flags):
        self.start_driver(f"-pluginRegistrationPath={self.registry}", *flags)
        driver.wait_for(self.is_there)

    def register(self):
        with Kubelet(self.socket) as kubelet:
            info = kubelet.info()
            self.assertEqual(node_id(info.endpoint), driver.NODE)
            kubelet.notify(plugin_registered=True)
            return info

    def test_kubelet_registers_the_driver_as_often_as_it_likes(self):
        self.start()
        for _ in range(2):
            info = self.register()
            self.assertEqual((info.type, info.name, info.endpoint, list(info.supported_versions)),
                             ("CSIPlugin", NAME, f"{self.folder}/s", ["1.0.0"]))
        self.assertIn("registered with kubelet", self.logged())
        self.stop_driver()
        self.assertEqual(os.listdir(self.registry), [])

    def test_whether_kubelet_has_registered_the_driver_is_measured(self):
        self.start()
        self.assertEqual(self.metric("pmem_kubelet_registered"), 0)
        self.register()
        self.assertEqual(self.metric("pmem_kubelet_registered"), 1)
        self.stop_driver()

    def test_two_kubelets_at_a_time(self):
        self.start()
        with Kubelet(self.socket) as one, Kubelet(self.socket) as two:
            self.assertEqual(one.info(), two.info())
            one.notify(plugin_registered=True)
            two.notify(plugin_registered=True)
        self.stop_driver()

    def test_it_is_offered_when_it_is_ready(self):
        """Earlier, NodeGetInfo lacks the number of volumes, which cannot be written into CSINode later."""
        self.start_driver()
        log = f"{self.folder}/second.log"
        with open(log, "w", encoding="utf-8") as out:
            second = subprocess.Popen(
                [self.program, "-mode=node", f"-nodeid={driver.NODE}", "-deviceManager=fake", "-fakeRegionSize=64Mi",
                 f"-fakePath={self.folder}/second-devices", f"-statePath={self.folder}/state",
                 f"-endpoint=unix://{self.folder}/second", f"-pluginRegistrationPath={self.registry}"], stderr=out)

        def logged():
            with open(log, encoding="utf-8") as text:
                return text.read()
        driver.wait_for(lambda: "not ready yet, will try again" in logged())
        self.assertEqual(os.listdir(self.registry), [])
        self.stop_driver()
        driver.wait_for(self.is_there)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{self.folder}/second")
        self.assertLess(logged().index("not ready yet"), logged().index(" ready version="))
        second.terminate()
        self.assertEqual(second.wait(driver.PATIENCE_S), 0, logged())

    def test_a_stale_socket_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(self.socket)
        self.start()
        self.register()
        self.stop_driver()
        self.assertFalse(self.is_there())

    def test_a_socket_that_was_removed_comes_again(self):
        self.start()
        self.register()
        os.unlink(self.socket)
        driver.wait_for(self.is_there)
        self.register()
        self.assertTrue(stat.S_ISSOCK(os.stat(self.socket).st_mode))
        self.stop_driver()
        self.assertFalse(self.is_there())

    def test_kubelet_hears_the_path_on_the_host(self):
        self.start("-kubeletRegistrationSocket=/var/lib/kubelet/plugins/x/csi.sock")
        with Kubelet(self.socket) as kubelet:
            self.assertEqual(kubelet.info().endpoint, "/var/lib/kubelet/plugins/x/csi.sock")
        self.stop_driver()

    def refuse(self):
        before = os.stat(self.socket).st_ctime_ns
        with Kubelet(self.socket) as kubelet:
            kubelet.info()
            kubelet.notify(plugin_registered=False, error="detected topology value collision")
        return before

    def test_a_driver_that_is_refused_is_offered_until_it_is_registered(self):
        self.start("-probeListen=127.0.0.1:0")
        for _ in range(2):
            before = self.refuse()
            self.assertIn("detected topology value collision", self.not_ready())
            driver.wait_for(lambda: self.is_there() and os.stat(self.socket).st_ctime_ns != before)
        self.assertEqual(self.logged().count("kubelet refused to register the driver"), 1)
        self.register()
        self.assertIsNone(self.not_ready())
        self.stop_driver()

    def not_ready(self):
        """What /readyz says, None if the driver is ready."""
        port = re.search(r"serving probes .*port=(\d+)", self.logged()).group(1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=driver.PATIENCE_S):
                return None
        except urllib.error.HTTPError as reply:
            return reply.read().decode()

    def ends_with(self, reason):
        self.driver.wait(driver.PATIENCE_S)
        self.assertRegex(self.logged(), reason)
        self.end_driver(1)

    def test_a_driver_that_takes_the_csi_socket_ends_this_one(self):
        """As the Go driver does: it removes the file, whoever listens there. In one step here, or ours might look in between."""
        self.start()
        endpoint = f"{self.folder}/s"
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(f"{self.folder}/o")
            other.listen()
            os.rename(f"{self.folder}/o", endpoint)
            self.ends_with("another driver has taken the CSI socket.*is in use by another server")
            self.assertFalse(self.is_there())
            # kubelet starts it again and again, and the other one keeps what it has
            again = subprocess.run(
                [self.program, "-mode=node", "-nodeid=n", *self.devices(), f"-statePath={self.folder}/state",
                 f"-endpoint=unix://{endpoint}"], stderr=subprocess.PIPE, text=True, timeout=driver.PATIENCE_S)
            self.assertEqual(again.returncode, 1)
            self.assertIn("is in use by another server, which has to be stopped first", again.stderr)
            self.assertTrue(stat.S_ISSOCK(os.stat(endpoint).st_mode))
        self.start()
        self.register()
        self.stop_driver()

    def test_a_driver_whose_csi_socket_was_removed_ends(self):
        self.start()
        os.unlink(f"{self.folder}/s")
        self.ends_with("(?s)the CSI socket is lost.*was removed by another program.*stopping:")

    def test_what_lies_in_place_of_the_csi_socket_is_named(self):
        self.start()
        with open(f"{self.folder}/plain", "w", encoding="utf-8"):
            pass
        os.rename(f"{self.folder}/plain", f"{self.folder}/s")
        self.driver.wait(driver.PATIENCE_S)
        self.assertNotIn("another driver", self.logged())
        self.ends_with("the CSI socket was replaced by another program: .*exists and is not a socket")

    def exchange(self, one, other):
        """At once: between two steps the socket would be seen as removed. Source: renameat2(2), RENAME_EXCHANGE."""
        at_fdcwd, rename_exchange = -100, 2
        libc = ctypes.CDLL(None, use_errno=True)
        self.assertEqual(0, libc.renameat2(at_fdcwd, one.encode(), at_fdcwd, other.encode(), rename_exchange),
                         os.strerror(ctypes.get_errno()))

    def test_a_csi_socket_that_cannot_be_looked_at_for_a_time_ends_nothing(self):
        """As where the file system fails: here each look ends with ELOOP."""
        self.start_driver()
        other = f"{self.folder}.other"
        os.symlink(self.folder, other)
        self.exchange(self.folder, other)
        self.assertRaisesRegex(OSError, "Too many levels", os.lstat, f"{self.folder}/s")
        time.sleep(3)  # it looks once a second
        self.exchange(self.folder, other)
        os.unlink(other)
        time.sleep(2)
        self.assertIsNone(self.driver.poll(), self.logged())
        self.stop_driver()

    def test_without_the_flag_there_is_no_socket(self):
        self.start_driver()
        self.assertEqual(os.listdir(self.registry), [])
        self.assertNotIn("pmem_kubelet_registered", self.get("/metrics"))
        self.stop_driver()

    def test_flags_that_cannot_work_are_refused(self):
        for flags in (["-pluginRegistrationPath=registry"],
                      ["-kubeletRegistrationSocket=csi.sock"],
                      ["-pluginRegistrationPath=/r", "-endpoint=tcp://127.0.0.1:0"]):
            done = subprocess.run([self.program, "-mode=node", "-nodeid=n", "-deviceManager=fake", *flags],
                                  stderr=subprocess.PIPE, text=True, timeout=driver.PATIENCE_S)
            self.assertEqual(done.returncode, 2)
            self.assertIn(flags[0].split("=")[0], done.stderr)


if __name__ == "__main__":
    driver.main()
