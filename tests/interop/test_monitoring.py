# SPDX-License-Identifier: Apache-2.0
"""What manifests/monitoring and docs/MONITORING.md say of metrics, against what running programs serve: each name is there, each
alert fires when it should and is silent otherwise, by Prometheus' own rules engine.

usage: test_monitoring.py BIN MAKE_CERTS SOURCE [unittest options]
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import h2  # of the stand-in for the API server
    import yaml
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-h2 python3-yaml")
    sys.exit(77)
if not shutil.which("promtool"):
    print("SKIP: no promtool; install prometheus")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 120
NAMES = "pmem-registry", "pmem-node-controller", "pmem-csi-webhook"
BIN = MAKE_CERTS = SOURCE = None

# Words of PromQL that are not metrics.
WORDS = {"by", "without", "and", "or", "unless", "on", "ignoring", "group_left", "group_right", "bool", "offset"}

# What Prometheus adds to each scrape.
OF_PROMETHEUS = {"up"}

# {alert: (minutes, series with which it fires, series with which it does not)}; of those with which it fires there may be a list
CAPACITY = 'pmem_amount_{}{{node="a"}}'
CASES = {
    "PmemCapacityLow": (20, {CAPACITY.format("available"): 5, CAPACITY.format("managed"): 100},
                        {CAPACITY.format("available"): 20, CAPACITY.format("managed"): 100,
                         'pmem_amount_available{node="none"}': 0, 'pmem_amount_managed{node="none"}': 0}),
    "PmemVolumesMissing": (10, {'pmem_volumes{phase="missing"}': 1}, {'pmem_volumes{phase="missing"}': 0, 'pmem_volumes{phase="ready"}': 9}),
    "PmemVolumesDamaged": (10, {'pmem_volumes{phase="damaged"}': 1}, {'pmem_volumes{phase="damaged"}': 0, 'pmem_volumes{phase="ready"}': 9}),
    "PmemMediaErrors": (5, {'pmem_volumes_unhealthy{reason="MediaError"}': 1},
                        {'pmem_volumes_unhealthy{reason="MediaError"}': 0, 'pmem_volumes_unhealthy{reason="FileSystemFull"}': 1}),
    "PmemDimmTrouble": (5, [{'pmem_dimm_problem{dimm="nmem0",problem="not_armed"}': 1},
                            {'pmem_volumes_unhealthy{reason="DirtyShutdown"}': 1}],
                        {'pmem_dimm_problem{dimm="nmem0",problem="not_armed"}': 0, 'pmem_volumes_unhealthy{reason="DirtyShutdown"}': 0,
                         'pmem_volumes_unhealthy{reason="MediaError"}': 1}),
    "PmemDevicesWithoutState": (35, {'pmem_volumes{phase="device-without-state"}': 1},
                                {'pmem_volumes{phase="device-without-state"}': 0, 'pmem_volumes{phase="ready"}': 9}),
    "PmemPoolsFailing": (20, {"pmem_pools_failing": 1}, {"pmem_pools_failing": 0}),
    "PmemMapSyncRefused": (20, {'pmem_pools{durability="fsync"}': 1}, {'pmem_pools{durability="fsync"}': 0, 'pmem_pools{durability="unknown"}': 2}),
    "PmemDevicesNotListed": (10, {"pmem_last_refresh_timestamp_seconds": 0}, {"pmem_last_refresh_timestamp_seconds": "0+60x{minutes}"}),
    # one controller that gets reports from the node is enough
    "PmemNodeSilent": (10, {'pmem_registry_age_seconds{node="a"}': 200},
                       {'pmem_registry_age_seconds{node="a",pod="1"}': 200, 'pmem_registry_age_seconds{node="a",pod="2"}': 10}),
    "PmemNotRegistered": (15, {"pmem_registry_registered": 0}, {"pmem_registry_registered": 1}),
    "PmemKubeletNotRegistered": (10, {"pmem_kubelet_registered": 0}, {"pmem_kubelet_registered": 1}),
    # replicas get a new authority at different times
    "PmemWebhookNotTrusted": (10, [{'pmem_webhook_trusted{pod="1"}': 0, 'pmem_webhook_trusted{pod="2"}': 0},
                                   {"pmem_webhook_trusted": "1 1 stale"}],
                              {'pmem_webhook_trusted{pod="1"}': 0, 'pmem_webhook_trusted{pod="2"}': 1}),
    "PmemNotReady": (10, {"pmem_ready": 0}, {"pmem_ready": 1}),
    "PmemNotAnswering": (15, {'up{namespace="a",pod="p"}': "1 0x14", 'pmem_ready{namespace="a",pod="p"}': "1 stale"},
                         {'up{namespace="a",pod="p"}': 1, 'pmem_ready{namespace="a",pod="p"}': 1,
                          'up{namespace="a",pod="foreign"}': 0, 'up{namespace="foreign",pod="p"}': 0}),
    "PmemNoLeader": (10, [{'pmem_leader{pod="1"}': 0, 'pmem_leader{pod="2"}': 0}, {"pmem_leader": "1 1 stale"}],
                     {'pmem_leader{pod="1"}': 0, 'pmem_leader{pod="2"}': "1x{minutes}", 'pmem_leader{pod="3"}': "1 stale"}),
    "PmemEraseBacklog": (65, {"pmem_erase_bytes_left": 1}, {"pmem_erase_bytes_left": " ".join(["1"] * 50 + ["0"] * 50)}),
    "PmemObjectsSkipped": (15, [{'pmem_kube_objects_skipped_total{pod="p",resource="pods"}': "0 0 1 1x14"},
                                {'pmem_kube_objects_skipped_total{pod="p",resource="pods"}': "1x14"}],
                           {'pmem_kube_objects_skipped_total{pod="p",resource="pods"}': 0}),
    "PmemCertificateExpiresSoon": (15, {"pmem_certificate_expiry_timestamp_seconds": 6 * 86400},
                                   {'pmem_certificate_expiry_timestamp_seconds{file="a"}': 9 * 86400,
                                    'pmem_certificate_expiry_timestamp_seconds{file="b"}': 60}),
    "PmemCertificateExpired": (15, {"pmem_certificate_expiry_timestamp_seconds": 60}, {"pmem_certificate_expiry_timestamp_seconds": 86400}),
}


def read(path):
    with open(f"{SOURCE}/{path}", encoding="utf-8") as file:
        return file.read()


def rules():
    return yaml.safe_load(read("manifests/monitoring/rules.yaml"))["spec"]


def alerts():
    return [rule for group in rules()["groups"] for rule in group["rules"]]


def dashboard_expressions():
    return [target["expr"] for panel in json.loads(read("manifests/monitoring/dashboard.json"))["panels"] for target in panel["targets"]]


def metrics_of(expression):
    """Names without a bracket behind them, but for labels and words of the language."""
    text = re.sub(r'"[^"]*"', "", expression)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", text)
    text = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", "", text)
    return {name for name in re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*\b(?!\s*\()", text) if name not in WORDS}


def promtool(*words, **files):
    """In a folder with these files."""
    with tempfile.TemporaryDirectory(prefix="monitoring.") as folder:
        for name, content in files.items():
            with open(f"{folder}/{name}.yml", "w", encoding="utf-8") as file:
                yaml.safe_dump(content, file)
        return subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, check=False)


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0.05)
    return found


class Names(unittest.TestCase):
    """A node, a controller and an extender that all have whom they look for."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="monitoring.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        subprocess.run([MAKE_CERTS, "-o", f"{cls.folder}/certs", *NAMES, "api=IP:127.0.0.1"], check=True, stdout=subprocess.DEVNULL)
        os.mkdir(f"{cls.folder}/registration")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            api = f"127.0.0.1:{free.getsockname()[1]}"
        cls.start("api", sys.executable, f"{HERE}/outsiders.py", "api", api, cls.cert("api"), cls.cert("api-key"), "n", "kept")
        cls.wait_for("api", "serving")
        with open(f"{cls.folder}/kubeconfig", "w", encoding="ascii") as file:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": f"https://{api}", "certificate-authority": cls.cert("ca")}}],
                       "users": [{"name": "u", "user": {"token": "t"}}]}, file)
        cls.start("controller", f"{BIN}/pmem-csi-driver", "-mode=controller", "-registryEndpoint=tcp://127.0.0.1:0",
                  f"-endpoint=unix://{cls.folder}/controller.sock", "-metricsListen=127.0.0.1:0", "-nodeAuthentication=role",
                  "-namespace=default", *cls.flags(NAMES[0]))
        cls.registry = cls.wait_for("controller", r"serving endpoint=tcp\S+ port=(\d+)")
        cls.start_node("n", "-metricsListen=127.0.0.1:0", f"-pluginRegistrationPath={cls.folder}/registration")
        cls.start("extender", f"{BIN}/scheduler-extender", "-insecureSchedulerListen=127.0.0.1:0",
                  "-webhookListen=127.0.0.1:0", "-webhookConfiguration=pmem-csi-hook", *cls.flags(NAMES[2]))
        cls.served = {}
        cls.ports = [cls.wait_for("n", r"serving metrics .*port=(\d+)"), cls.wait_for("controller", r"serving metrics .*port=(\d+)"),
                     cls.wait_for("extender", r" serving listen=\S+ port=(\d+) tls=none")]
        # the last ones come when a controller has answered, and when the log of the first files was read
        wait_for(lambda: {"pmem_registry_age_seconds", "pmem_registry_registered", "process_open_fds", "pmem_leader",
                          "pmem_certificate_expiry_timestamp_seconds", "pmem_last_refresh_timestamp_seconds"} <= cls.scrape())

    @classmethod
    def cert(cls, name):
        return f"{cls.folder}/certs/{name}.pem"

    @classmethod
    def flags(cls, name):
        return f"-caFile={cls.cert('ca')}", f"-certFile={cls.cert(name)}", f"-keyFile={cls.cert(name + '-key')}"

    @classmethod
    def start(cls, name, *words):
        with open(f"{cls.folder}/{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(words, stderr=log, env={**os.environ, "KUBECONFIG": f"{cls.folder}/kubeconfig"})
        cls.addClassCleanup(process.wait, PATIENCE_S)
        cls.addClassCleanup(process.terminate)
        return process

    @classmethod
    def start_node(cls, name, *more):
        return cls.start(name, f"{BIN}/pmem-csi-driver", "-mode=node", f"-nodeid={name}", "-deviceManager=fake", "-fakeRegionSize=64Mi",
                         f"-statePath={cls.folder}/state-{name}", f"-endpoint=unix://{cls.folder}/{name}.sock",
                         f"-registryEndpoint=tcp://127.0.0.1:{cls.registry}", "-controllerEndpoint=tcp://127.0.0.1:0",
                         *more, *cls.flags(NAMES[1]))

    @classmethod
    def wait_for(cls, name, pattern):
        def found():
            with open(f"{cls.folder}/{name}.log", encoding="utf-8") as log:
                return re.search(pattern, log.read())
        match = wait_for(found)
        return match.group(match.lastindex or 0)

    @staticmethod
    def metrics(port):
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    @classmethod
    def scrape(cls):
        """Adds {name: type}, those that a histogram consists of included. Returns the families."""
        families = {}
        for port in cls.ports:
            families.update(re.findall(r"^# TYPE (\S+) (\S+)$", cls.metrics(port), re.M))
        for name, kind in families.items():
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            cls.served.update({name + suffix: name for suffix in suffixes})
        return set(families)

    def assert_served(self, where, expressions):
        self.assertTrue(expressions)
        for expression in expressions:
            names = metrics_of(expression)
            self.assertTrue(names, f"{where} asks for nothing: {expression}")
            for name in names:
                self.assertIn(name, {*self.served, *OF_PROMETHEUS}, f"{where}: no program serves {name}, in: {expression}")

    def documented(self):
        """What the first column of the table names, braces expanded."""
        names = set()
        for row in re.findall(r"^\| (`.*?) \|", read("docs/MONITORING.md"), re.M):
            for name in re.findall(r"`([a-z_*{},]+)`", row):
                head, _, rest = name.partition("{")
                inner, _, tail = rest.partition("}")
                names.update(head + middle + tail for middle in inner.split(","))
        return names

    def test_a_wrong_name_is_found(self):
        with self.assertRaises(AssertionError):
            self.assert_served("a seeded rule", ["pmem_ready == 0", "min by (node) (pmem_redy) == 0"])

    def test_alerts_name_metrics_that_are_served(self):
        self.assert_served("rules.yaml", [alert["expr"] for alert in alerts()])

    def test_the_dashboard_names_metrics_that_are_served(self):
        self.assert_served("dashboard.json", dashboard_expressions())

    def test_the_document_names_all_metrics_that_are_served_and_no_others(self):
        families = set(self.served.values())
        documented = self.documented()
        self.assertGreater(len(documented), 30)
        for name in documented:
            if name.endswith("*"):
                self.assertTrue(any(family.startswith(name[:-1]) for family in families), name)
            else:
                self.assertIn(name, families, "docs/MONITORING.md")
        for family in families:
            self.assertTrue(family in documented or family.startswith("process_"), f"docs/MONITORING.md does not say what {family} is")

    def test_a_node_that_was_removed_has_no_age(self):
        def ages():
            return set(re.findall(r'^pmem_registry_age_seconds{node="(\w+)"}', self.metrics(self.ports[1]), re.M))
        stopped = [self.start_node(name) for name in ("kept", "removed")]
        wait_for(lambda: ages() == {"n", "kept", "removed"})
        for process in stopped:
            process.terminate()
        wait_for(lambda: 'pmem_nodes{state="gone"} 2\n' in self.metrics(self.ports[1]))
        wait_for(lambda: ages() == {"n", "kept"})

    def test_descriptions_name_metrics_that_are_served(self):
        for alert in alerts():
            for name in re.findall(r"pmem_\w+", alert["annotations"]["summary"] + alert["annotations"]["description"]):
                self.assertIn(name, self.served, alert["alert"])


class Alerts(unittest.TestCase):
    def test_rules_and_queries_are_promql(self):
        said = promtool("check", "rules", "rules.yml", rules=rules())
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        records = [{"record": f"query:{i}", "expr": expression.replace("$driver", "d")}
                   for i, expression in enumerate(dashboard_expressions())]
        said = promtool("check", "rules", "rules.yml", rules={"groups": [{"name": "dashboard", "rules": records}]})
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_each_alert_has_a_case(self):
        self.assertEqual({alert["alert"] for alert in alerts()}, set(CASES))

    @staticmethod
    def case(alert, series, minutes, fires):
        """Of a name: it fires after so many minutes, and not at the first moment."""
        def at(minute, value):
            query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
            return {"expr": query, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": value}]}
        values = [{"series": name, "values": str(value).format(minutes=minutes) if isinstance(value, str) else f"{value}x{minutes}"}
                  for name, value in series.items()]
        return {"interval": "1m", "input_series": values, "promql_expr_test": [at(0, 0), at(minutes, int(fires))]}

    def test_each_alert_fires_and_is_silent(self):
        for alert, (minutes, loud, quiet) in CASES.items():
            for series, fires in [*((series, True) for series in (loud if isinstance(loud, list) else [loud])), (quiet, False)]:
                said = promtool("test", "rules", "test.yml", rules=rules(), test={
                    "rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [self.case(alert, series, minutes, fires)]})
                self.assertEqual(said.returncode, 0, f"{alert} {'is silent' if fires else 'fires'}: {said.stdout}{said.stderr}")

    def test_an_expression_is_taken_apart(self):
        """The check of names finds a wrong one wherever it stands."""
        for expression, names in (("time() - a_b > 300", {"a_b"}), ('min by (x, node) (a{node!="c"}) > 1', {"a"}),
                                  ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[5m])))", {"a_bucket"}),
                                  ("a / (b > 0) < 0.1 and on (node) c", {"a", "b", "c"}), ("(a - time()) / 86400", {"a"})):
            self.assertEqual(metrics_of(expression), names)


if __name__ == "__main__":
    BIN, MAKE_CERTS, SOURCE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
