/* SPDX-License-Identifier: Apache-2.0 */
/* All services of csi.proto: which methods are answered at all, and that no request of any of them, served or
 * not, disturbs the code that runs before the method. */
#include "base/str.h"
#include "csi/field_limits.h"
#include "net/grpc/grpc_conn.h"
#include "net/limits.h"
#include "unit/csi/harness.h"
#include "unit/csi/mutate.h"
#include "unit/unit.h"

#define SAMPLE_MAX   65536
#define MIN_VARIANTS 20000
#define TIMEOUT_S    120

static const ProtobufCServiceDescriptor *const all[] = {&csi__v1__identity__descriptor,
	&csi__v1__controller__descriptor, &csi__v1__group_controller__descriptor,
	&csi__v1__snapshot_metadata__descriptor, &csi__v1__node__descriptor};

/* The calls that the specification makes mandatory, and those that belong to the capabilities that we
 * advertise. */
static const char *const served[] = {"/csi.v1.Identity/GetPluginInfo",
	"/csi.v1.Identity/GetPluginCapabilities", "/csi.v1.Identity/Probe", "/csi.v1.Controller/CreateVolume",
	"/csi.v1.Controller/DeleteVolume", "/csi.v1.Controller/ValidateVolumeCapabilities",
	"/csi.v1.Controller/ListVolumes", "/csi.v1.Controller/GetCapacity",
	"/csi.v1.Controller/CreateSnapshot", "/csi.v1.Controller/DeleteSnapshot",
	"/csi.v1.Controller/ListSnapshots", "/csi.v1.Controller/GetSnapshot",
	"/csi.v1.Controller/ControllerExpandVolume", "/csi.v1.Controller/ControllerModifyVolume",
	"/csi.v1.Controller/ControllerGetCapabilities", "/csi.v1.Controller/ControllerListVolumeHealth",
	"/csi.v1.Controller/ControllerGetVolumeHealth", "/csi.v1.Node/NodeGetVolumeHealth",
	"/csi.v1.Node/NodeGetStorageHealth", "/csi.v1.Node/NodeStageVolume", "/csi.v1.Node/NodeUnstageVolume",
	"/csi.v1.Node/NodePublishVolume", "/csi.v1.Node/NodeUnpublishVolume",
	"/csi.v1.Node/NodeGetVolumeStats", "/csi.v1.Node/NodeExpandVolume", "/csi.v1.Node/NodeGetInfo",
	"/csi.v1.Node/NodeGetCapabilities", NULL};

static struct csi csi = {.driver_name = DRIVER_NAME, .version = "1", .node_id = NODE_ID};
static struct error *err;

static int find(const char *path, struct grpc_head *ret)
{
	const struct grpc_service services[] = {
		csi_identity_service(&csi), csi_controller_service(&csi), csi_node_service(&csi), {0}};
	const struct h2_header headers[] = {H2_HEADER(":method", "POST"), H2_HEADER(":path", path),
		H2_HEADER("content-type", "application/grpc")};
	unsigned http;

	return grpc_head_read(services, headers, ARRAY_SIZE(headers), ret, &http, &err);
}

START_TEST(what_is_not_served_is_unimplemented)
{
	unsigned n_served = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		for (unsigned k = 0; k < all[i]->n_methods; k++) {
			const ProtobufCMethodDescriptor *m = &all[i]->methods[k];
			struct grpc_head head;
			char path[128];

			snprintf(path, sizeof(path), "/%s/%s", all[i]->name, m->name);
			if (!strv_contains((char *const *)(uintptr_t)served, path)) {
				ASSERT_FAILS(find(path, &head), ERR_UNIMPLEMENTED, path);
				continue;
			}
			ASSERT_OK(find(path, &head));
			ck_assert_ptr_eq(head.target->request, m->input);
			ck_assert_ptr_eq(head.target->reply, m->output);
			n_served++;
		}
	}
	ck_assert_uint_eq(n_served, ARRAY_SIZE(served) - 1);
}
END_TEST

START_TEST(what_is_not_quite_a_method_is_unimplemented)
{
	static const char *const paths[] = {"", "/", "//", "/csi.v1.Node", "/csi.v1.Node/",
		"csi.v1.Node/NodeGetInfo", "/csi.v1.Node/NodeGetInfo/", "/csi.v1.Node/nodegetinfo",
		"/csi.v1.Node/NodeGetInfo ", "/csi.v1.Node//NodeGetInfo", "/csi.v0.Node/NodeGetInfo",
		"/csi.v1.Controller/NodeGetInfo", "/csi.v1.Node/../Node/NodeGetInfo",
		"/csi.v1.Node/NodeGetInfo?x", "*"};
	struct grpc_head head;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		ASSERT_FAILS(find(paths[i], &head), ERR_UNIMPLEMENTED, "unknown method");
}
END_TEST

struct parse {
	const ProtobufCMessageDescriptor *type;
	size_t n;
};

static void parse(void *user, const struct variant *v)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	struct parse *p = user;
	ProtobufCMessage *m;

	p->n++;
	bool refused = grpc_protobuf_unpack(p->type, v->bytes, arena, &m, &err) < 0 ||
		       csi_check_request(m, &err) < 0;
	unsigned code = refused ? (unsigned)err->code : 0;
	bool right = code == 0 || code == ERR_INVALID_ARGUMENT;
	if (v->kind == MUTATION_MALFORMED)
		right = code == ERR_INTERNAL;
	else if (v->kind == MUTATION_BYTES)
		right = right || code == ERR_INTERNAL;
	else if (v->kind == MUTATION_TEXT || v->kind == MUTATION_LONG)
		right = code == ERR_INVALID_ARGUMENT && strstr(err->msg, v->field);
	if (!right)
		ck_abort_msg("%s %s: %s (kind %d): %s", p->type->name, v->path, v->what, v->kind,
			err ? err->msg : "OK");
	error_clear(&err);
}

START_TEST(requests_of_all_methods_can_be_parsed_or_refused)
{
	struct parse p = {0};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		for (unsigned k = 0; k < all[i]->n_methods; k++) {
			CLEANUP(buf_done) struct buf sample = BUF_INIT(SAMPLE_MAX);

			p.type = all[i]->methods[k].input;
			mutate_sample(p.type, &sample);
			mutate_fields(p.type, buf_span(&sample), /* texts= */ NULL, parse, &p);
			mutate_bytes(buf_span(&sample), parse, &p);
		}
	}
	printf("parsers: %zu variants\n", p.n);
	fflush(stdout);
	ck_assert_uint_ge(p.n, MIN_VARIANTS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("csi/hostile_services");
	TCase *tcase = tcase_create("hostile_services");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, TIMEOUT_S);
	tcase_add_test(tcase, what_is_not_served_is_unimplemented);
	tcase_add_test(tcase, what_is_not_quite_a_method_is_unimplemented);
	tcase_add_test(tcase, requests_of_all_methods_can_be_parsed_or_refused);
	return unit_runner_finish(srunner_create(suite));
}
