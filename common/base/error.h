/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - the one way in which a function says that it failed.
 *
 * A function that can fail returns int and takes `struct error **err` last. It returns 0, leaves *err NULL
 * and sets its ret_ outputs; or it returns -1, sets *err and leaves the outputs alone. err is never NULL and
 * *err is NULL on entry: both are asserted, so that no error is overwritten unseen. Codes are the canonical
 * gRPC codes, chosen where the meaning is known. Messages may quote peers and tools: what they hold that is
 * no text is replaced (str_clean()), so that each is one line of UTF-8. docs/ERRORS.md has the whole
 * contract.
 *
 * Threads: an error belongs to one owner at a time. Nothing here blocks.
 */
#pragma once

#include "base/cleanup.h"

enum err_code {
	ERR_CANCELLED = 1,
	ERR_UNKNOWN = 2,
	ERR_INVALID_ARGUMENT = 3,
	ERR_DEADLINE = 4,
	ERR_NOT_FOUND = 5,
	ERR_EXISTS = 6,
	ERR_PERMISSION = 7,
	ERR_EXHAUSTED = 8,
	ERR_PRECONDITION = 9,
	ERR_ABORTED = 10,
	ERR_RANGE = 11,
	ERR_UNIMPLEMENTED = 12,
	ERR_INTERNAL = 13,
	ERR_UNAVAILABLE = 14,
	ERR_UNAUTHENTICATED = 16,
};

struct error {
	enum err_code code;
	int os_errno; /* 0 when no system call was the cause */
	char *msg;    /* one line of UTF-8, outermost context first */
};

/**
 * err_set() - make a new error.
 * @err: output; *err must be NULL
 * @fmt: printf format of one line without a trailing newline
 *
 * Return: always -1, so that callers write `return err_set(...)`.
 */
int err_set(struct error **err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * err_set_errno() - make a new error from a failed system call; ": strerror" is appended to the message.
 * @err:      output; *err must be NULL
 * @os_errno: positive errno value
 * @fmt:      printf format
 *
 * Return: always -1.
 */
int err_set_errno(struct error **err, enum err_code code, int os_errno, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * err_wrap() - put context before the message ("context: message"); code and errno stay.
 * @err: an error that is set
 * @fmt: printf format of the context
 *
 * Return: always -1.
 */
int err_wrap(struct error **err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * err_recode() - give an error another code, where the caller knows better than the callee what a failure
 * means; message and errno stay.
 * @err: an error that is set
 *
 * Return: always -1.
 */
int err_recode(struct error **err, enum err_code code);

/* Shows the compiler that these four never return 0, so that it knows which variables are set after a
 * success. */
static inline int err_minus_one(int rv)
{
	(void)rv;
	return -1;
}
#define err_set(...)       err_minus_one(err_set(__VA_ARGS__))
#define err_set_errno(...) err_minus_one(err_set_errno(__VA_ARGS__))
#define err_wrap(...)      err_minus_one(err_wrap(__VA_ARGS__))
#define err_recode(...)    err_minus_one(err_recode(__VA_ARGS__))

/**
 * err_code_name() - canonical spelling of a code, such as "NOT_FOUND".
 * @code: any value
 *
 * Return: static string; "UNKNOWN" for values outside the list.
 */
const char *err_code_name(enum err_code code);

/**
 * error_free() - destroy an error.
 * @e: may be NULL
 */
void error_free(struct error *e);

/**
 * error_clear() - destroy *err and set it to NULL, to go on after a tolerated failure.
 * @err: never NULL
 */
void error_clear(struct error **err);

DEFINE_CLEANUP(struct error *, error_free);
