/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <fcntl.h>

#include "base/mem.h"
#include "os/file.h"
#include "unit/net/core/tmpdir.h"

#define FILE_OF(cluster, user)                                                                               \
	"apiVersion: v1\nkind: Config\ncurrent-context: here\nclusters:\n- cluster:\n    server: "           \
	"https://other\n"                                                                                    \
	"  name: other\n- cluster: {" cluster                                                                \
	"}\n  name: c\ncontexts:\n- context: {cluster: other, user: u}\n"                                    \
	"  name: there\n- context: {cluster: c, user: u, namespace: ns}\n  name: here\nusers:\n- name: v\n"  \
	"  user: {exec: {command: x}}\n- name: u\n  user: {" user "}\n"
#define CLUSTER "server: \"https://10.0.0.1:6443\", certificate-authority: ca.pem"

static struct kube_config *c;

static void parses(const char *yaml)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(kube_config_parse(span_of(yaml), "/folder", &c, &err));
}

static void is_refused(const char *yaml, const char *why)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_FAILS(kube_config_parse(span_of(yaml), "/folder", &c, &err), ERR_INVALID_ARGUMENT, why);
}

START_TEST(the_current_context_counts)
{
	parses(FILE_OF(CLUSTER, "token: t, client-certificate: /abs/cert.pem, client-key: key.pem"));
	ck_assert_str_eq(c->host, "10.0.0.1");
	ck_assert_uint_eq(c->port, 6443);
	ck_assert_str_eq(c->path, "");
	ck_assert_str_eq(c->tls_name, "10.0.0.1");
	ck_assert_str_eq(c->namespace, "ns");
	ck_assert_str_eq(c->ca_file, "/folder/ca.pem");
	ck_assert_str_eq(c->cert_file, "/abs/cert.pem");
	ck_assert_str_eq(c->key_file, "/folder/key.pem");
	ck_assert_str_eq(c->token, "t");
	ck_assert_ptr_null(c->token_file);
	kube_config_free(c);
}
END_TEST

