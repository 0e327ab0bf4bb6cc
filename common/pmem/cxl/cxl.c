/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/cxl/cxl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

int cxl_read(const struct cxl *cxl, struct cxl_topology *ret, struct error **err)
{
	return cxl->ops->read(cxl->self, ret, err);
}

int cxl_make(const struct cxl *cxl, const struct cxl_layout *l, struct error **err)
{
	return cxl->ops->make(cxl->self, l, err);
}

int cxl_labels_are_empty(const struct cxl *cxl, const char *device, bool *ret_empty, struct error **err)
{
	return cxl->ops->labels(cxl->self, device, ret_empty, err);
}

bool cxl_window_eq(const struct cxl_window *a, const struct cxl_window *b)
{
	return a->start_bytes == b->start_bytes && a->size_bytes == b->size_bytes &&
	       a->granularity_bytes == b->granularity_bytes && a->ways == b->ways &&
	       memcmp(a->bridges, b->bridges, a->ways * sizeof(a->bridges[0])) == 0;
}

char *cxl_unreadable_why(const char *name)
{
	return x_asprintf(
		"its node /dev/cxl/%s is missing, or serial or pmem/size in /sys/bus/cxl/devices/%s", name,
		name);
}

void cxl_topology_done(struct cxl_topology *t)
{
	free(t->devices);
	strv_free(t->unreadable);
	free(t->roots);
	free(t->sets);
	*t = (struct cxl_topology){0};
}
