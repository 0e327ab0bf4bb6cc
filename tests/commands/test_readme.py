# SPDX-License-Identifier: Apache-2.0
"""What README.md and the documents for users show is run, as it stands there: a command that no test runs and that is not listed here is a failure.

usage: test_readme.py BIN SOURCE_TREE [unittest options]
"""
import glob
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import readme
import test_commands

PATIENCE_S = 120
BIN = TREE = README = None
DOCUMENTS = ("README.md", "docs/QUICKSTART.md", "docs/INSTALL.md", "docs/STORAGECLASSES.md", "docs/CONFIGURATION.md", "docs/MONITORING.md",
             "docs/TROUBLESHOOTING.md", "docs/COMPATIBILITY.md", "docs/TENANTS.md")

# Sections whose commands other suites run; each of them takes the commands from the document by the section's name.
RUN_ELSEWHERE = {
    "Building": "tests/suites/10-release",
    "Quick start": "tests/e2e/quickstart",
    "Using it on a node": "tests/machine/vm/admin.sh",
    "Nodes as objects": "tests/kube/scenarios/pmemnodes",
    "Updating": "tests/kube/scenarios/pmemnodes",
    "Volumes as objects": "tests/kube/scenarios/pmemvolumes-definition",
    "Deleting the records of volumes": "tests/kube/scenarios/pmemvolumes-definition",
}