START_TEST(servers_have_names_ports_and_paths)
{
	static const struct {
		const char *cluster;
		const char *host;
		unsigned port;
		const char *path;
		const char *name;
	} cases[] = {
		{"server: https://api.example, certificate-authority: x", "api.example", 443, "",
			"api.example"},
		{"server: 'https://[fd00::1]:6443/', certificate-authority: x", "fd00::1", 6443, "",
			"fd00::1"},
		{"server: 'https://r:8443/k8s/c-1/', certificate-authority: x", "r", 8443, "/k8s/c-1", "r"},
		{"server: 'https://10.0.0.1', certificate-authority: x, tls-server-name: kubernetes",
			"10.0.0.1", 443, "", "kubernetes"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *yaml = x_asprintf(FILE_OF("%s", ""), cases[i].cluster);

		parses(yaml);
		ck_assert_str_eq(c->host, cases[i].host);
		ck_assert_uint_eq(c->port, cases[i].port);
		ck_assert_str_eq(c->path, cases[i].path);
		ck_assert_str_eq(c->tls_name, cases[i].name);
		kube_config_free(c);
	}
}
END_TEST

START_TEST(data_becomes_files_that_only_we_have)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf content = BUF_INIT(64);
	CLEANUP(free_charp) char *path = NULL;

	parses(FILE_OF(
		"server: https://x, certificate-authority: ignored, certificate-authority-data: Zm9vYmFy",
		""));
	ck_assert_str_ne(c->ca_file, "/folder/ignored");
	ASSERT_OK(file_read(AT_FDCWD, c->ca_file, &content, &err));
	ck_assert_str_eq(buf_str(&content), "foobar");
	path = x_strdup(c->ca_file);
	kube_config_free(c);
	ck_assert_int_lt(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_is_not_supported_is_refused_by_name)
{
	is_refused(FILE_OF(CLUSTER, "exec: {command: aws}"), "user \"u\": exec is not supported");
	is_refused(FILE_OF(CLUSTER, "auth-provider: {name: gcp}"), "auth-provider");
	is_refused(FILE_OF(CLUSTER, "username: x"), "username");
	is_refused(FILE_OF(CLUSTER, "password: x"), "password");
	is_refused(FILE_OF(CLUSTER, "as: admin"), "as is");
	is_refused(FILE_OF(CLUSTER, "as-groups: [x]"), "as-groups");
	is_refused(
		FILE_OF("server: https://x, insecure-skip-tls-verify: true", ""), "insecure-skip-tls-verify");
	is_refused(FILE_OF(CLUSTER ", proxy-url: http://p", ""), "proxy-url");
	parses(FILE_OF(
		CLUSTER ", insecure-skip-tls-verify: false, proxy-url: ''", "exec: null, username: ''"));
	kube_config_free(c);
}
END_TEST

START_TEST(what_is_missing_is_named)
{
	is_refused("", "current-context");
	is_refused("[]", "current-context");
	is_refused("current-context: x\n", "no context \"x\"");
	is_refused("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n",
		"does not name both a cluster and a user");
	is_refused("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n",
		"no cluster \"c\"");
	is_refused(FILE_OF("certificate-authority: x", ""), "server \"\"");
	is_refused(FILE_OF("server: http://x, certificate-authority: x", ""), "is not https");
	is_refused(FILE_OF("server: https://, certificate-authority: x", ""), "is not https");
	is_refused(FILE_OF("server: 'https://u@h', certificate-authority: x", ""), "is not https");
	is_refused(FILE_OF("server: 'https://h:0', certificate-authority: x", ""), "port 0");
	is_refused(FILE_OF("server: 'https://h:65536', certificate-authority: x", ""), "port 65536");
	is_refused(FILE_OF("server: 'https://h:1x', certificate-authority: x", ""), "1x");
	is_refused(FILE_OF("server: https://x", ""), "no certificate-authority");
	is_refused(FILE_OF("server: https://x, certificate-authority-data: '*'", ""),
		"certificate-authority-data");
	is_refused(FILE_OF(CLUSTER, "client-certificate: x"), "must be given together");
	is_refused("a: [", "YAML line");
}
END_TEST

static void write_file(const char *name, const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;

	ASSERT_OK(dir_open(tmpdir, false, 0, &dir_fd, &err));
	ASSERT_OK(file_write_atomic(dir_fd, name, span_of(text), 0600, &err));
}

START_TEST(a_file_is_loaded_and_named_in_errors)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = x_asprintf("%s/config", tmpdir);
	CLEANUP(free_charp) char *ca = x_asprintf("%s/ca.pem", tmpdir);

	ASSERT_FAILS(kube_config_load(path, &c, &err), ERR_NOT_FOUND, path);
	write_file("config", FILE_OF(CLUSTER, ""));
	ASSERT_OK(kube_config_load(path, &c, &err));
	ck_assert_str_eq(c->ca_file, ca);
	kube_config_free(c);
	write_file("config", "a: [");
	ASSERT_FAILS(kube_config_load(path, &c, &err), ERR_INVALID_ARGUMENT, path);
}
END_TEST

START_TEST(a_pod_knows_server_files_and_namespace)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *token = x_asprintf("%s/token", tmpdir);

	write_file("namespace", "pmem-csi\n");
	ASSERT_OK(kube_config_of_pod(tmpdir, "fd00::1", "443", &c, &err));
	ck_assert_str_eq(c->host, "fd00::1");
	ck_assert_str_eq(c->namespace, "pmem-csi");
	ck_assert_str_eq(c->token_file, token);
	kube_config_free(c);
	ASSERT_FAILS(kube_config_of_pod(tmpdir, NULL, "443", &c, &err), ERR_NOT_FOUND, "not in a pod");
	ASSERT_FAILS(kube_config_of_pod("/nowhere", "h", "443", &c, &err), ERR_INVALID_ARGUMENT, "namespace");
}
END_TEST

TMPDIR_MAIN("kube/config", the_current_context_counts, servers_have_names_ports_and_paths,
	data_becomes_files_that_only_we_have, what_is_not_supported_is_refused_by_name,
	what_is_missing_is_named, a_file_is_loaded_and_named_in_errors,
	a_pod_knows_server_files_and_namespace)
