# SPDX-License-Identifier: Apache-2.0
"""Certificates of scripts/make-certs for grpcio."""
import subprocess
import tempfile

import grpc


class Certs:
    def __init__(self, make_certs, *leaves):
        """@leaves: instead of those that make-certs makes by itself"""
        self.folder = tempfile.TemporaryDirectory(prefix="pmem-certs-")
        subprocess.run([make_certs, "-o", self.folder.name, *leaves], check=True, stdout=subprocess.DEVNULL)

    def path(self, name):
        return f"{self.folder.name}/{name}.pem"

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def flags(self, name):
        """Of our programs."""
        return [f"-caFile={self.path('ca')}", f"-certFile={self.path(name)}", f"-keyFile={self.path(name + '-key')}"]

    def pair(self, name):
        return self.read(name + "-key"), self.read(name)

    def channel_credentials(self, name):
        """Of a client; without a name it has no certificate."""
        key, chain = self.pair(name) if name else (None, None)
        return grpc.ssl_channel_credentials(self.read("ca"), key, chain)

    def server_credentials(self, name):
        return grpc.ssl_server_credentials([self.pair(name)], self.read("ca"), require_client_auth=True)