# Commands that no test runs.
NOT_RUN = {
    "docker build -f Containerfile -t localhost/pmem-csi:2.0.0 .": "needs a registry; the suite 15-image builds the same with buildah, by scripts/image --whole",
    "scripts/image": "the suite image does",
    "scripts/image --architecture arm64": "the suite arm64 does",
    "buildah manifest create registry.example.com/pmem-csi:2.0.0 oci-archive:build/image/pmem-csi.tar oci-archive:build/image-arm64/pmem-csi.tar":
        "needs both images, which the suites image and arm64 make",
    "buildah manifest push --all registry.example.com/pmem-csi:2.0.0 docker://registry.example.com/pmem-csi:2.0.0": "needs a registry",
    "scripts/package": "the suite package does",
    "apt install ./build/package/pmem-csi_2.0.0_amd64.deb": "the suite package installs it with dpkg into a bare root",
    "systemctl enable --now pmem-csi-pools pmem-csi": "the suite package does, in the root that systemd has booted",
    'global_filter = [ "r|^/dev/pmem|" ]': "machine/vm/direct.sh configures the machine's LVM so",
    'SUBSYSTEM=="block", KERNEL=="pmem*", ENV{UDEV_DISABLE_PERSISTENT_STORAGE_RULES_FLAG}="1"': "a line of a file of the host, whose udev no test configures",
    "kubectl delete csidriver pmem-csi.intel.com": "no scenario has an installation of its own in which to switch inline volumes off",
    "kubectl apply -k mine": "likewise",
    "kubectl create namespace pmem-csi": "tests/e2e/chart lets helm make the namespace",
    "kubectl label namespace pmem-csi pod-security.kubernetes.io/enforce=privileged":
        "the namespace of the manifests has that label, and pods of kube/scenarios/pods run in it",
    "helm install pmem-csi charts/pmem-csi --namespace pmem-csi": "tests/e2e/chart installs the chart in a cluster",
    "helm test pmem-csi --namespace pmem-csi --logs": "tests/e2e/chart does",
    "kubectl label node NODE pmem-csi.intel.com/convert-raw-namespaces=force": "no cluster of the tests has memory without labels",
    "kubectl -n pmem-csi rollout status daemonset/pmem-csi-node-setup": "no cluster of the tests has memory without labels",
    "kubectl -n pmem-csi logs -l app.kubernetes.io/name=pmem-csi-node-setup -c prepare-memory --prefix":
        "no cluster of the tests has memory without labels",
    "kubectl label node NODE pmem-csi.intel.com/convert-raw-namespaces- storage=pmem": "no cluster of the tests has memory without labels",
    "kubectl get pmemnodes": "tests/e2e/quickstart does",
    "kubectl apply -f examples/try-out.yaml": "tests/e2e/quickstart does",
    "kubectl wait --for=condition=Ready --timeout=2m pod/pmem-try-out": "tests/e2e/quickstart does",
    "kubectl -n pmem-csi exec deploy/pmem-csi-controller -- pmem-csi-driver cluster check":
        "kube/scenarios/volume-objects runs the program with what a pod of the controller has",
    "kubectl delete pmemvolume NAME --wait=false": "kube/scenarios/pmemvolumes-definition does, for all records of a driver",
    "kubectl patch pmemvolume NAME --type=merge -p '{\"metadata\":{\"finalizers\":null}}'":
        "kube/scenarios/pmemvolumes-definition does, for all records of a driver",
    "kubectl patch cdi cdi --type=merge -p '{\"spec\":{\"config\":{\"scratchSpaceStorageClass\":\"standard\"}}}'":
        "it configures CDI, which no test has",
    "kubectl patch storageclass pmem-csi-sc-ext4 -p '{\"allowVolumeExpansion\": true}'": "kube/scenarios/growth does",
    "kubectl patch pvc database -p '{\"spec\": {\"volumeAttributesClassName\": \"pmem-file-io\"}}'": "kube/scenarios/growth does",
    "kubectl apply -k 'https://github.com/kubernetes-csi/external-snapshotter/client/config/crd?ref=v8.7.0'":
        "needs that site; kube/scenarios/snapshots applies the same definitions out of the Go module",
    "kubectl apply -k 'https://github.com/kubernetes-csi/external-snapshotter/deploy/kubernetes/snapshot-controller?ref=v8.7.0'":
        "needs that site; kube/scenarios/snapshots runs the same program",
    "pmem-csi-driver doctor -files": "tests/commands/test_administrator.py does, and machine/vm/health.sh with memory that is bad",
    "grep . /sys/bus/nd/devices/ndbus*/provider": "shows the memory of a node",
    "kubectl label --overwrite node NODE storage=none": "NODE is a name; cluster/scenarios/uninstalled removes the label",
    "kubectl label --overwrite node NODE storage=pmem": "NODE is a name; cluster/install sets the label",
    "ndctl disable-region region0": "machine/lab/guest-lib.sh prepares the machines of the tests with these commands",
    "ndctl init-labels nmem0": "machine/lab/guest-lib.sh does",
    "ndctl enable-region region0": "machine/lab/guest-lib.sh does",
    "kubectl -n pmem-csi exec POD -c pmem-driver -- pmem-ns-init convert": "POD is a name; machine/vm/convert.sh runs the program",
    "kubectl -n pmem-csi delete pod POD": "POD is a name; cluster/scenarios restart pods of nodes",
    "memmap=8G!16G": "an argument of the kernel; machine/vm/convert.sh has such memory",
    "cxl list -M": "needs CXL devices, which machine/lab has",
    "cxl create-region -m -t pmem -d decoder0.0 -w 2 mem0 mem1": "machine/lab/guest-lib.sh does",
    "ipmctl show -memoryresources": "needs Optane modules",
    "ipmctl create -goal PersistentMemoryType=AppDirect": "needs Optane modules",
    "kubectl -n pmem-csi rollout status daemonset/pmem-csi-node --timeout=2m": "cluster/scenarios wait for the same",
    "kubectl -n pmem-csi exec daemonset/pmem-csi-node -c pmem-driver -- pmem-csi-driver doctor":
        "needs a cluster with nodes of the driver; the class Looking runs the program",
    "kubectl -n pmem-csi exec daemonset/pmem-csi-node -c pmem-driver -- pmem-csi-driver doctor -size 64Mi":
        "needs a cluster with nodes of the driver; the class Looking runs the program",
    "kubectl exec pmem-try-out -- grep /volume /proc/mounts": "tests/e2e/quickstart looks at the mount on the node",
    "scripts/cluster up": "boots virtual machines for minutes; scripts/scenarios brings up the same",
    "scripts/cluster install lvm": "scripts/scenarios does",
    "scripts/cluster kubectl -n pmem-csi get pods -o wide": "scripts/scenarios looks at the pods",
    "scripts/demo": "boots virtual machines for minutes; the suite vm shows the same",
    "scripts/test": "runs this test",
}
NOT_RUN_TRANSCRIPTS = {
    "On a node": "the emulated memory of tests/machine/lab, as pmem-ns-init prints it there; tests/machine/vm/compare-status compares it with ndctl",
    "Looking at the cluster": "printed in kube/scenarios/volume-objects, whose proof cluster-check-finds-what-was-changed looks for each line",
    "Demonstration and tests": "printed by a run of scripts/demo, which fails where a claim is not true",
}

