# SPDX-License-Identifier: Apache-2.0
"""What pmem-csi-driver logs about each change of a volume at default verbosity, and which claim it names.

usage: test_changes.py PMEM_CSI_DRIVER [unittest options]

Needs root, for loop devices and mounts, which stay in a mount namespace of their own.
"""
import json
import os
import re
import shutil

import driver
from driver import MIB, csi_pb2, wait_for
from node import Node

KEY = "csi.storage.k8s.io/"
CLAIM = {f"{KEY}pvc/namespace": "default", f"{KEY}pvc/name": "data", f"{KEY}pv/name": "pvc-1"}
POD = {f"{KEY}pod.namespace": "default", f"{KEY}pod.name": "web-0", f"{KEY}pod.uid": "1"}
# kubelet says no more than that of an inline volume, but for what the pod asks for
INLINE = {**POD, f"{KEY}ephemeral": "true", "size": "16Mi"}
LINE = re.compile(r"^I \S+ pmem-csi-driver: (volume (?:created|deleted|is erased|staged|unstaged|published|unpublished)) (.*)$")


class Changes(Node):
    def create_for(self, name, parameters, capability=None):
        request = csi_pb2.CreateVolumeRequest(name=name, volume_capabilities=[capability or driver.capability()],
                                              capacity_range=csi_pb2.CapacityRange(required_bytes=16 * MIB))
        request.parameters.update(parameters)
        return self.future("Controller", "CreateVolume", request, csi_pb2.CreateVolumeResponse).result().volume

    def twice(self, call, *args, **more):
        """A repeated call that has nothing to do succeeds, and is not logged."""
        for _ in range(2):
            call(*args, **more).result()

    def changes(self):
        """[(message, {key: value})]"""
        found = [LINE.match(line) for line in self.logged().splitlines()]
        return [(line[1], dict(field.split("=", 1) for field in line[2].split())) for line in found if line]

    def expect_changes(self, *wanted):
        """Requires exactly these changes, in that order."""
        changes = self.changes()
        self.assertEqual([message for message, _ in changes], list(wanted), self.logged())
        return [fields for _, fields in changes]

    def recorded(self, volume):
        with open(f"{self.state}/{volume}.json") as file:
            return json.load(file)

    def row(self, volume):
        """Of the command, which a driver with fake devices does not keep from looking."""
        status, answer = self.command("volumes")
        self.assertEqual(status, 0)
        (row,) = [v for v in answer["volumes"] if v["id"] == volume]
        return row


