/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dax-check: whether a file has DAX, shown by a mapping with MAP_SYNC that is written and read.
 * Exit status: see usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "mapping.h"
#include "os/args.h"
#include "os/file.h"
#include "pattern.h"

#define PAGE_BYTES     4096
#define CHUNK_BYTES    (64U << 10)
#define MAX_SIZE_BYTES (1ULL << 40)

static const char usage[] =
	"usage: dax-check [flags] write|verify|refused|time FILE\n"
	"\n"
	"  write    write a pattern to FILE through a MAP_SYNC mapping, flush it from user space, and read "
	"it\n"
	"           back through read(2)\n"
	"  verify   compare FILE with the pattern, through such a mapping and through read(2)\n"
	"  refused  succeeds if the kernel refuses such a mapping (EOPNOTSUPP)\n"
	"  time     store to each cache line of such a mapping, each store durable before the next, and print "
	"how\n"
	"           many microseconds that takes once all pages are mapped\n"
	"\n"
	"Exit status: 0 it worked, 1 MAP_SYNC is not supported there, 2 anything else.";

struct options {
	uint64_t size_bytes;
	uint32_t seed;
	bool plain;
	bool huge;
	bool show_help;
	const char *command;
	const char *path;
};

static int plain_write(int fd, const struct options *o, struct error **err)
{
	uint64_t chunk[CHUNK_BYTES / sizeof(uint64_t)];

	for (uint64_t at = 0; at < o->size_bytes; at += CHUNK_BYTES) {
		size_t n = o->size_bytes - at < CHUNK_BYTES ? (size_t)(o->size_bytes - at) : CHUNK_BYTES;

		pattern_fill(o->seed, at, chunk, n);
		if (fd_write_all(fd, (struct span){(const uint8_t *)chunk, n}, err) < 0)
			return -1;
	}
	if (fsync(fd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "fsync");
	printf("wrote pattern %u by write(2) and fsync\n", o->seed);
	return 0;
}

static int plain_verify(int fd, const struct options *o, struct error **err)
{
	uint64_t chunk[CHUNK_BYTES / sizeof(uint64_t)];

	for (uint64_t at = 0; at < o->size_bytes;) {
		size_t n = o->size_bytes - at < CHUNK_BYTES ? (size_t)(o->size_bytes - at) : CHUNK_BYTES;
		ssize_t got = pread(fd, chunk, n, (off_t)at);

		if (got < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "read");
		if (got == 0 || got % (ssize_t)sizeof(uint64_t) != 0)
			return err_set(err, ERR_INTERNAL, "read ends within the pattern, after %llu bytes",
				(unsigned long long)at + (unsigned long long)got);
		if (pattern_check(o->seed, at, chunk, (size_t)got, err) < 0)
			return err_wrap(err, "read(2)");
		at += (uint64_t)got;
	}
	printf("read(2) gives pattern %u\n", o->seed);
	return 0;
}

static void print_faults(const struct options *o, unsigned long faults)
{
	char size[24];

	printf("%s took %lu page faults: %s\n", format_bytes(o->size_bytes, size), faults,
		faults < o->size_bytes / PAGE_BYTES ? "huge pages" : "no huge pages");
}

static int mapped_write(int fd, const struct options *o, struct error **err)
{
	CLEANUP(mapping_close) struct mapping m = {0};
	const char *how;

	if (mapping_open(fd, o->size_bytes, &m, err) < 0)
		return -1;
	pattern_fill(o->seed, 0, m.data, m.size_bytes);
	if (mapping_flush(&m, &how, err) < 0)
		return -1;
	printf("wrote pattern %u through a MAP_SYNC mapping, flushed by %s\n", o->seed, how);
	return 0;
}

static int mapped_verify(int fd, const struct options *o, struct error **err)
{
	CLEANUP(mapping_close) struct mapping m = {0};

	if (mapping_open(fd, o->size_bytes, &m, err) < 0)
		return -1;
	if (o->huge)
		print_faults(o, mapping_touch(&m));
	if (pattern_check(o->seed, 0, m.data, m.size_bytes, err) < 0)
		return err_wrap(err, "mapping");
	printf("a MAP_SYNC mapping shows pattern %u\n", o->seed);
	return 0;
}

static int run_write(int fd, const struct options *o, struct error **err)
{
	int failed = posix_fallocate(fd, 0, (off_t)o->size_bytes);

	if (failed)
		return err_set_errno(err, ERR_INTERNAL, failed, "allocate");
	if ((o->plain ? plain_write : mapped_write)(fd, o, err) < 0)
		return -1;
	return plain_verify(fd, o, err);
}

static int run_verify(int fd, const struct options *o, struct error **err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat");
	if ((uint64_t)st.st_size < o->size_bytes)
		return err_set(err, ERR_INTERNAL, "file has only %llu bytes", (unsigned long long)st.st_size);
	if (!o->plain && mapped_verify(fd, o, err) < 0)
		return -1;
	return plain_verify(fd, o, err);
}

static int run_refused(int fd, const struct options *o, struct error **err)
{
	CLEANUP(mapping_close) struct mapping m = {0};

	if (mapping_open(fd, o->size_bytes, &m, err) == 0)
		return err_set(err, ERR_INTERNAL, "mapping with MAP_SYNC was not refused");
	if ((*err)->code != ERR_UNIMPLEMENTED)
		return -1;
	printf("refused: %s\n", (*err)->msg);
	error_clear(err);
	return 0;
}

static int run_time(int fd, const struct options *o, struct error **err)
{
	CLEANUP(mapping_close) struct mapping m = {0};
	int failed = posix_fallocate(fd, 0, (off_t)o->size_bytes);

	if (failed)
		return err_set_errno(err, ERR_INTERNAL, failed, "allocate");
	if (mapping_open(fd, o->size_bytes, &m, err) < 0 || mapping_store_lines(&m, o->seed, err) < 0)
		return -1;
	uint64_t begun_ns = clock_ns();
	if (mapping_store_lines(&m, o->seed + 1, err) < 0)
		return -1;
	printf("%llu\n", (unsigned long long)((clock_ns() - begun_ns) / 1000));
	return 0;
}

static int parse(int argc, char **argv, struct options *o, struct error **err)
{
	CLEANUP(args_done) struct args args = {0};
	const struct opt opts[] = {
		{"size", OPT_SIZE, &o->size_bytes, "SIZE", "bytes to map, a multiple of 4Ki (default 4Mi)"},
		{"seed", OPT_U32, &o->seed, "N", "which pattern (default 1)"},
		{"plain", OPT_BOOL, &o->plain, NULL, "write, verify: no mapping, write(2) and read(2) only"},
		{"huge", OPT_BOOL, &o->huge, NULL, "verify: print whether the mapping has huge pages"},
		{"help", OPT_BOOL, &o->show_help, NULL, "print this help and exit"},
		{0},
	};

	if (args_parse(opts, argc, argv, &args, err) < 0)
		return -1;
	if (o->show_help) {
		CLEANUP(free_charp) char *help = args_help(usage, opts);
		fputs(help, stdout);
		return 0;
	}
	if (strv_len(args.rest) != 2)
		return err_set(err, ERR_INVALID_ARGUMENT, "needs a command and a file (-help)");
	if (o->size_bytes == 0 || o->size_bytes % PAGE_BYTES || o->size_bytes > MAX_SIZE_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "-size must be a multiple of 4Ki, at most 1Ti");
	o->command = args.rest[0];
	o->path = args.rest[1];
	return 0;
}

static int run(const struct options *o, struct error **err)
{
	static const struct {
		const char *name;
		int flags;
		int (*run)(int fd, const struct options *o, struct error **err);
	} commands[] = {
		{"write", O_RDWR | O_CREAT | O_TRUNC, run_write},
		{"verify", O_RDWR, run_verify},
		{"refused", O_RDWR | O_CREAT, run_refused},
		{"time", O_RDWR | O_CREAT, run_time},
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!str_eq(o->command, commands[i].name))
			continue;
		CLEANUP(fd_closep) int fd = open(o->path, commands[i].flags | O_CLOEXEC, 0600);
		if (fd < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "open");
		return commands[i].run(fd, o, err);
	}
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown command \"%s\" (-help)", o->command);
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct options o = {.size_bytes = 4U << 20, .seed = 1};

	if (parse(argc, argv, &o, &err) < 0) {
		fprintf(stderr, "dax-check: %s\n", err->msg);
		return 2;
	}
	if (o.show_help)
		return 0;
	if (run(&o, &err) == 0)
		return 0;
	fprintf(stderr, "dax-check: %s: %s\n", o.path ? o.path : "", err->msg);
	return err->code == ERR_UNIMPLEMENTED ? 1 : 2;
}
