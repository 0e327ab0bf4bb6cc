/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/limits.h"
#include "net/tls/tls_context.h"
#include "os/file.h"
#include "tls_pair.h"

/* The files of a server in a folder of the test's own, laid out as Kubernetes lays out a secret: names are
 * symlinks into "..data", a symlink to a folder. */
struct volume {
	char *dir;
	unsigned versions;
	char *ca;
	char *cert;
	char *key;
	struct tls_context *context;
	uint64_t now_ns;
	char *log; /* what goes to stderr */
};

static void copy(const char *from, const char *to, mode_t mode)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf content = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(free_charp) char *source = certs_path(from);
	CLEANUP(fd_closep) int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	ASSERT_OK(file_read(AT_FDCWD, source, &content, &err));
	ASSERT_OK(fd_write_all(fd, buf_span(&content), &err));
}

static void fill(const char *dir, const char *cert, const char *key)
{
	CLEANUP(free_charp) char *ca_path = x_asprintf("%s/ca.crt", dir);
	CLEANUP(free_charp) char *cert_path = x_asprintf("%s/tls.crt", dir);
	CLEANUP(free_charp) char *key_path = x_asprintf("%s/tls.key", dir);

	copy("own/ca.pem", ca_path, 0644);
	copy(cert, cert_path, 0644);
	copy(key, key_path, 0600);
}

/* As kubelet does it: a new folder, and a rename of a symlink to it (pkg/volume/util/atomic_writer.go). */
static void volume_write(struct volume *v, const char *cert, const char *key)
{
	CLEANUP(free_charp) char *name = x_asprintf("..version_%u", v->versions++);
	CLEANUP(free_charp) char *dir = x_asprintf("%s/%s", v->dir, name);
	CLEANUP(free_charp) char *temporary = x_asprintf("%s/..data_tmp", v->dir);
	CLEANUP(free_charp) char *data = x_asprintf("%s/..data", v->dir);

	ck_assert_int_eq(mkdir(dir, 0700), 0);
	fill(dir, cert, key);
	ck_assert_int_eq(symlink(name, temporary), 0);
	ck_assert_int_eq(rename(temporary, data), 0);
}

static char *volume_link(struct volume *v, const char *name)
{
	char *path = x_asprintf("%s/%s", v->dir, name);
	CLEANUP(free_charp) char *target = x_asprintf("..data/%s", name);

	ck_assert_int_eq(symlink(target, path), 0);
	return path;
}

static struct tls_config volume_config(const struct volume *v)
{
	return (struct tls_config){.role = TLS_SERVER,
		.ca_file = v->ca,
		.cert_file = v->cert,
		.key_file = v->key,
		.strict_keys = true};
}

static void volume_init(struct volume *v)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char dir[] = "/tmp/pmem-test-XXXXXX";
	struct tls_config config;

	*v = (struct volume){.dir = x_strdup(mkdtemp(dir)), .now_ns = clock_ns()};
	volume_write(v, "own/pmem-registry.pem", "own/pmem-registry-key.pem");
	v->ca = volume_link(v, "ca.crt");
	v->cert = volume_link(v, "tls.crt");
	v->key = volume_link(v, "tls.key");
	v->log = x_asprintf("%s/log", v->dir);
	config = volume_config(v);
	ASSERT_OK(tls_context_new(&config, &v->context, &err));
}

static void volume_done(struct volume *v)
{
	tls_context_unref(v->context);
	certs_remove(v->dir);
	free(v->dir);
	free(v->ca);
	free(v->cert);
	free(v->key);
	free(v->log);
}

/* Lets @ns pass and looks. Return: whether other certificates are in force than before. */
static bool volume_look(struct volume *v, uint64_t ns)
{
	CLEANUP(tls_creds_unrefp) struct tls_creds *before = tls_context_creds(v->context, v->now_ns);

	v->now_ns += ns;
	CLEANUP(tls_creds_unrefp) struct tls_creds *after = tls_context_creds(v->context, v->now_ns);
	return before != after;
}

/* The context begins to look a moment after the test has read the clock. */
#define DUE_NS (2 * TLS_LOOK_NS)

