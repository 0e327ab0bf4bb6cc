/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "os/file.h"

#define MAX_TOKEN_BYTES (16u << 10)
#define READ_AGAIN_NS   (60 * NS_PER_S)

static void forget(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

static void set(struct kube_token *t, const char *token)
{
	forget(t->authorization);
	t->authorization = x_asprintf("Bearer %s", token);
}

void kube_token_copy(struct kube_token *t, const struct kube_token *from)
{
	*t = *from;
	t->file = x_strdup(from->file);
	t->authorization = x_strdup(from->authorization);
}

void kube_token_done(struct kube_token *t)
{
	free(t->file);
	forget(t->authorization);
	*t = (struct kube_token){0};
}

bool kube_token_refused(struct kube_token *t)
{
	t->read = false;
	return t->file != NULL;
}

/* RFC 6750 section 2.1 */
static int check(const char *file, const char *token, struct error **err)
{
	if (!*token)
		return err_set(err, ERR_UNAUTHENTICATED, "%s: the token is empty", file);
	for (const char *p = token; *p; p++) {
		if (*p <= ' ' || *p > '~')
			return err_set(err, ERR_UNAUTHENTICATED, "%s: not a valid bearer token", file);
	}
	return 0;
}

int kube_token_init(struct kube_token *t, const char *token, const char *file, struct error **err)
{
	*t = (struct kube_token){0};
	if (token && !file) {
		if (check("token", token, err) < 0)
			return err_recode(err, ERR_INVALID_ARGUMENT);
		set(t, token);
	}
	t->file = x_strdup(file);
	return 0;
}

static int read_file(struct kube_token *t, struct error **err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(MAX_TOKEN_BYTES);
	CLEANUP(free_charp) char *token = NULL;
	size_t n;

	/* Growing would leave copies of it behind. */
	buf_reserve(&content, MAX_TOKEN_BYTES);
	if (file_read(AT_FDCWD, t->file, &content, err) < 0)
		return -1;
	n = content.len;
	while (n > 0 && strchr(" \t\r\n", content.data[n - 1]))
		n--;
	token = x_strndup(buf_str(&content), n);
	explicit_bzero(content.data, content.len);
	if (check(t->file, token, err) < 0)
		return -1;
	set(t, token);
	explicit_bzero(token, n);
	return 0;
}

int kube_token_get(struct kube_token *t, uint64_t now_ns, const char **ret_value, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;

	if (t->file && (!t->read || now_ns - t->read_ns >= READ_AGAIN_NS)) {
		t->read = true;
		t->read_ns = now_ns;
		if (read_file(t, &why) < 0 && !t->authorization) {
			t->read = false;
			return err_set(err, ERR_UNAUTHENTICATED, "%s", why->msg);
		}
	}
	*ret_value = t->authorization;
	return 0;
}
