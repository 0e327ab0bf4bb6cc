# SPDX-License-Identifier: Apache-2.0
"""A process that writes while its volumes are copied: it counts, in one file after the other."""

import os
import struct
import threading

from calls import Timeout, until

GOES_ON_S = 20
PLACE = struct.Struct("<Q")
# A copy that is not taken at one moment has passed the first file when it comes to the last.
APART = 3 << 20


def open_filled(path, length):
    """Of this length, and on the device."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, bytes(length), 0)
    os.fsync(file)
    return file


class Writer:
    """Counts in files of several folders, such that each is equal to the next one or one ahead."""

    def __init__(self, folders):
        self.paths = [path for folder in folders for path in places(folder)]
        self.files = []
        for path in self.paths:
            self.files.append(open_filled(path, 4096))
            os.close(open_filled(path + ".after", APART))
        self.count = 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        while not self.ends.is_set():
            number = PLACE.pack(self.count + 1)
            for file in self.files:
                os.pwrite(file, number, 0)
                os.fdatasync(file)
            self.count += 1

    def goes_on(self):
        """Whether it still writes; a file system that is frozen stops it."""
        before = self.count
        try:
            until("the writer goes on", lambda: self.count > before, GOES_ON_S)
        except Timeout:
            return False
        return True

    def stop(self):
        self.ends.set()
        self.thread.join(GOES_ON_S)
        if not self.thread.is_alive():
            for file in self.files:
                os.close(file)


def places(folder):
    """Two files, between which the file system has put others."""
    return [folder + "/count-first", folder + "/count-last"]


def counts(folders):
    """What the files in copies of the folders say."""
    found = []
    for folder in folders:
        for path in places(folder):
            with open(path, "rb") as f:
                found += PLACE.unpack(f.read(PLACE.size))
    return found


def torn(found, least, most):
    """Why such counts cannot have been there at one moment between two others; else None."""
    if any(number not in (found[-1], found[-1] + 1) for number in found) or sorted(found, reverse=True) != found:
        return f"counts {found} were never there together"
    # the last one is written before it is counted
    if not least <= found[-1] <= most + 1:
        return f"counts {found} are not from between {least} and {most}"
    return None
