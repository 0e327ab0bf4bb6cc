# SPDX-License-Identifier: Apache-2.0
"""volumes, regions, doctor and check of pmem-csi-driver on a node with fake devices; JSON is parsed, not searched.

usage: test_commands.py PMEM_CSI_DRIVER CSI_CLIENT [unittest options]
"""
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

MIB = 1 << 20
REGION_BYTES = 64 * MIB
UNIT_BYTES = 4 * MIB
PATIENCE_S = 120
DRIVER = CLIENT = None
OK, MISMATCH, USAGE, BLIND = range(4)


def without_api_server(folder):
    """The environment in which a controller serves, but is never ready: nothing answers at its API server's address."""
    make_certs = f"{os.path.dirname(os.path.abspath(__file__))}/../../scripts/make-certs"
    subprocess.run([make_certs, "-o", f"{folder}/certs", "pmem-registry"], check=True, stdout=subprocess.DEVNULL)
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": f"{folder}/certs/ca.pem"}
    with open(f"{folder}/kubeconfig", "w", encoding="ascii") as file:
        json.dump({"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                   "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": {"token": "a"}}]}, file)
    return {"KUBECONFIG": f"{folder}/kubeconfig"}


class Node(unittest.TestCase):
    """A folder with state and devices of a node that has two volumes and whose driver has ended."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pmem-csi-commands.")
        self.addCleanup(self.clean_up)
        self.state = f"{self.folder}/state"
        self.fake = f"{self.folder}/fake"
        self.where = ["-deviceManager=fake", f"-fakePath={self.fake}", "-fakeRegionSize=64Mi",
                      f"-statePath={self.state}", "-v=0"]
        self.driver = None
        self.start()
        self.ids = [self.create("pvc-one", "16Mi"), self.create("pvc-two", "20Mi", "-parameter", "usage=FileIO")]
        self.stop()

    def clean_up(self):
        if self.driver:
            self.driver.kill()
            self.driver.communicate()
        for line in subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
                                   capture_output=True, text=True, check=True).stdout.splitlines():
            if self.folder in line:
                subprocess.run(["losetup", "--detach", line.split()[0]], check=True)
        shutil.rmtree(self.folder)

    def launch(self, **more):
        self.driver = subprocess.Popen(
            [DRIVER, "-mode=node", "-nodeid=n", f"-endpoint=unix://{self.folder}/csi.sock", *self.where[:-1]],
            stderr=subprocess.PIPE, text=True, **more)

    def start(self, **more):
        self.launch(**more)
        for line in self.driver.stderr:
            if ": ready " in line:
                return
        self.fail("the driver ended")

    def stop(self):
        self.driver.send_signal(signal.SIGTERM)
        _, self.log = self.driver.communicate(timeout=PATIENCE_S)
        self.assertEqual(self.driver.returncode, 0)
        self.driver = None

    def csi(self, *words):
        run = subprocess.run([CLIENT, "-endpoint", f"unix://{self.folder}/csi.sock", "-o", "json", *words],
                             capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        return self.document(run.stdout)

    def document(self, text):
        """What a program prints with -o json: one document, whose schema is named, in which no name of ours is in snake case."""
        value = json.loads(text)
        self.assertEqual(value["schemaVersion"], 1)
        self.assertNotRegex(text, r'"[a-z]+_[a-z_]+":')
        return value

    def create(self, name, size, *flags):
        answer = self.csi("-fs", "ext4", "-size", size, *flags, "create", name)
        return answer["volume"]["volumeId"]

    def text(self, status, *words):
        run = subprocess.run([DRIVER, *words, *self.where], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run.stdout

    def json(self, status, *words):
        return self.document(self.text(status, *words, "-o", "json"))

    def findings(self, status=MISMATCH):
        report = self.json(status, "check")
        self.assertEqual(report["consistent"], status == OK)
        return {(f["kind"], f["id"]): f for f in report["findings"]}

    def repair(self, volume, status=OK):
        report = self.json(status, "check", "-repair", volume)
        self.assertEqual(report["id"], volume)
        self.assertEqual(bool(report["left"]), status == MISMATCH)
        return report

    def path(self, volume, suffix=".json"):
        return f"{self.state}/{volume}{suffix}"


class Client(Node):
    def setUp(self):
        super().setUp()
        self.start()

    def words(self, *words):
        run = subprocess.run([CLIENT, "-endpoint", f"unix://{self.folder}/csi.sock", *words], capture_output=True, text=True,
                             timeout=PATIENCE_S, check=True)
        return run.stdout.splitlines()

    def test_volumes_are_a_table(self):
        key = "csi.storage.k8s.io/pvc"
        claimed = self.create("pvc-three", "8Mi", "-parameter", f"{key}/namespace=default", "-parameter", f"{key}/name=data")
        heading, *rows = [line.split() for line in self.words("list")]
        self.assertEqual(heading, ["ID", "SIZE", "NODE", "CLAIM", "CONDITION"])
        self.assertEqual(rows, sorted([[self.ids[0], "16Mi", "n", "-", "ok"], [self.ids[1], "20Mi", "n", "-", "ok"],
                                       [claimed, "8Mi", "n", "default/data", "ok"]]))
        heading, first, second, more = self.words("-max", "2", "list")
        self.assertEqual([first.split()[0], second.split()[0]], [row[0] for row in rows[:2]])
        self.assertTrue(more.startswith("more follow: -token "))
        heading, last = self.words("-token", more.rpartition(" ")[2], "list")
        self.assertEqual(last.split()[0], rows[2][0])
        self.assertEqual([e["volume"]["volumeId"] for e in self.csi("list")["entries"]], [row[0] for row in rows])
        for volume in (claimed, *self.ids):
            self.csi("delete", volume)
        self.assertEqual(self.words("list"), ["no volumes"])

    def call(self, *words):
        return subprocess.run([CLIENT, "-timeout=5s", "-endpoint", f"unix://{self.folder}/csi.sock", *words], capture_output=True,
                              text=True, timeout=PATIENCE_S)

    def test_probe_fails_while_the_driver_is_not_ready(self):
        self.assertEqual(self.call("probe").returncode, 0)
        self.stop()
        with open(f"{self.state}/.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.launch()
            while not os.path.exists(f"{self.folder}/csi.sock"):
                time.sleep(0.05)
            answer = self.call("probe")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("UNAVAILABLE: ", answer.stderr)
        self.assertIn("the driver is not ready", answer.stderr)

    def test_a_deletion_of_nothing_is_no_failure_and_is_reported(self):
        self.assertEqual(self.call("delete", self.ids[0]).stderr, "")
        answer = self.call("delete", "pvc-three")
        self.assertEqual(answer.returncode, 0)
        self.assertIn("there was no volume pvc-three", answer.stderr)
        self.stop()
        self.assertIn("there is no such volume to delete volume=pvc-three", self.log)

    def test_capabilities_are_one_document(self):
        answer = self.csi("capabilities")
        self.assertEqual(sorted(answer), ["controller", "node", "plugin", "schemaVersion"])
        self.assertIn({"rpc": {"type": "CREATE_DELETE_VOLUME"}}, answer["controller"]["capabilities"])
        self.assertEqual([line for line in self.words("capabilities") if not line.startswith(" ")],
                         ["plugin:", "controller:", "node:"])


class Look(Node):
    def test_volumes(self):
        rows = {v["id"]: v for v in self.json(OK, "volumes")["volumes"]}
        self.assertEqual(sorted(rows), sorted(self.ids))
        one, two = (rows[i] for i in self.ids)
        self.assertEqual((one["name"], one["sizeBytes"], one["phase"]), ("pvc-one", 16 * MIB, "ready"))
        self.assertEqual((one["deviceMode"], one["usage"], two["usage"]), ("fake", "AppDirect", "FileIO"))
        self.assertEqual((one["stagedAt"], one["published"]), ("", 0))
        self.assertTrue(os.path.exists(one["device"]))
        table = self.text(OK, "volumes").splitlines()
        self.assertEqual([line.split()[0] for line in table[1:]], [v["id"] for v in rows.values()])
        self.assertEqual(len({line.index(" ready ") for line in table[1:]}), 1)

    def test_regions(self):
        pools = self.json(OK, "regions")["pools"]
        self.assertEqual(len(pools), 2)
        self.assertEqual(sum(p["totalBytes"] for p in pools), 2 * REGION_BYTES)
        self.assertEqual(sum(p["freeBytes"] for p in pools), 2 * REGION_BYTES - 36 * MIB)
        for p in pools:
            self.assertEqual((p["unitBytes"], p["complete"]), (UNIT_BYTES, True))
            self.assertIn(p["pool"], self.text(OK, "regions"))

    def test_the_largest_volume_can_be_created_and_no_larger_one(self):
        largest = max(p["largestBytes"] for p in self.json(OK, "regions")["pools"])
        answer = self.json(OK, "doctor", "-size", str(largest))
        self.assertTrue(answer["creatable"])
        self.assertEqual({p["sizeBytes"] for p in answer["pools"] if p["fits"]}, {largest})
        answer = self.json(MISMATCH, "doctor", "-size", str(largest + 1))
        self.assertFalse(answer["creatable"])
        for p in answer["pools"]:
            self.assertFalse(p["fits"])
            self.assertIn("space", {r["kind"] for r in p["reasons"]})
        self.start()
        self.create("pvc-largest", str(largest))

    def test_doctor_rounds_up_and_knows_the_smallest_file_system(self):
        for p in self.json(OK, "doctor", "-size", str(10 * MIB))["pools"]:
            self.assertEqual((p["sizeBytes"], [r["kind"] for r in p["reasons"]]), (12 * MIB, ["rounding"]))
        for p in self.json(MISMATCH, "doctor", "-size", "1Mi", "-fs", "xfs")["pools"]:
            self.assertEqual(p["neededBytes"], 300 * MIB)
            self.assertEqual(p["reasons"][0]["kind"], "file-system-minimum")
        self.assertTrue(self.json(OK, "doctor", "-size", "1Mi", "-fs", "xfs", "-block")["creatable"])

    def checks(self):
        """What doctor says of the node. Where a kubelet has run its folder is part of that, whatever state it is in."""
        status = MISMATCH if any(self.kubelet_problems()) else OK
        return {c["name"]: c for c in self.json(status, "doctor")["checks"]}

    def kubelet_problems(self):
        run = subprocess.run([DRIVER, "doctor", *self.where, "-o", "json"], capture_output=True, text=True,
                             timeout=PATIENCE_S)
        problems = [c for c in json.loads(run.stdout)["checks"] if c["level"] == "problem"]
        self.assertLessEqual({c["name"] for c in problems}, {"kubelet-dir"})
        return problems

    def test_doctor_checks_the_node(self):
        checks = self.checks()
        self.assertEqual(checks["mkfs.ext4"]["level"], "ok")
        self.assertEqual(checks["driver"]["level"], "note")
        self.start()
        checks = self.checks()
        self.assertIn(str(self.driver.pid), checks["driver"]["text"])

    def test_wrong_usage(self):
        for words in (["nonsense"], ["check", "now"], ["check", "-nonsense"], ["volumes", "-o", "yaml"],
                      ["check", "-repair", "a", "-forget", "b"], ["check", "-repair", "../x"],
                      ["doctor", "-size", "much"], ["doctor", "-size", "1Mi", "-fs", "vfat"]):
            self.assertEqual(self.text(USAGE, *words), "")
        for command in ("check", "doctor", "regions", "volumes"):
            self.assertIn("Exit status", self.text(OK, command, "-help"))
            self.assertIn(command, self.text(OK, "-help"))


    def test_what_has_no_record_has_the_members_of_a_volume(self):
        """Devices without a state file, and damaged state files with and without a device."""
        good = self.json(OK, "volumes")["volumes"][0]
        os.unlink(self.path(self.ids[0]))
        for volume in self.ids[1], "lost":
            with open(self.path(volume), "w", encoding="utf-8") as f:
                f.write("{")
        rows = {v["id"]: v for v in self.json(OK, "volumes")["volumes"]}
        self.assertEqual({volume: row["phase"] for volume, row in rows.items()},
                         {self.ids[0]: "device-without-state", self.ids[1]: "damaged", "lost": "damaged"})
        for row in rows.values():
            self.assertEqual({key: type(value) for key, value in row.items()}, {key: type(good[key]) for key in good})
        self.assertEqual([rows[i]["sizeBytes"] for i in (*self.ids, "lost")], [16 * MIB, 20 * MIB, 0])
        self.assertEqual([rows[i]["active"] for i in (*self.ids, "lost")], [True, True, False])
        self.assertEqual((rows["lost"]["device"], rows["lost"]["targets"], rows["lost"]["published"]), ("", [], 0))


class Check(Node):
    def test_a_node_whose_driver_ended_is_consistent(self):
        before = sorted(os.listdir(self.state))
        self.assertEqual(self.findings(OK), {})
        self.assertIn("consistent", self.text(OK, "check"))
        self.assertEqual(sorted(os.listdir(self.state)), before)

    def test_while_a_driver_runs_nothing_is_repaired(self):
        self.start()
        self.text(BLIND, "check", "-repair", self.ids[0])
        self.text(BLIND, "check", "-forget", self.ids[0])

    def test_a_lost_state_file_is_written_anew(self):
        os.unlink(self.path(self.ids[0]))
        self.assertEqual(list(self.findings()), [("device-without-state", self.ids[0])])
        self.assertIn(f"MISMATCH device-without-state: {self.ids[0]}", self.text(MISMATCH, "check"))
        self.assertEqual(len(self.repair(self.ids[0])["done"]), 1)
        self.assertEqual(self.findings(OK), {})
        with open(self.path(self.ids[0]), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["size"], 16 * MIB)
        self.delete_all()

    def test_a_damaged_state_file_is_set_aside(self):
        with open(self.path(self.ids[1]), "w", encoding="utf-8") as f:
            f.write('{"id":')
        self.assertEqual(list(self.findings()), [("damaged", self.ids[1])])
        self.assertEqual(len(self.repair(self.ids[1])["done"]), 2)
        self.assertEqual(self.repair(self.ids[1])["done"], [])
        with open(self.path(self.ids[1], ".json.damaged"), encoding="utf-8") as f:
            self.assertEqual(f.read(), '{"id":')
        self.assertEqual(self.findings(OK), {})
        self.delete_all()

    def test_unfinished_work_is_ended(self):
        os.rename(self.path(self.ids[0]), self.path(self.ids[0], ".creating"))
        os.rename(self.path(self.ids[1]), self.path(self.ids[1], ".erasing"))
        self.assertEqual(sorted(kind for kind, _ in self.findings()), ["unfinished-creation", "unfinished-deletion"])
        phases = {v["id"]: v["phase"] for v in self.json(OK, "volumes")["volumes"]}
        self.assertEqual([phases[i] for i in self.ids], ["creating", "erasing"])
        for volume in self.ids:
            self.repair(volume)
        self.assertEqual(self.findings(OK), {})
        self.assertEqual(self.json(OK, "volumes")["volumes"], [])
        self.assertEqual(sum(p["freeBytes"] for p in self.json(OK, "regions")["pools"]), 2 * REGION_BYTES)

    def test_only_forgetting_drops_what_is_missing(self):
        with open(self.path(self.ids[0]), encoding="utf-8") as f:
            record = json.load(f)
        record.update(id="elsewhere", pool="no-such-pool", identity="00000000-0000-0000-0000-000000000000")
        with open(self.path("elsewhere"), "w", encoding="utf-8") as f:
            json.dump(record, f)
        self.assertEqual(list(self.findings()), [("device-missing", "elsewhere")])
        self.assertEqual(self.repair("elsewhere", MISMATCH)["done"], [])
        self.assertEqual(self.json(MISMATCH, "check", "-forget", self.ids[0])["done"], [])
        self.assertEqual(len(self.json(OK, "check", "-forget", "elsewhere")["done"]), 1)
        self.assertEqual(self.findings(OK), {})

    def delete_all(self):
        self.start()
        for volume in self.ids:
            self.csi("delete", volume)
        self.stop()


class Asked(Node):
    """A driver that runs says where to look: no flag of it has to be repeated."""

    def setUp(self):
        super().setUp()
        self.endpoint = f"unix://{self.folder}/csi.sock"
        self.without = {k: v for k, v in os.environ.items() if k != "CSI_ENDPOINT"}

    def ask(self, status, *words, **variables):
        run = subprocess.run([DRIVER, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                             env={**self.without, **variables})
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return run

    def test_each_command_says_what_it_says_with_the_flags(self):
        self.start()
        for words in (["volumes"], ["regions"], ["check"], ["volumes", "-o", "json"], ["doctor", "-size", "1Mi"]):
            by_flags = self.text(OK, *words)
            self.assertIn("region0", by_flags + "region0" * (words == ["check"]))
            self.assertEqual(self.ask(OK, *words, "-endpoint", self.endpoint).stdout, by_flags)
            self.assertEqual(self.ask(OK, *words, CSI_ENDPOINT=self.endpoint).stdout, by_flags)
        self.assertEqual(len(json.loads(self.ask(OK, "volumes", "-o", "json", CSI_ENDPOINT=self.endpoint).stdout)["volumes"]), 2)
        self.ask(BLIND, "check", "-repair", self.ids[0], CSI_ENDPOINT=self.endpoint)
        self.stop()

    def test_flags_that_say_where_are_believed(self):
        self.assertEqual(self.ask(OK, "volumes", *self.where, CSI_ENDPOINT=self.endpoint).stdout, self.text(OK, "volumes"))
        run = self.ask(USAGE, "volumes", *self.where, "-endpoint", self.endpoint)
        self.assertIn("-endpoint asks the driver where to look", run.stderr)

    def test_who_is_not_there_or_no_driver_of_a_node(self):
        for variables, words in ({}, ["-endpoint", self.endpoint]), ({"CSI_ENDPOINT": self.endpoint}, []):
            run = self.ask(BLIND, "volumes", *words, **variables)
            self.assertRegex(run.stderr, f"the driver at {self.endpoint}: .*; use -deviceManager and -statePath to look without")
        run = self.ask(USAGE, "volumes", "-endpoint", "tcp://127.0.0.1:1")
        self.assertIn("is not unix:///path", run.stderr)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        controller = subprocess.Popen([DRIVER, "-mode=controller", f"-endpoint={self.endpoint}",
                                       f"-registryEndpoint=tcp://127.0.0.1:{port}", "-insecure"], stderr=subprocess.DEVNULL,
                                      env={**self.without, **without_api_server(self.folder)})
        self.addCleanup(controller.wait, PATIENCE_S)
        self.addCleanup(controller.terminate)
        end = time.monotonic() + PATIENCE_S
        while not os.path.exists(f"{self.folder}/csi.sock") and time.monotonic() < end:
            time.sleep(0.05)
        run = self.ask(BLIND, "volumes", "-endpoint", self.endpoint)
        self.assertIn("cannot be queried: it is a controller, which has no volumes", run.stderr)

    def elsewhere(self, folder, *words):
        """Standard error of a command that is refused where @folder lies at the path of the driver's state."""
        run = subprocess.run(["unshare", "-m", "sh", "-ec", 'mount --bind "$1" "$2"; shift 2; exec "$@"', "sh", folder,
                              self.state, DRIVER, *words, "-endpoint", self.endpoint], capture_output=True, text=True,
                             timeout=PATIENCE_S, check=False, env=self.without)
        self.assertEqual((run.returncode, run.stdout), (BLIND, ""), run.stderr)
        return run.stderr

    def test_another_place_than_the_drivers_is_no_place_to_look(self):
        """Such as the host, or another pod: what lies at the same paths there is something else."""
        self.start()
        os.mkdir(f"{self.folder}/empty")
        self.assertIn("run this where the driver runs", self.elsewhere(f"{self.folder}/empty", "volumes"))
        self.stop()

    def test_nothing_is_repaired_from_another_place_while_the_driver_runs(self):
        """There its volumes seem to have no state, or that of an earlier time, by which they would be destroyed."""
        empty, old = f"{self.folder}/empty", f"{self.folder}/old"
        os.mkdir(empty)
        shutil.copytree(self.state, old)
        os.rename(f"{old}/{self.ids[0]}.json", f"{old}/{self.ids[0]}.creating")
        self.start()
        for folder in empty, old:
            for flag in "-repair", "-forget":
                self.assertIn(f"the driver at {self.endpoint} runs: stop it first",
                              self.elsewhere(folder, "check", flag, self.ids[0]))
        self.assertEqual(os.listdir(empty), [])
        self.stop()
        self.assertEqual(self.findings(OK), {})

    def test_devices_in_a_drivers_memory_are_only_there(self):
        self.where = ["-deviceManager=fake", f"-statePath={self.folder}/other", "-v=0"]
        self.start()
        self.assertIn("start it with -fakePath=DIR", self.ask(BLIND, "volumes", "-endpoint", self.endpoint).stderr)
        self.stop()

    def test_a_driver_that_is_not_ready_says_why(self):
        other = f"unix://{self.folder}/other.sock"
        self.start()
        where = [w for w in self.where if not w.startswith("-fakePath")]
        driver = subprocess.Popen([DRIVER, "-mode=node", "-nodeid=n", f"-endpoint={other}", *where,
                                   f"-fakePath={self.folder}/fake2"], stderr=subprocess.DEVNULL)
        self.addCleanup(driver.wait, PATIENCE_S)
        self.addCleanup(driver.terminate)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            run = subprocess.run([DRIVER, "doctor", "-endpoint", other], capture_output=True, text=True, check=False)
            if "the last attempt failed" in run.stdout:
                break
            time.sleep(0.1)
        self.assertEqual(run.returncode, MISMATCH)
        self.assertRegex(run.stdout, f"(?m)^problem +driver .*not ready: .*held by process {self.driver.pid}")
        self.assertIn("the last attempt failed", self.ask(OK, "volumes", "-endpoint", other).stderr)
        self.stop()


if __name__ == "__main__":
    DRIVER, CLIENT = sys.argv[1:3]
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("SKIP: needs root and loop devices")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
