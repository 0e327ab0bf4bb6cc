# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: its objects are those of manifests/, and each value does what values.yaml says. Needs helm and kubectl in PATH.

usage: test_chart.py [unittest options]
"""
import base64
import copy
import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import yaml

TREE = pathlib.Path(__file__).resolve().parents[2]
CHART = TREE / "charts/pmem-csi"
# The image of kube-scheduler in manifests/ is of this version.
KUBERNETES = "1.34.4"
OF_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version")
# Kinds that have no namespace, which kustomize does not know.
WITHOUT_NAMESPACE = ("SecurityContextConstraints", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
                     "StorageProfile", "VolumeGroupSnapshotClass", "VolumeSnapshotClass")
CLUSTER_SCOPED = ("CSIDriver", "StorageClass", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "Namespace",
                  "PriorityClass", "CustomResourceDefinition", *WITHOUT_NAMESPACE)


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def try_helm(values, release="pmem-csi", namespace="pmem-csi"):
    return run("helm", "template", release, str(CHART), "-n", namespace, "--kube-version", KUBERNETES, "-f", "-",
               text=json.dumps(values))


def helm(values=None, **where):
    """The text of the objects with these values."""
    rendered = try_helm(values or {}, **where)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def kustomize(*folders, namespace="pmem-csi"):
    """The text of the objects of manifests/ARGUMENT with the components that follow."""
    build = TREE / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="chart.", dir=build) as folder:
        paths = [f"../../manifests/{name}" for name in folders]
        document = {"namespace": namespace, "resources": paths[:1], "components": paths[1:]}
        pathlib.Path(folder, "kustomization.yaml").write_text(json.dumps(document), encoding="utf-8")
        rendered = run("kubectl", "kustomize", folder)
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def by_name(text):
    """{(kind, namespace, name): object}"""
    result = {}
    for it in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if it is not None:
            if it["kind"] in WITHOUT_NAMESPACE:
                it["metadata"].pop("namespace", None)
            key = it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"]
            assert key not in result, f"twice: {key}"
            result[key] = it
    return result


def without_additions(objects):
    """What Helm and its releases need is no part of the manifests."""
    result = {key: copy.deepcopy(it) for key, it in objects.items() if "helm.sh/hook" not in it["metadata"].get("annotations", {})}
    for it in result.values():
        metadata = it["metadata"]
        labels = metadata.get("labels", {})
        for name in OF_HELM:
            labels.pop(name, None)
        annotations = metadata.get("annotations", {})
        if it["kind"] in ("StorageClass", "StorageProfile", "CustomResourceDefinition") and annotations.pop("helm.sh/resource-policy", None):
            if not annotations:
                del metadata["annotations"]
        if not labels:
            metadata.pop("labels", None)
    return result


def merged(*maps):
    result = {}
    for one in maps:
        for key, value in one.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


def at(path, value):
    """Values in which the one of the path, as in a.b, is VALUE."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


# scheduler.mode, and the component that it is.
SCHEDULERS = {"extender": "scheduler", "second-scheduler": "second-scheduler"}
# Values that add a component to each part.
ADDITIONS = {"podDisruptionBudgets": True, "topologySpread": True, "networkPolicies": True, "openshift": True,
             "monitoring": {"podMonitor": True, "rules": True, "dashboard": True}}


def components_for(parts):
    """Those of ADDITIONS."""
    folders = [f"{addition}/{part}" for addition in ("disruption-budget", "monitoring", "network-policies", "openshift")
               for part in parts]
    return ["topology-spread", "monitoring", *(it for it in folders if (TREE / f"manifests/{it}").exists())]


class Chart(unittest.TestCase):
    maxDiff = 4000

    def assert_same(self, manifests, objects):
        wanted = {key: it for key, it in by_name(manifests).items() if key[0] != "Namespace"}
        found = without_additions(by_name(objects))
        self.assertEqual((set(), set()), (wanted.keys() - found.keys(), found.keys() - wanted.keys()))
        for key, it in wanted.items():
            self.assertEqual(it, found[key], key)