static void check_server_name(struct volume *v, const char *name)
{
	CLEANUP(tls_context_unrefp)
	struct tls_context *client = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller"});
	CLEANUP(tls_pair_done) struct tls_pair p;

	tls_pair_init(&p, client, v->context, name);
	tls_pair_open(&p);
}

START_TEST(a_swapped_volume_is_seen)
{
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	check_server_name(&v, "pmem-registry");
	ck_assert(!volume_look(&v, DUE_NS));
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert(volume_look(&v, DUE_NS));
	ck_assert(!volume_look(&v, DUE_NS));
	check_server_name(&v, "pmem-evil");
}
END_TEST

START_TEST(files_are_looked_at_once_per_second_at_most)
{
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	ck_assert(!volume_look(&v, DUE_NS));
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert(!volume_look(&v, TLS_LOOK_NS - 1));
	ck_assert(volume_look(&v, 1));
}
END_TEST

START_TEST(files_that_are_written_in_place_are_seen)
{
	CLEANUP(volume_done) struct volume v;
	CLEANUP(free_charp) char *data = NULL;

	volume_init(&v);
	data = x_asprintf("%s/..data", v.dir);
	fill(data, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert(volume_look(&v, DUE_NS));
	check_server_name(&v, "pmem-evil");
}
END_TEST

START_TEST(connections_keep_what_they_began_with)
{
	CLEANUP(tls_context_unrefp)
	struct tls_context *client = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller"});
	CLEANUP(buf_done) struct buf got = BUF_INIT(100);
	CLEANUP(tls_pair_done) struct tls_pair p;
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	tls_pair_init(&p, client, v.context, "pmem-registry");
	tls_end_step(&p.client, &p.server);
	tls_end_step(&p.server, &p.client);
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert(volume_look(&v, DUE_NS));
	tls_pair_open(&p);
	volume_write(&v, "own/pmem-registry.pem", "own/pmem-registry-key.pem");
	ck_assert(volume_look(&v, DUE_NS));
	tls_end_send(&p.client, &p.server, span_of("still"));
	tls_end_receive(&p.server, 10, &got);
	ck_assert_str_eq(buf_str(&got), "still");
}
END_TEST

/* While an authority is replaced, both are trusted. */
START_TEST(authorities_may_be_several)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf both = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(free_charp) char *other = certs_path("other/ca.pem");
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	ASSERT_OK(file_read(AT_FDCWD, v.ca, &both, &err));
	ASSERT_OK(file_read(AT_FDCWD, other, &both, &err));
	CLEANUP(fd_closep) int fd = open(v.ca, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ASSERT_OK(fd_write_all(fd, buf_span(&both), &err));
	ck_assert(volume_look(&v, DUE_NS));
	check_server_name(&v, "pmem-registry");

	CLEANUP(tls_context_unrefp)
	struct tls_context *client = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = "other/pmem-registry"});
	CLEANUP(tls_pair_done) struct tls_pair p;
	tls_pair_init(&p, client, v.context, "pmem-registry");
	tls_pair_open(&p);
}
END_TEST

/* Number of lines in the log that contain @text. */
static unsigned count_logged(const struct volume *v, const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf log = BUF_INIT(100000);
	unsigned n = 0;

	ASSERT_OK(file_read(AT_FDCWD, v->log, &log, &err));
	for (const char *at = strstr(buf_str(&log), text); at; at = strstr(at + 1, text))
		n++;
	return n;
}

