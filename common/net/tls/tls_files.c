/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"

void tls_files_init(struct tls_files *f, const struct tls_config *config)
{
	*f = (struct tls_files){
		.ca = x_strdup(config->ca_file),
		.cert = x_strdup(config->cert_file),
		.key = x_strdup(config->key_file),
		.strict_keys = config->strict_keys,
	};
}

void tls_files_done(struct tls_files *f)
{
	free(f->ca);
	free(f->cert);
	free(f->key);
}

static int64_t to_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static struct tls_stamp stamp_of(const char *path)
{
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return (struct tls_stamp){0};
	return (struct tls_stamp){
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.modified_ns = to_ns(st.st_mtim),
		.changed_ns = to_ns(st.st_ctim),
	};
}

void tls_files_stamp(const struct tls_files *f, struct tls_stamps *ret)
{
	*ret = (struct tls_stamps){
		.ca = stamp_of(f->ca),
		.cert = stamp_of(f->cert),
		.key = stamp_of(f->key),
	};
}

static bool stamp_equal(const struct tls_stamp *a, const struct tls_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

bool tls_stamps_equal(const struct tls_stamps *a, const struct tls_stamps *b)
{
	return stamp_equal(&a->ca, &b->ca) && stamp_equal(&a->cert, &b->cert) &&
	       stamp_equal(&a->key, &b->key);
}

int tls_files_check_key_mode(const struct tls_files *f, struct error **err)
{
	struct stat st;

	/* A missing file is reported when it is read. */
	if (!f->key || stat(f->key, &st) < 0 || (st.st_mode & S_IRWXO) == 0)
		return 0;
	if (f->strict_keys)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s: everybody may read or write this key (mode %04o)", f->key, st.st_mode & 07777);
	log_warn("everybody may read or write the key file", F_STR("file", f->key));
	return 0;
}

/* Other files than regular ones could be endless, or block when they are opened. */
static int check_file(const char *path, struct error **err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set_errno(err, ERR_INVALID_ARGUMENT, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s: not a regular file", path);
	if (st.st_size == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s: empty", path);
	if (st.st_size > LIMIT_PEM_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s: more than %u bytes", path, LIMIT_PEM_BYTES);
	return 0;
}

int tls_file_read(const char *path, struct buf *out, struct error **err)
{
	if (check_file(path, err) < 0)
		return -1;
	/* Growing would leave copies of a key behind. */
	buf_reserve(out, LIMIT_PEM_BYTES);
	if (file_read(AT_FDCWD, path, out, err) < 0)
		return err_recode(err, ERR_INVALID_ARGUMENT);
	return 0;
}

void tls_secret_done(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}
