# SPDX-License-Identifier: Apache-2.0
"""The API server that a controller under test records volumes at: a stand-in (outsiders.py), or none that answers."""
import json
import os
import re
import subprocess
import sys

import driver

HERE = os.path.dirname(os.path.abspath(__file__))
# Nodes register all the same, but no volume is made.
NOWHERE = "127.0.0.1:1"


def write_kubeconfig(folder, ca, address=NOWHERE):
    """For the API server at @address, with a certificate for pmem-registry. Return: what the environment needs"""
    path = f"{folder}/kubeconfig"
    cluster = {"server": f"https://{address}", "certificate-authority": ca, "tls-server-name": "pmem-registry"}
    with open(path, "w", encoding="ascii") as file:
        json.dump({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                   "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": {"token": "a"}}]}, file)
    return {"KUBECONFIG": path}


def start(test, folder, certs, *nodes):
    """A stand-in on loopback that has these Nodes, until the end of the test. Return: as of write_kubeconfig()"""
    path = f"{folder}/api.log"
    with open(path, "w", encoding="ascii") as log:
        process = subprocess.Popen([sys.executable, f"{HERE}/outsiders.py", "api", "127.0.0.1:0", certs.path("pmem-registry"),
                                    certs.path("pmem-registry-key"), *nodes], stderr=log)
    test.addCleanup(process.wait, driver.PATIENCE_S)
    test.addCleanup(process.kill)

    def serving():
        with open(path, encoding="ascii") as log:
            return re.search(r"serving port=(\d+)", log.read())
    driver.wait_for(serving)
    return write_kubeconfig(folder, certs.path("ca"), f"127.0.0.1:{serving().group(1)}")