# What a command may end with besides 0: a verdict on this machine.
VERDICTS = {"pmem-csi-driver doctor": {1}, "pmem-csi-driver doctor -size 100Mi": {1}, "pmem-csi-driver check": {1}}

RAN = set()


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, stat.S_IRWXU)


class Looking(test_commands.Node):
    """The section on looking at a node, on fake devices: two volumes, as README says."""

    def setUp(self):
        super().setUp()
        self.bin = f"{self.folder}/bin"
        os.mkdir(self.bin)
        # -deviceManager and -statePath have to be given as the driver has them
        where = " ".join(self.where)
        write_program(f"{self.bin}/pmem-csi-driver", f'#!/bin/sh\nexec {BIN}/pmem-csi-driver "$@" {where}\n')

    def shell(self, command):
        RAN.add(command)
        return subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False,
                              env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})

    def test_the_commands_work(self):
        for command in readme.of_section(README, "Looking at a node"):
            run = self.shell(command)
            self.assertIn(run.returncode, {0} | VERDICTS.get(command, set()), f"{command}: {run.stdout}{run.stderr}")
            self.assertTrue(run.stdout, command)

    def test_the_transcript_is_what_is_printed(self):
        steps = readme.transcript(README, "Looking at a node")
        self.assertGreater(len(steps), 3)
        os.unlink(self.path(self.ids[0]))
        pool = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
        for command, output in steps:
            run = self.shell(command)
            self.assertIn(run.returncode, (0, 1), run.stderr)
            self.assertEqual(pool.sub("POOL", run.stdout), pool.sub("POOL", output), command)


# Stands in for kubectl, without a cluster: what files and manifests must be for the real one to do its work.
KUBECTL = r"""#!/usr/bin/python3
import base64, json, os, re, subprocess, sys

def pem(text):
    assert text.startswith("-----BEGIN "), "not PEM"

def is_made(name):
    return os.path.exists(f"made/{name}")

def make(kind, name):
    os.makedirs(f"made/{kind}", exist_ok=True)
    open(f"made/{kind}/{name}", "x").close()

def build(folder):
    real = os.environ["REAL_KUBECTL"]
    if real:
        return subprocess.run([real, "kustomize", folder], check=True, capture_output=True, text=True).stdout
    assert os.path.exists(f"{folder}/kustomization.yaml"), folder
    return ""

def create_secret(words):
    assert words[0] == "generic" and namespace, words
    assert is_made(f"namespace/{namespace}")
    dry_run = ["--dry-run=client", "-o", "yaml"]
    for word in words[2:]:
        if word in dry_run:
            continue
        option, _, value = word.partition("=")
        assert option == "--from-file", word
        with open(value.partition("=")[2]) as f:
            pem(f.read())
    if dry_run[0] in words:
        print(words[1])
    else:
        make("secret", words[1])

def apply(words):
    if words == ["-f", "-"]:
        make("secret", sys.stdin.read().strip())
        return
    assert words[0] == "-k", words
    text = build(words[1])
    own = {re.search(r"^  name: (\S+)", d, re.M).group(1) for d in text.split("\n---\n") if re.search("^kind: Secret$", d, re.M)}
    for name in set(re.findall(r"secretName: (\S+)", text)) - own:
        assert is_made(f"secret/{name}"), f"nothing has made the secret {name}"
    for name in re.findall(r"^  namespace: (\S+)", text, re.M):
        assert is_made(f"namespace/{name}") or name == "kube-system", f"nothing has made the namespace {name}"
    label = open("made/label").read()
    key, _, value = label.partition("=")
    assert not text or re.search(rf"- key: {key}\n\s+operator: In\n\s+values:\n\s+- {value}\n", text), label
    open("made/applied", "w").write(text)

def label(words):
    assert words[0] == "node" and "=" in words[2], words
    open("made/label", "w").write(words[2])

def patch(words):
    kind, name, form, option, text = words
    assert form == "--type=json" and option == "-p"
    applied = open("made/applied").read()
    assert not applied or re.search(f"^  name: {name}$", applied, re.M), f"no {kind} {name}"
    for change in json.loads(text):
        assert change["op"] == "add" and change["path"].startswith("/webhooks/0/clientConfig/")
        pem(base64.b64decode(change["value"]).decode())

words = sys.argv[1:]
namespace = None
if words[0] == "-n":
    namespace, words = words[1], words[2:]
verb, words = words[0], words[1:]
if verb == "create":
    kind, words = words[0], words[1:]
    create_secret(words) if kind == "secret" else make(kind, words[0])
else:
    {"apply": apply, "label": label, "patch": patch}[verb](words)
"""


