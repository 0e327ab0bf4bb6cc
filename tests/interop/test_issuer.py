# SPDX-License-Identifier: Apache-2.0
"""A controller and nodes whose certificates expire, are not valid yet, are truncated or removed while both run.

usage: test_issuer.py PMEM_CSI_DRIVER MAKE_CERTS [unittest options]
"""
import datetime
import http.client
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import api
import driver
from driver import wait_for

PROGRAM = MAKE_CERTS = None
CONTROLLER, NODE = "pmem-registry", "pmem-node-controller"


def in_seconds(seconds):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y%m%d%H%M%SZ")


class Issuer(unittest.TestCase):
    """Both programs read the same folder, as with one Secret."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmem-issuer-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.issue()
        self.env = {**os.environ, **api.write_kubeconfig(self.folder, self.path("ca"))}
        self.controller = self.start("controller", CONTROLLER, "-mode=controller", "-registryEndpoint=tcp://127.0.0.1:0",
                                     f"-endpoint=unix://{self.folder}/c", "-nodeAuthentication=role")
        self.port = self.wait_for("controller", r"serving endpoint=tcp\S+ port=(\d+)").group(1)

    def issue(self, *options):
        subprocess.run([MAKE_CERTS, "-o", f"{self.folder}/certs", *options, CONTROLLER, NODE], check=True,
                       stdout=subprocess.DEVNULL)

    def path(self, name):
        return f"{self.folder}/certs/{name}.pem"

    def start(self, name, leaf, *flags):
        log = open(f"{self.folder}/{name}.log", "w", encoding="utf-8")
        process = subprocess.Popen([PROGRAM, f"-caFile={self.path('ca')}", f"-certFile={self.path(leaf)}",
                                    f"-keyFile={self.path(leaf + '-key')}", *flags], stderr=log, env=self.env)
        self.addCleanup(self.end, process, log)
        return process

    @staticmethod
    def end(process, log):
        process.kill()
        process.wait(driver.PATIENCE_S)
        log.close()

    def start_node(self, name):
        return self.start(name, NODE, "-mode=node", f"-nodeid={name}", "-deviceManager=fake", "-fakeRegionSize=64Mi",
                          f"-statePath={self.folder}/{name}", f"-endpoint=unix://{self.folder}/{name}.sock",
                          f"-registryEndpoint=tcp://127.0.0.1:{self.port}", "-controllerEndpoint=tcp://127.0.0.1:0")

    def logged(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8") as log:
            return log.read()

    def wait_for(self, name, pattern):
        wait_for(lambda: re.search(pattern, self.logged(name)))
        return re.search(pattern, self.logged(name))

    def is_registered(self, name):
        return re.search(rf"node registered node={name} ", self.logged("controller"))

    def test_they_expire(self):
        """Connections stay open; a new connection is refused with the reason, and is served once there are new ones."""
        self.issue("-e", in_seconds(6))
        time.sleep(2)  # both look at their files once a second
        self.start_node("host1")
        self.wait_for("controller", "node registered node=host1 ")
        time.sleep(5)
        self.start_node("host2")
        self.wait_for("host2", "expired")
        self.assertFalse(self.is_registered("host2"))
        self.assertNotIn("unregistered", self.logged("controller"))
        self.issue("-e", in_seconds(3600))
        self.wait_for("controller", "node registered node=host2 ")

    def expiry(self, port, file):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=driver.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        found = re.search(rf'pmem_certificate_expiry_timestamp_seconds{{.*file="{file}"}} (\S+)', text)
        return float(found.group(1)) if found else None

    def test_their_expiry_is_logged_beforehand(self):
        """By metrics and log, also of programs that have no connection yet."""
        self.issue("-b", in_seconds(-90 * 86400), "-e", in_seconds(3 * 86400 + 600))
        for name, flags in (("node", ["-mode=node", "-nodeid=n", "-deviceManager=fake", f"-statePath={self.folder}/s"]),
                            ("other", ["-mode=controller", "-registryEndpoint=tcp://127.0.0.1:0"])):
            self.start(name, NODE, *flags, f"-endpoint=unix://{self.folder}/{name}.sock", "-metricsListen=127.0.0.1:0")
            self.wait_for(name, rf"certificate expires soon.* file={self.path(NODE)} .*days=3")
            self.assertNotIn("ca.pem", self.logged(name).replace("authority", ""))
            port = int(self.wait_for(name, r"serving metrics .*port=(\d+)").group(1))
            self.assertAlmostEqual(self.expiry(port, self.path(NODE)), time.time() + 3 * 86400 + 600, delta=300)
            self.assertGreater(self.expiry(port, self.path("ca")), time.time() + 14 * 86400)

    def test_they_begin_later(self):
        """As made by an issuer whose clock is ahead: refused with that reason, until the time has come."""
        self.issue("-b", in_seconds(8))
        time.sleep(2)
        self.start_node("host1")
        self.wait_for("host1", "future|not yet|before")
        self.assertFalse(self.is_registered("host1"))
        self.wait_for("controller", "node registered node=host1 ")

    def test_they_are_cut_off(self):
        """By a program that writes them in place: the old ones stay in force, the log says so once, and the new ones follow."""
        self.start_node("host1")
        self.wait_for("controller", "node registered node=host1 ")
        with open(self.path(CONTROLLER), "rb") as file:
            whole = file.read()
        os.truncate(self.path(CONTROLLER), len(whole) // 2)
        time.sleep(2)
        self.start_node("host2")
        self.wait_for("controller", "node registered node=host2 ")
        self.assertEqual(len(re.findall(f"{CONTROLLER}.pem", self.logged("controller"))), 1)
        self.issue("-e", in_seconds(3600))
        time.sleep(2)
        self.start_node("host3")
        self.wait_for("controller", "node registered node=host3 ")

    def test_they_are_taken_away(self):
        """A Secret was deleted: existing connections and running programs continue."""
        self.start_node("host1")
        self.wait_for("controller", "node registered node=host1 ")
        os.rename(f"{self.folder}/certs", f"{self.folder}/away")
        time.sleep(2)
        mine = self.path
        self.path = lambda name: f"{self.folder}/away/{name}.pem"
        self.start_node("host2")
        self.path = mine
        self.wait_for("controller", "node registered node=host2 ")
        self.assertIsNone(self.controller.poll())

    def test_of_another_issuer(self):
        """A node that has those of another cluster is refused, and the log names the authority."""
        subprocess.run([MAKE_CERTS, "-o", f"{self.folder}/other", "-c", "another", NODE], check=True,
                       stdout=subprocess.DEVNULL)
        mine = self.path
        self.path = lambda name: f"{self.folder}/other/{name}.pem"
        self.start_node("host1")
        self.path = mine
        self.wait_for("host1", "authority|issuer|trusted")
        self.assertFalse(self.is_registered("host1"))


if __name__ == "__main__":
    PROGRAM, MAKE_CERTS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
