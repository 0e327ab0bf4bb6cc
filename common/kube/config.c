/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/config_private.h"
#include "net/limits.h"
#include "net/tls/tls_files.h"
#include "os/file.h"

#define POD_FOLDER          "/var/run/secrets/kubernetes.io/serviceaccount"
#define MAX_NAMESPACE_BYTES 256

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
	if (slot == ARRAY_SIZE(c->memory_fds))
		return err_set(err, ERR_INVALID_ARGUMENT, "more certificates than there can be");
	fd = memfd_create("kubeconfig", MFD_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "file in memory");
	c->memory_fds[slot] = fd;
	if (fchmod(fd, 0600) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "file in memory");
	free(*ret_path);
	*ret_path = x_asprintf("/proc/self/fd/%d", fd);
	return fd_write_all(fd, content, err);
}

int kube_config_set_pem(
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
		return err_set(err, ERR_INVALID_ARGUMENT, "port %s", port);
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
			"not in a pod of Kubernetes: KUBERNETES_SERVICE_HOST or _PORT is not set");
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
int kube_config_set_server(struct kube_config *c, const char *url, struct error **err)
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