class Same(Chart):
    """Objects of the chart with the default values are those of a kustomization."""

    def test_each_mode(self):
        for mode in ("lvm", "direct", "distributed", "fake"):
            with self.subTest(mode):
                self.assert_same(kustomize(mode), helm({"mode": mode}))

    def test_each_scheduler_with_each_source_of_certificates(self):
        for mode in ("lvm", "direct"):
            for scheduler, component in SCHEDULERS.items():
                values = {"mode": mode, "scheduler": {"mode": scheduler}}
                with self.subTest(values):
                    self.assert_same(kustomize(mode, component), helm(values))
                    self.assert_same(kustomize(mode, component, "cert-manager", "cert-manager-scheduler"),
                                     helm({**values, "certificates": {"source": "cert-manager"}}))
            with self.subTest(mode):
                self.assert_same(kustomize(mode, "cert-manager"),
                                 helm({"mode": mode, "certificates": {"source": "cert-manager"}}))

    def test_additions(self):
        for mode, parts in (("distributed", ("node",)), ("direct", ("node", "controller")),
                            ("lvm", ("node", "controller", "scheduler", "webhook")),
                            ("lvm", ("node", "controller", "second-scheduler", "webhook"))):
            schedulers = {it: part for it, part in SCHEDULERS.items() if part in parts}
            values = {"mode": mode, "scheduler": {"mode": next(iter(schedulers), "none")}}
            with self.subTest(parts):
                self.assert_same(kustomize(mode, *schedulers.values(), *components_for(parts)), helm(merged(ADDITIONS, values)))

    def test_snapshots(self):
        for mode in ("lvm", "direct"):
            for more in ((), ("topology-spread",), ("scheduler",)):
                with self.subTest(mode=mode, more=more):
                    also = {"topologySpread": "topology-spread" in more, "scheduler": {"mode": "extender" if "scheduler" in more else "none"}}
                    self.assert_same(kustomize(mode, *more, "snapshots"), helm({"mode": mode, **SNAPSHOTS, **also}))
                    self.assert_same(kustomize(mode, *more, "group-snapshots"), helm({"mode": mode, **GROUPS, **also}))

    def test_kata(self):
        for mode in ("lvm", "direct", "distributed", "fake"):
            with self.subTest(mode):
                self.assert_same(kustomize(mode, "kata"), helm({"mode": mode, **KATA}))
                self.assert_same(kustomize(mode, "openshift/node", *(["openshift/controller"] if mode in ("lvm", "direct") else []), "kata"),
                                 helm({"mode": mode, **KATA, "openshift": True}))
        self.assertNotIn("kind: StorageClass\n", helm(merged(KATA, {"storageClasses": {"create": False}})))

    def test_without_inline_volumes(self):
        for mode in ("lvm", "direct", "distributed", "fake"):
            with self.subTest(mode):
                self.assert_same(kustomize(mode, "no-inline-volumes"), helm({"mode": mode, "inlineVolumes": {"enabled": False}}))

    def test_memory(self):
        for mode in ("lvm", "distributed"):
            with self.subTest(mode):
                self.assert_same(kustomize(mode, "memory-preparation"), helm({"mode": mode, **PREPARED}))
        self.assert_same(kustomize("direct", "memory-preparation/direct"), helm({"mode": "direct", "memory": {"initLabels": True}}))
        self.assert_same(kustomize("direct", "memory-preparation/direct", "kata"),
                         helm({"mode": "direct", "memory": {"initLabels": True}, **KATA}))
        second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280",
                     text=kustomize("lvm", "memory-preparation")).stdout
        values = {"driverName": "pmem-b.example.com", **PREPARED, "crds": {"install": False}}
        self.assert_same(second, helm(values, release="pmem-b", namespace="pmem-b"))

    def test_kubevirt(self):
        for mode in ("lvm", "direct", "distributed", "fake"):
            with self.subTest(mode):
                self.assert_same(kustomize(mode, "kubevirt"), helm({"mode": mode, **KUBEVIRT}))
        self.assert_same(kustomize("lvm", "snapshots", "kubevirt-snapshots"), helm(merged(KUBEVIRT, SNAPSHOTS)))
        self.assert_same(kustomize("lvm", "kata", "kubevirt"), helm(merged(KUBEVIRT, KATA)))

    def test_kubevirt_of_a_second_driver(self):
        second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280",
                     text=kustomize("lvm", "snapshots", "kubevirt-snapshots")).stdout
        values = merged({"driverName": "pmem-b.example.com", "crds": {"install": False}}, KUBEVIRT, SNAPSHOTS)
        self.assert_same(second, helm(values, release="pmem-b", namespace="pmem-b"))

    def test_pods_are_read_for_images_of_kata_only(self):
        def account_may_read_pods(text):
            roles = [it for it in by_name(text).values() if it["kind"] in ("ClusterRole", "Role") and "controller" in it["metadata"]["name"]]
            return any("pods" in rule["resources"] for role in roles for rule in role["rules"])
        with_images, without = helm(), helm({"kata": {"images": False}})
        self.assertTrue(account_may_read_pods(with_images))
        self.assertFalse(account_may_read_pods(without))
        gone = by_name(with_images).keys() - by_name(without).keys()
        self.assertEqual({("ClusterRole", None, "pmem-csi-controller-pods"), ("ClusterRoleBinding", None, "pmem-csi-controller-pods")}, gone)

    def test_kata_of_a_second_driver(self):
        second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280", text=kustomize("lvm", "kata")).stdout
        values = {"driverName": "pmem-b.example.com", **KATA, "crds": {"install": False}}
        self.assert_same(second, helm(values, release="pmem-b", namespace="pmem-b"))

    def test_snapshots_of_a_second_driver(self):
        for component, values in (("snapshots", SNAPSHOTS), ("group-snapshots", GROUPS)):
            second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280", text=kustomize("lvm", component)).stdout
            values = {"driverName": "pmem-b.example.com", **values, "crds": {"install": False}}
            self.assert_same(second, helm(values, release="pmem-b", namespace="pmem-b"))

    def test_another_namespace(self):
        self.assert_same(kustomize("lvm", "scheduler", namespace="storage"),
                         helm({"scheduler": {"mode": "extender"}}, namespace="storage"))

    def test_a_second_driver(self):
        for mode, part in SCHEDULERS.items():
            manifests = kustomize("lvm", part, *components_for(("node", "controller", part, "webhook")))
            second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280", text=manifests).stdout
            values = {"driverName": "pmem-b.example.com", "scheduler": {"mode": mode, "port": 10280, "probePort": 10281},
                      "crds": {"install": False}}
            self.assert_same(second, helm(merged(ADDITIONS, values), release="pmem-b", namespace="pmem-b"))

    def test_certificates_of_a_second_driver(self):
        manifests = kustomize("lvm", "scheduler", "cert-manager", "cert-manager-scheduler")
        second = run(str(TREE / "scripts/second-driver"), "pmem-b", "pmem-b.example.com", "10280", text=manifests).stdout
        values = {"driverName": "pmem-b.example.com", "scheduler": {"mode": "extender", "port": 10280, "probePort": 10281},
                  "certificates": {"source": "cert-manager"}, "crds": {"install": False}}
        self.assert_same(second, helm(values, release="pmem-b", namespace="pmem-b"))

    def test_version(self):
        version = re.search(r"^project\(pmem-csi VERSION (\S+)", (TREE / "CMakeLists.txt").read_text(), re.M).group(1)
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual([version, version], [chart["version"], chart["appVersion"]])


class Releases(Chart):
    """Releases of two drivers do not meet."""

    FIRST = {"scheduler": {"mode": "extender"}}
    SECOND = {"driverName": "b.example.com", "scheduler": {"mode": "extender", "port": 10280, "probePort": 10281},
              "crds": {"install": False}}

    def test_names_in_the_cluster_differ(self):
        for more in ({}, {"scheduler": {"mode": "second-scheduler"}}, {"certificates": {"source": "chart"}}, GROUPS, KATA, KUBEVIRT, ADDITIONS):
            first = by_name(helm(merged(self.FIRST, more)))
            second = by_name(helm(merged(self.SECOND, more), release="other", namespace="other"))
            names = [{(kind, name) for kind, namespace, name in objects if kind in CLUSTER_SCOPED}
                     for objects in (first, second)]
            self.assertGreater(len(names[0]), 10)
            self.assertEqual(set(), names[0] & names[1])
            # what is not of the cluster is in the namespace of the release
            for objects, namespace in ((first, "pmem-csi"), (second, "other")):
                for kind, where, name in objects:
                    self.assertEqual(where, None if kind in CLUSTER_SCOPED else namespace, (kind, name))

    def test_nothing_names_the_other_one(self):
        text = helm(merged(self.SECOND, ADDITIONS, GROUPS, KATA, KUBEVIRT, {"certificates": {"source": "cert-manager"}}), release="other", namespace="other")
        # Of both are the image, programs, the name of the chart, the lock of all drivers of a node, the API group, and the dashboard.
        common = r"^ *- pmem-csi\.intel\.com$|localhost/pmem-csi:|pmem-csi-driver|/run/pmem-csi$|pmem-csi-[0-9.]+$|pmem-csi CA$|pmem-csi.json:|\"uid\": \"pmem-csi\""
        self.assertEqual([], [line for line in text.splitlines()
                              if "pmem-csi" in re.sub(common, "", line) and not line.startswith("# Source: ")])

    def test_prefix_by_value(self):
        objects = by_name(helm({"namePrefix": "short", "driverName": "b.example.com", "crds": {"install": False}},
                               release="a-long-name", namespace="a"))
        self.assertTrue(all(name.startswith(("short-", "b.example.com")) for _, _, name in objects))


