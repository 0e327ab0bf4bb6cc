/* SPDX-License-Identifier: Apache-2.0 */
/* Media errors of logical volumes. Volumes are looked at only if there are any below our groups, or if a list
 * cannot be read, so that a look costs a file for each namespace. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device_lvm_private.h"
#include "pmem/health/media_errors.h"

struct lists {
	struct bad_ranges *list;
	size_t n;
	bool lacks_device; /* a list is of a device without a number, so that it may be of any volume */
};

static void lists_done(struct lists *l)
{
	for (size_t i = 0; i < l->n; i++)
		bad_ranges_done(&l->list[i]);
	free(l->list);
}

/* Takes over @e. */
static void keep_first(struct error **first, struct error *e)
{
	if (*first)
		error_free(e);
	else
		*first = e;
}

/* A namespace may have gone since the last listing. */
static void read_list(const char *path, struct lists *l, struct error **first)
{
	struct bad_ranges *b = &l->list[l->n];
	struct error *e = NULL;

	if (bad_ranges_read(path, b, &e) < 0) {
		if (e->code == ERR_NOT_FOUND)
			error_clear(&e);
		else
			l->lacks_device = l->lacks_device || !b->unknown;
	}
	if (e)
		keep_first(first, e);
	if (b->n > 0 || b->unknown)
		l->n++;
}

static void look_at_volume(
	const struct device *d, const struct lists *l, struct media_errors *ret, struct error **first)
{
	struct error *e = NULL;

	ret->unknown = l->lacks_device;
	if (!d->active || media_errors_of_mapped(d->path, l->list, l->n, ret, &e) == 0)
		return;
	ret->unknown = true;
	(void)err_wrap(&e, "device %s", d->id);
	keep_first(first, e);
}

int device_lvm_media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(strv_freep) char **paths = NULL;
	CLEANUP(lists_done) struct lists bad = {0};
	struct error *first = NULL;

	pthread_mutex_lock(&m->mutex);
	paths = strv_dup(m->paths);
	pthread_mutex_unlock(&m->mutex);
	bad.list = x_calloc(strv_len(paths), sizeof(*bad.list));
	for (size_t i = 0; paths && paths[i]; i++)
		read_list(paths[i], &bad, &first);
	for (size_t i = 0; (bad.n > 0 || bad.lacks_device) && i < list->n_devices; i++)
		look_at_volume(&list->devices[i], &bad, &ret[i], &first);
	*err = first;
	return first ? -1 : 0;
}