static void log_to(const struct volume *v)
{
	CLEANUP(fd_closep) int fd = open(v->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
}

START_TEST(files_that_cannot_be_loaded_leave_the_old_ones_in_force_and_are_told_once)
{
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	log_to(&v);
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-registry-key.pem");
	for (unsigned i = 0; i < 5; i++)
		ck_assert(!volume_look(&v, DUE_NS));
	check_server_name(&v, "pmem-registry");
	ck_assert_uint_eq(count_logged(&v, "cannot be loaded"), 1);
	ck_assert_uint_eq(count_logged(&v, "tls.key: not the key of"), 1);
	volume_write(&v, "own/ca-key.pem", "own/pmem-registry-key.pem");
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert_uint_eq(count_logged(&v, "cannot be loaded"), 2);
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert(volume_look(&v, DUE_NS));
	ck_assert_uint_eq(count_logged(&v, "were loaded"), 1);
	check_server_name(&v, "pmem-evil");
}
END_TEST

START_TEST(files_that_vanish_leave_the_old_ones_in_force)
{
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	log_to(&v);
	ck_assert_int_eq(unlink(v.cert), 0);
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert_uint_eq(count_logged(&v, "No such file"), 1);
	check_server_name(&v, "pmem-registry");
	free(volume_link(&v, "tls.crt"));
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert_uint_eq(count_logged(&v, "TLS files"), 1);
	check_server_name(&v, "pmem-registry");
}
END_TEST

/* Nothing about the files changes when descriptors are available again. */
START_TEST(what_could_not_be_loaded_is_tried_again)
{
	CLEANUP(volume_done) struct volume v;
	struct rlimit usual, none;

	volume_init(&v);
	log_to(&v);
	volume_write(&v, "own/pmem-evil.pem", "own/pmem-evil-key.pem");
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = (struct rlimit){.rlim_cur = STDERR_FILENO + 1, .rlim_max = usual.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert(!volume_look(&v, DUE_NS));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	ck_assert_uint_eq(count_logged(&v, "Too many open files"), 1);
	ck_assert(volume_look(&v, DUE_NS));
	check_server_name(&v, "pmem-evil");
}
END_TEST

/* Asserts that tls_context_new() fails with the message @says if *@file, one of the paths in @v, is that of a
 * file with @content. */
static void check_bad(struct volume *v, char **file, struct span content, const char *says)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = x_asprintf("%s/bad", v->dir);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct tls_context *c = NULL;
	struct tls_config config;
	char *good = *file;

	ASSERT_OK(fd_write_all(fd, content, &err));
	*file = path;
	config = volume_config(v);
	ASSERT_FAILS(tls_context_new(&config, &c, &err), ERR_INVALID_ARGUMENT, says);
	ck_assert_ptr_null(c);
	*file = good;
}

START_TEST(malformed_files_are_named)
{
	const struct span half = span_of("-----BEGIN CERTIFICATE-----\nMIIB");
	CLEANUP(buf_done) struct buf large = BUF_INIT(LIMIT_PEM_BYTES + 1);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(volume_done) struct volume v;

	volume_init(&v);
	while (large.len <= LIMIT_PEM_BYTES)
		buf_addc(&large, '\n');
	char **files[] = {&v.ca, &v.cert, &v.key};
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		check_bad(&v, files[i], span_of(""), "/bad: empty");
		check_bad(&v, files[i], span_of("text"), "/bad: malformed");
		check_bad(&v, files[i], half, "/bad: malformed");
		check_bad(&v, files[i], buf_span(&large), "/bad: more than 262144 bytes");
	}
	large.max = large.len * 2;
	buf_reset(&large);
	ASSERT_OK(file_read(AT_FDCWD, v.ca, &large, &err));
	buf_adds(&large, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
	check_bad(&v, &v.ca, buf_span(&large), "/bad: 1 of its certificates are malformed");
}
END_TEST

/* Asserts that tls_context_new() fails with the message @says if @path takes the place of any one of the
 * files in @v. */
static void check_odd(struct volume *v, const char *path, const char *says)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct tls_context *c = NULL;

	for (unsigned i = 0; i < 3; i++) {
		struct tls_config config = volume_config(v);
		const char **file[] = {&config.ca_file, &config.cert_file, &config.key_file};
		*file[i] = path;
		ASSERT_FAILS(tls_context_new(&config, &c, &err), ERR_INVALID_ARGUMENT, says);
	}
}

START_TEST(what_is_no_file_is_named)
{
	CLEANUP(volume_done) struct volume v;
	CLEANUP(free_charp) char *fifo = NULL;

	volume_init(&v);
	fifo = x_asprintf("%s/fifo", v.dir);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	check_odd(&v, fifo, "/fifo: not a regular file");
	check_odd(&v, "/", "/: not a regular file");
	check_odd(&v, "/nowhere/tls.pem", "/nowhere/tls.pem: No such file");
}
END_TEST

