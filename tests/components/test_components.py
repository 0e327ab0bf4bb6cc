#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The components in manifests/ that docs/INSTALL.md lists, rendered with each kustomization that it names for them: what they add
belongs to something that is there.

usage: test_components.py [unittest options]        kubectl is in PATH
"""
import copy
import functools
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

TREE = pathlib.Path(__file__).resolve().parents[2]
OVERLAYS = {"lvm", "direct", "lvm-scheduler", "lvm-second-scheduler", "distributed", "fake", "try-out"}
# They run on any node, with devices that are files. What watches or restricts an installation is not listed for them.
TRIALS = {"fake", "try-out"}
# Parts that are listed; the other components are what overlays consist of, or have a chapter of their own.
ADDED = ("claim-release", "skip-hostmount", "snapshots", "group-snapshots", "disruption-budget", "topology-spread", "network-policies",
         "monitoring", "openshift", "kata", "kubevirt", "kubevirt-snapshots", "memory-preparation", "class-policy",
         "no-inline-volumes")
NAMESPACE = "storage"
# Of the API, also where the driver is called otherwise.
GROUP = "pmem-csi.intel.com"


def table():
    """{component: overlays}"""
    text = (TREE / "docs/INSTALL.md").read_text(encoding="utf-8")
    text = text[text.index("| component | for |"):]
    rows = re.findall(r"^\| `([^`]*)` \| ([^|]*) \|", text[:text.index("\n\n")], re.M)
    return {component: re.findall(r"`([^`]*)`", overlays) for component, overlays in rows}


@functools.lru_cache(maxsize=None)
def render(overlay, *components, namespace=NAMESPACE, patches=""):
    """Objects by kind and name; unless it is said which, in another namespace, which is to be followed."""
    build = TREE / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="components.", dir=build) as folder:
        paths = ", ".join(f"../../manifests/{component}" for component in components)
        (pathlib.Path(folder) / "kustomization.yaml").write_text(
            f"namespace: {namespace}\nresources: [../../manifests/{overlay}]\ncomponents: [{paths}]\n{patches}", encoding="utf-8")
        text = subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True).stdout
    return {(it["kind"], it["metadata"]["name"]): it for it in yaml.load_all(text, Loader=yaml.CSafeLoader)}


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
        return {(it["kind"], it["metadata"]["name"]): it for it in yaml.load_all(text, Loader=yaml.CSafeLoader)}

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

    def assert_only_the_controller_writes(self, objects, driver):
        """The account of the controller's driver may write the custom resources of this driver, and no other account may."""
        (token,) = [it["metadata"]["annotations"]["kubernetes.io/service-account.name"] for (kind, name), it in objects.items()
                    if kind == "Secret" and name.endswith("-controller-token")]
        rules = [rule for rule in objects["ClusterRole", token]["rules"] if rule["apiGroups"] == [GROUP]]
        self.assertEqual([(["pmemnodes"], ["get", "list", "watch", "create", "patch", "delete"]), (["pmemnodes/status"], ["patch"]),
                          (["pmemvolumes"], ["get", "list", "watch", "create", "patch", "delete"]),
                          (["pmemvolumes/status"], ["patch"])],
                         [(rule["resources"], rule["verbs"]) for rule in rules])
        (policy,) = [it for (kind, _), it in objects.items() if kind == "ValidatingAdmissionPolicy"]
        (binding,) = [it for (kind, _), it in objects.items() if kind == "ValidatingAdmissionPolicyBinding"]
        self.assertEqual((policy["metadata"]["name"], ["Deny"]), (binding["spec"]["policyName"], binding["spec"]["validationActions"]))
        (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
        self.assertEqual(([GROUP], ["pmemnodes", "pmemnodes/status", "pmemvolumes", "pmemvolumes/status"], ["CREATE", "UPDATE"]),
                         (rule["apiGroups"], rule["resources"], rule["operations"]))
        self.assertIn(f'object.spec.driver == "{driver}"', [it["expression"] for it in policy["spec"]["matchConditions"]])
        (validation,) = policy["spec"]["validations"]
        self.assertIn(f'.endsWith(":{token}")', validation["expression"])
        self.assertIn(f"of the driver {driver} are written only by the ServiceAccount {token}, ", validation["message"])

    def read_by(self, objects, account):
        """(resources, verbs) of the API group that the ClusterRoles of these objects give to the account."""
        bound = {it["roleRef"]["name"] for (kind, _), it in objects.items() if kind == "ClusterRoleBinding"
                 and account in [subject["name"] for subject in it["subjects"]]}
        return [(rule["resources"], rule["verbs"]) for name in bound for rule in objects.get(("ClusterRole", name), {"rules": []})["rules"]
                if rule["apiGroups"] == [GROUP]]

    def test_the_extender_reads_objects_and_has_no_certificate(self):
        """It needs nothing of the controllers but what they show of nodes and volumes."""
        extenders = 0
        for overlay in OVERLAYS:
            first = render(overlay)
            for objects in first, self.second(first):
                for pod in (it["spec"] for it in pods(objects)):
                    extender = [it for it in pod["containers"] if it["name"] == "scheduler-extender"]
                    if extender:
                        extenders += 1
                        self.assertEqual([(["pmemnodes", "pmemvolumes"], ["list", "watch"])],
                                         self.read_by(objects, pod["serviceAccountName"]))
                        self.assertFalse([it for it in pod.get("volumes", []) if "secret" in it])
                        self.assertFalse([it for it in extender[0]["args"] if it.startswith(("-registry", "-ca", "-cert", "-client"))])
        self.assertEqual(4, extenders)

    def test_controllers_bring_definitions_and_a_policy(self):
        kind = "CustomResourceDefinition"
        definitions = {(kind, f"{resource}.{GROUP}") for resource in ("pmemnodes", "pmemvolumes")}
        for overlay in OVERLAYS:
            first = render(overlay)
            with self.subTest(overlay=overlay):
                central = ("Deployment", "pmem-csi-controller") in first
                self.assertEqual(definitions if central else set(), {key for key in first if key[0] == kind})
                if not central:
                    self.assertFalse([it for key, it in first.items() if key[0] == "ClusterRole"
                                      for rule in it["rules"] if GROUP in rule["apiGroups"]])
                    continue
                self.assert_only_the_controller_writes(first, GROUP)
                second = self.second(first)
                self.assertEqual(len(first) - len(definitions), len(second))
                self.assertFalse([key for key in second if key[0] == kind])
                own = {key for key in first if key[0] in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")}
                self.assertFalse(own & second.keys())
                self.assert_only_the_controller_writes(second, "other.example.com")

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

    def assert_runs_where_labels_say(self, objects, own, by_feature):
        """The affinity of the nodes' pods and the flag of the controller say the same."""
        spec = objects["DaemonSet", next(name for kind, name in objects if kind == "DaemonSet" and name.endswith("-node"))]["spec"]["template"]["spec"]
        terms = [{(it["key"], it["operator"], *it.get("values", [])) for it in term["matchExpressions"]} for term in
                 spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]]
        feature = "feature.node.kubernetes.io/memory-nv.dax"
        self.assertEqual([{("storage", "In", own)}, *([{(feature, "In", "true"), ("storage", "DoesNotExist")}] if by_feature else [])], terms)
        flags = [flag.partition("=")[2] for (kind, name), it in objects.items() if kind == "Deployment" and name.endswith("-controller")
                 for flag in it["spec"]["template"]["spec"]["containers"][0]["args"] if flag.startswith("-nodeSelector=")]
        wanted = [{"storage": own}, {feature: "true", "storage": None}] if by_feature else {"storage": own}
        self.assertEqual([wanted] * len(flags), [json.loads(flag) for flag in flags])
        return len(flags)

    def test_nodes_of_the_driver(self):
        found = 0
        for overlay in OVERLAYS - TRIALS:
            with self.subTest(overlay=overlay):
                found += self.assert_runs_where_labels_say(render(overlay), "pmem", by_feature=True)
                # Nodes with the label of Node Feature Discovery alone are those of the first driver.
                found += self.assert_runs_where_labels_say(self.second(render(overlay)), "other", by_feature=False)
        self.assertEqual(8, found)
        spec = render("fake")["DaemonSet", "pmem-csi-node"]["spec"]["template"]["spec"]
        self.assertEqual(({"kubernetes.io/os": "linux"}, None), (spec["nodeSelector"], spec.get("affinity")))

    def test_memory_is_prepared_on_nodes_with_the_label_of_the_go_driver(self):
        """By the container that the driver's own nodes have with the component, which does not use the share of the pools."""
        for overlay in OVERLAYS:
            objects = render(overlay)
            with self.subTest(overlay=overlay):
                if overlay in TRIALS | {"direct"}:
                    self.assertNotIn(("DaemonSet", "pmem-csi-node-setup"), objects)
                    continue
                spec = objects["DaemonSet", "pmem-csi-node-setup"]["spec"]["template"]["spec"]
                self.assertEqual({"kubernetes.io/os": "linux", "pmem-csi.intel.com/convert-raw-namespaces": "force"}, spec["nodeSelector"])
                self.assertIs(False, spec["automountServiceAccountToken"])
                node = render(overlay, "memory-preparation")["DaemonSet", "pmem-csi-node"]["spec"]["template"]["spec"]
                wanted = {**node["initContainers"][0], "name": "prepare-memory"}
                wanted["args"] = ["-useforfsdax=0", *wanted["args"][1:]]
                self.assertEqual([wanted], spec["initContainers"])
                used = {it["name"] for it in wanted["volumeMounts"]}
                self.assertEqual({it["name"]: it for it in node["volumes"] if it["name"] in used}, {it["name"]: it for it in spec["volumes"]})
        second = self.second(render("lvm"))["DaemonSet", "other-node-setup"]["spec"]["template"]["spec"]
        self.assertEqual("force", second["nodeSelector"]["other.example.com/convert-raw-namespaces"])
        self.assertIn("-statePath=/var/lib/other.example.com", second["initContainers"][0]["args"])

    def test_the_table_is_complete(self):
        found = {str(path.parent.relative_to(TREE / "manifests")) for name in ADDED
                 for path in (TREE / "manifests" / name).rglob("kustomization.yaml")}
        self.assertEqual(found, table().keys())
        self.assertEqual(OVERLAYS, set().union(*table().values()))

    def added_arguments(self, before, after):
        """Of the one container that has more of them, of which nothing else is changed."""
        (key,) = [key for key in before if before[key] != after[key]]
        changed = copy.deepcopy(after[key])
        arguments = changed["spec"]["template"]["spec"]["containers"][0]["args"]
        known = before[key]["spec"]["template"]["spec"]["containers"][0]["args"]
        added, arguments[len(known):] = arguments[len(known):], []
        self.assertEqual(before[key], changed)
        return added

    def added_to_init(self, before, after):
        """Arguments and name of the one init container that has more of them, of which nothing else is changed."""
        key = "DaemonSet", "pmem-csi-node"
        self.assertEqual([key], [it for it in before if before[it] != after[it]])
        changed = copy.deepcopy(after[key])
        container = changed["spec"]["template"]["spec"]["initContainers"][0]
        known = before[key]["spec"]["template"]["spec"]["initContainers"][0]["args"]
        added, container["args"][len(known):] = container["args"][len(known):], []
        self.assertEqual(before[key], changed)
        return added, container["name"]

    def added_containers(self, before, after):
        """Names of those that the one changed object has behind its others; nothing else of it is changed."""
        (key,) = [key for key in before if before[key] != after[key]]
        changed = copy.deepcopy(after[key])
        containers = changed["spec"]["template"]["spec"]["containers"]
        known = len(before[key]["spec"]["template"]["spec"]["containers"])
        added, containers[known:] = containers[known:], []
        self.assertEqual(before[key], changed)
        return [it["name"] for it in added]

    def test_each_changes_something_and_takes_nothing_away(self):
        for component, before, new, after in self.each():
            self.assertFalse(before.keys() - after.keys(), component)
            if component == "claim-release":
                self.assertEqual(["-releaseClaims"], self.added_arguments(before, after))
            elif component == "skip-hostmount":
                self.assertEqual(["-skipHostmount"], self.added_arguments(before, after))
            elif component == "memory-preparation":
                self.assertEqual((["-initLabels", "-unlabelled=convert"], "pmem-ns-init"), self.added_to_init(before, after))
            elif component == "memory-preparation/direct":
                changed = copy.deepcopy(after["DaemonSet", "pmem-csi-node"])
                (container,) = changed["spec"]["template"]["spec"].pop("initContainers")
                self.assertEqual(before["DaemonSet", "pmem-csi-node"], changed)
                # as where there are pools, but without them
                wanted = copy.deepcopy(render("lvm", "memory-preparation")["DaemonSet", "pmem-csi-node"]["spec"]["template"]["spec"]["initContainers"][0])
                wanted["args"] = ["-useforfsdax=0", wanted["args"][1], "-initLabels"]
                self.assertEqual(wanted, container)
            elif component == "no-inline-volumes":
                self.assertEqual([("CSIDriver", "pmem-csi.intel.com")], [key for key in before if before[key] != after[key]])
            elif component in ("snapshots", "group-snapshots"):
                self.assertEqual(["external-snapshotter"], self.added_containers(before, after))
            elif component == "kata":
                self.assertEqual([("DaemonSet", "pmem-csi-node")], [key for key in before if before[key] != after[key]])
                self.assertEqual({"StorageClass"}, {kind for kind, _ in new})
            elif component.startswith("kubevirt"):
                self.assertEqual({"StorageProfile"}, {kind for kind, _ in new})
                for key in before:
                    annotations = dict(after[key]["metadata"].get("annotations", {}))
                    annotated = annotations.pop("cdi.kubevirt.io/clone-strategy", None)
                    self.assertEqual(("StorageProfile", key[1]) in new and key[0] == "StorageClass", annotated == "csi-clone", key)
                    without = {**after[key]["metadata"], "annotations": annotations} if annotations else {
                        name: value for name, value in after[key]["metadata"].items() if name != "annotations"}
                    self.assertEqual(before[key], {**after[key], "metadata": without})
            elif component != "topology-spread":
                self.assertTrue(new, component)
                self.assertEqual(before, {key: after[key] for key in before}, f"{component} changes what it is added to")
            for it in new.values():
                if it["kind"] not in ("ClusterRole", "ClusterRoleBinding", "SecurityContextConstraints", "StorageClass"):
                    self.assertEqual(NAMESPACE, it["metadata"].get("namespace"), it["metadata"]["name"])

    def test_groups_of_snapshots_are_a_feature_and_more_objects(self):
        """Of what the component for snapshots has, only the argument for the feature differs."""
        for overlay in table()["group-snapshots"]:
            before, after = render(overlay, "snapshots"), render(overlay, "group-snapshots")
            self.assertEqual({"ClusterRole", "ClusterRoleBinding", "VolumeGroupSnapshotClass"},
                             {kind for kind, _ in after.keys() - before.keys()})
            text = json.dumps({key[1]: after[key] for key in before if after[key] != before[key]})
            text = text.replace("CSIVolumeGroupSnapshot=true", "CSIVolumeGroupSnapshot=false")
            self.assertEqual({"pmem-csi-controller": before["Deployment", "pmem-csi-controller"]}, json.loads(text))

    def test_the_driver_sees_what_guests_are_known_by(self):
        """Folders that its sources name, at the host's paths; writable is the one in which it writes. Nothing of the pod is changed."""
        options = (TREE / "pmem-csi-driver/options.h").read_text(encoding="utf-8")
        entries = re.search(r'DEFAULT_DIRECT_VOLUMES_DIR "(.*)"', options).group(1)
        sockets = re.search(r"define SHIM_SOCKETS .*folders = \{(.*?)\}", (TREE / "common/guests/shim.h").read_text(encoding="utf-8")).group(1)
        wanted = [entries, *(re.sub(r"^(/run/\w+)(/sbs)?$", r"\1", path) for path in re.findall(r'"(.*?)"', sockets))]
        for overlay in table()["kata"]:
            before, after = (render(overlay, *more)["DaemonSet", "pmem-csi-node"] for more in ((), ("kata",)))
            pod = after["spec"]["template"]["spec"]
            known = before["spec"]["template"]["spec"]
            with self.subTest(overlay=overlay):
                self.assertEqual("pmem-driver", pod["containers"][0]["name"])
                self.assertIs(True, pod.pop("hostPID"))
                mounts, volumes = pod["containers"][0]["volumeMounts"], pod["volumes"]
                added = mounts[len(known["containers"][0]["volumeMounts"]):]
                paths = {it["name"]: it["hostPath"] for it in volumes[len(known["volumes"]):]}
                self.assertEqual({path: "DirectoryOrCreate" for path in wanted}, {it["path"]: it["type"] for it in paths.values()})
                self.assertEqual(wanted, [it["mountPath"] for it in added])
                self.assertEqual([paths[it["name"]]["path"] for it in added], wanted)
                # what is unmounted on the host does not stay here
                self.assertEqual([(None, None), (True, "HostToContainer"), (True, "HostToContainer")],
                                 [(it.get("readOnly"), it.get("mountPropagation")) for it in added])
                del mounts[-len(wanted):], volumes[-len(wanted):]
                self.assertEqual(before, after)

    def test_profiles_are_those_of_classes_for_disks(self):
        """CDI does not serve a profile whose class, or whose class of snapshots, is not there."""
        for overlay in table()["kubevirt-snapshots"]:
            with self.subTest(overlay=overlay):
                plain, after = render(overlay, "kubevirt"), render(overlay, "snapshots", "kubevirt-snapshots")
                classes = {name: it for (kind, name), it in after.items() if kind == "StorageClass"}
                profiles = {name: it for (kind, name), it in after.items() if kind == "StorageProfile"}
                # Each but those whose volumes have several copies, or are for guests of Kata Containers.
                wanted = {name for name, it in classes.items() if not {"persistencyModel", "kataContainers"} & it.get("parameters", {}).keys()}
                self.assertEqual(wanted, profiles.keys())
                for name, it in profiles.items():
                    self.assertIn(("VolumeSnapshotClass", it["spec"].pop("snapshotClass")), after)
                    self.assertEqual(plain["StorageProfile", name]["spec"], it["spec"])
                    self.assertEqual([(["ReadWriteOnce"], "Block"), (["ReadWriteOnce"], "Filesystem")],
                                     [(one["accessModes"], one["volumeMode"]) for one in it["spec"]["claimPropertySets"]])
                    is_xfs = classes[name].get("parameters", {}).get("csi.storage.k8s.io/fstype") == "xfs"
                    self.assertEqual(is_xfs, "cdi.kubevirt.io/minimumSupportedPvcSize" in it["metadata"].get("annotations", {}), name)

    def test_the_class_policy_knows_the_parameters_of_the_driver(self):
        """Those of CreateVolume in params.c, whose keys are literals or macros of params.h."""
        code = (TREE / "common/volume/params.c").read_text(encoding="utf-8")
        names = dict(re.findall(r'^#define (PARAMS_\w+) +"(\w+)"$', (TREE / "common/volume/params.h").read_text(encoding="utf-8"), re.M))
        entries = re.findall(r'^\t\{("\w+"|PARAMS_\w+), ([^,]*), parse_\w+\},$', code, re.M)
        known = {names.get(key, key.strip('"')) for key, origins in entries if re.search(r"\bAT_(ALL|CREATE)\b", origins)}
        self.assertGreater(len(known), 8)
        policy = render("lvm", "class-policy")["ValidatingAdmissionPolicy", "pmem-csi-class-policy"]
        (variable,) = [it["expression"] for it in policy["spec"]["variables"] if it["name"] == "known"]
        self.assertEqual(known, set(json.loads(variable)))
        document = (TREE / "docs/STORAGECLASSES.md").read_text(encoding="utf-8")
        for name in known:
            self.assertRegex(document, rf"(?m)^\| (`\w+`, )*`{name}`[ ,]")

    def test_without_inline_volumes(self):
        """The CSIDriver says so, and nothing else changes."""
        key = "CSIDriver", "pmem-csi.intel.com"
        for overlay in table()["no-inline-volumes"]:
            before, after = render(overlay), render(overlay, "no-inline-volumes")
            self.assertEqual(["Persistent"], after[key]["spec"]["volumeLifecycleModes"])
            self.assertEqual({it: before[it] for it in before if it != key}, {it: after[it] for it in after if it != key})
            self.assertEqual(["Persistent"], self.second(after)["CSIDriver", "other.example.com"]["spec"]["volumeLifecycleModes"])

    def test_openshift_lets_the_driver_see_processes(self):
        constraint = "SecurityContextConstraints", "pmem-csi-node"
        self.assertIs(False, render("lvm", "openshift/node")[constraint]["allowHostPID"])
        self.assertIs(True, render("lvm", "openshift/node", "kata")[constraint]["allowHostPID"])

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
        for overlay in OVERLAYS - {"try-out"}:
            components = [name for name, overlays in table().items()
                          if name.startswith(("network-policies/", "snapshots")) and overlay in overlays]
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
        for overlay in OVERLAYS - {"try-out"}:
            components = [name for name, overlays in table().items()
                          if name.startswith(("monitoring", "snapshots")) and overlay in overlays]
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

    def test_objects_are_left_out_by_the_patches_of_the_documents(self):
        """Those of docs/INSTALL.md, and their form with the targets that it and docs/UPGRADE.md name: nothing else changes."""
        text = (TREE / "docs/INSTALL.md").read_text(encoding="utf-8")
        patches = re.findall(r"^- target: .*\n  patch: .*\$patch: delete.*$", text, re.M)
        self.assertEqual(len(patches), 2)
        form = patches[0].partition("\n")[2]
        named = re.findall(r"target\s+`(\{kind: .*?\})`", text + (TREE / "docs/UPGRADE.md").read_text(encoding="utf-8"))
        self.assertEqual(len(named), 2)
        patches += [f"- target: {target.replace('NAME', 'pmem-csi-sc-ext4')}\n{form}" for target in named]
        targets = [it["target"] for it in yaml.safe_load("\n".join(patches))]
        met = set()
        for overlay in sorted(OVERLAYS):
            with self.subTest(overlay=overlay):
                left = render(overlay)
                for i, target in enumerate(targets):
                    gone = {key for key in left if re.fullmatch(target["kind"], key[0])
                            and re.fullmatch(target.get("name", ".*"), key[1])}
                    left = {key: it for key, it in left.items() if key not in gone}
                    met |= {i} if gone else set()
                # a target that is not there is no error
                self.assertEqual(render(overlay, patches="\n".join(["patches:"] + patches) + "\n"), left)
        self.assertEqual(met, set(range(len(targets))))

    def test_permissions_are_for_accounts_that_are_there(self):
        for it, after in self.of_kind("RoleBinding"):
            for subject in it["subjects"]:
                self.assertIn((subject["kind"], subject["name"]), after)
                self.assertEqual(NAMESPACE, subject["namespace"])
            role = it["roleRef"]["name"]
            self.assertTrue(role.startswith("system:") or ("ClusterRole", role) in after, role)

    def test_every_account_of_a_pod_has_a_permission_of_openshift(self):
        for overlay in OVERLAYS - {"try-out"}:
            components = [name for name, overlays in table().items() if name.startswith("openshift/") and overlay in overlays]
            with self.subTest(overlay=overlay):
                after = render(overlay, *components)
                bound = {subject["name"] for (kind, name), it in after.items() if kind == "RoleBinding" and name.endswith("-scc")
                         for subject in it["subjects"]}
                self.assertEqual({pod["spec"]["serviceAccountName"] for pod in pods(after)}, bound)


if __name__ == "__main__":
    unittest.main()
