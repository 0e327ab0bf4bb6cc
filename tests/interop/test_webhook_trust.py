# SPDX-License-Identifier: Apache-2.0
"""The webhook keeps its caBundle equal to its authority: scheduler-extender beside a stand-in for an API server, and a caller that
trusts only the authorities in the caBundle.

usage: test_webhook_trust.py SCHEDULER_EXTENDER MAKE_CERTS [unittest options]
"""
import base64
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import kube_hooks
except ImportError as missing:
    print(f"SKIP: {missing}; install python3-h2")
    sys.exit(77)

PATIENCE_S = 120
NAMESPACE, SERVICE, NAME = "storage", "pmem-csi-webhook", "pmem-csi-hook"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "1", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "default",
    "object": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], "schedulerName": "default-scheduler"}}}}
EXTENDER = MAKE_CERTS = None


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE_S} s")
        time.sleep(0.05)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def certificates(pem):
    return re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", pem, re.S)


class Secret:
    """A folder as kubelet keeps it: names are symlinks into "..data", which is replaced at once."""

    def __init__(self, path):
        self.path, self.versions = path, 0
        os.mkdir(path)
        for name in "ca.crt", "tls.crt", "tls.key":
            os.symlink(f"..data/{name}", f"{path}/{name}")

    def put(self, authorities, pair):
        self.versions += 1
        folder = f"..version{self.versions}"
        os.mkdir(f"{self.path}/{folder}")
        for name, text in (("ca.crt", "".join(authorities)), ("tls.crt", pair[0]), ("tls.key", pair[1])):
            with open(f"{self.path}/{folder}/{name}", "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
                file.write(text)
        os.symlink(folder, f"{self.path}/..new")
        os.rename(f"{self.path}/..new", f"{self.path}/..data")


class Webhook:
    def __init__(self, test, name, secret):
        self.test, self.secret, self.log = test, secret, f"{test.folder}/{name}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [EXTENDER, "-webhookListen=127.0.0.1:0", f"-webhookConfiguration={NAME}", f"-webhookService={SERVICE}",
                 f"-caFile={secret.path}/ca.crt", f"-certFile={secret.path}/tls.crt", f"-keyFile={secret.path}/tls.key"],
                env={"KUBECONFIG": test.kubeconfig}, stderr=log)
        test.addCleanup(self.stop)
        wait_for(lambda: re.search(r" serving listen=\S+ port=\d+", self.logged()))
        self.port = int(re.search(r" serving listen=\S+ port=(\d+)", self.logged()).group(1))

    def logged(self):
        return read(self.log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.test.assertEqual(self.process.wait(PATIENCE_S), 0, self.logged())

    def trusted(self):
        """What its metric says."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=ssl._create_unverified_context())
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return re.search(r"^pmem_webhook_trusted ([01])$", text, re.M).group(1) == "1"

    def review(self, bundle):
        """As an API server calls it: by the name of the Service, and trusting the caBundle alone."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.load_verify_locations(cadata=bundle)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_S, context=tls)
        tls.wrap_socket, wrap = lambda sock, server_hostname: wrap(sock, server_hostname=HOST), tls.wrap_socket
        try:
            connection.request("POST", "/pod/mutate", json.dumps(REVIEW), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


class Trust(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="webhook-trust.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for authority in "old", "new":
            subprocess.run([MAKE_CERTS, "-o", f"{self.folder}/{authority}", "-c", authority, f"hook=DNS:{HOST}", "api=IP:127.0.0.1"],
                           check=True, stdout=subprocess.DEVNULL)
        self.api = kube_hooks.ApiServer(f"{self.folder}/old/api.pem", f"{self.folder}/old/api-key.pem", NAME)
        self.addCleanup(self.api.stop)
        self.kubeconfig = f"{self.folder}/kubeconfig"
        with open(self.kubeconfig, "w", encoding="ascii") as file:
            json.dump({"current-context": "c", "contexts": [{"name": "c", "context": {
                "cluster": "c", "user": "u", "namespace": NAMESPACE}}],
                "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.api.port}",
                                                       "certificate-authority": f"{self.folder}/old/ca.pem"}}],
                "users": [{"name": "u", "user": {"token": "t"}}]}, file)

    def authority(self, name):
        return read(f"{self.folder}/{name}/ca.pem")

    def pair(self, name):
        return read(f"{self.folder}/{name}/hook.pem"), read(f"{self.folder}/{name}/hook-key.pem")

    def webhook(self, name="webhook"):
        secret = Secret(f"{self.folder}/{name}")
        secret.put([self.authority("old")], self.pair("old"))
        return Webhook(self, name, secret)

    def apply(self, **annotations):
        """As kubectl apply and helm upgrade do: without a caBundle."""
        self.api.put(lambda _: {"metadata": {"name": NAME, "annotations": annotations}, "webhooks": [
            {"name": "pods", "clientConfig": {"service": {"namespace": NAMESPACE, "name": SERVICE}}},
            {"name": "others", "clientConfig": {"service": {"namespace": "default", "name": SERVICE}}}]})

    def bundle(self):
        """PEM text, "" without one."""
        (ours, others) = self.api.get()["webhooks"]
        self.assertNotIn("caBundle", others["clientConfig"])
        return base64.b64decode(ours["clientConfig"].get("caBundle", "")).decode("ascii")

    def trusted(self):
        return sorted(certificates(self.bundle()))

    def wait_for_trust(self, *authorities):
        wanted = sorted(certificates("".join(map(self.authority, authorities))))
        wait_for(lambda: self.trusted() == wanted)

    def assert_called(self, webhook):
        status, review = webhook.review(self.bundle())
        self.assertEqual((status, review["response"]["allowed"]), (200, True))

    def test_an_empty_bundle_is_filled_and_put_back_after_each_reset(self):
        self.apply()
        webhook = self.webhook()
        for _ in range(3):
            self.wait_for_trust("old")
            self.assert_called(webhook)
            self.apply()
        self.api.put(lambda _: None)
        self.apply()
        self.wait_for_trust("old")

    def test_the_object_is_made_later_than_the_webhook(self):
        webhook = self.webhook()
        wait_for(lambda: "MutatingWebhookConfiguration does not exist" in webhook.logged())
        self.apply()
        self.wait_for_trust("old")
        self.assertEqual(webhook.logged().count("MutatingWebhookConfiguration does not exist"), 1)

    def test_the_authority_is_rotated_and_every_call_succeeds(self):
        """Two replicas, whose files change at different times, are called all the while with what the object says."""
        self.apply()
        webhooks = [self.webhook("first"), self.webhook("second")]
        self.wait_for_trust("old")
        calls, failures, done = [0], [], threading.Event()

        def call():
            while not done.wait(0.02):
                for webhook in webhooks:
                    calls[0] += 1
                    try:
                        self.assert_called(webhook)
                    except Exception as failure:  # also of a caBundle without certificates
                        failures.append(repr(failure))

        caller = threading.Thread(target=call)
        caller.start()
        self.addCleanup(caller.join)
        self.addCleanup(done.set)
        old, new = self.authority("old"), self.authority("new")
        # as docs/INSTALL.md says
        for authorities, pair in (([old, new], "old"), ([old, new], "new"), ([new], "new")):
            for webhook in webhooks:
                webhook.secret.put(authorities, self.pair(pair))
                # longer than between two looks at the file
                time.sleep(7)
                self.wait_for_trust("old", "new")
        done.set()
        caller.join()
        self.apply()
        self.assertEqual(failures, [])
        self.assertGreater(calls[0], 100)
        # what no file has any more is not added again
        self.wait_for_trust("new")
        self.assert_called(webhooks[0])

    def test_it_may_not_write(self):
        """Logged once and retried; the webhook serves."""
        self.api.refusal = 403
        self.apply()
        webhook = self.webhook()
        wait_for(lambda: self.api.patches >= 3)
        self.assertEqual(self.bundle(), "")
        self.assertEqual(webhook.logged().count("cannot be corrected"), 1)
        self.assertRegex(webhook.logged(), f"patch mutatingwebhookconfigurations {NAME}: 403")
        self.assertEqual(webhook.review(self.authority("old"))[0], 200)
        self.assertFalse(webhook.trusted())
        self.api.refusal = None
        self.wait_for_trust("old")
        wait_for(webhook.trusted)

    def test_the_api_server_goes_away(self):
        self.apply()
        webhook = self.webhook()
        self.wait_for_trust("old")
        self.api.stop()
        self.assertEqual(webhook.review(self.authority("old"))[0], 200)
        webhook.secret.put([self.authority("old"), self.authority("new")], self.pair("old"))
        time.sleep(7)
        self.api.start()
        self.wait_for_trust("old", "new")
        self.assert_called(webhook)

    def test_a_file_that_is_no_authority_changes_nothing(self):
        self.apply()
        webhook = self.webhook()
        self.wait_for_trust("old")
        good, pair = self.authority("old"), self.pair("old")
        for text in "", "nothing\n", good[:-100], good + pair[1], self.authority("new"):
            count = webhook.logged().count("authority cannot be used")
            webhook.secret.put([text], pair)
            wait_for(lambda: webhook.logged().count("authority cannot be used") > count)
            self.apply()
            self.wait_for_trust("old")
            self.assertNotIn("KEY", self.bundle())

    def test_what_cert_manager_injects_is_left_to_it(self):
        self.apply(**{"cert-manager.io/inject-ca-from": "storage/webhook"})
        webhook = self.webhook()
        wait_for(lambda: "left to an injector" in webhook.logged())
        time.sleep(7)
        self.assertEqual((self.bundle(), self.api.patches), ("", 0))
        self.assertEqual(webhook.logged().count("left to an injector"), 1)


if __name__ == "__main__":
    EXTENDER, MAKE_CERTS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main(verbosity=2)
