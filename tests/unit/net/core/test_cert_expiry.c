/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/core/cert_expiry.h"
#include "net/limits.h"
#include "net/tls/tls.h"
#include "os/file.h"
#include "unit/net/tls/certs.h"

#define EXPIRED_S 1612325106 /* own/expired.pem, as certs.c has it made: 2021-02-03T04:05:06Z */
/* own/short.pem, which lives for three days */
#define SHORT_EXPIRES_S (EXPIRED_S + DAY_S)
#define HOUR_S          (60 * 60)
#define DAY_S           (24 * HOUR_S)

static int64_t now_s;

static int64_t fake_now_s(void)
{
	return now_s;
}

/* A watch of one file, and what goes to stderr meanwhile. */
struct rig {
	struct loop *loop;
	struct workers *workers;
	struct cert_expiry *watch;
	char *log;
};

static void rig_open(struct rig *r, const char *cert, const char *authority)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *const certs[] = {cert, cert, "", NULL};
	const char *const authorities[] = {authority, NULL};
	CLEANUP(fd_closep) int fd = -1;

	ASSERT_OK(loop_new(&r->loop, &err));
	r->workers = workers_new(1);
	const struct cert_expiry_config config = {.loop = r->loop,
		.workers = r->workers,
		.cert_files = cert ? certs : NULL,
		.ca_files = authority ? authorities : NULL,
		.now_s = fake_now_s};
	r->watch = cert_expiry_new(&config);
	r->log = certs_path("log");
	fd = open(r->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
}

static void rig_close(struct rig *r)
{
	workers_free(r->workers);
	cert_expiry_free(r->watch);
	loop_free(r->loop);
	free(r->log);
}

static unsigned count_logged(const struct rig *r, const char *text)
{
	unsigned n = 0;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf log = BUF_INIT(100000);

	ASSERT_OK(file_read(AT_FDCWD, r->log, &log, &err));
	for (const char *at = strstr(buf_str(&log), text); at; at = strstr(at + 1, text))
		n++;
	return n;
}

/* Return: how many lines a look at that time has added. */
static unsigned warned_at(struct rig *r, int64_t when_s)
{
	unsigned before = count_logged(r, "certificate ");

	now_s = when_s;
	cert_expiry_look(r->watch);
	return count_logged(r, "certificate ") - before;
}

static void join(const char *to, const char *one, const char *other)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *first = certs_path(one);
	CLEANUP(free_charp) char *second = certs_path(other);
	CLEANUP(buf_done) struct buf content = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(fd_closep) int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ASSERT_OK(file_read(AT_FDCWD, first, &content, &err));
	ASSERT_OK(file_read(AT_FDCWD, second, &content, &err));
	ASSERT_OK(fd_write_all(fd, buf_span(&content), &err));
}

START_TEST(of_a_chain_the_first_counts_and_of_authorities_the_last)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = certs_path("both.pem");
	CLEANUP(free_charp) char *missing = certs_path("missing.pem");
	struct tls_validity v = {0};

	join(path, "own/future.pem", "own/expired.pem");
	ASSERT_OK(tls_expiry(path, TLS_EXPIRY_CHAIN, &v, &err));
	ck_assert_int_eq(v.expires_s, EXPIRED_S);
	ck_assert_int_eq(v.begins_s, 1577836800); /* 2020-01-01T00:00:00Z */
	ASSERT_OK(tls_expiry(path, TLS_EXPIRY_AUTHORITIES, &v, &err));
	ck_assert_int_eq(v.expires_s, 2398377600); /* 2046-01-01T00:00:00Z */
	ck_assert_int_eq(tls_expiry(missing, TLS_EXPIRY_CHAIN, &v, &err), -1);
	ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(what_expires_soon_is_logged_once_a_day)
{
	CLEANUP(free_charp) char *path = certs_path("own/expired.pem");
	struct rig r;

	rig_open(&r, path, NULL);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - 15 * DAY_S), 0);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - 14 * DAY_S), 0);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - 13 * DAY_S), 1);
	ck_assert_uint_eq(count_logged(&r, "expires=2021-02-03T04:05:06Z days=13"), 1);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - 13 * DAY_S + HOUR_S), 0);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - 12 * DAY_S), 1);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S - HOUR_S), 1);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S), 1);
	ck_assert_uint_eq(count_logged(&r, "has expired"), 1);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S + HOUR_S), 0);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S + DAY_S), 1);
	rig_close(&r);
}
END_TEST

