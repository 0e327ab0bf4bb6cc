/* SPDX-License-Identifier: Apache-2.0 */
/* Reads kubeconfig files. Source: client-go tools/clientcmd/api/v1/types.go. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/config_private.h"
#include "kube/read.h"
#include "net/tls/tls_files.h"
#include "os/file.h"
#include "os/yaml.h"

#define MAX_FILE_BYTES (1u << 20)
/* Escapes make JSON longer: six bytes for one at most. */
#define MAX_JSON_BYTES (6 * MAX_FILE_BYTES)

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
	/* As kubectl: the first of a name counts. */
	if (e->found || !str_eq(e->name, e->wanted) || e->json.len == 0)
		return 0;
	e->found = true;
	body = json_reader_new(buf_span(&e->json));
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
		return err_set(err, ERR_INVALID_ARGUMENT, "no current-context");
	e.wanted = current;
	if (find_entry(json, &e, err) < 0)
		return -1;
	if (str_empty(*ret_cluster) || str_empty(*ret_user))
		return err_set(err, ERR_INVALID_ARGUMENT, "context \"%.64s\" lacks cluster or user", current);
	return 0;
}

/* Relative paths begin at the file's folder. The data goes before the file, as with kubectl. */
static int settle_file(struct kube_config *c, const char *folder, char *data, const char *what, char **path,
	struct error **err)
{
	char *relative = *path;

	if (!str_empty(data))
		return kube_config_set_pem(c, data, path, what, err);
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
	if (kube_config_set_server(c, server ? server : "", err) < 0)
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
			"user \"%.64s\": a certificate needs its key, and a key its certificate", name);
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