def paths_of(values, prefix=""):
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from paths_of(value, f"{prefix}{name}.")
        else:
            yield prefix + name


VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
EXTENDER = {"scheduler": {"mode": "extender"}}
SECOND = {"scheduler": {"mode": "second-scheduler"}}
FAKE = {"mode": "fake"}
SNAPSHOTS = {"snapshotter": {"enabled": True}}
GROUPS = {"snapshotter": {"enabled": True, "groups": True}}
KATA = {"kata": {"enabled": True}}
KUBEVIRT = {"kubevirt": {"enabled": True}}
PREPARED = {"memory": {"initLabels": True, "unlabelled": "convert"}}
BY_FEATURE = "feature.node.kubernetes.io/memory-nv.dax"
MADE = {"certificates": {"source": "chart"}}
AUTO = {"certificates": {"source": "auto"}}
DIGEST = "sha256:" + 64 * "0"

# Another value, what it shows by, and values with which it matters. Its text is one that is not there otherwise.
CHANGES = {
    "mode": ("direct", "-deviceManager=direct", {}),
    "driverName": ("b.example.com", "-drivername=b.example.com", {}),
    "namePrefix": ("short", "name: short-node", {}),
    "kubeletDir": ("/var/snap/kubelet", "path: /var/snap/kubelet/pods", {}),
    "image.repository": ("registry.example.com/p", "image: registry.example.com/p:2.0.0", {}),
    "image.tag": ("x1", "image: localhost/pmem-csi:x1", {}),
    "image.digest": (DIGEST, f"image: localhost/pmem-csi@{DIGEST}", {}),
    "image.pullPolicy": ("Always", "imagePullPolicy: Always", {}),
    "provisioner.image.repository": ("registry.example.com/p", "image: registry.example.com/p:v6.3.0", {}),
    "provisioner.image.tag": ("x1", "csi-provisioner:x1", {}),
    "provisioner.image.digest": (DIGEST, f"csi-provisioner@{DIGEST}", {}),
    "provisioner.image.pullPolicy": ("Never", "imagePullPolicy: Never", {}),
    "resizer.image.repository": ("registry.example.com/r", "image: registry.example.com/r:v2.3.0", {}),
    "resizer.image.tag": ("x1", "csi-resizer:x1", {}),
    "resizer.image.digest": (DIGEST, f"csi-resizer@{DIGEST}", {}),
    "resizer.image.pullPolicy": ("Never", "imagePullPolicy: Never", {}),
    "snapshotter.enabled": (True, "kind: VolumeSnapshotClass", {}),
    "snapshotter.groups": (True, "kind: VolumeGroupSnapshotClass", SNAPSHOTS),
    "snapshotter.image.repository": ("registry.example.com/s", "image: registry.example.com/s:v8.7.0", SNAPSHOTS),
    "snapshotter.image.tag": ("x1", "csi-snapshotter:x1", SNAPSHOTS),
    "snapshotter.image.digest": (DIGEST, f"csi-snapshotter@{DIGEST}", SNAPSHOTS),
    "snapshotter.image.pullPolicy": ("Never", "imagePullPolicy: Never", SNAPSHOTS),
    "imagePullSecrets": ([{"name": "secret-1"}], "- name: secret-1", {}),
    "log.level": (5, "- -v=5", {}),
    "log.format": ("json", "- -logging-format=json", {}),
    "labels": ({"team": "a-team"}, "team: a-team", {}),
    "annotations": ({"team": "a-team"}, "team: a-team", {}),
    "storageClasses.create": (False, None, {}),
    "storageClasses.keep": (False, None, {"crds": {"install": False}}),
    "storageClasses.default": ("pmem-csi-sc-ext4", 'is-default-class: "true"', {}),
    "storageClasses.policy": (True, "name: pmem-csi-class-policy", {}),
    "crds.install": (False, None, {}),
    "certificates.source": ("cert-manager", "kind: Certificate", {}),
    "certificates.days": (100, None, MADE),
    "podDisruptionBudgets": (True, "kind: PodDisruptionBudget", {}),
    "topologySpread": (True, "topologySpreadConstraints:", {}),
    "networkPolicies": (True, "kind: NetworkPolicy", {}),
    "openshift": (True, "kind: SecurityContextConstraints", {}),
    "inlineVolumes.enabled": (False, None, {}),
    "inlineVolumes.maxVolumes": (0, "- -maxInlineVolumes=0", {}),
    "inlineVolumes.maxBytes": ("1Gi", "- -maxInlineBytes=1Gi", {}),
    "kata.images": (False, None, {}),
    "kata.enabled": (True, "hostPID: true", {}),
    "kubevirt.enabled": (True, "kind: StorageProfile", {}),
    "kubevirt.defaultClass": ("pmem-csi-sc-late-binding-ext4", 'is-default-virt-class: "true"', KUBEVIRT),
    "monitoring.podMonitor": (True, "kind: PodMonitor", {}),
    "monitoring.rules": (True, "kind: PrometheusRule", {}),
    "monitoring.dashboard": (True, "grafana_dashboard", {}),
    "memory.initLabels": (True, "- -initLabels", {"mode": "direct"}),
    "memory.unlabelled": ("convert", "- -statePath=/var/lib/pmem-csi.intel.com\n        - -unlabelled=convert", {}),
    "node.share": (50, "- -useforfsdax=50", {}),
    "node.fakeRegionSize": ("1Gi", "-fakeRegionSize=1Gi", FAKE),
    "node.nodeSelector": ({"has": "pmem"}, '- -nodeSelector={"has":"pmem"}', {}),
    "scheduler.mode": ("extender", "kind: MutatingWebhookConfiguration", {}),
    "scheduler.port": (10280, "- -insecureSchedulerListen=127.0.0.1:10280", EXTENDER),
    "scheduler.probePort": (10281, "- -probeListen=127.0.0.1:10281", EXTENDER),
    "scheduler.image.repository": ("registry.example.com/k", "image: registry.example.com/k:v1.34.4", SECOND),
    "scheduler.image.tag": ("v1.30.0", "kube-scheduler:v1.30.0", SECOND),
    "scheduler.image.digest": (DIGEST, f"kube-scheduler@{DIGEST}", SECOND),
    "scheduler.image.pullPolicy": ("Never", "imagePullPolicy: Never", SECOND),
    "webhook.enabled": (False, None, EXTENDER),
    "webhook.schedulerNames": (["a", "b"], "- -schedulerNames=a,b", EXTENDER),
    "webhook.failurePolicy": ("Fail", "failurePolicy: Fail\n  matchPolicy: ", EXTENDER),
}
OF_PODS = {
    "replicas": (3, "replicas: 3"),
    "nodeSelector": ({"has": "pmem"}, "        has: pmem"),
    "tolerations": ([{"key": "some-taint", "operator": "Exists"}], "key: some-taint"),
    "affinity": ({"podAffinity": {"x": "some-affinity"}}, "x: some-affinity"),
    "priorityClassName": ("some-class", "priorityClassName: some-class"),
    "podLabels": ({"team": "a-team"}, "        team: a-team"),
    "podAnnotations": ({"note": "some note"}, "        note: some note"),
}
CONTAINERS = {"node": ("pmem-driver", "pmem-ns-init", "pmem-vgm"), "controller": ("pmem-driver", "external-provisioner"),
              "scheduler": ("scheduler-extender", "kube-scheduler"), "webhook": ("webhook",)}
