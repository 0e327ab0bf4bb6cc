# SPDX-License-Identifier: Apache-2.0
"""Latency of what must answer within 10 ms, while all worker threads are held; the client's own time is in it.

usage: isolation.py PMEM_CSI_DRIVER       (finds test_isolation and csi_pb2 by PYTHONPATH; needs root)
"""
import statistics
import sys
import time

import driver
import test_isolation
from test_isolation import csi_pb2

CALLS = 500


class Latency(test_isolation.Held):
    def measure(self, what, call):
        took_ms = []
        for _ in range(CALLS):
            began = time.perf_counter()
            call()
            took_ms.append((time.perf_counter() - began) * 1000)
        took_ms.sort()
        print(f"{what:44} {statistics.median(took_ms):8.2f} {took_ms[CALLS * 99 // 100]:8.2f} {took_ms[-1]:8.2f}", flush=True)

    def test_latency(self):
        print(f"{'ms while 32 workers are held':44} {'median':>8} {'99 %':>8} {'max':>8}")
        for service, method, request, reply in (
                ("Identity", "Probe", csi_pb2.ProbeRequest(), csi_pb2.ProbeResponse),
                ("Controller", "GetCapacity", csi_pb2.GetCapacityRequest(), csi_pb2.GetCapacityResponse),
                ("Node", "NodeGetInfo", csi_pb2.NodeGetInfoRequest(), csi_pb2.NodeGetInfoResponse)):
            self.measure(method, lambda: self.call(service, method, request, reply))
        for path in "/healthz", "/metrics":
            self.measure(path, lambda: self.get(path))
        self.assert_all_are_held()


if __name__ == "__main__":
    driver.main()