class Life(Changes):
    def test_each_change_is_logged_once(self):
        for _ in range(2):
            volume = self.create_for("pvc-1", CLAIM).volume_id
        self.twice(self.stage, volume)
        self.twice(self.publish, volume, volume_context=POD)
        self.twice(self.unpublish, volume)
        self.twice(self.unstage, volume)
        self.twice(self.delete, volume)
        wait_for(lambda: not self.images())
        lines = self.expect_changes("volume created", "volume staged", "volume published", "volume unpublished",
                                    "volume unstaged", "volume deleted", "volume is erased")
        for fields in lines:
            self.assertEqual((fields["volume"], fields["claim"]), (volume, "default/data"))
            self.assertTrue(fields["ms"].isdigit(), fields)
            self.assertEqual((fields["pool"], fields["device"]), (lines[0]["pool"], lines[0]["device"]))
        self.assertRegex(lines[0]["pool"], "^region[01]$")
        self.assertRegex(lines[0]["device"], "^/dev/loop")
        for fields in lines[:-1]:
            self.assertEqual(fields["size_bytes"], str(16 * MIB))
        self.assertEqual([f.get("staging") for f in lines],
                         [None, self.staging(volume), None, None, self.staging(volume), None, None])
        self.assertEqual([f.get("target") for f in lines],
                         [None, None, self.target(volume), self.target(volume), None, None, None])
        self.assertEqual([f.get("pod") for f in lines], [None, None, "default/web-0", None, None, None, None])

    def test_block_volumes(self):
        block = csi_pb2.VolumeCapability(block=csi_pb2.VolumeCapability.BlockVolume())
        block.access_mode.mode = driver.capability().access_mode.mode
        volume = self.create_for("pvc-1", CLAIM, block).volume_id
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                 volume_capability=block)
        os.mkdir(self.staging(volume))
        self.twice(self.future, "Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse)
        request = csi_pb2.NodePublishVolumeRequest(volume_id=volume, staging_target_path=self.staging(volume),
                                                   target_path=self.target(volume), volume_capability=block)
        self.twice(self.future, "Node", "NodePublishVolume", request, csi_pb2.NodePublishVolumeResponse)
        self.twice(self.unpublish, volume)
        self.twice(self.unstage, volume)
        self.expect_changes("volume created", "volume staged", "volume published", "volume unpublished", "volume unstaged")
        self.delete_all()

    def test_inline_volumes(self):
        self.twice(self.publish, "csi-1", volume_context=INLINE)
        (volume,) = self.listed()
        row = self.row(volume)
        self.assertEqual((row["podNamespace"], row["podName"]), ("default", "web-0"))
        self.twice(self.unpublish, "csi-1")
        wait_for(lambda: not self.images())
        lines = self.expect_changes("volume created", "volume published", "volume unpublished", "volume deleted",
                                    "volume is erased")
        for fields in lines[:-1]:
            self.assertEqual((fields["volume"], fields["kind"], fields["pod"]), (volume, "inline", "default/web-0"))
            self.assertNotIn("claim", fields)

    def test_what_fails_is_logged_as_a_failure_alone(self):
        volume = self.create_for("pvc-1", CLAIM).volume_id
        request = csi_pb2.NodeStageVolumeRequest(volume_id=volume, staging_target_path=f"{self.folder}/staging/none",
                                                 volume_capability=driver.capability())
        self.assertIsNotNone(self.future("Node", "NodeStageVolume", request, csi_pb2.NodeStageVolumeResponse).exception())
        self.expect_changes("volume created")
        (line,) = [line for line in self.logged().splitlines() if "gRPC call failed" in line]
        self.assertIn(f" volume={volume}", line)
        self.delete_all()

    def test_calls_name_their_volume_where_details_are_wanted(self):
        self.restart_driver("-v=5")
        volume = self.create_for("pvc-1", CLAIM).volume_id
        self.stage(volume).result()
        self.unstage(volume).result()
        calls = dict(re.findall(r"gRPC call method=/csi.v1.\w+/(\w+) .* volume=(\S+)", self.logged()))
        self.assertEqual(calls, {"CreateVolume": "pvc-1", "NodeStageVolume": volume, "NodeUnstageVolume": volume})
        self.delete_all()

    def test_what_a_ready_driver_says(self):
        volume = self.make("pvc-1")
        self.restart_driver()
        (line,) = re.findall(r": ready (version=\S+) (.*)", self.logged())[-1:]
        self.assertRegex(line[0], r"^version=\d+\.\d+\.\d+")
        self.assertEqual(line[1], "volumes=1 max=1Gi available=2032Mi")
        self.assertNotIn("no volume can be created", self.logged())
        self.delete(volume).result()


class TooSmall(Changes):
    def devices(self):
        return [flag for flag in super().devices() if not flag.startswith("-fakeRegionSize")] + ["-fakeRegionSize=1"]

    def test_a_driver_that_can_never_make_a_volume_warns(self):
        self.assertRegex(self.logged(), r": ready version=\S+ volumes=0 max=0 available=0")
        self.assertRegex(self.logged(), r"W \S+ pmem-csi-driver: no volume can be created .*remedy=.*-fakeRegionSize")


class Phases(Changes):
    def phases(self):
        (family,) = [f for f in driver.text_string_to_metric_families(self.get("/metrics")) if f.name == "pmem_volumes"]
        return {sample.labels["phase"]: sample.value for sample in family.samples}

    def test_what_has_no_readable_state_is_counted_and_shown_in_the_same_words(self):
        kept, damaged, stranger = self.make("kept"), self.make("damaged"), self.make("stranger")
        self.kill_driver()
        shutil.copytree(self.state, f"{self.folder}/backup")
        os.truncate(f"{self.state}/{damaged}.json", 5)
        os.unlink(f"{self.state}/{stranger}.json")
        self.start_driver()
        self.assertEqual(self.phases(), {"creating": 0, "ready": 1, "missing": 0, "erasing": 0, "damaged": 1,
                                         "device-without-state": 1})
        self.assertIn(": ready version=2.0.0 volumes=2 ", self.logged())
        rows = {v["id"]: v for v in self.command("volumes")[1]["volumes"]}
        self.assertEqual({volume: row["phase"] for volume, row in rows.items()},
                         {kept: "ready", damaged: "damaged", stranger: "device-without-state"})
        for volume in (damaged, stranger):
            self.assertEqual(rows[volume]["sizeBytes"], 16 * MIB)
            self.assertRegex(rows[volume]["device"], "^/dev/loop")
        self.assertEqual({(f["kind"], f["id"]) for f in self.command("check")[1]["findings"]},
                         {("damaged", damaged), ("device-without-state", stranger)})
        (check,) = [c for c in self.command("doctor")[1]["checks"] if c["name"] == "volumes"]
        self.assertEqual(check["level"], "problem")
        self.assertRegex(check["text"], "of 1 volumes, 0 are missing.*1 are damaged.*1 devices have no state")
        self.kill_driver()
        for volume in (damaged, stranger):
            shutil.copy(f"{self.folder}/backup/{volume}.json", self.state)
        self.start_driver()
        self.assertEqual(self.phases()["ready"], 3)
        (check,) = [c for c in self.command("doctor")[1]["checks"] if c["name"] == "volumes"]
        self.assertEqual(check["level"], "ok")
        self.delete_all()


class Claims(Changes):
    def listed_context(self):
        reply = self.call("Controller", "ListVolumes", csi_pb2.ListVolumesRequest(), csi_pb2.ListVolumesResponse)
        return {e.volume.volume_id: dict(e.volume.volume_context) for e in reply.entries}

    def test_claims_are_kept_and_shown_and_change_no_answer(self):
        first = self.create_for("pvc-1", CLAIM)
        plain = self.create_for("pvc-2", {})
        self.assertEqual((dict(first.volume_context), dict(plain.volume_context)), ({"name": "pvc-1"}, {"name": "pvc-2"}))
        self.restart_driver()
        other = self.create_for("pvc-1", {**CLAIM, f"{KEY}pvc/name": "other"})
        self.assertEqual(other, first)
        self.assertEqual(self.listed_context(), {
            first.volume_id: {"name": "pvc-1", f"{KEY}pvc/namespace": "default", f"{KEY}pvc/name": "data"},
            plain.volume_id: {"name": "pvc-2"}})
        row = self.row(first.volume_id)
        self.assertEqual((row["claimNamespace"], row["claimName"], row["pvName"]), ("default", "data", "pvc-1"))
        # what the Go driver reads is as without
        record = self.recorded(first.volume_id)
        self.assertEqual({key: record["parameters"][key] for key in ("name", "deviceMode")},
                         {"name": "pvc-1", "deviceMode": "fake"})
        self.assertEqual([key for key in record["parameters"] if "/" in key], [])
        # a PV that a user makes of a list can be used
        self.stage(first.volume_id).result()
        self.publish(first.volume_id, volume_context=self.listed_context()[first.volume_id]).result()
        self.unuse(first.volume_id)
        self.delete_all()

    def test_volumes_of_an_earlier_release_get_their_claim_later(self):
        created, published = self.create_for("pvc-1", {}), self.create_for("pvc-2", {})
        again = self.create_for("pvc-1", CLAIM)
        self.assertEqual(again, created)
        self.stage(published.volume_id).result()
        self.publish(published.volume_id, volume_context={**CLAIM, **POD}).result()
        for volume in (created, published):
            row = self.row(volume.volume_id)
            self.assertEqual((row["claimNamespace"], row["claimName"]), ("default", "data"))
            # a volume may have many pods
            self.assertNotIn("podName", self.recorded(volume.volume_id))
        self.unuse(published.volume_id)
        self.delete_all()

    def test_what_is_no_name_is_not_kept(self):
        for number, name in enumerate(("../../etc", "a b", "x" * 254, "\x1b[2J", "")):
            volume = self.create_for(f"pvc-{number}", {**CLAIM, f"{KEY}pvc/name": name}).volume_id
            self.assertNotIn("claimName", self.recorded(volume))
            self.assertNotIn("claimNamespace", self.recorded(volume))
        self.assertNotIn(" claim=", self.logged())
        self.delete_all()


if __name__ == "__main__":
    driver.main()