class Kubernetes(unittest.TestCase):
    """The section on Kubernetes, in one shell, without a cluster: tests/kube has one."""

    def test_the_commands_fit_together(self):
        commands = [c for section in ("Kubernetes", "The scheduler extender") for c in readme.of_section(README, section)]
        RAN.update(commands)
        self.assertTrue(any(c.startswith("kubectl apply") for c in commands))
        with tempfile.TemporaryDirectory(prefix="pmem-csi-readme.") as folder:
            for name in ("scripts", "manifests"):
                os.symlink(f"{TREE}/{name}", f"{folder}/{name}")
            os.makedirs(f"{folder}/bin")
            os.makedirs(f"{folder}/made")
            write_program(f"{folder}/bin/kubectl", KUBECTL)
            run = subprocess.run(
                ["bash", "-euo", "pipefail"], input="\n".join(commands), cwd=folder, capture_output=True, text=True,
                timeout=PATIENCE_S, check=False,
                env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}",
                     "REAL_KUBECTL": shutil.which("kubectl") or ""})
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "StorageClass", "MutatingWebhookConfiguration",
                  "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
NAMESPACE = "pmem-csi"

# Prints manifests: the real kubectl does so, or their sources stand in for that; and shows what is applied.
PRINTING_KUBECTL = r"""#!/bin/sh
case "$1 $2" in
"kustomize "*) if [ "$REAL_KUBECTL" ]; then "$REAL_KUBECTL" "$@"; else cat manifests/*/*.yaml; fi ;;
"apply -f") cat ;;
*) exit 1 ;;
esac
"""


def read(name):
    with open(f"{TREE}/{name}", encoding="utf-8") as f:
        return f.read()


def objects_of(text):
    """(kind, name, namespace) of each object; kustomizations are none."""
    for document in re.split(r"^---$", text, flags=re.M):
        kind, name = re.search(r"^kind: (\S+)$", document, re.M), re.search(r"^metadata:\n(?:  .*\n)*?  name: (\S+)$", document, re.M)
        namespace = re.search(r"^metadata:\n(?:  .*\n)*?  namespace: (\S+)$", document, re.M)
        if kind and name:
            yield kind.group(1), name.group(1), namespace and namespace.group(1)


def section(text, heading):
    text = text[text.index(f"\n## {heading}\n") + 1:]
    return text[:(text + "\n## ").index("\n## ")]


