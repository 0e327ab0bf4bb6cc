/* SPDX-License-Identifier: Apache-2.0 */
#include "os/boot_id.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "os/file.h"

#define FOLDER    "/proc/sys/kernel/random"
#define MAX_BYTES 64

int boot_id_read(char **ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAX_BYTES);
	CLEANUP(fd_closep) int dir_fd = -1;

	if (dir_open(FOLDER, /* create= */ false, 0, &dir_fd, err) < 0 ||
		file_read(dir_fd, "boot_id", &text, err) < 0)
		return err_wrap(err, FOLDER);
	*ret = x_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	return 0;
}
