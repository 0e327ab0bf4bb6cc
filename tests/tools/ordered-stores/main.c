/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered-stores: a writer of which a copy shows whether it is of one moment.
 *
 * It stores 1, 2, 3 and so on into the first page of each of many files, in their order, each store durable
 * before the next one begins. Files that follow each other are in different folders, if there are several. At
 * any moment the numbers fall by at most one from the first file to the last, and at most once. A block
 * device has a page for each file instead, from its beginning to its end, which is written past the page
 * cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/args.h"

#define PAGE_BYTES 4096
#define N_FILES    40
#define FILE_BYTES (64U << 10)
/* So that a page that was never stored to is recognised. */
#define SALT 0x9e3779b97f4a7c15ULL

static const char usage[] =
	"usage: ordered-stores [flags] write|verify FOLDER...\n"
	"       ordered-stores -block write|verify DEVICE\n"
	"\n"
	"  write    store increasing numbers into files in the folders until SIGTERM comes, then print "
	"the last number\n"
	"           and the longest time between two stores in milliseconds\n"
	"  verify   check that the files show one moment of such a writer, and print its number\n"
	"\n"
	"Exit status: 0 it worked, 1 the files do not show one moment, 2 anything else.";

struct options {
	bool plain;
	bool block;
	bool show_help;
	const char *command;
	char *const *folders; /* in args */
	struct args args;
};

struct slot {
	uint64_t n;
	uint64_t check; /* stored after n */
};

struct file {
	int fd;
	off_t at;
	volatile struct slot *slot; /* NULL: written by pwrite(2) */
};

/* A page-aligned buffer, which O_DIRECT requires. */
static union {
	struct slot slot;
	char bytes[PAGE_BYTES];
} page_buffer __attribute__((aligned(PAGE_BYTES)));

static int open_device(const struct options *o, size_t i, struct file *ret, struct error **err)
{
	const char *path = o->folders[0];

	ret->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	off_t end = ret->fd < 0 ? -1 : lseek(ret->fd, 0, SEEK_END);
	if (end < (off_t)(N_FILES * PAGE_BYTES))
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	ret->at = (off_t)i * (end / N_FILES / PAGE_BYTES * PAGE_BYTES);
	return 0;
}

static int open_file(const struct options *o, size_t i, bool create, int *ret_fd, struct error **err)
{
	const char *folder = o->folders[i % strv_len(o->folders)];
	CLEANUP(free_charp) char *path = x_asprintf("%s/numbers-%zu", folder, i);

	*ret_fd = open(path, (create ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY) | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	return 0;
}

/* The page is a hole until the first store: its mapping is then writable, and the file system knows least of
 * it.
 */
static int make_file(const struct options *o, size_t i, struct file *ret, struct error **err)
{
	if (o->block)
		return open_device(o, i, ret, err);
	if (open_file(o, i, /* create= */ true, &ret->fd, err) < 0)
		return -1;
	if (ftruncate(ret->fd, FILE_BYTES) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "ftruncate");
	if (o->plain)
		return 0;
	void *page =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, ret->fd, 0);
	if (page == MAP_FAILED)
		return err_set_errno(err, ERR_INTERNAL, errno, "map with MAP_SYNC");
	ret->slot = page;
	return 0;
}

static int store_page(const struct file *f, const struct slot *s, struct error **err)
{
	page_buffer.slot = *s;
	if (pwrite(f->fd, &page_buffer, PAGE_BYTES, f->at) != PAGE_BYTES)
		return err_set_errno(err, ERR_INTERNAL, errno, "write");
	return 0;
}

