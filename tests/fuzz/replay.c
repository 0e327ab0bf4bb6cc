/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - main of a fuzz target without a fuzzer: runs every file of a folder, and what is left of it when
 * its end is cut off.
 * usage: fuzz_TARGET FOLDER CUTS      CUTS: how many beginnings of each file are run, evenly spread
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "os/file.h"

#define FILE_MAX_BYTES (1u << 20)

extern __typeof__(LLVMFuzzerInitialize) LLVMFuzzerInitialize __attribute__((weak));

/* A copy of exactly its size, so that a sanitizer sees what is read behind it. */
static void run(struct span input)
{
	CLEANUP(free_charp) char *copy = malloc(input.n > 0 ? input.n : 1);

	if (!copy)
		abort();
	if (input.n > 0)
		memcpy(copy, input.p, input.n);
	(void)LLVMFuzzerTestOneInput((const uint8_t *)copy, input.n);
}

static int run_file(int dir_fd, const char *name, uint64_t cuts, uint64_t *ret_inputs, struct error **err)
{
	CLEANUP(buf_done) struct buf content = BUF_INIT(FILE_MAX_BYTES);

	if (file_read(dir_fd, name, &content, err) < 0)
		return -1;
	size_t step = cuts > 0 ? content.len / cuts + 1 : content.len;
	for (size_t n = 0; n < content.len; n += step) {
		run((struct span){content.data, n});
		++*ret_inputs;
	}
	run(buf_span(&content));
	++*ret_inputs;
	return 0;
}

static int run_folder(const char *path, const char *cuts_text, struct error **err)
{
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	uint64_t inputs = 0;
	uint64_t cuts;

	if (parse_u64(cuts_text, &cuts, err) < 0)
		return -1;
	if (dir_open(path, /* create= */ false, 0, &dir_fd, err) < 0 || dir_list(dir_fd, &names, err) < 0)
		return -1;
	for (size_t i = 0; names && names[i]; i++) {
		if (run_file(dir_fd, names[i], cuts, &inputs, err) < 0)
			return -1;
	}
	if (inputs == 0)
		return err_set(err, ERR_NOT_FOUND, "%s holds no input", path);
	printf("%zu files, %llu inputs\n", strv_len(names), (unsigned long long)inputs);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (argc != 3) {
		fprintf(stderr, "usage: %s FOLDER CUTS\n", argv[0]);
		return 2;
	}
	if (LLVMFuzzerInitialize)
		(void)LLVMFuzzerInitialize(&argc, &argv);
	if (run_folder(argv[1], argv[2], &err) < 0) {
		fprintf(stderr, "replay: %s\n", err->msg);
		return 1;
	}
	return 0;
}
