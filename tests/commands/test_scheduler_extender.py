# SPDX-License-Identifier: Apache-2.0
"""The command line of scheduler-extender: what is wrong with it is said in one line, and nothing is started.

usage: test_scheduler_extender.py SCHEDULER_EXTENDER [unittest options]
"""
import os
import subprocess
import sys
import unittest

PATIENCE_S = 120
EXTENDER = None
OK, FAILURE, USAGE = range(3)
PLAIN = "-insecureSchedulerListen=127.0.0.1:0"


class Options(unittest.TestCase):
    def run_it(self, *words, **env):
        own = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")}
        return subprocess.run([EXTENDER, *words], capture_output=True, text=True, timeout=PATIENCE_S, env=own | env)

    def refused(self, text, *words):
        run = self.run_it(*words)
        self.assertEqual((run.returncode, run.stdout), (USAGE, ""), run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("scheduler-extender: "), run.stderr)
        self.assertIn(text, run.stderr)

    def test_something_must_be_served(self):
        self.refused("nothing to serve: -schedulerListen, -insecureSchedulerListen or -webhookListen is needed")

    def test_what_is_no_flag_is_refused(self):
        self.refused("nonsense", PLAIN, "-nonsense")
        self.refused('unexpected argument "more"', PLAIN, "more")

    def test_values_are_checked(self):
        self.refused('-policy must be binpack or spread, not "most"', PLAIN, "-policy=most")
        self.refused('-drivername "" is not a valid name for a CSI driver', PLAIN, "-drivername=")
        self.refused('-drivername "a/b" is not a valid name for a CSI driver', PLAIN, "-drivername=a/b")
        self.refused("must not be 0", PLAIN, "-kube-api-qps=0")
        self.refused("must not be 0", PLAIN, "-kube-api-burst=0")
        self.refused("kube-api-qps", PLAIN, "-kube-api-qps=-1")
        self.refused("kube-api-burst", PLAIN, "-kube-api-burst=many")
        self.refused('-logging-format must be text or json, not "xml"', PLAIN, "-logging-format=xml")

    def test_https_needs_a_certificate_and_its_key(self):
        https = "-schedulerListen=127.0.0.1:0"
        self.refused("-schedulerListen needs -certFile and -keyFile", https)
        self.refused("-certFile and -keyFile can only be given together", https, "-certFile=c")
        self.refused("-certFile and -keyFile can only be given together", https, "-keyFile=k")

    def test_what_tls_needs_is_checked(self):
        self.refused("-clientCAFile needs -schedulerListen or -webhookListen", PLAIN, "-clientCAFile=ca")
        self.refused("-webhookListen needs -certFile and -keyFile", "-webhookListen=127.0.0.1:0")

    def test_what_the_webhooks_authority_needs_is_checked(self):
        webhook = ["-webhookListen=127.0.0.1:0", "-certFile=c", "-keyFile=k"]
        for flags in [[PLAIN], webhook, [PLAIN, "-certFile=c", "-keyFile=k", "-caFile=ca"]]:
            self.refused("-webhookConfiguration needs -webhookListen and -caFile", *flags, "-webhookConfiguration=a")
        for flag in "-webhookConfiguration=a/b", "-webhookConfiguration=..", "-webhookConfiguration=a -webhookService=", \
                "-webhookConfiguration=a -webhookService=A":
            self.refused("is not a valid name of an object", *webhook, "-caFile=ca", *flag.split())

    def test_schedulers_have_names(self):
        for names in "", ",", "a,", ",a", "a,,b":
            self.refused(f'-schedulerNames "{names}" has an empty name in it', PLAIN, f"-schedulerNames={names}")

    def test_help_names_all_flags(self):
        run = self.run_it("-help")
        self.assertEqual((run.returncode, run.stderr), (OK, ""))
        for flag in ("schedulerListen", "insecureSchedulerListen", "webhookListen", "webhookConfiguration", "webhookService", "schedulerNames", "clientCAFile", "drivername", "policy",
                     "registryEndpoint", "caFile", "certFile", "keyFile", "clientCertFile", "clientKeyFile",
                     "strictKeys", "insecure", "kube-api-qps", "kube-api-burst", "logging-format", "v", "version"):
            self.assertIn(f"-{flag}", run.stdout)

    def test_the_version_is_one_line(self):
        run = self.run_it("-version")
        self.assertEqual((run.returncode, run.stderr, run.stdout.count("\n")), (OK, "", 1))
        self.assertNotEqual(run.stdout, "\n")

    def test_without_kubernetes_it_ends(self):
        run = self.run_it(PLAIN)
        self.assertEqual((run.returncode, run.stdout), (FAILURE, ""))
        self.assertIn("Kubernetes", run.stderr)

    def test_flags_that_were_for_the_controllers_have_no_effect(self):
        run = self.run_it(PLAIN, "-registryEndpoint=tcp://192.0.2.1:10000", "-clientCertFile=c", "-clientKeyFile=k", "-insecure")
        self.assertEqual((run.returncode, run.stdout), (FAILURE, ""))
        for flag in "registryEndpoint", "clientCertFile", "clientKeyFile", "insecure":
            self.assertRegex(run.stderr, rf"no effect here flag={flag}\n")


if __name__ == "__main__":
    EXTENDER = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
