/* SPDX-License-Identifier: Apache-2.0 */
#include "interop/echo_service.h"

#include <csi.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

typedef Csi__V1__GetPluginInfoResponse Info;

void echo_init(struct echo *e)
{
	*e = (struct echo){0};
	sem_init(&e->gate, 0, 0);
}

void echo_release(struct echo *e)
{
	sem_post(&e->gate);
}

static int echo(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Info *from = request;
	Info *to = reply;

	(void)self;
	(void)call;
	(void)err;
	to->name = from->name;
	to->vendor_version = from->vendor_version;
	to->n_manifest = from->n_manifest;
	to->manifest = from->manifest;
	return 0;
}

static int work(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	struct echo *e = self;

	atomic_fetch_add(&e->worked, 1);
	return echo(self, call, request, reply, err);
}

static int fail(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Info *info = request;
	uint32_t code;

	(void)self;
	(void)call;
	(void)reply;
	if (parse_u32(info->name, &code, err) < 0)
		return -1;
	return err_set(err, (enum err_code)code, "%s", info->vendor_version);
}

static int grow(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Info *from = request;
	Info *to = reply;
	uint32_t n;

	(void)self;
	if (parse_u32(from->name, &n, err) < 0)
		return -1;
	to->vendor_version = arena_alloc(call->arena, n + 1);
	memset(to->vendor_version, 'x', n);
	return 0;
}

static int wait_for_release(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	struct echo *e = self;

	atomic_fetch_add(&e->waiting, 1);
	while (sem_wait(&e->gate) < 0)
		continue;
	atomic_fetch_sub(&e->waiting, 1);
	return work(self, call, request, reply, err);
}

static int waiting(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	struct echo *e = self;
	Info *to = reply;

	(void)request;
	(void)err;
	to->name = arena_alloc(call->arena, 16);
	snprintf(to->name, 16, "%u", atomic_load(&e->waiting));
	return 0;
}

static int get_plugin_info(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	Info *to = reply;

	(void)self;
	(void)request;
	(void)err;
	to->name = arena_strdup(call->arena, "echo.pmem-csi.test");
	to->vendor_version = arena_strdup(call->arena, PMEM_VERSION);
	return 0;
}

static void park(void *self, struct grpc_call *call, const void *request, void *reply)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct echo *e = self;
	const Info *info = request;

	if (echo(self, call, request, reply, &err) == 0 && strcmp(info->name, "now") == 0)
		grpc_call_finish(call, NULL);
	else
		e->parked[e->n_parked++] = call;
}

void echo_unpark(struct echo *e, struct error *error)
{
	grpc_call_finish(e->parked[--e->n_parked], error);
}

#define INFO &csi__v1__get_plugin_info_response__descriptor

const struct grpc_method echo_methods[] = {
	{"/pmem.test.Echo/Echo", GRPC_INLINE, INFO, INFO, .handle = echo},
	{"/pmem.test.Echo/Work", GRPC_WORKER, INFO, INFO, .handle = work},
	{"/pmem.test.Echo/Fail", GRPC_INLINE, INFO, INFO, .handle = fail},
	{"/pmem.test.Echo/Grow", GRPC_WORKER, INFO, INFO, .handle = grow},
	{"/pmem.test.Echo/Wait", GRPC_WORKER, INFO, INFO, .handle = wait_for_release},
	{"/pmem.test.Echo/Park", GRPC_ASYNC, INFO, INFO, .start = park},
	{"/pmem.test.Echo/Waiting", GRPC_INLINE, INFO, INFO, .handle = waiting},
	{"/csi.v1.Identity/GetPluginInfo", GRPC_INLINE, &csi__v1__get_plugin_info_request__descriptor, INFO,
		.handle = get_plugin_info},
	{0},
};
