/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the kernel's and the memory modules' description of memory: attributes on the nd bus, whose files
 * are replaced by lines of the input, lists of bad blocks, and label areas. The first byte chooses.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "os/file.h"
#include "pmem/health/media_errors.h"
#include "pmem/nd/label_area.h"
#include "pmem/nd/nd_sysfs.h"

static struct span files; /* of the input that runs */

/* Stands for the one of os/file.h, of which replay.c needs the real one. */
int __wrap_file_read(int dir_fd, const char *path, struct buf *out, struct error **err);
extern __typeof__(file_read) __real_file_read;

int __wrap_file_read(int dir_fd, const char *path, struct buf *out, struct error **err)
{
	CLEANUP(free_charp) char *line = NULL;

	if (!str_starts(path, ND_SYSFS_DEVICES))
		return __real_file_read(dir_fd, path, out, err);
	line = fuzz_line(&files);
	if (!line)
		return err_set(err, ERR_NOT_FOUND, "%s", path);
	buf_adds(out, line);
	buf_addc(out, '\n');
	return out->overflowed ? err_set(err, ERR_EXHAUSTED, "%s is too long", path) : 0;
}

static void read_attributes(void)
{
	CLEANUP(free_charp) char *hint = nd_attr_hint("region0", "name");
	CLEANUP(free_charp) char *module = nd_module_of("region0", 0);
	struct error *err = NULL;
	uint64_t number;

	assert(!strchr(module, ',') && !strchr(hint, '\n'));
	if (nd_attr_number("region0", "size", &number, &err) < 0)
		fuzz_error(err);
	assert(nd_has_word(hint, hint) == (!str_empty(hint) && !strchr(hint, ' ')));
}

static void read_bad_blocks(struct span in)
{
	CLEANUP(bad_ranges_done) struct bad_ranges bad = {0};
	CLEANUP(free_charp) char *text = fuzz_text(in);
	struct error *err = NULL;

	if (bad_ranges_parse(text, &bad, &err) < 0)
		fuzz_error(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	files = (struct span){data, size};
	switch (fuzz_byte(&files) % 3) {
	case 0:
		read_attributes();
		break;
	case 1:
		read_bad_blocks(files);
		break;
	default:
		(void)label_area_judge(files.p, files.n, 128 << 10);
		break;
	}
	return 0;
}