class Kustomizations(unittest.TestCase):
    """Those that the documents show, as a user writes them beside the sources."""

    def blocks(self):
        shown = [block for block in re.findall(r"^```yaml\n(.*?)^```$", README, re.M | re.S) if "resources: [../pmem-csi/" in block]
        self.assertGreater(len(shown), 3)
        return shown

    def test_they_name_the_namespace_and_what_is_there(self):
        for block in self.blocks():
            self.assertTrue(block.startswith(f"namespace: {NAMESPACE}\n"), block)
            for path in re.findall(r"\.\./pmem-csi/(manifests/[\w/-]+)", block):
                self.assertTrue(os.path.exists(f"{TREE}/{path}/kustomization.yaml"), path)

    @unittest.skipUnless(shutil.which("kubectl"), "needs kubectl")
    def test_what_they_make(self):
        for block in self.blocks():
            with tempfile.TemporaryDirectory(prefix="pmem-csi-readme.") as folder:
                os.makedirs(f"{folder}/mine")
                shutil.copytree(f"{TREE}/manifests", f"{folder}/pmem-csi/manifests")
                with open(f"{folder}/mine/kustomization.yaml", "w", encoding="utf-8") as f:
                    f.write(block)
                run = subprocess.run(["kubectl", "kustomize", f"{folder}/mine"], capture_output=True, text=True, timeout=PATIENCE_S,
                                     check=False)
            self.assertEqual(run.returncode, 0, f"{block}{run.stderr}")
            for kind, name, namespace in objects_of(run.stdout):
                if kind not in CLUSTER_SCOPED:
                    self.assertEqual(namespace, NAMESPACE, f"{kind} {name} of {block}")
            if "-useforfsdax" in block:
                self.assert_is_patched(run.stdout)
            if "kubernetes.io~1arch" in block:
                self.assert_every_pod_is_for_amd64(run.stdout)

    def assert_is_patched(self, text):
        share = re.search(r"-useforfsdax=\d+", README[README.index("### Other settings"):]).group(0)
        # the last one of the driver's own pods counts
        self.assertEqual(re.findall(r"-useforfsdax=\d+", text), ["-useforfsdax=100", share, "-useforfsdax=0"])
        self.assertEqual(re.findall(r"-nodeSelector=(.*)", text)[-1], '{"memory":"persistent"}')
        self.assertRegex(text, r"(?m)^ +nodeSelector:\n +kubernetes.io/os: linux\n +memory: persistent$")
        self.assertNotRegex(text, r"(?m)^ +- pmem$|memory-nv.dax: ")

    def assert_every_pod_is_for_amd64(self, text):
        workloads = re.findall(r"^kind: (?:DaemonSet|Deployment)$", text, re.M)
        self.assertGreater(len(workloads), 3)
        self.assertEqual(len(re.findall(r"(?m)^ +nodeSelector:\n +kubernetes.io/arch: amd64$", text)), len(workloads))

    def test_another_folder_of_kubelet(self):
        commands = readme.of_section(README, "Other settings")
        RAN.update(commands)
        with tempfile.TemporaryDirectory(prefix="pmem-csi-readme.") as folder:
            write_program(f"{folder}/kubectl", PRINTING_KUBECTL)
            run = subprocess.run(["bash", "-euo", "pipefail"], input="\n".join(commands), cwd=TREE, capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False, env={
                                     **os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "REAL_KUBECTL": shutil.which("kubectl") or ""})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertGreater(run.stdout.count("/data/kubelet"), 10)
        self.assertNotIn("/var/lib/kubelet", run.stdout)


class Leftovers(unittest.TestCase):
    """What documents delete by name is all that the manifests have."""

    KEPT = {"Namespace", "CSIDriver", "StorageClass", "Kustomization", "Component"}

    def objects(self, *files):
        return {(kind.lower(), name) for file in files for kind, name, _ in objects_of(read(f"manifests/{file}"))}

    def assert_deleted(self, objects, text):
        commands = " ".join(line for line in text.splitlines() if "kubectl" in line)
        for kind, name in objects:
            self.assertRegex(commands, rf"[ `]{kind}/{re.escape(name)}[ `\n]|[ `]{kind}/{re.escape(name)}$", text)

    def test_changing_the_variant(self):
        text = section(README, "Changing the variant")
        RAN.update(readme.of_section(README, "Changing the variant"))
        first, second = text.index("From `distributed`"), text.index("From `lvm` or `direct`")
        self.assert_deleted(self.objects("node-provisioner/rbac.yaml"), text[first:second])
        controller = self.objects("controller/controller.yaml", "controller/policy.yaml", "controller/rbac.yaml",
                                  "controller/storageclass-cache.yaml")
        # Kubernetes deletes a token with its account
        controller.remove(("secret", "pmem-csi-controller-token"))
        self.assertGreater(len(controller), 10)
        self.assert_deleted(controller, text[second:])

    def test_after_going_back(self):
        upgrade = read("docs/UPGRADE.md")
        text = section(upgrade, "Going back") + section(upgrade, "After going back")
        objects = set()
        for path in glob.glob(f"{TREE}/manifests/*/*.yaml"):
            part = os.path.basename(os.path.dirname(path))
            if part in ("base", "controller", "crds", "node-provisioner", "scheduler", "second-scheduler", "webhook"):
                objects |= self.objects(f"{part}/{os.path.basename(path)}")
        kept = {kind.lower() for kind in self.KEPT} | {"kubeschedulerconfiguration"}
        objects = {it for it in objects if it[0] not in kept}
        self.assertGreater(len(objects), 25)
        long_names = {"mutatingwebhookconfiguration"}
        self.assertIn("delete mutatingwebhookconfiguration pmem-csi-hook ", text)
        self.assert_deleted({it for it in objects if it[0] not in long_names}, text)


