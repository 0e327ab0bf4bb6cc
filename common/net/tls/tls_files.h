/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_files.h - the files of a tls_context: detects changes and reads the content.
 *
 * A file counts as changed when its path, with symlinks followed, leads to another file, or when the file was
 * written to: Kubernetes swaps a symlink to a folder ("..data"). Threads: safe on different objects. Blocks
 * on files.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/limits.h"
#include "net/tls/tls.h"

struct tls_files {
	char *ca;
	char *cert;
	char *key;
	bool strict_keys;
};

struct tls_stamp {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	int64_t modified_ns;
	int64_t changed_ns;
};

/* All 0 for a file that cannot be examined or is not configured. */
struct tls_stamps {
	struct tls_stamp ca;
	struct tls_stamp cert;
	struct tls_stamp key;
};

/** tls_files_init() - copy the paths of @config; tls_files_done(). */
void tls_files_init(struct tls_files *f, const struct tls_config *config);

/** tls_files_done() - release @f. */
void tls_files_done(struct tls_files *f);

/** tls_files_stamp() - identify the files as they are now. */
void tls_files_stamp(const struct tls_files *f, struct tls_stamps *ret);

/** tls_stamps_equal() - whether nothing has changed. */
bool tls_stamps_equal(const struct tls_stamps *a, const struct tls_stamps *b);

/** tls_files_check_key_mode() - check that other users cannot read the key file: otherwise a warning is
 * logged, or with strict_keys ERR_INVALID_ARGUMENT is returned. Return: 0 or -1. */
int tls_files_check_key_mode(const struct tls_files *f, struct error **err) MUST_CHECK;

#define TLS_FILE_BUF BUF_INIT(LIMIT_PEM_BYTES)

/** tls_file_read() - content of @path into @out, a TLS_FILE_BUF, which never moves it in memory. Return: 0,
 * or -1 with ERR_INVALID_ARGUMENT that names the file (missing, not a regular file, empty, over the limit).
 */
int tls_file_read(const char *path, struct buf *out, struct error **err) MUST_CHECK;

/** tls_secret_done() - buf_done() that leaves nothing of the content in memory. */
void tls_secret_done(struct buf *b);
