/* SPDX-License-Identifier: Apache-2.0 */
/* Media errors of logical volumes. Volumes are looked at only if there are any below our groups, so that a
 * look costs a file for each namespace. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device_lvm_private.h"
#include "pmem/health/media_errors.h"

struct lists {
	struct bad_ranges *list;
	size_t n;
};

static void lists_done(struct lists *l)
{
	for (size_t i = 0; i < l->n; i++)
		bad_ranges_done(&l->list[i]);
	free(l->list);
}

/* Only those that are not empty. A namespace may have gone since the last listing. */
static int read_lists(char *const *paths, struct lists *l, struct error **err)
{
	l->list = x_calloc(strv_len(paths), sizeof(*l->list));
	for (; paths && *paths; paths++) {
		struct bad_ranges *b = &l->list[l->n];

		if (bad_ranges_read(*paths, b, err) < 0) {
			if ((*err)->code != ERR_NOT_FOUND)
				return -1;
			error_clear(err);
		}
		if (b->n > 0)
			l->n++;
	}
	return 0;
}

int device_lvm_media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(strv_freep) char **paths = NULL;
	CLEANUP(lists_done) struct lists bad = {0};

	pthread_mutex_lock(&m->mutex);
	paths = strv_dup(m->paths);
	pthread_mutex_unlock(&m->mutex);
	if (read_lists(paths, &bad, err) < 0)
		return -1;
	for (size_t i = 0; bad.n > 0 && i < list->n_devices; i++) {
		const struct device *d = &list->devices[i];

		if (d->active && media_errors_of_mapped(d->path, bad.list, bad.n, &ret[i], err) < 0)
			return err_wrap(err, "device %s", d->id);
	}
	return 0;
}