for section, containers in CONTAINERS.items():
    context = {"scheduler": SECOND, "webhook": EXTENDER}.get(section, {})
    for name, (value, shown) in OF_PODS.items():
        if name in VALUES[section]:
            CHANGES.setdefault(f"{section}.{name}", (value, shown, context))
    CHANGES[f"{section}.resources"] = (
        {name: {"limits": {"memory": f"{i + 700}Mi"}} for i, name in enumerate(containers)}, "memory: 700Mi", context)
    CHANGES[f"{section}.extraArgs"] = ({name: [f"-x-{name}"] for name in containers}, f"- -x-{containers[-1]}", context)


@functools.lru_cache(maxsize=None)
def with_context(text):
    return helm(json.loads(text))


class Values(Chart):
    """Each value of values.yaml changes something."""

    def test_every_value_is_here(self):
        self.assertEqual(sorted(paths_of(VALUES)), sorted(CHANGES))

    def difference(self, item):
        path, (value, shown, context) = item
        before, after = with_context(json.dumps(context)), helm(merged(context, at(path, value)))
        if path == "certificates.days":
            return abs(days_of(after) - value) <= 1 < abs(days_of(before) - value), path
        if shown is None:
            return set(before.splitlines()) - set(after.splitlines()), path
        return shown in after and shown not in before, path

    def test_each_value_shows(self):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for shows, path in pool.map(self.difference, CHANGES.items()):
                with self.subTest(path):
                    self.assertTrue(shows, f"{path} changes nothing")

    def test_each_container_is_reached(self):
        for section, containers in CONTAINERS.items():
            value, _, context = CHANGES[f"{section}.extraArgs"]
            text = helm(merged(context, at(f"{section}.extraArgs", value)))
            for name in containers:
                self.assertIn(f"- -x-{name}\n", text)

    def test_resources_are_added_to(self):
        node = by_name(helm({"node": {"resources": {"pmem-driver": {"limits": {"memory": "1Gi"}}}}}))["DaemonSet", "pmem-csi", "pmem-csi-node"]
        self.assertEqual({"requests": {"cpu": "50m", "memory": "50Mi"}, "limits": {"memory": "1Gi"}},
                         node["spec"]["template"]["spec"]["containers"][0]["resources"])

    def test_node_label_of_both(self):
        text = helm({"node": {"nodeSelector": {"has": "pmem"}}})
        node = by_name(text)["DaemonSet", "pmem-csi", "pmem-csi-node"]
        self.assertEqual({"kubernetes.io/os": "linux", "has": "pmem"}, node["spec"]["template"]["spec"]["nodeSelector"])
        self.assertNotIn("affinity", node["spec"]["template"]["spec"])
        self.assertNotIn(BY_FEATURE, text)

    def test_an_affinity_leaves_the_label(self):
        """The driver must not run on nodes without any label."""
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "some-key", "operator": "Exists"}]}]}}}
        text = helm({"node": {"affinity": affinity}})
        pod = by_name(text)["DaemonSet", "pmem-csi", "pmem-csi-node"]["spec"]["template"]["spec"]
        self.assertEqual({"kubernetes.io/os": "linux", "storage": "pmem"}, pod["nodeSelector"])
        self.assertEqual(affinity, pod["affinity"])
        self.assertIn('- -nodeSelector={"storage":"pmem"}\n', text)
        self.assertNotIn(BY_FEATURE, text)
        everywhere = by_name(helm(merged(FAKE, {"node": {"affinity": affinity}})))
        self.assertEqual({"kubernetes.io/os": "linux"},
                         everywhere["DaemonSet", "pmem-csi", "pmem-csi-node"]["spec"]["template"]["spec"]["nodeSelector"])

    def test_pods_for_the_other_label_take_what_concerns_pods(self):
        values = {"tolerations": [], "nodeSelector": {"has": "pmem"}, "podLabels": {"team": "a-team"}, "priorityClassName": "some-class",
                  "extraArgs": {"pmem-ns-init": ["-x"]}, "resources": {"pmem-driver": {"limits": {"memory": "1Gi"}}}}
        objects = by_name(helm(merged({"node": values, "imagePullSecrets": [{"name": "s"}], "log": {"level": 5}}, KATA)))
        plain = by_name(helm())["DaemonSet", "pmem-csi", "pmem-csi-node-setup"]["spec"]["template"]
        template = objects["DaemonSet", "pmem-csi", "pmem-csi-node-setup"]["spec"]["template"]
        self.assertEqual({**plain["metadata"]["labels"], "team": "a-team"}, template["metadata"]["labels"])
        for container in plain["spec"]["initContainers"] + plain["spec"]["containers"]:
            container["args"].append("-v=5")
        self.assertEqual({**plain["spec"], "tolerations": [], "priorityClassName": "some-class", "imagePullSecrets": [{"name": "s"}]},
                         template["spec"])

    def test_classes_stay_or_are_left_out(self):
        classes = [it for it in by_name(helm()).values() if it["kind"] == "StorageClass"]
        self.assertEqual({"keep"}, {it["metadata"]["annotations"]["helm.sh/resource-policy"] for it in classes})
        self.assertEqual(11, len(classes))
        self.assertNotIn("kind: StorageClass", helm({"storageClasses": {"create": False}}))
        self.assertNotIn("resource-policy", helm({"storageClasses": {"keep": False}, "crds": {"install": False}}))

    def test_definitions_stay_and_are_the_same_for_all_drivers(self):
        first, second = by_name(helm()), by_name(helm({"driverName": "b.example.com"}, release="b"))
        for resource in ("pmemnodes", "pmemvolumes"):
            definition = "CustomResourceDefinition", None, f"{resource}.pmem-csi.intel.com"
            self.assertEqual("keep", first[definition]["metadata"]["annotations"]["helm.sh/resource-policy"])
            self.assertEqual(first[definition]["spec"], second[definition]["spec"])
        for values in ({"crds": {"install": False}}, {"mode": "distributed"}, FAKE):
            self.assertNotIn("kind: CustomResourceDefinition", helm(values))

    def test_size_of_fake_regions_is_left_to_the_folder(self):
        self.assertNotIn("fakeRegionSize", helm(merged(FAKE, at("node.fakeRegionSize", ""))))

    def test_sizes_of_kubernetes(self):
        for size in ("1Gi", "65536Ki", "1.5G", "100M", "1073741824"):
            self.assertIn(f"-fakeRegionSize={size}\n", helm(merged(FAKE, at("node.fakeRegionSize", size))))
            self.assertIn(size, helm(at("node.resources", {"pmem-driver": {"limits": {"memory": size}}})))

    def test_ports_that_are_free_elsewhere(self):
        """What is taken in one mode is free in another; a driver's name needs its dot for the webhook only."""
        for values in (at("scheduler.port", 10259), merged(EXTENDER, at("scheduler.port", 8001)),
                       merged(SECOND, at("scheduler.probePort", 8001)), {"driverName": "memory"},
                       merged(EXTENDER, {"driverName": "memory", "webhook": {"enabled": False}})):
            self.assertEqual(0, try_helm(values, release="memory").returncode, values)

    def test_no_webhook(self):
        text = helm(merged(EXTENDER, MADE, {"webhook": {"enabled": False}}))
        self.assertIn("name: pmem-csi-registry-secrets", text)
        self.assertNotIn("MutatingWebhook", text)
        self.assertNotIn("webhook-secrets", text)

    def test_values_files_pass_lint(self):
        files = sorted((CHART / "ci").glob("*.yaml"))
        self.assertGreater(len(files), 3)
        for file in files:
            said = run("helm", "lint", "--strict", str(CHART), "-f", str(file))
            self.assertEqual(0, said.returncode, said.stdout + said.stderr)

    def test_readme_lists_them(self):
        rows = {}
        for line in (CHART / "README.md").read_text().splitlines():
            row = re.fullmatch(r"\| (`.*?`) \| `(.*?)` \| \S.*\|", line)
            for name in re.findall(r"`(.*?)`", row.group(1)) if row else ():
                rows[name] = yaml.safe_load(row.group(2))
        self.assertEqual({path: functools.reduce(dict.get, path.split("."), VALUES) for path in paths_of(VALUES)}, rows)


