/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/dax.h"

#include <ctype.h>
#include <daxctl/libdaxctl.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Return: the component "regionN" of a sysfs path, "" when there is none; caller frees. */
static char *nd_region_in(const char *path)
{
	static const char prefix[] = "/region";

	for (const char *p = strstr(path, prefix); p; p = strstr(p + 1, prefix)) {
		size_t len = strcspn(p + 1, "/");
		if (isdigit((unsigned char)p[sizeof(prefix) - 1]))
			return x_strndup(p + 1, len);
	}
	return x_strdup("");
}

static void add_device(struct dax_list *l, struct daxctl_region *region, struct daxctl_dev *dev)
{
	l->devices = x_realloc(l->devices, l->n + 1, sizeof(*l->devices));
	l->devices[l->n++] = (struct dax_device){
		.dev = x_strdup(daxctl_dev_get_devname(dev)),
		.region = nd_region_in(daxctl_region_get_path(region)),
		.size_bytes = daxctl_dev_get_size(dev),
		.is_system_ram = daxctl_dev_get_memory(dev) != NULL,
	};
}

int dax_list_read(struct dax_list **ret, struct error **err)
{
	struct daxctl_ctx *ctx = NULL;
	struct daxctl_region *region;
	struct daxctl_dev *dev;
	int rc = daxctl_new(&ctx);

	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "open libdaxctl");

	struct dax_list *l = x_calloc(1, sizeof(*l));
	daxctl_region_foreach(ctx, region)
	{
		daxctl_dev_foreach(region, dev)
		{
			/* size 0: the seed that the kernel keeps ready */
			if (daxctl_dev_get_size(dev) > 0)
				add_device(l, region, dev);
		}
	}
	daxctl_unref(ctx);
	*ret = l;
	return 0;
}

void dax_list_free(struct dax_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++) {
		free(l->devices[i].dev);
		free(l->devices[i].region);
	}
	free(l->devices);
	free(l);
}
