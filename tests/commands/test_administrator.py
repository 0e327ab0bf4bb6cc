# SPDX-License-Identifier: Apache-2.0
"""The programs in the hands of an administrator: slips on the command line, no rights, closed output, signals.

usage: test_administrator.py BIN [unittest options]
"""
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import test_commands

BIN = None
PATIENCE_S = 60
PROGRAMS = ("pmem-csi-driver", "pmem-ns-init", "pmem-vgm", "scheduler-extender", "csi-client")
UNPRIVILEGED = 65534


def run(program, *words, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([f"{BIN}/{program}", *words], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                          check=False, **options)


def reserves_addresses():
    """An address sanitizer takes terabytes of addresses for itself, which no limit may forbid."""
    with open(f"{BIN}/pmem-csi-driver", "rb") as f:
        return b"__asan_init" in f.read()


class Usage(unittest.TestCase):
    def refused(self, text, *words):
        """Wrong usage: status 2, nothing on stdout, one line that has the text."""
        answer = run(*words)
        self.assertEqual((answer.returncode, answer.stdout), (2, ""), answer.stderr)
        self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)
        self.assertIn(text, answer.stderr)

    def test_help_and_version_everywhere(self):
        for program in PROGRAMS:
            for flag in ("-h", "--h", "-help", "--help"):
                answer = run(program, flag)
                self.assertEqual(answer.returncode, 0, program)
                self.assertIn("Exit status", answer.stdout)
            self.assertRegex(run(program, "-version").stdout, r"^\d+\.\d+\.\d+\n$")
        for command in ("check", "cluster", "doctor", "regions", "volumes"):
            self.assertEqual(run("pmem-csi-driver", command, "-h").returncode, 0)

    def test_help_has_the_default_of_every_flag_that_is_not_required(self):
        for program in PROGRAMS:
            flags = run(program, "-help").stdout.split("\nFlags:\n")[1].split("\n\n")[0].splitlines()
            self.assertGreater(len(flags), 5)
            for line in flags:
                if not re.search(r"-(help|version) |no effect:|repeatable", line):
                    self.assertRegex(line, r"\((default|required)")

    def test_help_shows_defaults_and_not_what_was_given(self):
        self.assertIn("(default: text)", run("pmem-csi-driver", "check", "-o", "json", "-help").stdout)

    def test_slips(self):
        self.refused("did you mean -nodeid?", "pmem-csi-driver", "-nodeID=n")
        self.refused("did you mean -statePath?", "pmem-csi-driver", "check", "-statepath=/x")
        self.refused("did you mean -useforfsdax?", "pmem-ns-init", "-useforfsdx=50")
        self.refused("-help lists all", "pmem-vgm", "-nonsense")
        self.refused("unknown flag", "pmem-csi-driver", "-" + "x" * 100000)
        self.refused("a command is needed", "csi-client")
        self.refused("unknown command", "pmem-ns-init", "destroy")

    def test_slips_in_commands(self):
        for program, typed, meant in (
                ("pmem-csi-driver", "volume", "volumes"), ("pmem-csi-driver", "Doctor", "doctor"),
                ("pmem-csi-driver", "chekc", "check"), ("pmem-ns-init", "statsu", "status"),
                ("pmem-vgm", "PLAN", "plan"), ("csi-client", "unstag", "unstage")):
            self.refused(f'unknown command "{typed}": did you mean {meant}?', program, typed)
        for program, typed in (("pmem-csi-driver", "help"), ("pmem-vgm", "destroy"), ("csi-client", "x" * 100000),
                               ("csi-client", ""), ("pmem-ns-init", "")):
            self.refused(f'unknown command "{typed[:200]}"; -help lists all', program, typed)
        self.refused("usage: csi-client [flags] stage ID STAGING", "csi-client", "stage", "volume")
        self.refused("usage: csi-client [flags] list", "csi-client", "list", "volume")
        self.refused("usage: csi-client [flags] modify ID KEY=VALUE...", "csi-client", "modify", "volume")
        self.refused('"usage" is not KEY=VALUE', "csi-client", "modify", "volume", "eraseafter=false", "usage")

    def test_a_command_that_is_not_the_first_word(self):
        for words in (("-o", "json", "volumes"), ("-deviceManager=fake", "volumes"), ("--help", "volumes")):
            self.refused("a command comes first: pmem-csi-driver volumes ...", "pmem-csi-driver", *words)
        self.assertNotIn("comes first", run("pmem-csi-driver", "-o", "json").stderr)

    def test_folders_that_are_no_absolute_paths(self):
        node = ("pmem-csi-driver", "-mode=node", "-nodeid=n", "-deviceManager=fake")
        for flag in ("fakePath", "statePath", "kubeletDir"):
            for value in ("", "relative", "./x", "~/x"):
                self.refused(f'-{flag} "{value}" is not an absolute path', *node, f"-{flag}={value}")
        for flag in ("fakePath", "statePath"):
            for command in ("volumes", "check", "regions", "doctor"):
                self.refused(f'-{flag} "relative"', "pmem-csi-driver", command, "-deviceManager=fake",
                             "-fakePath=/nonexistent", f"-{flag}=relative")
        self.refused("-statePath", "pmem-vgm", "-statePath=relative")
        self.refused("only be used with restore", "pmem-vgm", "-dry-run")
        self.refused("only be used with restore", "pmem-vgm", "-force", "plan")
        self.refused("-statePath", "pmem-vgm", "status", "-statePath=")
        for value in ("", "relative"):
            self.refused(f'-statePath "{value}" is not an absolute path', "pmem-ns-init", "convert", f"-statePath={value}")

    def test_memory_that_is_to_be_prepared(self):
        self.refused('-unlabelled must be convert or skip, not "convrt"', "pmem-ns-init", "-unlabelled=convrt")
        self.refused('-unlabelled must be convert or skip, not ""', "pmem-ns-init", "-unlabelled=")
        self.refused("did you mean -initLabels?", "pmem-ns-init", "-initlabels")
        self.refused("did you mean -unlabelled?", "pmem-ns-init", "-unlabeled=convert")
        self.refused('unknown command "advice": did you mean advise?', "pmem-ns-init", "advice")
        for command in ("plan", "status", "advise", "convert"):
            self.refused("can only be used with create", "pmem-ns-init", "-initLabels", command)
            self.refused("can only be used with create", "pmem-ns-init", "-unlabelled=skip", command)
        node = ("pmem-csi-driver", "-mode=node", "-nodeid=n")
        self.refused("can only be used with -pmemPercentage", *node, "-initLabels")
        self.refused("can only be used with -pmemPercentage", *node, "-unlabelled=convert")
        self.refused("-unlabelled must be convert or skip", *node, "-pmemPercentage=50", "-unlabelled=all")

    def test_ports_of_a_second_driver(self):
        """The extender's and the next one: neither may be one of the first driver's."""
        program = f"{os.path.dirname(os.path.abspath(__file__))}/../../scripts/second-driver"
        for port, wanted in ((10268, 0), (10269, 2), (10270, 2), (10271, 2), (10272, 0), (65535, 2)):
            answer = subprocess.run([program, "b", "b.example.com", str(port)], input="- 127.0.0.1:10270 10271\n", text=True,
                                    capture_output=True, timeout=PATIENCE_S, check=False)
            self.assertEqual(answer.returncode, wanted, answer.stderr)
            self.assertEqual(answer.stdout, f"- 127.0.0.1:{port} {port + 1}\n" if wanted == 0 else "")

    def test_name_of_a_second_driver(self):
        """One that the API server takes: for a CSIDriver, and, behind pod-hook, for a webhook."""
        program = f"{os.path.dirname(os.path.abspath(__file__))}/../../scripts/second-driver"
        long = f"{'x' * 51}.example.com"  # 63 characters
        for driver, wanted in (("b.example.com", 0), ("b.c", 0), (long, 0), ("x" + long, 2), ("b", 2), ("a..b", 2), (".a.b", 2),
                               ("a.b.", 2), ("a.-b", 2), ("a-.b", 2), ("A.b", 2)):
            answer = subprocess.run([program, "b", driver, "10280"], input="", text=True, capture_output=True, timeout=PATIENCE_S,
                                    check=False)
            self.assertEqual(answer.returncode, wanted, f"{driver}: {answer.stderr}")
            self.assertIn("" if wanted == 0 else f"DRIVER {driver}", answer.stderr)

    def test_questions_to_doctor(self):
        self.refused("-size must be more than 0", "pmem-csi-driver", "doctor", "-size=0")
        self.refused("-size", "pmem-csi-driver", "doctor", "-size=-1")
        self.refused("-size", "pmem-csi-driver", "doctor", "-size=18446744073709551615")
        for words in (("-fs=xfs",), ("-usage=FileIO",), ("-durability=fsync",), ("-block",)):
            self.refused("-fs, -usage, -durability and -block can only be used with -size", "pmem-csi-driver", "doctor", *words)
        self.refused("-files cannot be used with -size", "pmem-csi-driver", "doctor", "-files", "-size=1Mi")
        for word in "-maxFiles=1", "-maxTime=1s":
            self.refused("-maxFiles and -maxTime can only be used with -files", "pmem-csi-driver", "doctor", word)

    def test_the_cluster(self):
        command = ("pmem-csi-driver", "cluster")
        self.refused("a command is needed: pmem-csi-driver cluster check", *command)
        self.refused('unknown command "chekc": did you mean check?', *command, "chekc")
        self.refused('unexpected argument "node1"', *command, "check", "node1")
        self.refused("did you mean -namespace?", *command, "check", "-namespac=x")
        self.refused('-namespace "a/b" is not the name of a namespace', *command, "check", "-namespace=a/b")
        self.refused("-namespace", *command, "check", "-namespace=")
        self.refused("-drivername", *command, "check", "-drivername=Bad Name!")
        self.refused("-kube-api-qps and -kube-api-burst must not be 0", *command, "check", "-kube-api-qps=0")
        self.refused("-o", *command, "check", "-o=yaml")

    def test_a_cluster_that_cannot_be_read(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("KUBECONFIG", "KUBERNETES_SERVICE"))}
        for value, text in (({}, "set $KUBECONFIG, or run this in the controller's pod"),
                            ({"KUBECONFIG": "/nonexistent/config"}, "/nonexistent/config")):
            answer = run("pmem-csi-driver", "cluster", "check", env={**environment, **value})
            self.assertEqual((answer.returncode, answer.stdout, answer.stderr.count("\n")), (2, "", 1), answer.stderr)
            self.assertIn(text, answer.stderr)

    def test_endpoints_of_the_client(self):
        for endpoint in ("", "junk", "http://x", "unix://" + "n" * 200, "unix:///" + "n" * 108, "tcp://:x"):
            self.refused("-endpoint", "csi-client", "-endpoint", endpoint, "info")
        environment = {k: v for k, v in os.environ.items() if k != "CSI_ENDPOINT"}
        for value, endpoint in (({}, "/run/pmem-csi/csi.sock"), ({"CSI_ENDPOINT": ""}, "/run/pmem-csi/csi.sock"),
                                ({"CSI_ENDPOINT": "unix:///nonexistent/s"}, "/nonexistent/s")):
            answer = run("csi-client", "-timeout=1s", "info", env={**environment, **value})
            self.assertEqual(answer.returncode, 1)
            self.assertIn(endpoint, answer.stderr)
        answer = run("csi-client", "info", env={**environment, "CSI_ENDPOINT": "junk"})
        self.assertEqual(answer.returncode, 2)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_a_server_of_another_user_is_not_asked(self):
        """It could answer that a volume is deleted."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{folder}/s")
            os.seteuid(65534)
            server.listen()  # the kernel notes who does this
            os.seteuid(0)
            for words in ("csi-client", "delete", "v"), ("pmem-csi-driver", "volumes"):
                answer = run(*words, env={**os.environ, "CSI_ENDPOINT": f"unix://{folder}/s"})
                self.assertNotEqual(answer.returncode, 0)
                self.assertIn("runs as uid 65534, which is neither root nor the user of this program", answer.stderr)

    def test_values(self):
        node = ("pmem-csi-driver", "-mode=node", "-deviceManager=fake")
        ours = (*node, "-nodeid=n")
        self.refused("-nodeid is needed", *node)
        self.refused("-nodeid", *node, "-nodeid=n 1/..")
        self.refused("-nodeid", *node, "-nodeid=" + "n" * 100)
        self.refused("-nodeid", *node, "-nodeid=a\nb")
        self.refused("-drivername", *ours, "-drivername=Bad Name!")
        self.refused("-drivername", *ours, "-drivername=")
        self.refused("-metricsListen", *ours, "-metricsListen=99999999")
        self.refused("-metricsListen", *ours, "-metricsListen=host:port")
        self.refused("-endpoint", *ours, "-endpoint=")
        self.refused("-endpoint", *ours, "-endpoint=nonsense")
        self.refused("-controllerEndpoint", *ours, "-controllerEndpoint=tcp://x")
        self.refused("-statePath", *ours, "-statePath=")
        self.refused("-statePath", *ours, "-statePath=relative")
        self.refused("-v", *ours, "-v=much")
        self.refused("-mode", "pmem-csi-driver", "-mode=")
        self.refused("-registryEndpoint", "pmem-csi-driver", "-mode=controller", "-registryEndpoint=10000")
        self.refused("-insecureSchedulerListen", "scheduler-extender", "-insecureSchedulerListen=99999999")
        self.refused("-fakePath", "pmem-csi-driver", "volumes", "-deviceManager=fake")

    def test_tcp_without_tls_is_refused_and_the_flags_are_named(self):
        """On loopback, too: every user of the host could call a driver that runs as root."""
        for host in "0.0.0.0", "127.0.0.1", "localhost", "[::1]":
            answer = run("pmem-csi-driver", "-mode=node", "-nodeid=n", "-deviceManager=fake", "-statePath=/nonexistent/x",
                         f"-endpoint=tcp://{host}:0")
            self.assertEqual(answer.returncode, 1)
            self.assertIn("give -caFile, -certFile and -keyFile, or -insecure to allow it", answer.stderr)


class Output(unittest.TestCase):
    """Where stdout cannot be written to, the exit status says so; nothing is ever written elsewhere instead."""

    def test_a_full_disk(self):
        for program in PROGRAMS:
            for flag in ("-help", "-version"):
                with open("/dev/full", "w", encoding="utf-8") as full:
                    answer = run(program, flag, stdout=full)
                self.assertEqual(answer.returncode, 1, program)
                self.assertIn("write to stdout: No space left on device", answer.stderr)

    def test_a_closed_descriptor(self):
        for program in PROGRAMS:
            answer = subprocess.run(["sh", "-c", f"exec {BIN}/{program} -help >&-"], capture_output=True, text=True,
                                    timeout=PATIENCE_S, check=False)
            self.assertEqual(answer.returncode, 1, program)
            self.assertIn("write to stdout", answer.stderr)
            answer = subprocess.run(["sh", "-c", f"exec {BIN}/{program} -help <&- >&- 2>&-"], timeout=PATIENCE_S,
                                    check=False)
            self.assertEqual(answer.returncode, 1, program)

    def test_a_reader_that_has_gone(self):
        for program in PROGRAMS:
            reader, writer = os.pipe()
            os.close(reader)
            answer = run(program, "-help", stdout=writer)
            os.close(writer)
            self.assertEqual((answer.returncode, answer.stderr), (-signal.SIGPIPE, ""), program)


class Node(test_commands.Node):
    def command(self, *words, **options):
        return run("pmem-csi-driver", *words, *self.where, **options)

    def test_everything_can_be_looked_at_while_the_driver_runs(self):
        self.start()
        without_size = [w for w in self.where if not w.startswith("-fakeRegionSize")]
        for command in ("volumes", "regions", "check"):
            for where in (self.where, without_size):
                answer = run("pmem-csi-driver", command, *where)
                self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(run("pmem-csi-driver", "doctor", "-size=1Mi", *without_size).returncode, 0)
        before = sorted(os.listdir(self.fake))
        self.json(0, "volumes")
        self.assertEqual(sorted(os.listdir(self.fake)), before)

    def test_a_driver_leaves_no_core_file(self):
        """Its keys and tokens would be in it."""
        self.start()
        self.assertEqual(resource.prlimit(self.driver.pid, resource.RLIMIT_CORE), (0, 0))

    def test_a_driver_takes_the_region_size_that_its_folder_has(self):
        self.where = [w for w in self.where if not w.startswith("-fakeRegionSize")]
        self.start()
        self.assertEqual(len(self.csi("list")["entries"]), 2)
        self.stop()
        self.where.insert(0, "-fakeRegionSize=128Mi")
        answer = run("pmem-csi-driver", "-mode=node", "-nodeid=n", f"-endpoint=unix://{self.folder}/csi.sock",
                     *self.where)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("omit -fakeRegionSize", answer.stderr)

    def test_who_has_the_lock_is_named(self):
        self.start()
        answer = self.command("check", "-repair", self.ids[0])
        self.assertEqual(answer.returncode, 3)
        self.assertIn(f"held by process {self.driver.pid}", answer.stderr)

    def test_a_name_of_nothing_is_not_repaired(self):
        answer = self.command("check", "-repair", "nosuch")
        self.assertEqual(answer.returncode, 1, answer.stderr)
        self.assertIn("NOT REPAIRED: no volume, device or state file has that name", answer.stdout)
        self.assertEqual(self.command("check").returncode, 0)

    def test_a_damaged_file_of_a_mounted_volume_is_left_where_it_is(self):
        self.start()
        staging = f"{self.folder}/staging"
        os.mkdir(staging)
        self.csi("-fs", "ext4", "stage", self.ids[0], staging)
        self.stop()
        with open(self.path(self.ids[0]), "w", encoding="utf-8") as f:
            f.write("{")
        try:
            answer = self.command("check", "-repair", self.ids[0])
        finally:
            subprocess.run(["umount", staging], check=True)
        self.assertEqual(answer.returncode, 1, answer.stdout)
        self.assertIn("NOT REPAIRED", answer.stdout)
        self.assertNotIn("aside", answer.stdout)
        self.assertTrue(os.path.exists(self.path(self.ids[0])))
        self.assertFalse(os.path.exists(self.path(self.ids[0], ".json.damaged")))

    def test_the_file_that_a_bad_block_belongs_to_is_named(self):
        self.start()
        staging = f"{self.folder}/staging"
        os.mkdir(staging)
        self.csi("-fs", "ext4", "stage", self.ids[0], staging)
        device = next(v["device"] for v in self.json(0, "volumes")["volumes"] if v["id"] == self.ids[0])
        try:
            self.assertEqual(self.json(0, "doctor", "-files")["volumes"], [])
            # the superblock of the only volume in its region
            regions = (0, test_commands.REGION_BYTES)
            with open(f"{self.folder}/fake/badblocks", "w", encoding="utf-8") as f:
                f.writelines(f"{(start + 1024) // 512} 1\n" for start in regions)
            found = [v for v in self.json(1, "doctor", "-files")["volumes"] if v["id"] == self.ids[0]]
            text = self.command("doctor", "-files").stdout
        finally:
            self.csi("unstage", self.ids[0], staging)
        self.assertEqual((found[0]["device"], found[0]["mountedAt"]), (device, staging))
        self.assertEqual(found[0]["ranges"], [{"offsetBytes": 1024, "lengthBytes": 512}])
        self.assertEqual([(o["kind"], o["offsetBytes"], o["lengthBytes"]) for o in found[0]["owners"]], [("metadata", 1024, 512)])
        self.assertIn("copy what can be read to another volume", found[0]["owners"][0]["remedy"])
        self.assertIn("metadata: 512 bytes at offset 1024 of the device", text)

    def test_a_block_volume_survives_the_loss_of_its_state(self):
        """Its first 4 KiB are zero: nothing but the record can say that there is data behind them."""
        self.start()
        volume = self.csi("-block", "-size", "8Mi", "create", "pvc-block")["volume"]["volumeId"]
        device = next(v["device"] for v in self.json(0, "volumes")["volumes"] if v["id"] == volume)
        with open(device, "r+b") as f:
            f.seek(1 << 20)
            f.write(b"data" * 1024)
        self.stop()
        os.unlink(self.path(volume))
        self.assertEqual(self.command("check", "-repair", volume).returncode, 0)
        staging = f"{self.folder}/staging"
        os.mkdir(staging)
        self.start()
        call = [f"{BIN}/csi-client", "-endpoint", f"unix://{self.folder}/csi.sock"]
        answer = subprocess.run([*call, "-fs", "ext4", "stage", volume, staging], capture_output=True, text=True,
                                timeout=PATIENCE_S, check=False)
        self.assertIn("FAILED_PRECONDITION", answer.stderr)
        self.stop()
        self.assertEqual(self.command("check", "-repair", volume, "-block").returncode, 0)
        self.start()
        self.csi("-block", "stage", volume, staging)
        self.csi("-block", "publish", volume, staging, f"{self.folder}/target")
        with open(f"{self.folder}/target", "rb") as f:
            f.seek(1 << 20)
            self.assertEqual(f.read(4096), b"data" * 1024)
        self.csi("unpublish", volume, f"{self.folder}/target")
        self.csi("unstage", volume, staging)
        self.stop()

    def test_without_rights(self):
        os.chmod(self.folder, 0o755)
        options = {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "extra_groups": []}
        answer = self.command("doctor", "-o", "json", **options)
        self.assertNotEqual(answer.returncode, 0)
        self.assertEqual([c["level"] for c in json.loads(answer.stdout)["checks"] if c["name"] == "user"], ["unknown"])
        answer = run("pmem-csi-driver", "doctor", "-o", "json", **options)
        self.assertNotEqual(answer.returncode, 0)
        for check in json.loads(answer.stdout)["checks"]:
            if check["name"] in ("sys-writable", "libnvdimm", "dev-nodes"):
                self.assertNotEqual(check["level"], "ok", check)
        for command in ("volumes", "check", "regions"):
            answer = self.command(command, **options)
            self.assertEqual(answer.returncode, 3, command)
            self.assertIn("run as root", answer.stderr)
        self.start()
        answer = run("csi-client", "-endpoint", f"unix://{self.folder}/csi.sock", "info", **options)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("run as root", answer.stderr)

    def test_signals_that_are_not_meant_for_a_server_do_not_end_it(self):
        self.start()
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
            self.driver.send_signal(number)
        self.assertEqual(len(self.csi("list")["entries"]), 2)
        self.driver.send_signal(signal.SIGHUP)
        self.driver.communicate(timeout=PATIENCE_S)
        self.assertEqual(self.driver.returncode, 0)
        self.driver = None

    def volume_lives(self):
        # a volume of the same name may still be erased
        self.n_lives = getattr(self, "n_lives", 0) + 1
        volume = self.create(f"pvc-lives-{self.n_lives}", "8Mi")
        staging = f"{self.folder}/staging"
        os.makedirs(staging, exist_ok=True)
        self.csi("-fs", "ext4", "stage", volume, staging)
        self.csi("unstage", volume, staging)
        self.csi("delete", volume)

    def test_signals_that_the_parent_has_ignored_or_blocked(self):
        ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

        def ignore():
            for number in (signal.SIGCHLD, signal.SIGALRM, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)

        for prepare in (ignore, lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ends | {signal.SIGCHLD})):
            self.start(preexec_fn=prepare)
            self.volume_lives()
            self.stop()

    def test_a_limit_of_the_size_of_files_does_not_end_the_driver(self):
        self.start()
        resource.prlimit(self.driver.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        answer = run("csi-client", "-endpoint", f"unix://{self.folder}/csi.sock", "-size", "8Mi", "create", "pvc-none")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("File too large", answer.stderr)
        resource.prlimit(self.driver.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.volume_lives()
        self.assertEqual(len(self.csi("list")["entries"]), 2)
        self.stop()

    def test_surroundings_that_are_unusual(self):
        folder = f"{self.folder}/gone"
        surroundings = (
            {"env": {}}, {"preexec_fn": lambda: os.umask(0o777)}, {"preexec_fn": lambda: os.rmdir(os.getcwd()), "cwd": folder},
            {"env": {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "COLUMNS": "20", "TZ": "Asia/Kolkata"}},
            {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))})
        if not reserves_addresses():
            surroundings += ({"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))},)
        os.mkdir(folder)
        for surrounding in surroundings:
            with self.subTest(str(surrounding)):
                self.start(**surrounding)
                self.volume_lives()
                answer = self.command("check")
                self.stop()
                # what is being deleted may show
                self.assertIn(answer.returncode, (0, 1), answer.stdout + answer.stderr)

    def test_volumes_go_while_somebody_looks(self):
        self.start()
        over = threading.Event()

        def look(command, failures):
            while not over.is_set():
                answer = self.command(command)
                if answer.returncode not in (0, 1):
                    failures.append(answer.stderr)

        failures = []
        lookers = [threading.Thread(target=look, args=(command, failures)) for command in ("volumes", "check", "regions")]
        for looker in lookers:
            looker.start()
        try:
            for i in range(40):
                self.csi("delete", self.create(f"pvc-{i}", "8Mi"))
        finally:
            over.set()
            for looker in lookers:
                looker.join()
        self.assertEqual(failures, [])
        self.stop()

    def test_a_driver_without_folder_says_what_that_means(self):
        driver = subprocess.Popen(
            [f"{BIN}/pmem-csi-driver", "-mode=node", "-nodeid=n", "-deviceManager=fake",
             f"-statePath={self.folder}/other", f"-endpoint=unix://{self.folder}/other.sock"],
            stderr=subprocess.PIPE, text=True)
        try:
            lines = []
            for line in driver.stderr:
                lines.append(line)
                if ": ready " in line:
                    break
            self.assertIn("without -fakePath", "".join(lines))
            call = ("csi-client", "-endpoint", f"unix://{self.folder}/other.sock", "-fs", "ext4")
            volume = json.loads(run(*call, "-o", "json", "-size", "8Mi", "create", "pvc").stdout)["volume"]["volumeId"]
            os.mkdir(f"{self.folder}/staging")
            answer = run(*call, "stage", volume, f"{self.folder}/staging")
            self.assertEqual(answer.returncode, 1)
            self.assertRegex(answer.stderr, "FAILED_PRECONDITION.*cannot be mounted; .*start the driver with -fakePath=DIR")
        finally:
            driver.terminate()
            driver.communicate(timeout=PATIENCE_S)

    def test_a_controller_says_what_it_serves(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        controller = subprocess.Popen(
            [f"{BIN}/pmem-csi-driver", "-mode=controller", f"-endpoint=unix://{self.folder}/controller.sock",
             f"-registryEndpoint=tcp://127.0.0.1:{port}", "-insecure"], stderr=subprocess.DEVNULL,
            env={**os.environ, **test_commands.without_api_server(self.folder)})
        try:
            end = time.monotonic() + PATIENCE_S
            answer = None
            # the file is there for a moment before anything listens
            while (not answer or answer.returncode) and time.monotonic() < end:
                answer = run("csi-client", "-endpoint", f"unix://{self.folder}/controller.sock", "capabilities")
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertIn("CREATE_DELETE_VOLUME", answer.stdout)
            self.assertIn("the node service is not served here", answer.stderr)
        finally:
            controller.send_signal(signal.SIGHUP)
            self.assertEqual(controller.wait(timeout=PATIENCE_S), 0)


class World(test_commands.Node):
    """State folders that are not what they should be."""

    def fails(self, text, state, endpoint="second.sock"):
        driver = subprocess.Popen(
            [f"{BIN}/pmem-csi-driver", "-mode=node", "-nodeid=n", f"-endpoint=unix://{self.folder}/{endpoint}",
             *[w for w in self.where[:-1] if not w.startswith(("-statePath", "-fakePath"))],
             f"-statePath={state}", f"-fakePath={self.folder}/fake2"], stderr=subprocess.PIPE, text=True)
        try:
            for line in driver.stderr:
                if text in line:
                    return
                self.assertNotIn(": ready ", line, "the driver is ready")
            self.fail(f"the driver ended without logging {text}")
        finally:
            driver.terminate()
            driver.communicate(timeout=PATIENCE_S)

    def test_a_file_is_no_state_folder(self):
        with open(f"{self.folder}/file", "w", encoding="utf-8"):
            pass
        self.fails(f"{self.folder}/file", f"{self.folder}/file")
        answer = run("pmem-csi-driver", "check", *self.where[:-2], f"-statePath={self.folder}/file")
        self.assertEqual(answer.returncode, 3)
        self.assertIn(f"{self.folder}/file", answer.stderr)

    def test_two_drivers_on_one_folder(self):
        self.start()
        self.fails(f"process {self.driver.pid}", self.state)

    def test_no_home_and_no_path(self):
        answer = subprocess.run([f"{BIN}/pmem-csi-driver", "check", *self.where], env={}, capture_output=True, text=True,
                                timeout=PATIENCE_S, check=False)
        self.assertEqual(answer.returncode, 0, answer.stderr)


if __name__ == "__main__":
    BIN = sys.argv[1]
    test_commands.DRIVER, test_commands.CLIENT = f"{BIN}/pmem-csi-driver", f"{BIN}/csi-client"
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("SKIP: needs root and loop devices")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
