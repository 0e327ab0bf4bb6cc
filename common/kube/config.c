/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "net/limits.h"
#include "net/tls/tls_files.h"
#include "os/file.h"
#include "os/yaml.h"

#define POD_FOLDER          "/var/run/secrets/kubernetes.io/serviceaccount"
#define MAX_NAMESPACE_BYTES 256
#define MAX_FILE_BYTES      (1u << 20)
/* Escapes make JSON longer: six bytes for one at most. */
#define MAX_JSON_BYTES (6 * MAX_FILE_BYTES)

void kube_config_free(struct kube_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(c->memory_fds); i++) {
		if (c->memory_fds[i] > 0)
			close(c->memory_fds[i]);
	}
	free(c->host);
	free(c->path);
	free(c->tls_name);
	free(c->ca_file);
	free(c->cert_file);
	free(c->key_file);
	if (c->token)
		explicit_bzero(c->token, strlen(c->token));
	free(c->token);
	free(c->token_file);
	free(c->namespace);
	free(c);
}

/* The paths of net/tls/tls.h are then ones that only this process has. */
static int keep_in_memory(struct kube_config *c, struct span content, char **ret_path, struct error **err)
{
	size_t slot = 0;
	int fd;

	while (slot < ARRAY_SIZE(c->memory_fds) && c->memory_fds[slot] > 0)
		slot++;
	assert(slot < ARRAY_SIZE(c->memory_fds));
	fd = memfd_create("kubeconfig", MFD_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "create a file in memory");
	c->memory_fds[slot] = fd;
	if (fchmod(fd, 0600) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "change the mode of a file in memory");
	free(*ret_path);
	*ret_path = x_asprintf("/proc/self/fd/%d", fd);
	return fd_write_all(fd, content, err);
}

static int set_pem(
	struct kube_config *c, const char *base64, char **ret_path, const char *what, struct error **err)
{
	CLEANUP(tls_secret_done) struct buf content = TLS_FILE_BUF;

	buf_reserve(&content, LIMIT_PEM_BYTES);
	if (base64_decode(base64, &content, err) < 0 ||
		keep_in_memory(c, buf_span(&content), ret_path, err) < 0)
		return err_wrap(err, "%s", what);
	return 0;
}

static int read_text(const char *folder, const char *name, char **ret, struct error **err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(MAX_NAMESPACE_BYTES);
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);

	if (file_read(AT_FDCWD, path, &content, err) < 0)
		return -1;
	*ret = x_strndup(buf_str(&content), strcspn(buf_str(&content), " \t\r\n"));
	return 0;
}

static int set_place(struct kube_config *c, const char *host, const char *port, struct error **err)
{
	uint32_t number;

	if (parse_u32(port, &number, err) < 0)
		return -1;
	if (number == 0 || number > UINT16_MAX)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "port %s is not between 1 and %u", port, UINT16_MAX);
	c->host = x_strdup(host);
	c->tls_name = x_strdup(host);
	c->port = (uint16_t)number;
	return 0;
}

int kube_config_of_pod(
	const char *folder, const char *host, const char *port, struct kube_config **ret, struct error **err)
{
	CLEANUP(kube_config_freep) struct kube_config *c = x_calloc(1, sizeof(*c));

	if (str_empty(host) || str_empty(port))
		return err_set(err, ERR_NOT_FOUND,
			"not in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set");
	if (set_place(c, host, port, err) < 0)
		return err_wrap(err, "KUBERNETES_SERVICE_PORT");
	if (read_text(folder, "namespace", &c->namespace, err) < 0)
		return err_recode(err, ERR_INVALID_ARGUMENT);
	c->path = x_strdup("");
	c->ca_file = x_asprintf("%s/ca.crt", folder);
	c->token_file = x_asprintf("%s/token", folder);
	*ret = TAKE_PTR(c);
	return 0;
}