# Values that are refused, and what the error names.
REFUSED = {
    "groups of memory in direct mode": ({"mode": "direct", **PREPARED}, "memory.unlabelled convert makes volume groups, which mode direct does not use"),
    "labels of fake memory": (merged(FAKE, {"memory": {"initLabels": True}}), "memory.initLabels: mode fake uses no persistent memory"),
    "another preparation": (at("memory.unlabelled", "force"), "/memory/unlabelled"),
    "unknown": (at("foo", 1), "'foo' not allowed"),
    "unknown below": (at("node.foo", 1), "'foo' not allowed"),
    "mode": (at("mode", "lvm2"), "/mode"),
    "driverName": (at("driverName", "Pmem_CSI"), "/driverName"),
    "long driverName": (at("driverName", 64 * "x"), "/driverName"),
    "namePrefix": (at("namePrefix", "-x"), "/namePrefix"),
    "kubeletDir": (at("kubeletDir", "var/lib/kubelet"), "/kubeletDir"),
    "image": (at("image", "localhost/pmem-csi"), "/image"),
    "repository": (at("image.repository", "two words"), "/image/repository"),
    "tag": (at("image.tag", "a/b"), "/image/tag"),
    "no tag": (at("provisioner.image.tag", ""), "/provisioner/image/tag"),
    "digest": (at("image.digest", "sha256:1"), "/image/digest"),
    "pullPolicy": (at("image.pullPolicy", "always"), "/image/pullPolicy"),
    "imagePullSecrets": (at("imagePullSecrets", ["registry"]), "/imagePullSecrets/0"),
    "level": (at("log.level", "5"), "/log/level"),
    "format": (at("log.format", "xml"), "/log/format"),
    "labels": (at("labels", {"team": "two words"}), "/labels/team"),
    "annotations": (at("annotations", {"a": 1}), "/annotations/a"),
    "create": (at("storageClasses.create", "yes"), "/storageClasses/create"),
    "source": (at("certificates.source", "vault"), "/certificates/source"),
    "days": (at("certificates.days", 0), "/certificates/days"),
    "share": (at("node.share", 101), "/node/share"),
    "share in text": (at("node.share", "50%"), "/node/share"),
    "fakeRegionSize": (at("node.fakeRegionSize", "8GB"), "/node/fakeRegionSize"),
    "nodeSelector": (at("node.nodeSelector", {"storage": True}), "/node/nodeSelector/storage"),
    "tolerations": (at("node.tolerations", [{"operator": "exists"}]), "/node/tolerations/0/operator"),
    "unknown in a toleration": (at("node.tolerations", [{"taint": "x"}]), "'taint' not allowed"),
    "unknown in a Secret's name": (at("imagePullSecrets", [{"name": "x", "space": "y"}]), "'space' not allowed"),
    "affinity": (at("node.affinity", {"nodeAfinity": {}}), "/node/affinity"),
    "resources": (at("node.resources", {"pmem-driver": {"limit": {}}}), "/node/resources/pmem-driver"),
    "amount": (at("node.resources", {"pmem-driver": {"limits": {"memory": "1 GiB"}}}), "/limits/memory"),
    "extraArgs": (at("node.extraArgs", {"pmem-driver": ["-v", "5"]}), "/node/extraArgs/pmem-driver/1"),
    "replicas": (at("controller.replicas", 0), "/controller/replicas"),
    "scheduler": (at("scheduler.mode", "second"), "/scheduler/mode"),
    "port": (at("scheduler.port", 70000), "/scheduler/port"),
    "schedulerNames": (at("webhook.schedulerNames", "a,b"), "/webhook/schedulerNames"),
    "failurePolicy": (at("webhook.failurePolicy", "ignore"), "/webhook/failurePolicy"),
    "container": (at("node.extraArgs", {"driver": ["-x"]}), "node.extraArgs names the container driver"),
    "container of another mode": (merged(FAKE, at("node.resources", {"pmem-vgm": {}})), "node.resources names the container pmem-vgm"),
    "scheduler without controller": (merged(FAKE, EXTENDER), "which mode fake does not have"),
    "snapshots without controller": (merged({"mode": "distributed"}, SNAPSHOTS), "which mode distributed does not have"),
    "profiles without classes": (merged(KUBEVIRT, at("storageClasses.create", False)), "apply manifests/kubevirt/storageprofiles.yaml"),
    "default class for disks without profiles": (at("kubevirt.defaultClass", "pmem-csi-sc-ext4"), "set kubevirt.enabled"),
    "default class for disks that has no profile": (merged(KUBEVIRT, at("kubevirt.defaultClass", "pmem-csi-sc-cache")), "has no StorageProfile"),
    "groups without snapshots": (at("snapshotter.groups", True), "set snapshotter.enabled, too"),
    "certificates without controller": (merged(MADE, {"mode": "distributed"}), "mode distributed uses no certificates"),
    "driver name with an empty part": (at("driverName", "a..b"), "/driverName"),
    "driver name that is too long": (at("driverName", "a." + "b" * 62), "/driverName"),
    "driver name without a dot beside a webhook": (merged(EXTENDER, at("driverName", "memory")), "pod-hook.memory"),
    "driver name without a dot beside a second scheduler": (merged(SECOND, at("driverName", "memory")), "pod-hook.memory"),
    "fakeRegionSize in thousandths": (at("node.fakeRegionSize", "8m"), "/node/fakeRegionSize"),
    "port of probes": (merged(SECOND, at("scheduler.port", 8001)), "scheduler.port: 8001 is the port of the extender's probes"),
    "port of the second scheduler": (merged(SECOND, at("scheduler.port", 10259)), "scheduler.port: 10259 is the port of kube-scheduler"),
    "port of kube-scheduler": (merged(EXTENDER, at("scheduler.port", 10259)), "scheduler.port: 10259 is the port of kube-scheduler"),
    "its port for probes": (merged(EXTENDER, at("scheduler.probePort", 10259)), "scheduler.probePort: 10259 is the port of kube-scheduler"),
    "default that is no class": (at("storageClasses.default", "pmem-csi-sc-ext3"), "storageClasses.default pmem-csi-sc-ext3 is not a class"),
    "default of another mode": (merged({"mode": "distributed"}, at("storageClasses.default", "pmem-csi-sc-cache")), "is not a class"),
    "default of another name": (merged(at("namePrefix", "short"), at("storageClasses.default", "pmem-csi-sc-ext4")), "short-sc-ext4"),
    "default without classes": (at("storageClasses", {"create": False, "default": "pmem-csi-sc-ext4"}), "the chart creates no classes"),
    "unit of Kubernetes in other letters": (at("node.resources", {"pmem-driver": {"limits": {"memory": "64ki"}}}), "/limits/memory"),
    "the same ports": (at("scheduler.port", 10271), "are the same"),
}


