/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet asks a plugin, and tells it. */
#include "pluginregistration.pb-c.h"

#include "base/clock.h"
#include "base/mem.h"
#include "csi/plugin_registration.h"
#include "unit/unit.h"

static unsigned n_told;
static bool registered;
static char *told_reason;

static void on_registered(void *user, bool is_registered, const char *reason)
{
	ck_assert_ptr_eq(user, &n_told);
	n_told++;
	registered = is_registered;
	free(told_reason);
	told_reason = x_strdup(reason);
}

static struct plugin_registration plugin = {.driver_name = "driver.example",
	.endpoint = "/host/csi.sock",
	.on_registered = on_registered,
	.user = &n_told};

static void *call(size_t method, const void *request, struct arena *arena)
{
	const struct grpc_service service = plugin_registration_service(&plugin);
	const struct grpc_method *m = &service.methods[method];
	struct grpc_call c = {.arena = arena, .deadline_ns = DEADLINE_NONE};
	struct error *err = NULL;
	ProtobufCMessage *reply = arena_alloc(arena, m->reply->sizeof_message);

	ck_assert_int_eq(m->kind, GRPC_INLINE);
	protobuf_c_message_init(m->reply, reply);
	ASSERT_OK(m->handle(service.self, &c, request, reply, &err));
	return reply;
}

START_TEST(the_service_is_the_one_of_its_proto)
{
	const struct grpc_service service = plugin_registration_service(&plugin);
	const ProtobufCServiceDescriptor *d = &pluginregistration__registration__descriptor;

	for (unsigned i = 0; i < d->n_methods; i++) {
		char path[128];

		snprintf(path, sizeof(path), "/%s/%s", d->name, d->methods[i].name);
		ck_assert_str_eq(service.methods[i].path, path);
		ck_assert_ptr_eq(service.methods[i].request, d->methods[i].input);
		ck_assert_ptr_eq(service.methods[i].reply, d->methods[i].output);
	}
	ck_assert_ptr_null(service.methods[d->n_methods].path);
}
END_TEST

START_TEST(info_says_what_kubelet_has_to_know_as_often_as_it_asks)
{
	Pluginregistration__InfoRequest q;
	pluginregistration__info_request__init(&q);
	struct arena *arena = arena_new(1 << 16);

	for (int i = 0; i < 3; i++) {
		const Pluginregistration__PluginInfo *info = call(0, &q, arena);

		ck_assert_str_eq(info->type, "CSIPlugin");
		ck_assert_str_eq(info->name, "driver.example");
		ck_assert_str_eq(info->endpoint, "/host/csi.sock");
		ck_assert_uint_eq(info->n_supported_versions, 1);
		ck_assert_str_eq(info->supported_versions[0], "1.0.0");
	}
	ck_assert_uint_eq(n_told, 0);
	arena_free(arena);
}
END_TEST

START_TEST(what_kubelet_came_to_is_passed_on)
{
	Pluginregistration__RegistrationStatus q;
	pluginregistration__registration_status__init(&q);
	struct arena *arena = arena_new(1 << 16);
	char reason[] = "detected topology value collision";

	q.plugin_registered = true;
	call(1, &q, arena);
	ck_assert(registered);
	q.plugin_registered = false;
	q.error = reason;
	call(1, &q, arena);
	ck_assert(!registered);
	ck_assert_str_eq(told_reason, reason);
	ck_assert_uint_eq(n_told, 2);
	arena_free(arena);
	free(told_reason);
}
END_TEST

UNIT_MAIN("csi/plugin_registration", the_service_is_the_one_of_its_proto,
	info_says_what_kubelet_has_to_know_as_often_as_it_asks, what_kubelet_came_to_is_passed_on)
