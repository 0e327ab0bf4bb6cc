/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at state folder, devices, mounts and loops. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/check_private.h"
#include "os/blockdev.h"

static int read_state(const char *path, struct check_view *v, struct error **err)
{
	CLEANUP(state_closep) struct state_store *store = NULL;

	if (state_open_read(path, &store, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
		return 0;
	}
	v->has_state = true;
	if (state_holder(store, &v->holder, err) < 0)
		return -1;
	return state_load(store, &v->state, err);
}

/* A device without a node, or whose node is none, has no number. */
static void read_node(struct check_view *v, size_t at)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	const char *path = v->devices->devices[at].path;
	struct blockdev_info info;

	if (!path || blockdev_stat(path, &info, &ignored) < 0)
		return;
	v->numbers[at] = info.dev;
}

static int read_all(const struct check_config *config, struct check_view *v, struct error **err)
{
	if (read_state(config->state_path, v, err) < 0)
		return -1;
	if (device_list_read(config->devices, &v->devices, err) < 0)
		return err_wrap(err, "list devices");
	v->numbers = x_calloc(v->devices->n_devices, sizeof(*v->numbers));
	for (size_t i = 0; i < v->devices->n_devices; i++)
		read_node(v, i);
	if (mount_table_read(&v->mounts, err) < 0)
		return -1;
	return loop_list_read(&v->loops, err);
}

int check_view_read(const struct check_config *config, struct check_view *ret, struct error **err)
{
	struct check_view v = {.mode = x_strdup(config->devices->ops->mode),
		.state_path = x_strdup(config->state_path),
		.fake_path = x_strdup(config->fake_path)};

	if (read_all(config, &v, err) < 0) {
		check_view_done(&v);
		return -1;
	}
	*ret = v;
	return 0;
}

void check_view_done(struct check_view *v)
{
	free(v->numbers);
	device_list_free(v->devices);
	state_content_done(&v->state);
	mount_table_free(v->mounts);
	loop_list_free(v->loops);
	free(v->mode);
	free(v->state_path);
	free(v->fake_path);
	*v = (struct check_view){0};
}
