/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#undef err_set
#undef err_set_errno
#undef err_wrap
#undef err_recode

static int set(struct error **err, enum err_code code, int os_errno, char *msg)
{
	assert(err && !*err);
	str_clean(msg);
	*err = x_malloc(sizeof(**err));
	**err = (struct error){.code = code, .os_errno = os_errno, .msg = msg};
	return -1;
}

int err_set(struct error **err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *msg = x_vasprintf(fmt, ap);
	va_end(ap);
	return set(err, code, 0, msg);
}

int err_set_errno(struct error **err, enum err_code code, int os_errno, const char *fmt, ...)
{
	va_list ap;
	char text[128];

	va_start(ap, fmt);
	CLEANUP(free_charp) char *msg = x_vasprintf(fmt, ap);
	va_end(ap);
	return set(err, code, os_errno, x_asprintf("%s: %s", msg, strerror_r(os_errno, text, sizeof(text))));
}

int err_wrap(struct error **err, const char *fmt, ...)
{
	va_list ap;

	assert(err && *err);
	va_start(ap, fmt);
	CLEANUP(free_charp) char *context = x_vasprintf(fmt, ap);
	va_end(ap);
	CLEANUP(free_charp) char *inner = (*err)->msg;
	(*err)->msg = x_asprintf("%s: %s", context, inner);
	str_clean((*err)->msg);
	return -1;
}

int err_recode(struct error **err, enum err_code code)
{
	assert(err && *err);
	(*err)->code = code;
	return -1;
}

const char *err_code_name(enum err_code code)
{
	switch (code) {
	case ERR_CANCELLED:
		return "CANCELLED";
	case ERR_UNKNOWN:
		return "UNKNOWN";
	case ERR_INVALID_ARGUMENT:
		return "INVALID_ARGUMENT";
	case ERR_DEADLINE:
		return "DEADLINE_EXCEEDED";
	case ERR_NOT_FOUND:
		return "NOT_FOUND";
	case ERR_EXISTS:
		return "ALREADY_EXISTS";
	case ERR_PERMISSION:
		return "PERMISSION_DENIED";
	case ERR_EXHAUSTED:
		return "RESOURCE_EXHAUSTED";
	case ERR_PRECONDITION:
		return "FAILED_PRECONDITION";
	case ERR_ABORTED:
		return "ABORTED";
	case ERR_RANGE:
		return "OUT_OF_RANGE";
	case ERR_UNIMPLEMENTED:
		return "UNIMPLEMENTED";
	case ERR_INTERNAL:
		return "INTERNAL";
	case ERR_UNAVAILABLE:
		return "UNAVAILABLE";
	case ERR_UNAUTHENTICATED:
		return "UNAUTHENTICATED";
	}
	return "UNKNOWN";
}

void error_free(struct error *e)
{
	if (!e)
		return;
	free(e->msg);
	free(e);
}

void error_clear(struct error **err)
{
	error_free(TAKE_PTR(*err));
}