class Refused(Chart):
    """Values that cannot be meant are refused by an error that names them."""

    def test_each(self):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, said in zip(REFUSED, pool.map(lambda it: try_helm(it[0]), REFUSED.values())):
                with self.subTest(name):
                    self.assertNotEqual(0, said.returncode, f"{name}: taken")
                    self.assertIn(REFUSED[name][1], said.stderr)

    def test_release_whose_name_is_no_prefix(self):
        said = try_helm({"driverName": "b.example.com"}, release="a" * 40)
        self.assertIn("set namePrefix", said.stderr)

    def test_every_section_has_a_schema(self):
        """An unknown name is refused wherever names are fixed."""
        schema = json.loads((CHART / "values.schema.json").read_text())
        def fixed(part, values, path):
            if isinstance(values, dict) and values:
                self.assertEqual(False, part.get("additionalProperties"), path)
                self.assertLessEqual(values.keys(), part["properties"].keys(), path)
                for name, value in values.items():
                    fixed(part["properties"][name], value, f"{path}.{name}")
        fixed(schema, VALUES, "")


class HelmTest(Chart):
    """The pod of "helm test"."""

    def pod(self, values, **where):
        objects = by_name(helm(values, **where))
        hooks = [it for it in objects.values() if it["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"]
        self.assertEqual(1, len(hooks))
        self.assertEqual("Never", hooks[0]["spec"]["restartPolicy"])
        return objects, hooks[0]

    def test_with_a_controller(self):
        """It reads the cluster as the controller, whose account exists, and looks for nodes where the controller does."""
        second = {"driverName": "b.example.com", "scheduler": {"mode": "extender"}, "crds": {"install": False}}
        for values, where in (({}, {}), ({"mode": "direct"}, {}), (second, {"release": "b", "namespace": "b"})):
            with self.subTest(values):
                objects, pod = self.pod(values, **where)
                namespace = where.get("namespace", "pmem-csi")
                prefix = where.get("release", "pmem-csi")
                self.assertEqual((f"{prefix}-test", namespace), (pod["metadata"]["name"], pod["metadata"]["namespace"]))
                self.assertIn(("ServiceAccount", namespace, pod["spec"]["serviceAccountName"]), objects)
                controller = objects["Deployment", namespace, f"{prefix}-controller"]["spec"]["template"]["spec"]["containers"][0]
                test = pod["spec"]["containers"][0]
                self.assertEqual(["cluster", "check"], test["command"][1:])
                self.assertLess(set(test["args"]), set(controller["args"]))
                self.assertEqual({"-drivername", "-nodeSelector"}, {it.split("=")[0] for it in test["args"]})
                self.assertEqual(controller["image"], test["image"])
                self.assertNotIn("volumes", pod["spec"])

    def test_without_a_controller(self):
        """It is where a driver is, and asks that one."""
        for mode in ("distributed", "fake"):
            with self.subTest(mode):
                objects, pod = self.pod({"mode": mode, "kubeletDir": "/var/snap/kubelet", "image": {"pullPolicy": "Always"}})
                node = objects["DaemonSet", "pmem-csi", "pmem-csi-node"]["spec"]["template"]["spec"]
                test = pod["spec"]["containers"][0]
                self.assertEqual(["probe"], test["command"][1:])
                socket = next(it for it in node["containers"][0]["env"] if it["name"] == "CSI_ENDPOINT")
                self.assertEqual([socket], test["env"])
                self.assertEqual(f"unix://{test['volumeMounts'][0]['mountPath']}/csi.sock", socket["value"])
                self.assertEqual(test["volumeMounts"][0]["mountPath"], pod["spec"]["volumes"][0]["hostPath"]["path"])
                self.assertEqual("Always", test["imagePullPolicy"])
                for name in ("affinity", "nodeSelector", "tolerations"):
                    self.assertEqual(node.get(name), pod["spec"].get(name))

    def test_values_of_the_part_apply(self):
        _, pod = self.pod({"imagePullSecrets": [{"name": "s"}], "controller": {"nodeSelector": {"has": "room"}, "tolerations": []},
                           "node": {"nodeSelector": {"has": "pmem"}}})
        self.assertEqual([{"name": "s"}], pod["spec"]["imagePullSecrets"])
        self.assertEqual({"has": "room", "kubernetes.io/os": "linux"}, pod["spec"]["nodeSelector"])
        self.assertEqual([], pod["spec"]["tolerations"])
        self.assertIn('-nodeSelector={"has":"pmem"}', pod["spec"]["containers"][0]["args"])


def pem_of(secret, key):
    return base64.b64decode(secret["data"][key]).decode()


def secrets_of(text):
    return {name: it for (kind, _, name), it in by_name(text).items() if kind == "Secret" and "data" in it}


def openssl(*words, text):
    said = run("openssl", *words, text=text)
    assert said.returncode == 0, said.stderr
    return said.stdout


def days_of(text):
    """How long the nodes' certificate lasts."""
    ends = openssl("x509", "-noout", "-enddate", "-dateopt", "iso_8601", text=pem_of(secrets_of(text)["pmem-csi-node-secrets"], "tls.crt"))
    end = run("date", "-d", ends.split("=")[1].strip(), "+%s").stdout
    return (int(end) - int(run("date", "+%s").stdout)) / 86400


class Certificates(Chart):
    """Those that the chart makes are of one authority, whose key is in one Secret only, which no pod mounts."""

    NAMES = {"registry": "pmem-registry", "node": "pmem-node-controller", "webhook": "pmem-csi-webhook.storage.svc"}

    @classmethod
    def setUpClass(cls):
        cls.text = helm(merged(EXTENDER, MADE), namespace="storage")
        cls.secrets = secrets_of(cls.text)

    def test_one_authority(self):
        self.assertEqual({"pmem-csi-ca", *(f"pmem-csi-{role}-secrets" for role in self.NAMES)}, self.secrets.keys())
        authority = pem_of(self.secrets["pmem-csi-ca"], "tls.crt")
        for role in self.NAMES:
            secret = self.secrets[f"pmem-csi-{role}-secrets"]
            self.assertEqual({"ca.crt", "tls.crt", "tls.key"}, secret["data"].keys())
            self.assertEqual(authority, pem_of(secret, "ca.crt"))

    def test_the_webhook_fills_in_what_api_servers_trust(self):
        self.assertNotIn("caBundle", self.text)

    def test_leaves(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(pem_of(self.secrets["pmem-csi-ca"], "tls.crt"))
            file.flush()
            for role, name in self.NAMES.items():
                secret = self.secrets[f"pmem-csi-{role}-secrets"]
                leaf = pem_of(secret, "tls.crt")
                for purpose in ("sslserver", "sslclient"):
                    openssl("verify", "-CAfile", file.name, "-purpose", purpose, "-verify_hostname", name, text=leaf)
                self.assertEqual(openssl("x509", "-noout", "-pubkey", text=leaf),
                                 openssl("pkey", "-pubout", text=pem_of(secret, "tls.key")))

    def test_key_of_the_authority_is_not_mounted(self):
        key = self.secrets["pmem-csi-ca"]["data"]["tls.key"]
        self.assertEqual(1, self.text.count(key))
        self.assertNotIn("secretName: pmem-csi-ca\n", self.text)

    def test_names_are_those_of_cert_manager(self):
        text = helm(merged(EXTENDER, {"certificates": {"source": "cert-manager"}}), namespace="storage")
        made = {it["spec"]["secretName"]: it["spec"]["dnsNames"] for it in by_name(text).values()
                if it["kind"] == "Certificate" and not it["spec"].get("isCA")}
        self.assertEqual({f"pmem-csi-{role}-secrets": [name] for role, name in self.NAMES.items()}, made)


class Secrets(http.server.BaseHTTPRequestHandler):
    """As much of an API server as lookup asks of it: it has Secrets, by name, and a namespace."""

    found = {}
    namespace = None

    def answer(self):
        name = self.path.split("?")[0]
        if name == "/version":
            return {"major": "1", "minor": "34", "gitVersion": f"v{KUBERNETES}"}
        if name == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if name == "/apis":
            return {"kind": "APIGroupList", "groups": []}
        if name == "/api/v1":
            return {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "secrets", "namespaced": True, "kind": "Secret", "verbs": ["get", "list"]},
                {"name": "namespaces", "namespaced": False, "kind": "Namespace", "verbs": ["get", "list"]}]}
        if name == "/api/v1/namespaces/pmem-csi":
            return self.namespace
        if name == "/api/v1/namespaces/kube-system":
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        return self.found.get(name.removeprefix("/api/v1/namespaces/pmem-csi/secrets/"))

    def do_GET(self):
        answer = self.answer()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer or {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}).encode())

    def log_message(self, *_):
        pass