START_TEST(a_key_that_everybody_may_read_is_refused_or_warned_of)
{
	CLEANUP(tls_context_unrefp) struct tls_context *c = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(volume_done) struct volume v;
	struct tls_config config;

	volume_init(&v);
	log_to(&v);
	config = volume_config(&v);
	ck_assert_int_eq(chmod(v.key, 0640), 0);
	ASSERT_OK(tls_context_new(&config, &c, &err));
	tls_context_unref(TAKE_PTR(c));
	ck_assert_int_eq(chmod(v.key, 0644), 0);
	ASSERT_FAILS(tls_context_new(&config, &c, &err), ERR_INVALID_ARGUMENT,
		"tls.key: everybody may read or write this key (mode 0644)");
	ck_assert_uint_eq(count_logged(&v, "everybody"), 0);
	config.strict_keys = false;
	ASSERT_OK(tls_context_new(&config, &c, &err));
	ck_assert_uint_eq(count_logged(&v, "everybody"), 1);
}
END_TEST

START_TEST(keys_of_another_certificate_or_curve_are_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct tls_context *c = NULL;
	CLEANUP(free_charp) char *cert = certs_path("own/pmem-registry.pem");
	CLEANUP(free_charp) char *other_key = certs_path("own/pmem-evil-key.pem");
	CLEANUP(free_charp) char *small = certs_path("own/small.pem");
	CLEANUP(free_charp) char *small_key = certs_path("own/small-key.pem");
	const struct tls_config another = {.role = TLS_SERVER, .cert_file = cert, .key_file = other_key};
	const struct tls_config curve = {.role = TLS_SERVER, .cert_file = small, .key_file = small_key};

	ASSERT_FAILS(tls_context_new(&another, &c, &err), ERR_INVALID_ARGUMENT,
		"pmem-evil-key.pem: not the key of");
	ASSERT_FAILS(tls_context_new(&curve, &c, &err), ERR_INVALID_ARGUMENT,
		"small-key.pem: a key of 224 bits is not accepted, only P-256");
}
END_TEST

START_TEST(configurations_without_sense_are_refused)
{
	static const char *const no_names[] = {NULL};
	static const char *const a_name[] = {"x", NULL};
	CLEANUP(error_freep) struct error *err = NULL;
	struct tls_context *c = NULL;
	const struct tls_config bad[] = {
		{.role = TLS_SERVER},
		{.role = TLS_SERVER, .ca_file = "ca"},
		{.role = TLS_SERVER, .cert_file = "cert"},
		{.role = TLS_SERVER, .key_file = "key"},
		{.role = TLS_SERVER, .cert_file = "cert", .key_file = "key", .peer_names = a_name},
		{.role = TLS_SERVER,
			.cert_file = "c",
			.key_file = "k",
			.ca_file = "ca",
			.peer_names = no_names},
		{.role = TLS_CLIENT},
		{.role = TLS_CLIENT, .cert_file = "cert", .key_file = "key"},
		{.role = TLS_CLIENT, .ca_file = "ca", .key_file = "key"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = !bad[i].cert_file == !bad[i].key_file ? "needs" : "must be given together";

		ASSERT_FAILS(tls_context_new(&bad[i], &c, &err), ERR_INVALID_ARGUMENT, why);
	}
}
END_TEST

CERTS_MAIN("tls_files", a_swapped_volume_is_seen, files_are_looked_at_once_per_second_at_most,
	files_that_are_written_in_place_are_seen, connections_keep_what_they_began_with,
	authorities_may_be_several, files_that_cannot_be_loaded_leave_the_old_ones_in_force_and_are_told_once,
	files_that_vanish_leave_the_old_ones_in_force, what_could_not_be_loaded_is_tried_again,
	malformed_files_are_named, what_is_no_file_is_named,
	a_key_that_everybody_may_read_is_refused_or_warned_of,
	keys_of_another_certificate_or_curve_are_refused, configurations_without_sense_are_refused)
