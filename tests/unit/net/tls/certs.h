/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certs.h - certificates for tests, made once per program by scripts/make-certs in a folder of its own.
 *
 * own/ has the leaves pmem-registry, pmem-node-controller, node-b, pmem-scheduler, pmem-evil; address
 * (127.0.0.1,
 * ::1), nameless, expired, future, rsa and big (P-384) (the last four are pmem-registry by name). other/ has
 * pmem-registry of another authority.
 */
#pragma once

#include "net/tls/tls.h"
#include "unit/unit.h"

/** the folder */
extern char certs_dir[];

/** certs_run() - run @n tests as the suite @name with the certificates there. Return: exit status of the test
 * program. */
int certs_run(const char *name, const TTest *const *tests, size_t n);

/** CERTS_MAIN() - as UNIT_MAIN(), for tests that need certificates. */
#define CERTS_MAIN(name, ...)                                                                                \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return certs_run((name), tests, ARRAY_SIZE(tests));                                          \
	}

/** certs_path() - path of @name in the folder, such as "own/ca.pem". Return: caller frees. */
char *certs_path(const char *name);

/** certs_make() - run make-certs for the subfolder @dir, whose absolute path goes first, with @args,
 * NULL-terminated. */
void certs_make(const char *dir, const char *const *args);

/** certs_remove() - remove folder @dir and what is in it. */
void certs_remove(const char *dir);

struct certs_choice {
	enum tls_role role;
	const char *ca;   /* folder of the authority, or NULL */
	const char *leaf; /* "own/pmem-registry", or NULL */
	const char *alpn;
	const char *const *peers; /* names of clients, or NULL */
};

/** certs_context() - a context of those files. Return: never NULL; tls_context_unref(). */
struct tls_context *certs_context(const struct certs_choice *choice);