static int store(const struct options *o, const struct file *f, uint64_t n, struct error **err)
{
	const struct slot s = {n, n ^ SALT};

	if (o->block)
		return store_page(f, &s, err);

	if (f->slot) {
		f->slot->n = s.n;
		f->slot->check = s.check;
		return 0;
	}
	if (pwrite(f->fd, &s, sizeof(s), 0) != sizeof(s) || fsync(f->fd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "write");
	return 0;
}

static bool is_to_end(int signals)
{
	struct pollfd p = {.fd = signals, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static int run_write(const struct options *o, struct error **err)
{
	struct file files[N_FILES];
	uint64_t longest_ns = 0;
	uint64_t n = 0;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	int signals = signalfd(-1, &end, SFD_CLOEXEC);
	for (size_t i = 0; i < N_FILES; i++) {
		files[i] = (struct file){.fd = -1};
		if (make_file(o, i, &files[i], err) < 0)
			return -1;
	}
	uint64_t last_ns = clock_ns();
	while (!is_to_end(signals)) {
		n++;
		for (size_t i = 0; i < N_FILES; i++) {
			if (store(o, &files[i], n, err) < 0)
				return -1;
			uint64_t now_ns = clock_ns();
			if (now_ns - last_ns > longest_ns)
				longest_ns = now_ns - last_ns;
			last_ns = now_ns;
		}
		if (n == 1) {
			puts("storing");
			fflush(stdout);
		}
	}
	printf("%" PRIu64 " %" PRIu64 "\n", n, (uint64_t)(longest_ns / NS_PER_MS));
	return 0;
}

static int read_slot(const struct options *o, size_t i, struct slot *ret, struct error **err)
{
	struct file f = {.fd = -1};
	int rc = o->block ? open_device(o, i, &f, err) : open_file(o, i, /* create= */ false, &f.fd, err);
	CLEANUP(fd_closep) int fd = f.fd;

	if (rc < 0)
		return -1;
	if (pread(fd, &page_buffer, PAGE_BYTES, f.at) != PAGE_BYTES)
		return err_set_errno(err, ERR_INTERNAL, errno, "read file %zu", i);
	*ret = page_buffer.slot;
	return 0;
}

/* The moment may lie between both stores into a slot. */
static bool is_whole(const struct slot *s)
{
	return s->check == (s->n ^ SALT) || s->check == ((s->n - 1) ^ SALT) || (s->n <= 1 && s->check == 0);
}

static int run_verify(const struct options *o, struct error **err)
{
	struct slot first;
	struct slot before;

	if (read_slot(o, 0, &first, err) < 0)
		return -1;
	before = first;
	for (size_t i = 0; i < N_FILES; i++) {
		struct slot s;

		if (read_slot(o, i, &s, err) < 0)
			return -1;
		if (!is_whole(&s) || s.n > before.n || s.n + 1 < first.n)
			return err_set(err, ERR_PRECONDITION,
				"file %zu has %" PRIu64 " after %" PRIu64 ", and the first one has %" PRIu64,
				i, s.n, before.n, first.n);
		before = s;
	}
	printf("%" PRIu64 "\n", first.n);
	return 0;
}

static int parse(int argc, char **argv, struct options *o, struct error **err)
{
	const struct opt opts[] = {
		{"plain", OPT_BOOL, &o->plain, NULL, "write: by write(2) and fsync(2), not through mappings"},
		{"block", OPT_BOOL, &o->block, NULL, "write to a block device"},
		{"help", OPT_BOOL, &o->show_help, NULL, "print this help and exit"},
		{0},
	};

	if (args_parse(opts, argc, argv, &o->args, err) < 0)
		return -1;
	if (o->show_help) {
		CLEANUP(free_charp) char *help = args_help(usage, opts);
		fputs(help, stdout);
		return 0;
	}
	if (strv_len(o->args.rest) < 2)
		return err_set(err, ERR_INVALID_ARGUMENT, "needs a command and a folder (-help)");
	o->command = o->args.rest[0];
	o->folders = o->args.rest + 1;
	return 0;
}

static int run(const struct options *o, struct error **err)
{
	if (str_eq(o->command, "write"))
		return run_write(o, err);
	if (str_eq(o->command, "verify"))
		return run_verify(o, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown command \"%s\" (-help)", o->command);
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct options o = {0};

	if (parse(argc, argv, &o, &err) < 0) {
		fprintf(stderr, "ordered-stores: %s\n", err->msg);
		return 2;
	}
	int rc = o.show_help ? 0 : run(&o, &err);
	if (rc < 0)
		fprintf(stderr, "ordered-stores: %s: %s\n", o.folders[0], err->msg);
	args_done(&o.args);
	if (rc == 0)
		return 0;
	return err->code == ERR_PRECONDITION ? 1 : 2;
}