int kube_config_in_cluster(struct kube_config **ret, struct error **err)
{
	return kube_config_of_pod(
		POD_FOLDER, getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"), ret, err);
}

/* "https://HOST[:PORT][/PATH]", HOST an address in brackets when it has colons. */
static int set_server(struct kube_config *c, const char *url, struct error **err)
{
	CLEANUP(free_charp) char *host = NULL;
	CLEANUP(free_charp) char *port = NULL;
	const char *at = url + strlen("https://");
	size_t n;

	if (!str_starts(url, "https://"))
		return err_set(err, ERR_INVALID_ARGUMENT, "server \"%.256s\" is not https://HOST:PORT", url);
	if (*at == '[') {
		n = strcspn(++at, "]/?#@");
		host = x_strndup(at, n);
		at += n + (at[n] == ']');
	} else {
		n = strcspn(at, ":/?#@[]");
		host = x_strndup(at, n);
		at += n;
	}
	if (*at == ':') {
		n = strcspn(++at, "/?#@");
		port = x_strndup(at, n);
		at += n;
	}
	if (!*host || strpbrk(at, "?#@ ") || (*at && *at != '/'))
		return err_set(err, ERR_INVALID_ARGUMENT, "server \"%.256s\" is not https://HOST:PORT", url);
	if (set_place(c, host, port ? port : "443", err) < 0)
		return err_wrap(err, "server \"%.256s\"", url);
	n = strlen(at);
	c->path = x_strndup(at, n > 0 && at[n - 1] == '/' ? n - 1 : n);
	return 0;
}

/* A member of a cluster, context or user: where its text goes; or why it is refused when it is there. */
struct field {
	const char *key;
	char **text;
	bool refused;
};

struct entry {
	const char *list;   /* "clusters" */
	const char *body;   /* "cluster" */
	const char *wanted; /* name of the entry */
	struct field *fields;
	size_t n_fields;
	struct buf json; /* body of the entry at hand */
	char *name;      /* its name */
	bool found;
};

/* "false" and "" say the same as nothing. */
static int refuse_member(const struct entry *e, const char *key, struct json_reader *r, struct error **err)
{
	struct json_event ev;
	bool is_nothing;

	if (json_next(r, &ev, err) < 0)
		return -1;
	is_nothing =
		ev.type == JSON_NULL || (ev.type == JSON_STRING && (ev.len == 0 || str_eq(ev.text, "false")));
	if (!is_nothing)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s \"%.64s\": %s is not supported", e->body,
			e->wanted, key);
	return 0;
}

static int read_field(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct entry *e = user;

	for (size_t i = 0; i < e->n_fields; i++) {
		const struct field *f = &e->fields[i];

		if (!str_eq(f->key, key))
			continue;
		return f->refused ? refuse_member(e, f->key, r, err) : kube_read_text(r, f->text, err);
	}
	return json_skip_value(r, err);
}

/* The name comes behind the body mostly, so that the body is put aside. */
static int read_entry_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct json_writer w;
	struct entry *e = user;
	struct json_event ev;

	if (str_eq(key, "name"))
		return kube_read_text(r, &e->name, err);
	if (!str_eq(key, e->body))
		return json_skip_value(r, err);
	if (json_next(r, &ev, err) < 0)
		return -1;
	buf_reset(&e->json);
	w = JSON_WRITER(&e->json);
	return json_copy(r, &ev, &w, err);
}

static int read_entry(void *user, struct json_reader *r, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *body = NULL;
	struct entry *e = user;

	free(TAKE_PTR(e->name));
	buf_reset(&e->json);
	if (kube_read_members(r, read_entry_member, e, err) < 0)
		return -1;
	/* If several entries have the same name, the first one is used, as by kubectl. */
	if (e->found || !str_eq(e->name, e->wanted) || e->json.len == 0)
		return 0;
	e->found = true;
	body = json_reader_new(buf_span(&e->json));
	json_reader_be_strict(body);
	return kube_read_object(body, read_field, e, err);
}

static int read_lists(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct entry *e = user;

	if (str_eq(key, e->list))
		return kube_read_array(r, read_entry, e, err);
	return json_skip_value(r, err);
}

static int find_entry(struct span json, struct entry *e, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	int rv;

	e->json = BUF_INIT(MAX_JSON_BYTES);
	rv = kube_read_object(r, read_lists, e, err);
	tls_secret_done(&e->json);
	free(e->name);
	if (rv == 0 && !e->found)
		return err_set(err, ERR_INVALID_ARGUMENT, "no %s \"%.64s\"", e->body, e->wanted);
	return rv;
}

static int read_current(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "current-context"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

static int find_context(
	struct span json, char **ret_cluster, char **ret_user, char **ret_namespace, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	CLEANUP(free_charp) char *current = NULL;
	struct field fields[] = {
		{.key = "cluster", .text = ret_cluster},
		{.key = "user", .text = ret_user},
		{.key = "namespace", .text = ret_namespace},
	};
	struct entry e = {.list = "contexts", .body = "context", .fields = fields, .n_fields = 3};

	if (kube_read_object(r, read_current, &current, err) < 0)
		return -1;
	if (str_empty(current))
		return err_set(err, ERR_INVALID_ARGUMENT, "current-context is not set");
	e.wanted = current;
	if (find_entry(json, &e, err) < 0)
		return -1;
	if (str_empty(*ret_cluster) || str_empty(*ret_user))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"context \"%.64s\" does not name both a cluster and a user", current);
	return 0;
}

/* Relative paths begin at the file's folder. The data goes before the file, as with kubectl. */
static int settle_file(struct kube_config *c, const char *folder, char *data, const char *what, char **path,
	struct error **err)
{
	char *relative = *path;

	if (!str_empty(data))
		return set_pem(c, data, path, what, err);
	if (str_empty(relative)) {
		*path = NULL;
		free(relative);
	} else if (*relative != '/') {
		*path = x_asprintf("%s/%s", folder, relative);
		free(relative);
	}
	return 0;
}