START_TEST(what_lives_shortly_is_logged_in_the_last_third)
{
	CLEANUP(free_charp) char *path = certs_path("own/short.pem");
	struct rig r;

	rig_open(&r, path, NULL);
	ck_assert_uint_eq(warned_at(&r, SHORT_EXPIRES_S - 3 * DAY_S), 0);
	ck_assert_uint_eq(warned_at(&r, SHORT_EXPIRES_S - DAY_S), 0);
	ck_assert_uint_eq(warned_at(&r, SHORT_EXPIRES_S - DAY_S + 1), 1);
	ck_assert_uint_eq(warned_at(&r, SHORT_EXPIRES_S - HOUR_S), 0);
	ck_assert_uint_eq(warned_at(&r, SHORT_EXPIRES_S), 1);
	ck_assert_uint_eq(count_logged(&r, "has expired"), 1);
	rig_close(&r);
}
END_TEST

START_TEST(a_file_that_is_replaced_is_seen)
{
	CLEANUP(free_charp) char *path = certs_path("replaced.pem");
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	const struct prometheus_label labels[] = {{"node", "n"}, {0}};
	struct rig r;

	join(path, "own/expired.pem", "own/expired.pem");
	rig_open(&r, path, NULL);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S + 1), 1);
	cert_expiry_metrics(r.watch, labels, &out);
	ck_assert_ptr_nonnull(
		strstr(buf_str(&out), "pmem_certificate_expiry_timestamp_seconds{node=\"n\",file="));
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "} 1612325106\n"));
	join(path, "own/future.pem", "own/future.pem");
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S + 2), 0);
	buf_reset(&out);
	cert_expiry_metrics(r.watch, labels, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "} 2398377600\n"));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_uint_eq(warned_at(&r, EXPIRED_S + 3), 0);
	buf_reset(&out);
	cert_expiry_metrics(r.watch, labels, &out);
	ck_assert_ptr_null(strstr(buf_str(&out), "} "));
	rig_close(&r);
}
END_TEST

static void stop(void *user)
{
	struct rig *r = user;

	if (count_logged(r, "has expired") > 0)
		loop_stop(r->loop);
}

START_TEST(it_is_looked_at_once_from_the_loop)
{
	CLEANUP(free_charp) char *path = certs_path("own/expired.pem");
	struct rig r;

	rig_open(&r, path, path);
	now_s = EXPIRED_S + 1;
	struct loop_timer *timer = loop_timer_new(r.loop, stop, &r);
	loop_timer_set(timer, 1, 10);
	loop_run(r.loop);
	loop_timer_close(timer);
	ck_assert_uint_eq(count_logged(&r, "has expired"), 1);
	rig_close(&r);
}
END_TEST

START_TEST(without_files_nothing_is_logged)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);
	struct rig r;

	rig_open(&r, NULL, NULL);
	cert_expiry_look(r.watch);
	cert_expiry_metrics(r.watch, NULL, &out);
	ck_assert_str_eq(buf_str(&out), "");
	rig_close(&r);
}
END_TEST

CERTS_MAIN("net/core/cert_expiry", of_a_chain_the_first_counts_and_of_authorities_the_last,
	what_expires_soon_is_logged_once_a_day, what_lives_shortly_is_logged_in_the_last_third,
	a_file_that_is_replaced_is_seen, it_is_looked_at_once_from_the_loop, without_files_nothing_is_logged)
