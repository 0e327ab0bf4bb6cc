/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/failure.h"

#include "base/mem.h"
#include "base/str.h"
#include "kube/read.h"

#define MAX_SHOWN_BYTES 512

static enum err_code code_of(const char *verb, unsigned status)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID_ARGUMENT;
	case 401:
		return ERR_UNAUTHENTICATED;
	case 403:
		return ERR_PERMISSION;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return str_eq(verb, "create") ? ERR_EXISTS : ERR_ABORTED;
	case 410:
		return ERR_RANGE;
	case 429:
		return ERR_UNAVAILABLE;
	default:
		return status >= 500 ? ERR_UNAVAILABLE : ERR_UNKNOWN;
	}
}

static int read_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "message"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

/* Return: caller frees. */
static char *message_of(struct span body)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	CLEANUP(error_freep) struct error *err = NULL;
	char *message = NULL;

	if (kube_read_object(r, read_member, &message, &err) == 0 && !str_empty(message))
		return message;
	free(message);
	return x_strndup(
		body.n > 0 ? (const char *)body.p : "", body.n < MAX_SHOWN_BYTES ? body.n : MAX_SHOWN_BYTES);
}

int kube_failure(const char *verb, const char *what, unsigned status, struct span body, struct error **err)
{
	CLEANUP(free_charp) char *message = message_of(body);

	return err_set(err, code_of(verb, status), "kube: %s %s: %u: %.*s", verb, what, status,
		MAX_SHOWN_BYTES, message);
}