class Platforms(unittest.TestCase):
    def test_the_tested_version_of_kubernetes(self):
        tested = re.search(r"^kubernetes=\$\{KUBERNETES_VERSION:-(\S+)\}$", read("tests/kube/get"), re.M).group(1)
        self.assertIn(f"| Kubernetes | {tested} ", read("docs/COMPATIBILITY.md"))


class Building(unittest.TestCase):
    def test_docker_leaves_out_what_the_others_leave_out(self):
        self.assertEqual(read(".dockerignore"), read(".containerignore"))


def help_of(*words):
    return subprocess.run([f"{BIN}/{words[0]}", *words[1:], "-help"], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True).stdout


class Flags(unittest.TestCase):
    """Flags that README names are those of the programs, with their defaults."""

    PROGRAMS = ("pmem-csi-driver", "pmem-ns-init", "pmem-vgm", "scheduler-extender", "csi-client")

    def table(self, above):
        """(flag, default) of the rows of the first table behind the line with this text."""
        rows = README[README.index(above):]
        rows = rows[rows.index("| flag |"):]
        rows = rows[:rows.index("\n\n")].splitlines()[2:]
        for row in rows:
            cells = [c.strip() for c in row.strip("|").split("|")]
            for flag in re.findall(r"`-([\w-]+)`", cells[0]):
                yield flag, cells[1]

    def check_table(self, above, program):
        text = help_of(program)
        rows = list(self.table(above))
        self.assertGreater(len(rows), 5)
        for flag, default in rows:
            line = re.search(rf"^  -{re.escape(flag)}( .*|)$", text, re.M)
            self.assertTrue(line, f"{program} has no flag -{flag}")
            value = re.fullmatch(r"`([^`<$-][^`<$]*)`", default)
            if value:
                self.assertIn(value.group(1), line.group(0), f"{program} -{flag}")

    def test_tables(self):
        self.check_table("The most important flags of the driver", "pmem-csi-driver")
        self.check_table("Flags of the central controller", "pmem-csi-driver")
        self.check_table("Flags of `scheduler-extender`", "scheduler-extender")

    def test_flags_of_commands(self):
        shown = [c.text for c in readme.commands(README)] + re.findall(r"`([^`]+)`", README)
        n_flags = 0
        for text in shown:
            words = text.split()
            if not words or words[0] not in self.PROGRAMS:
                continue
            is_command = words[0] == "pmem-csi-driver" and len(words) > 1 and words[1][0] != "-"
            text = help_of(*words[:2]) if is_command else help_of(words[0])
            for word in words[1:]:
                flag = re.match(r"--?([A-Za-z][\w-]*)", word)
                if flag:
                    n_flags += 1
                    self.assertRegex(text, rf"(?m)^  -{flag.group(1)}\b", f"{' '.join(words)}")
        self.assertGreater(n_flags, 10)


