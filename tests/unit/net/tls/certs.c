/* SPDX-License-Identifier: Apache-2.0 */
#include "certs.h"

#include <ftw.h>
#include <stdio.h>

#include "base/mem.h"
#include "os/spawn.h"

/* Time limits that are long enough for the slowest sanitizer on a busy machine. */
#define TIMEOUT_S  120
#define TIMEOUT_MS 60000
#define MAX_ARGS   16

char certs_dir[] = "/tmp/pmem-certs-XXXXXX";

char *certs_path(const char *name)
{
	return x_asprintf("%s/%s", certs_dir, name);
}

void certs_make(const char *dir, const char *const *args)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = certs_path(dir);
	const char *argv[MAX_ARGS] = {MAKE_CERTS, "-o", path};

	for (size_t i = 0; args[i]; i++) {
		ck_assert_uint_lt(i + 4, MAX_ARGS);
		argv[i + 3] = args[i];
	}
	ASSERT_OK(spawn_check(argv, NULL, TIMEOUT_MS, &err));
}

static void make_all(void)
{
	ck_assert_ptr_nonnull(mkdtemp(certs_dir));
	certs_make("own",
		(const char *const[]){"pmem-registry", "pmem-node-controller", "node-b", "pmem-scheduler",
			"pmem-evil", "address=IP:127.0.0.1,IP:::1", "nameless=", NULL});
	certs_make("own", (const char *const[]){"-b", "20200101000000Z", "-e", "20210203040506Z",
				  "expired=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-b", "20210201040506Z", "-e", "20210204040506Z",
				  "short=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-b", "20450102030405Z", "-e", "20460101000000Z",
				  "future=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-a", "rsa:2048", "rsa=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-a", "P-224", "small=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-a", "P-384", "big=DNS:pmem-registry", NULL});
	certs_make("own", (const char *const[]){"-a", "P-521", "biggest=DNS:pmem-registry", NULL});
	certs_make("other", (const char *const[]){"-c", "Other CA", "pmem-registry", NULL});
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void certs_remove(const char *dir)
{
	nftw(dir, visit, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_all(void)
{
	certs_remove(certs_dir);
}

int certs_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	tcase_add_unchecked_fixture(tcase, make_all, remove_all);
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}

struct tls_context *certs_context(const struct certs_choice *choice)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *ca = NULL;
	CLEANUP(free_charp) char *cert = NULL;
	CLEANUP(free_charp) char *key = NULL;
	struct tls_context *c = NULL;

	if (choice->ca)
		ca = x_asprintf("%s/%s/ca.pem", certs_dir, choice->ca);
	if (choice->leaf) {
		cert = x_asprintf("%s/%s.pem", certs_dir, choice->leaf);
		key = x_asprintf("%s/%s-key.pem", certs_dir, choice->leaf);
	}
	const struct tls_config config = {
		.role = choice->role,
		.ca_file = ca,
		.cert_file = cert,
		.key_file = key,
		.alpn = choice->alpn,
		.peer_names = choice->peers,
		.strict_keys = true,
	};
	ASSERT_OK(tls_context_new(&config, &c, &err));
	return c;
}
