# SPDX-License-Identifier: Apache-2.0
"""The driver as a process that is killed and started again, and calls to it through csi-client."""

import os
import signal
import subprocess
import time

START_S = 60
CALL_S = 100
POLL_S = 0.01
STOP_POLL_S = 0.05


class Died(Exception):
    """The driver has ended, or has stopped itself."""


class Failed(Exception):
    """A call failed; code is gRPC's, as csi-client prints it."""

    def __init__(self, command, text):
        super().__init__(f"{' '.join(command)}: {text.strip()}")
        self.code = text.split(":", 1)[0]


class Timeout(Exception):
    """Something did not become true."""


def until(what, condition, seconds):
    """Waits until condition() is true and returns what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= end:
            raise Timeout(f"waited {seconds} s in vain: {what}")
        time.sleep(POLL_S)


class Driver:
    def __init__(self, program, client, arguments, socket, log):
        self.command = [program, *arguments]
        self.client = client
        self.log = log
        self.socket = socket
        self.endpoint = "unix://" + socket
        self.process = None
        self.environment = {}
        self.stops = False
        self.log_at = 0

    def launch(self, **environment):
        self.forget_socket()
        self.stops = "PMEM_STOP_AT" in environment
        env = {**os.environ, "CSI_ENDPOINT": self.endpoint, **self.environment, **environment}
        with open(self.log, "ab") as log:
            log.write(f"--- start {environment}\n".encode())
            log.flush()
            self.log_at = log.tell()
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, close_fds=False
            )

    def start(self, **environment):
        """Until it is ready. Raises Died if it ends before."""
        self.launch(**environment)
        until("the driver is ready", self.is_ready, START_S)

    def forget_socket(self):
        try:
            os.unlink(self.socket)
        except FileNotFoundError:
            pass

    def is_ready(self):
        self.check()
        if not self.says_ready():
            return False
        try:
            return "true" in self.call("probe")
        except Failed:
            return False

    def says_ready(self):
        """In its log, which costs less than to ask it."""
        with open(self.log, "rb") as log:
            log.seek(self.log_at)
            return b": ready " in log.read()

    def is_gone(self):
        return self.process is None or self.process.poll() is not None

    def check(self):
        if self.is_gone():
            raise Died(f"status {self.process.returncode if self.process else None}")
        self.check_point()

    def check_point(self):
        if self.stops and self.is_stopped():
            raise Died("stopped")

    def is_stopped(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"

    def kill(self):
        if not self.is_gone():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self):
        """In order. Raises Died if it came to a point meanwhile, Timeout if it does not end."""
        self.check()
        self.process.terminate()

        def ended():
            if self.is_gone():
                return True
            self.check_point()
            return False

        try:
            until("the driver ends on SIGTERM", ended, START_S)
        except Timeout:
            self.kill()
            raise
        if self.process.returncode == -signal.SIGKILL:
            raise Died("killed at its end")

    def begin(self, *arguments):
        """A call that is not waited for."""
        return subprocess.Popen(
            [self.client, "-endpoint", self.endpoint, "-timeout", f"{CALL_S}s", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            close_fds=False,
        )

    def call(self, *arguments):
        """What the call answered. Raises Died or Failed."""
        self.check()
        client = self.begin(*arguments)
        out, err = self.wait_for(client)
        if client.returncode == 0:
            return out
        # the connection breaks before the process can be waited for
        if err.startswith("UNAVAILABLE") and self.dies():
            raise Died(" ".join(arguments))
        raise Failed(arguments, err)

    def wait_for(self, client):
        while True:
            try:
                return client.communicate(timeout=STOP_POLL_S if self.stops else None)
            except subprocess.TimeoutExpired:
                if self.stops and not self.is_gone() and self.is_stopped():
                    client.kill()
                    client.communicate()
                    raise Died("stopped") from None

    def dies(self):
        try:
            until("death", self.is_gone, 0.3)
            return True
        except Timeout:
            return False


def fields(answer):
    """The lines "key: value" of an answer; of repeated keys all values."""
    found = {}
    for line in answer.splitlines():
        key, colon, value = line.strip().partition(": ")
        if colon:
            found.setdefault(key, []).append(value)
    return found