class Errors(unittest.TestCase):
    """The errors that TROUBLESHOOTING explains are printed by a program, and those that ask for an action are explained."""

    ASKING = re.compile(r"see pmem-csi-driver check|; pmem-csi-driver check -repair|restart the driver|modprobe |wipefs|then (run|remount)\b"
                        r"|[:;,] (unmount|unstage|remove|run|give|leave|omit|set|mount|free some space|see dmesg|stop)\b")
    # Files whose texts say all there is to say.
    NOT_EXPLAINED = {
        "common/os/process.c": "as root is all there is to it",
        "common/pmem/pool/hidden_memory.c": "a command, printed behind its reason, which is explained",
        "common/inspect/repair.c": "printed by check -repair; names the path to unmount",
    }

    @staticmethod
    def sources(below=""):
        for path in sorted(glob.glob(f"{TREE}/{below}**/*.[ch]", recursive=True)):
            if "/tests/" not in path and "/build/" not in path:
                with open(path, encoding="utf-8") as source:
                    text = re.sub(r'"[\s\\]*\n\s*"', "", source.read())
                    yield os.path.relpath(path, TREE), re.sub(r"%[a-z]+", "", text)

    def pieces(self):
        """Of the text of each row, what is between the ellipses."""
        rows = README[README.index("| error |"):]
        rows = rows[:rows.index("\n\n")].splitlines()[2:]
        self.assertGreater(len(rows), 10)
        for row in rows:
            for shown in re.findall(r"`([^`]+)`", re.match(r"\| (.*?) \| ", row).group(1)):
                yield row, [piece.strip() for piece in re.split(r" ?…[ ,]?|N of M ", shown)]

    def test_each_error_is_in_a_source(self):
        sources = "".join(text for _, text in self.sources())
        for row, pieces in self.pieces():
            for piece in pieces:
                self.assertTrue(piece in sources, f"no program says \"{piece}\": {row}")

    def test_each_error_that_asks_for_an_action_is_explained(self):
        explained = [pieces for _, pieces in self.pieces()]
        n_asking, unused = 0, set(self.NOT_EXPLAINED)
        for path, source in self.sources("common/"):
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', source):
                if not self.ASKING.search(literal):
                    continue
                unused.discard(path)
                if path in self.NOT_EXPLAINED:
                    continue
                n_asking += 1
                self.assertTrue(any(all(piece in literal for piece in pieces) for pieces in explained),
                                f"TROUBLESHOOTING does not explain what {path} asks for: {literal}")
        self.assertGreater(n_asking, 10)
        self.assertFalse(unused, "listed as not explained, and asks for nothing")


class Zz_Everything(unittest.TestCase):
    """Runs last, when it is known what has been run."""

    def test_every_command_is_run_or_listed(self):
        unused = set(NOT_RUN)
        for c in readme.commands(README):
            unused.discard(c.text)
            listed = c.text in NOT_RUN or (c.is_transcript and c.section in NOT_RUN_TRANSCRIPTS)
            elsewhere = c.section in RUN_ELSEWHERE and not c.is_transcript
            self.assertTrue(c.text in RAN or listed or elsewhere,
                            f"README shows a command that nothing runs and that is not listed with a reason: {c}")
        self.assertFalse(unused, "listed as not run, and README does not show it")

    def test_the_other_suites_take_the_commands_from_readme(self):
        for section, file in RUN_ELSEWHERE.items():
            with open(f"{TREE}/{file}", encoding="utf-8") as f:
                text = f.read()
            read_by_test = rf"readme\.py\S* \S*(INSTALL|QUICKSTART)\.md\S* .{section}[^\w ]"
            followed_by_scenario = rf"^document=\S+/docs/INSTALL\.md$[\s\S]*\bfollow '?{section}'?$"
            self.assertRegex(text, re.compile(f"{read_by_test}|{followed_by_scenario}", re.MULTILINE))


if __name__ == "__main__":
    BIN, TREE = sys.argv[1:3]
    test_commands.DRIVER, test_commands.CLIENT = f"{BIN}/pmem-csi-driver", f"{BIN}/csi-client"
    README = ""
    for name in DOCUMENTS:
        with open(f"{TREE}/{name}", encoding="utf-8") as document:
            README += document.read()
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        print("SKIP: needs root and loop devices")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
