# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the shim of Kata Containers.

It does what Kata's source says (August 2026): virtcontainers/container.go, createBlockDevices(), reads the entry of a direct volume and
leaves the sandbox's ID in it; containerd-shim-v2/shim_management.go answers on the socket.
"""
import base64
import http.server
import json
import pathlib
import socketserver
import subprocess
import threading
import urllib.parse

SANDBOXES = pathlib.Path("/run/vc/sbs")
NOT_IMPLEMENTED = "rpc error: code = Unimplemented desc = resize_volume is not implemented in kata-agent"


def entry_name(target):
    """Of the target path of a volume, in the folder of direct volumes."""
    return base64.urlsafe_b64encode(str(target).encode()).decode()


class Answers(http.server.BaseHTTPRequestHandler):
    def reply(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        device = urllib.parse.unquote(urllib.parse.parse_qs(url.query)["path"][0])
        if url.path != "/direct-volume/stats" or device != self.server.device:
            self.reply(500, f"no volume {device}")
            return
        (available, total, used), (inodes_available, inodes, inodes_used) = self.server.usage()
        self.reply(200, json.dumps({"usage": [{"available": available, "total": total, "used": used, "unit": 1},
                                              {"available": inodes_available, "total": inodes, "used": inodes_used, "unit": 2}],
                                    "volume_condition": {}}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/direct-volume/resize" or request["VolumePath"] != self.server.device:
            self.reply(500, f"no volume {request['VolumePath']}")
        else:
            why_not = self.server.grow(request["Size"])
            self.reply(500 if why_not else 200, why_not or "")

    def address_string(self):
        return "driver"

    def log_message(self, *_):
        pass


class Answering(socketserver.ThreadingUnixStreamServer):
    """A shim for as long as it is not ended, without a guest: what its agent says is usage() and grow()."""

    def __init__(self, sandbox, entry):
        self.folder = SANDBOXES / sandbox
        self.folder.mkdir(parents=True)
        info = json.loads((entry / "mountInfo.json").read_text())
        (entry / sandbox).touch(mode=0o600)
        self.device = info["device"]
        super().__init__(str(self.folder / "shim-monitor.sock"), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def usage(self):
        """available, total and used bytes, then inodes"""
        raise NotImplementedError

    def grow(self, size):
        """Return: why it cannot, such as NOT_IMPLEMENTED; None: it has grown."""
        raise NotImplementedError

    def end_answers(self):
        """A shim that is gone leaves its guest in some cases."""
        self.shutdown()
        self.server_close()
        (self.folder / "shim-monitor.sock").unlink()
        self.folder.rmdir()


class Shim(Answering):
    """With a process that has the device open as its guest."""

    def __init__(self, sandbox, entry, grows=False):
        super().__init__(sandbox, entry)
        self.grows, self.size = grows, None
        self.guest = subprocess.Popen(["sh", "-c", 'exec 9<>"$1" && echo && exec cat', "sh", self.device],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.guest.stdout.readline()

    def usage(self):
        return (7, 12, 5), (2, 3, 1)

    def grow(self, size):
        if not self.grows:
            return NOT_IMPLEMENTED
        self.size = size
        return None

    def end(self):
        self.end_guest()
        self.end_answers()

    def end_guest(self):
        self.guest.stdin.close()
        self.guest.stdout.close()
        self.guest.wait()