static void forget(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
}

static int find_cluster(
	struct kube_config *c, struct span json, const char *name, const char *folder, struct error **err)
{
	CLEANUP(free_charp) char *server = NULL;
	CLEANUP(free_charp) char *ca_data = NULL;
	CLEANUP(free_charp) char *tls_name = NULL;
	struct field fields[] = {
		{.key = "server", .text = &server},
		{.key = "certificate-authority", .text = &c->ca_file},
		{.key = "certificate-authority-data", .text = &ca_data},
		{.key = "tls-server-name", .text = &tls_name},
		{.key = "insecure-skip-tls-verify", .refused = true},
		{.key = "proxy-url", .refused = true},
	};
	struct entry e = {.list = "clusters",
		.body = "cluster",
		.wanted = name,
		.fields = fields,
		.n_fields = ARRAY_SIZE(fields)};

	if (find_entry(json, &e, err) < 0)
		return -1;
	if (set_server(c, server ? server : "", err) < 0)
		return err_wrap(err, "cluster \"%.64s\"", name);
	if (settle_file(c, folder, ca_data, "certificate-authority-data", &c->ca_file, err) < 0)
		return -1;
	if (!c->ca_file)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "cluster \"%.64s\": no certificate-authority", name);
	if (!str_empty(tls_name)) {
		free(c->tls_name);
		c->tls_name = TAKE_PTR(tls_name);
	}
	return 0;
}

static int find_user(
	struct kube_config *c, struct span json, const char *name, const char *folder, struct error **err)
{
	CLEANUP(forget) char *key_data = NULL;
	CLEANUP(free_charp) char *cert_data = NULL;
	struct field fields[] = {
		{.key = "client-certificate", .text = &c->cert_file},
		{.key = "client-certificate-data", .text = &cert_data},
		{.key = "client-key", .text = &c->key_file},
		{.key = "client-key-data", .text = &key_data},
		{.key = "token", .text = &c->token},
		{.key = "tokenFile", .text = &c->token_file},
		{.key = "exec", .refused = true},
		{.key = "auth-provider", .refused = true},
		{.key = "username", .refused = true},
		{.key = "password", .refused = true},
		{.key = "as", .refused = true},
		{.key = "as-uid", .refused = true},
		{.key = "as-groups", .refused = true},
		{.key = "as-user-extra", .refused = true},
	};
	struct entry e = {.list = "users",
		.body = "user",
		.wanted = name,
		.fields = fields,
		.n_fields = ARRAY_SIZE(fields)};

	if (find_entry(json, &e, err) < 0 ||
		settle_file(c, folder, cert_data, "client-certificate-data", &c->cert_file, err) < 0 ||
		settle_file(c, folder, key_data, "client-key-data", &c->key_file, err) < 0 ||
		settle_file(c, folder, NULL, "tokenFile", &c->token_file, err) < 0)
		return -1;
	if (!c->cert_file != !c->key_file)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"user \"%.64s\": a certificate and its key must be given together", name);
	return 0;
}

int kube_config_parse(struct span yaml, const char *folder, struct kube_config **ret, struct error **err)
{
	CLEANUP(kube_config_freep) struct kube_config *c = x_calloc(1, sizeof(*c));
	CLEANUP(tls_secret_done) struct buf json = BUF_INIT(MAX_JSON_BYTES);
	CLEANUP(free_charp) char *cluster = NULL;
	CLEANUP(free_charp) char *user = NULL;

	if (yaml_to_json(yaml, &json, err) < 0 ||
		find_context(buf_span(&json), &cluster, &user, &c->namespace, err) < 0 ||
		find_cluster(c, buf_span(&json), cluster, folder, err) < 0 ||
		find_user(c, buf_span(&json), user, folder, err) < 0)
		return -1;
	if (str_empty(c->namespace)) {
		free(c->namespace);
		c->namespace = x_strdup("default");
	}
	*ret = TAKE_PTR(c);
	return 0;
}

int kube_config_load(const char *path, struct kube_config **ret, struct error **err)
{
	CLEANUP(tls_secret_done) struct buf yaml = BUF_INIT(MAX_FILE_BYTES);
	const char *slash = strrchr(path, '/');
	CLEANUP(free_charp) char *folder = slash ? x_strndup(path, (size_t)(slash - path)) : x_strdup(".");

	if (file_read(AT_FDCWD, path, &yaml, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			err_recode(err, ERR_INVALID_ARGUMENT);
		return err_wrap(err, "kubeconfig");
	}
	if (kube_config_parse(buf_span(&yaml), folder, ret, err) < 0)
		return err_wrap(err, "kubeconfig %s", path);
	return 0;
}

int kube_config_find(struct kube_config **ret, struct error **err)
{
	const char *path = getenv("KUBECONFIG");

	return str_empty(path) ? kube_config_in_cluster(ret, err) : kube_config_load(path, ret, err);
}
