#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The components in manifests/ that docs/INSTALL.md lists, rendered with each kustomization that it names for them: what they add
belongs to something that is there.

usage: test_components.py [unittest options]        kubectl is in PATH
"""
import functools
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

TREE = pathlib.Path(__file__).resolve().parents[2]
OVERLAYS = {"lvm", "direct", "lvm-scheduler", "lvm-second-scheduler", "distributed", "fake"}
# Parts that are listed; the other components are what overlays consist of, or have a chapter of their own.
ADDED = ("disruption-budget", "topology-spread", "network-policies", "monitoring", "openshift")
NAMESPACE = "storage"


def table():
    """{component: overlays}"""
    text = (TREE / "docs/INSTALL.md").read_text(encoding="utf-8")
    text = text[text.index("| component | for |"):]
    rows = re.findall(r"^\| `([^`]*)` \| ([^|]*) \|", text[:text.index("\n\n")], re.M)
    return {component: re.findall(r"`([^`]*)`", overlays) for component, overlays in rows}


@functools.lru_cache(maxsize=None)
def render(overlay, *components, namespace=NAMESPACE):
    """Objects by kind and name; unless it is said which, in another namespace, which is to be followed."""
    build = TREE / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="components.", dir=build) as folder:
        paths = ", ".join(f"../../manifests/{component}" for component in components)
        (pathlib.Path(folder) / "kustomization.yaml").write_text(
            f"namespace: {namespace}\nresources: [../../manifests/{overlay}]\ncomponents: [{paths}]\n", encoding="utf-8")
        text = subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True).stdout
    return {(it["kind"], it["metadata"]["name"]): it for it in yaml.safe_load_all(text)}


def pods(objects):
    return [it["spec"]["template"] for (kind, _), it in objects.items() if kind in ("DaemonSet", "Deployment")]


def selected(objects, selector):
    labels = selector["matchLabels"].items()
    return [pod for pod in pods(objects) if labels <= pod["metadata"]["labels"].items()]


def ports(pod):
    return {port.get("name"): port["containerPort"] for container in pod["spec"]["containers"] for port in container.get("ports", [])}


class Components(unittest.TestCase):
    def each(self):
        """(component, objects before, objects that are new, all of them)"""
        for component, overlays in table().items():
            for overlay in overlays:
                before, after = render(overlay), render(overlay, component)
                yield component, before, {key: after[key] for key in after.keys() - before.keys()}, after

    def of_kind(self, *kinds):
        n = 0
        for _, _, new, after in self.each():
            for (kind, _), it in new.items():
                if kind in kinds:
                    n += 1
                    yield it, after
        self.assertGreater(n, 0)

    def second(self, objects):
        """The same of another driver, by scripts/second-driver."""
        text = subprocess.run([TREE / "scripts/second-driver", "other", "other.example.com", "10280"], check=True,
                              input=yaml.safe_dump_all(objects.values()), capture_output=True, text=True).stdout
        return {(it["kind"], it["metadata"]["name"]): it for it in yaml.safe_load_all(text)}

    def test_certificates_of_a_second_driver_are_for_its_services(self):
        first = render("lvm-scheduler", "cert-manager", "cert-manager-scheduler", namespace="pmem-csi")
        second = self.second(first)
        names = {f"{name}.{it['metadata']['namespace']}.svc" for (kind, name), it in second.items() if kind == "Service"}
        asked = {name for (kind, _), it in second.items() if kind == "Certificate" for name in it["spec"].get("dnsNames", [])
                 if name.endswith(".svc")}
        self.assertTrue(asked)
        self.assertLessEqual(asked, names)
        self.assertFalse({name for kind, name in first if kind in ("Certificate", "Issuer")} &
                         {name for kind, name in second if kind in ("Certificate", "Issuer")})

    def assert_account_is_named(self, objects):
        """Tokens of the account that nodes run with are those that the controller takes."""
        account = next(it["spec"]["template"]["spec"]["serviceAccountName"] for (kind, name), it in objects.items()
                       if kind == "DaemonSet" and name.endswith("-node"))
        arguments = [argument for (kind, name), it in objects.items() if kind == "Deployment" and name.endswith("-controller")
                     for argument in it["spec"]["template"]["spec"]["containers"][0]["args"]]
        self.assertIn(f"-nodeAccount={account}", arguments)

    def test_controllers_take_the_tokens_of_nodes(self):
        central = {overlay for overlay in OVERLAYS if ("Deployment", "pmem-csi-controller") in render(overlay)}
        self.assertEqual(OVERLAYS - central, {"distributed", "fake"})
        for overlay in central:
            with self.subTest(overlay=overlay):
                self.assert_account_is_named(render(overlay))
                self.assert_account_is_named(self.second(render(overlay)))

    def test_every_container_requests_resources(self):
        """Where a ResourceQuota limits requests, a pod with a container without them is refused."""
        for overlay in OVERLAYS:
            for pod in pods(render(overlay)):
                for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
                    with self.subTest(overlay=overlay, container=container["name"]):
                        self.assertEqual({"cpu", "memory"}, container.get("resources", {}).get("requests", {}).keys())

    def test_modules_of_the_host(self):
        """What loads the driver of persistent memory has the host's modules, also where the host has none."""
        for overlay in OVERLAYS:
            pod = render(overlay)["DaemonSet", "pmem-csi-node"]["spec"]["template"]["spec"]
            (volume,) = [it["hostPath"] for it in pod["volumes"] if it["name"] == "modules"]
            self.assertEqual({"path": "/lib/modules", "type": ""}, volume)
            mounts = {it["name"]: mount for it in pod.get("initContainers", []) + pod["containers"]
                      for mount in it["volumeMounts"] if mount["name"] == "modules"}
            wanted = {"pmem-driver", "pmem-ns-init"} & {it["name"] for it in pod.get("initContainers", []) + pod["containers"]}
            self.assertEqual(dict.fromkeys(wanted, {"name": "modules", "mountPath": "/lib/modules", "readOnly": True}), mounts)

    def test_the_table_is_complete(self):
        found = {str(path.parent.relative_to(TREE / "manifests")) for name in ADDED
                 for path in (TREE / "manifests" / name).rglob("kustomization.yaml")}
        self.assertEqual(found, table().keys())
        self.assertEqual(OVERLAYS, set().union(*table().values()))

    def test_each_changes_something_and_takes_nothing_away(self):
        for component, before, new, after in self.each():
            self.assertFalse(before.keys() - after.keys(), component)
            if component != "topology-spread":
                self.assertTrue(new, component)
                self.assertEqual(before, {key: after[key] for key in before}, f"{component} changes what it is added to")
            for it in new.values():
                if it["kind"] not in ("ClusterRole", "SecurityContextConstraints"):
                    self.assertEqual(NAMESPACE, it["metadata"].get("namespace"), it["metadata"]["name"])

    def test_nothing_that_is_added_is_without_pods(self):
        for it, after in self.of_kind("PodDisruptionBudget", "PodMonitor"):
            self.assertTrue(selected(after, it["spec"]["selector"]), it["metadata"]["name"])
        for it, after in self.of_kind("NetworkPolicy"):
            self.assertTrue(selected(after, it["spec"]["podSelector"]), it["metadata"]["name"])
            for rule in it["spec"].get("ingress", []):
                for peer in rule.get("from", []):
                    self.assertTrue("podSelector" not in peer or selected(after, peer["podSelector"]), it["metadata"]["name"])

    def test_budgets_are_for_replicas(self):
        for it, after in self.of_kind("PodDisruptionBudget"):
            workload = after["Deployment", it["metadata"]["name"]]
            self.assertGreater(workload["spec"]["replicas"], it["spec"]["maxUnavailable"])
            self.assertEqual(workload["spec"]["selector"], it["spec"]["selector"])

    def test_replicas_are_spread(self):
        for overlay in table()["topology-spread"]:
            for (kind, name), it in render(overlay, "topology-spread").items():
                if kind != "Deployment":
                    continue
                spread = it["spec"]["template"]["spec"]["topologySpreadConstraints"]
                self.assertEqual([rule["topologyKey"] for rule in spread], ["topology.kubernetes.io/zone", "kubernetes.io/hostname"], name)
                for rule in spread:
                    self.assertEqual(rule["labelSelector"], it["spec"]["selector"], name)

    def test_ports_are_those_of_the_pods(self):
        """Each port of a rule is one that a pod has; each one that others than kubelet reach is in a rule."""
        for overlay in OVERLAYS:
            components = [name for name, overlays in table().items() if name.startswith("network-policies/") and overlay in overlays]
            with self.subTest(overlay=overlay):
                after = render(overlay, *components)
                policies = [it for (kind, _), it in after.items() if kind == "NetworkPolicy"]
                for pod in pods(after):
                    labels, known = pod["metadata"]["labels"], ports(pod)
                    if pod["spec"].get("hostNetwork"):
                        continue
                    allowed = {port["port"] for it in policies if it["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
                               for rule in it["spec"].get("ingress", []) for port in rule["ports"]}
                    # port 10011 is a provisioner's, which not every node has; 10259 is kube-scheduler's, which kubelet alone asks
                    self.assertLessEqual(allowed - {10011}, set(known.values()))
                    self.assertEqual(set(known.values()) - {known.get("probes"), 10259}, allowed & set(known.values()))
                    self.assertTrue(any(not it["spec"].get("ingress") and it["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
                                        for it in policies), "not closed")

    def test_every_port_for_metrics_is_scraped(self):
        for overlay in OVERLAYS:
            components = [name for name, overlays in table().items() if name.startswith("monitoring") and overlay in overlays]
            with self.subTest(overlay=overlay):
                after = render(overlay, *components)
                monitors = [it["spec"] for (kind, _), it in after.items() if kind == "PodMonitor"]
                for pod in pods(after):
                    name = pod["metadata"]["labels"]["app.kubernetes.io/name"]
                    scraped = {end["port"] for it in monitors if pod in selected(after, it["selector"])
                               for end in it["podMetricsEndpoints"]} & ports(pod).keys()
                    wanted = {"https"} if name.endswith("-webhook") else {port for port in ports(pod) if port.endswith("metrics")}
                    self.assertEqual(scraped, wanted, name)

    def test_the_dashboard_is_labelled(self):
        for it, _ in self.of_kind("ConfigMap"):
            self.assertEqual(("pmem-csi-dashboard", "1"), (it["metadata"]["name"], it["metadata"]["labels"]["grafana_dashboard"]))

    def test_permissions_are_for_accounts_that_are_there(self):
        for it, after in self.of_kind("RoleBinding"):
            for subject in it["subjects"]:
                self.assertIn((subject["kind"], subject["name"]), after)
                self.assertEqual(NAMESPACE, subject["namespace"])
            role = it["roleRef"]["name"]
            self.assertTrue(role.startswith("system:") or ("ClusterRole", role) in after, role)

    def test_every_account_of_a_pod_has_a_permission_of_openshift(self):
        for overlay in OVERLAYS:
            components = [name for name, overlays in table().items() if name.startswith("openshift/") and overlay in overlays]
            with self.subTest(overlay=overlay):
                after = render(overlay, *components)
                bound = {subject["name"] for (kind, name), it in after.items() if kind == "RoleBinding" and name.endswith("-scc")
                         for subject in it["subjects"]}
                self.assertEqual({pod["spec"]["serviceAccountName"] for pod in pods(after)}, bound)


if __name__ == "__main__":
    unittest.main()