class Served(Chart):
    """What is rendered with lookup."""

    def setUp(self):
        Secrets.found, Secrets.namespace = {}, None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Secrets)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def tearDown(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def there(self):
        """Arguments of helm."""
        return "--dry-run=server", "--kube-apiserver", f"http://127.0.0.1:{self.server.server_port}"


class Upgrade(Served):
    """Certificates that the chart has made are found again, and those that are missing are of the authority that is there."""

    ROLES = ("registry", "node", "webhook")

    def render(self, values=None):
        said = run("helm", "template", "pmem-csi", str(CHART), "-n", "pmem-csi", *self.there(), "--kube-version", KUBERNETES, "-f", "-",
                   text=json.dumps(merged(EXTENDER, MADE, values or {})))
        self.assertEqual(0, said.returncode, said.stderr)
        made = {name: it["data"] for name, it in secrets_of(said.stdout).items()}
        for role in self.ROLES if made else ():
            self.assertEqual(made["pmem-csi-ca"]["tls.crt"], made[f"pmem-csi-{role}-secrets"]["ca.crt"])
        return made

    def keep(self, made, *but):
        """The cluster has these Secrets, as Helm marks them."""
        Secrets.found = {name: {"apiVersion": "v1", "kind": "Secret", "data": data,
                                "metadata": {"name": name, "annotations": {"meta.helm.sh/release-name": "pmem-csi"}}}
                         for name, data in made.items() if name not in but}

    def test_nothing_is_made_again(self):
        made = self.render()
        self.assertNotEqual(made, self.render())
        self.keep(made)
        self.assertEqual(made, self.render({"log": {"level": 5}, "certificates": {"days": 10}}))

    def test_without_a_choice(self):
        """Of the source: those that the chart makes, which it finds again; and none beside a Secret of others."""
        made = self.render(AUTO)
        self.assertEqual(4, len(made))
        self.keep(made)
        self.assertEqual(made, self.render(AUTO))
        for release, is_ours in (("pmem-csi", True), ("other", False), (None, False)):
            self.keep(made)
            metadata = Secrets.found["pmem-csi-registry-secrets"]["metadata"]
            metadata["annotations"] = {"meta.helm.sh/release-name": release} if release else {}
            with self.subTest(release):
                self.assertEqual(made if is_ours else {}, self.render(AUTO))

    def test_the_extender_comes_later(self):
        made = self.render()
        self.keep(made, "pmem-csi-webhook-secrets")
        later = self.render()
        self.assertEqual(made["pmem-csi-ca"], later["pmem-csi-ca"])
        self.assertEqual(made["pmem-csi-node-secrets"], later["pmem-csi-node-secrets"])

    def test_one_is_deleted(self):
        made = self.render()
        self.keep(made, "pmem-csi-node-secrets")
        again = self.render()
        self.assertEqual({"pmem-csi-node-secrets"}, {name for name in made if made[name] != again[name]})
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(base64.b64decode(made["pmem-csi-ca"]["tls.crt"]).decode())
            file.flush()
            openssl("verify", "-CAfile", file.name, text=base64.b64decode(again["pmem-csi-node-secrets"]["tls.crt"]).decode())

    def test_the_authority_is_deleted(self):
        made = self.render()
        self.keep(made, "pmem-csi-ca")
        again = self.render()
        self.assertEqual(set(made), {name for name in made if made[name] != again[name]})

    def test_one_is_of_another_authority(self):
        made, other = self.render(), self.render()
        self.keep({**made, "pmem-csi-node-secrets": other["pmem-csi-node-secrets"]})
        again = self.render()
        self.assertEqual({"pmem-csi-node-secrets"}, {name for name in made if made[name] != again[name]})
        self.assertNotEqual(other["pmem-csi-node-secrets"], again["pmem-csi-node-secrets"])


class Notes(Served):
    """What the user reads after the installation."""

    def notes(self, values, *where):
        """Without a cluster helm prints none, so another template of a copy of the chart prints them."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(CHART, f"{folder}/pmem-csi")
            pathlib.Path(folder, "pmem-csi/templates/notes.yaml").write_text(
                'notes: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}\n', encoding="utf-8")
            said = run("helm", "template", "pmem-csi", f"{folder}/pmem-csi", "-n", "pmem-csi", "-s", "templates/notes.yaml", *where,
                       "--kube-version", KUBERNETES, "-f", "-", text=json.dumps(values))
        self.assertEqual(0, said.returncode, said.stderr)
        return yaml.safe_load(said.stdout)["notes"]

    def test_what_is_next(self):
        text = self.notes(EXTENDER)
        for next_step in ("kubectl label node NODE storage=pmem", "import it on each node", "pmem-csi-webhook-secrets"):
            self.assertIn(next_step, text)
        entry = yaml.safe_load(re.search(r"^    extenders:\n(    .*\n)+", text, re.M).group(0))
        manifest = yaml.safe_load((TREE / "manifests/scheduler/kube-scheduler.yaml").read_text())
        self.assertEqual(manifest["extenders"], entry["extenders"])

    def test_namespace_without_its_label(self):
        """Also where it is not made yet, as with --create-namespace, and where nothing is looked up."""
        command = "kubectl label --overwrite namespace pmem-csi pod-security.kubernetes.io/enforce=privileged"
        self.assertIn(command, self.notes({}))
        for labels, wanted in ((None, True), ({}, True), ({"pod-security.kubernetes.io/enforce": "baseline"}, True),
                               ({"pod-security.kubernetes.io/enforce": "privileged"}, False)):
            metadata = {"name": "pmem-csi", **({"labels": labels} if labels else {})}
            Secrets.namespace = None if labels is None else {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            with self.subTest(labels):
                self.assertEqual(wanted, command in self.notes({}, *self.there()))

    def test_rollback_with_certificates_of_the_chart(self):
        self.assertIn("Do not use helm rollback", self.notes(MADE))
        self.assertIn("Do not use helm rollback", self.notes({}, *self.there()))
        self.assertNotIn("rollback", self.notes({"certificates": {"source": "cert-manager"}}))

    def test_order_of_taking_the_extender_out(self):
        text = self.notes(EXTENDER)
        steps = [text.index(it) for it in ("delete the MutatingWebhookConfiguration pmem-csi-hook", "still pending", "remove that entry")]
        self.assertEqual(sorted(steps), steps)

    def test_nothing_is_next(self):
        text = self.notes({"mode": "fake", "image": {"repository": "registry.example.com/p"}})
        for next_step in ("label node", "import", "Secret", "extender"):
            self.assertNotIn(next_step, text)


if __name__ == "__main__":
    unittest.main()
