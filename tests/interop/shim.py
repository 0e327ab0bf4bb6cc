# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the shim of Kata Containers, with a process that has the device open as its guest.

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
        self.reply(200, json.dumps({"usage": [{"available": 7, "total": 12, "used": 5, "unit": 1},
                                              {"available": 2, "total": 3, "used": 1, "unit": 2}], "volume_condition": {}}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/direct-volume/resize" or request["VolumePath"] != self.server.device:
            self.reply(500, f"no volume {request['VolumePath']}")
        elif self.server.grows:
            self.server.size = request["Size"]
            self.reply(200, "")
        else:
            self.reply(500, NOT_IMPLEMENTED)

    def address_string(self):
        return "driver"

    def log_message(self, *_):
        pass


class Shim(socketserver.ThreadingUnixStreamServer):
    """With its guest, for as long as it is not ended."""

    def __init__(self, sandbox, entry, grows=False):
        self.folder = SANDBOXES / sandbox
        self.folder.mkdir(parents=True)
        info = json.loads((entry / "mountInfo.json").read_text())
        (entry / sandbox).touch(mode=0o600)
        self.device, self.grows, self.size = info["device"], grows, None
        self.guest = subprocess.Popen(["sh", "-c", 'exec 9<>"$1" && echo && exec cat', "sh", self.device],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.guest.stdout.readline()
        super().__init__(str(self.folder / "shim-monitor.sock"), Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def end(self):
        self.end_guest()
        self.end_answers()

    def end_answers(self):
        """A shim that is gone leaves its guest in some cases."""
        self.shutdown()
        self.server_close()
        (self.folder / "shim-monitor.sock").unlink()
        self.folder.rmdir()

    def end_guest(self):
        self.guest.stdin.close()
        self.guest.stdout.close()
        self.guest.wait()
