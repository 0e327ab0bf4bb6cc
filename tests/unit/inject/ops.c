/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/inject/ops.h"

#include "pmem/device/device.h"
#include "pmem/nd/nd.h"
#include "unit/inject/inject.h"

static struct device_manager devices;
static struct device_ops device_ops;
static struct nd namespaces;

enum ops_way ops_way(const char *name)
{
	return (enum ops_way)inject_way(INJECT_OP, name, (const int[]){OPS_BEFORE, OPS_AFTER, 0});
}

int ops_fail(const char *name, struct error **err)
{
	return err_set(err, ERR_INTERNAL, "%s is made to fail", name);
}

static int list_devices(void *self, struct device_list **ret, struct error **err)
{
	(void)self;
	if (inject_way(INJECT_OP, "device list", (const int[]){OPS_BEFORE, 0}))
		return ops_fail("device list", err);
	return device_list_read(&devices, ret, err);
}

static int create_device(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	enum ops_way way = ops_way("device create");
	CLEANUP(device_freep) struct device *d = NULL;

	(void)self;
	if (way == OPS_BEFORE)
		return ops_fail("device create", err);
	if (device_create(&devices, spec, &d, err) < 0)
		return -1;
	if (way == OPS_AFTER)
		return ops_fail("device create", err);
	*ret = TAKE_PTR(d);
	return 0;
}

static int destroy_device(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	enum ops_way way = ops_way("device destroy");
	CLEANUP(fd_closep) int fd = exclusive_fd;

	(void)self;
	if (way == OPS_BEFORE)
		return ops_fail("device destroy", err);
	if (device_destroy(&devices, device, TAKE_FD(fd), err) < 0)
		return -1;
	return way == OPS_AFTER ? ops_fail("device destroy", err) : 0;
}

static int activate_devices(void *self, const struct device_list *list, struct error **err)
{
	enum ops_way way = ops_way("device activate");

	(void)self;
	if (way == OPS_BEFORE)
		return ops_fail("device activate", err);
	if (device_activate(&devices, list, err) < 0)
		return -1;
	return way == OPS_AFTER ? ops_fail("device activate", err) : 0;
}

static struct device_list *latest_pools(void *self)
{
	(void)self;
	return device_latest_pools(&devices);
}

static int confirm_device(void *self, const struct device *device, struct error **err)
{
	(void)self;
	if (inject_way(INJECT_OP, "device confirm", (const int[]){OPS_BEFORE, 0}))
		return ops_fail("device confirm", err);
	return device_confirm(&devices, device, err);
}

static void tick(void *self)
{
	(void)self;
	device_tick(&devices);
}

static void close_devices(void *self)
{
	(void)self;
	devices.ops->close(devices.self);
}

void ops_wrap_devices(struct device_manager *m)
{
	devices = *m;
	device_ops = (struct device_ops){.mode = m->ops->mode,
		.list = list_devices,
		.latest_pools = latest_pools,
		.confirm = confirm_device,
		.create = create_device,
		.destroy = destroy_device,
		.activate = activate_devices,
		.fit = m->ops->fit,
		.tick = tick,
		.close = close_devices};
	*m = (struct device_manager){.ops = &device_ops};
}

static int list_namespaces(void *self, struct nd_inventory **ret, struct error **err)
{
	(void)self;
	if (inject_way(INJECT_OP, "nd list", (const int[]){OPS_BEFORE, 0}))
		return ops_fail("nd list", err);
	return namespaces.ops->list(namespaces.self, ret, err);
}

static int create_namespace(void *self, const struct nd_spec *spec, struct nd_namespace **ret,
	struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	enum ops_way way = ops_way("nd create");

	(void)self;
	if (way == OPS_BEFORE)
		return ops_fail("nd create", err);
	if (namespaces.ops->create(namespaces.self, spec, &ns, &after, err) < 0)
		return -1;
	if (way == OPS_AFTER)
		return ops_fail("nd create", err);
	*ret = TAKE_PTR(ns);
	*ret_after = TAKE_PTR(after);
	return 0;
}

static int destroy_namespace(
	void *self, const char *uuid, const char *name, struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	enum ops_way way = ops_way("nd destroy");

	(void)self;
	if (way == OPS_BEFORE)
		return ops_fail("nd destroy", err);
	if (namespaces.ops->destroy(namespaces.self, uuid, name, &after, err) < 0)
		return -1;
	if (way == OPS_AFTER)
		return ops_fail("nd destroy", err);
	*ret_after = TAKE_PTR(after);
	return 0;
}

static void close_namespaces(void *self)
{
	(void)self;
	namespaces.ops->close(namespaces.self);
}

static const struct nd_ops nd_ops = {.list = list_namespaces,
	.create = create_namespace,
	.destroy = destroy_namespace,
	.close = close_namespaces};

void ops_wrap_nd(struct nd *nd)
{
	namespaces = *nd;
	*nd = (struct nd){.ops = &nd_ops};
}
