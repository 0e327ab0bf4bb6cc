/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/csi/hostile.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/limits.h"
#include "unit/unit.h"

#define N_CODES     17
#define CODE(c)     (1u << (c))
#define OK          CODE(0)
#define REQUEST_MAX 65536
/* A valid request is made again after so many others. */
#define VALID_EVERY 64

/* The error codes that the CSI specification permits for each call: those of the call's error scheme, and
 * those of the general scheme (INVALID_ARGUMENT for fields, ABORTED for a pending operation). */
#define GENERAL (CODE(ERR_INVALID_ARGUMENT) | CODE(ERR_ABORTED))
static const struct {
	const char *method;
	unsigned codes;
} schemes[] = {
	{"GetPluginInfo", 0},
	{"GetPluginCapabilities", 0},
	{"Probe", 0},
	{"ControllerGetCapabilities", 0},
	{"NodeGetCapabilities", 0},
	{"NodeGetInfo", 0},
	{"CreateVolume",
		GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_EXISTS) | CODE(ERR_EXHAUSTED) | CODE(ERR_RANGE)},
	{"DeleteVolume", GENERAL | CODE(ERR_PRECONDITION)},
	{"DeleteIfNeverStaged", GENERAL | CODE(ERR_PRECONDITION)},
	{"ValidateVolumeCapabilities", GENERAL | CODE(ERR_NOT_FOUND)},
	{"ListVolumes", GENERAL},
	{"ControllerListVolumeHealth", GENERAL},
	{"ControllerGetVolumeHealth", GENERAL | CODE(ERR_NOT_FOUND)},
	{"NodeGetVolumeHealth", GENERAL | CODE(ERR_NOT_FOUND)},
	{"NodeGetStorageHealth", 0},
	{"GetCapacity", GENERAL},
	{"NodeStageVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_EXISTS) | CODE(ERR_PRECONDITION)},
	/* busy, or something else is there: no line of the scheme, but what gRPC has the code for */
	{"NodeUnstageVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_PRECONDITION)},
	{"NodePublishVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_EXISTS) | CODE(ERR_PRECONDITION)},
	{"NodeUnpublishVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_PRECONDITION)},
	{"NodeGetVolumeStats", GENERAL | CODE(ERR_NOT_FOUND)},
	/* a full pool is no line of the scheme, but what gRPC has the code for */
	{"ControllerExpandVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_PRECONDITION) | CODE(ERR_RANGE) |
					   CODE(ERR_EXHAUSTED)},
	{"ControllerModifyVolume", GENERAL | CODE(ERR_NOT_FOUND)},
	{"NodeExpandVolume", GENERAL | CODE(ERR_NOT_FOUND) | CODE(ERR_PRECONDITION) | CODE(ERR_RANGE)},
};

/* Fields that csi.proto calls REQUIRED, and what an error must name: a oneof has no name on the wire. */
#define CAPABILITY(method, field)                                                                            \
	{method, field ".mount", "access_type", ERR_INVALID_ARGUMENT},                                       \
		{method, field ".block", "access_type", ERR_INVALID_ARGUMENT},                               \
		{method, field ".access_mode", "access_mode", ERR_INVALID_ARGUMENT},                         \
	{                                                                                                    \
		method, field ".access_mode.mode", "mode", ERR_INVALID_ARGUMENT                              \
	}
static const struct {
	const char *method;
	const char *path;
	const char *named;
	enum err_code code;
} required[] = {
	{"CreateVolume", "name", "name", ERR_INVALID_ARGUMENT},
	{"CreateVolume", "volume_capabilities", "volume_capabilities", ERR_INVALID_ARGUMENT},
	CAPABILITY("CreateVolume", "volume_capabilities"),
	{"DeleteVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"DeleteIfNeverStaged", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"ValidateVolumeCapabilities", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"ValidateVolumeCapabilities", "volume_capabilities", "volume_capabilities", ERR_INVALID_ARGUMENT},
	CAPABILITY("ValidateVolumeCapabilities", "volume_capabilities"),
	/* external-provisioner names no access mode there */
	{"GetCapacity", "volume_capabilities.mount", "access_type", ERR_INVALID_ARGUMENT},
	{"NodeStageVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeStageVolume", "staging_target_path", "staging_target_path", ERR_INVALID_ARGUMENT},
	{"NodeStageVolume", "volume_capability", "volume_capability", ERR_INVALID_ARGUMENT},
	CAPABILITY("NodeStageVolume", "volume_capability"),
	{"NodeUnstageVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeUnstageVolume", "staging_target_path", "staging_target_path", ERR_INVALID_ARGUMENT},
	{"NodePublishVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodePublishVolume", "target_path", "target_path", ERR_INVALID_ARGUMENT},
	{"NodePublishVolume", "volume_capability", "volume_capability", ERR_INVALID_ARGUMENT},
	CAPABILITY("NodePublishVolume", "volume_capability"),
	/* optional in general, required from plugins that stage, with an error of its own */
	{"NodePublishVolume", "staging_target_path", "staging_target_path", ERR_PRECONDITION},
	{"NodeGetVolumeStats", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeGetVolumeStats", "volume_path", "volume_path", ERR_INVALID_ARGUMENT},
	{"ControllerGetVolumeHealth", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeGetVolumeHealth", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"ControllerExpandVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"ControllerExpandVolume", "capacity_range", "capacity_range", ERR_INVALID_ARGUMENT},
	CAPABILITY("ControllerExpandVolume", "volume_capability"),
	{"ControllerModifyVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeExpandVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeExpandVolume", "volume_path", "volume_path", ERR_INVALID_ARGUMENT},
	CAPABILITY("NodeExpandVolume", "volume_capability"),
	{"NodeUnpublishVolume", "volume_id", "volume_id", ERR_INVALID_ARGUMENT},
	{"NodeUnpublishVolume", "target_path", "target_path", ERR_INVALID_ARGUMENT},
};

struct run {
	const struct hostile_rpc *rpc;
	const struct grpc_method *method;
	const char *name; /* of the method */
	struct span valid;
	unsigned scheme;
	char *before; /* look() */
	size_t n;
	size_t answered[N_CODES];
};

/* The results that are permitted for a variant of a request. */
struct verdict {
	unsigned codes;
	const char *named; /* in the message of INVALID_ARGUMENT and FAILED_PRECONDITION, or NULL */
};

static struct verdict verdict_on_missing(const struct run *r, const struct variant *v)
{
	for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
		if (str_eq(required[i].method, r->name) && str_eq(required[i].path, v->path))
			return (struct verdict){CODE(required[i].code), required[i].named};
	}
	return (struct verdict){OK | r->scheme, NULL};
}

/* Opaque fields may have any content, up to 4 KiB with some room for what is there already. */
static bool is_opaque(const struct run *r, const struct variant *v)
{
	bool small = v->bytes.n < r->valid.n + 4000;

	return small && (str_starts(v->path, "secrets") || str_starts(v->path, "publish_context"));
}

static struct verdict verdict_on(const struct run *r, const struct variant *v)
{
	const struct verdict any = {is_opaque(r, v) ? OK : OK | r->scheme, NULL};
	const struct verdict refused = {CODE(ERR_INVALID_ARGUMENT), v->field};

	switch (v->kind) {
	case MUTATION_SAME:
		return (struct verdict){OK, NULL};
	case MUTATION_MISSING:
		return verdict_on_missing(r, v);
	case MUTATION_LONG:
	case MUTATION_TEXT:
	case MUTATION_NEGATIVE:
		return refused;
	case MUTATION_CONTROL:
		return str_eq(r->name, "CreateVolume") && str_eq(v->path, "name") ? refused : any;
	case MUTATION_VALUE:
		return any;
	case MUTATION_MALFORMED:
	case MUTATION_BYTES:
	case MUTATION_KINDS:
		break;
	}
	return (struct verdict){any.codes | CODE(ERR_INVALID_ARGUMENT) | CODE(ERR_INTERNAL), NULL};
}

static const char *message_of(const struct error *err)
{
	return err ? err->msg : "no error";
}

#define FAIL(r, v, err, fmt, ...)                                                                            \
	ck_abort_msg("%s %s: %s (kind %d): " fmt ": %s %s", (r)->name, (v)->path, (v)->what, (v)->kind,      \
		##__VA_ARGS__, (err) ? err_code_name((err)->code) : "OK", message_of(err))

static void judge_message(const struct run *r, const struct variant *v, const struct error *err)
{
	if (str_empty(err->msg))
		FAIL(r, v, err, "no message");
	if (!str_is_utf8(err->msg, strlen(err->msg)))
		FAIL(r, v, err, "message is not UTF-8");
	for (const char *c = err->msg; *c; c++) {
		if (str_is_control(c) || str_is_format(c))
			FAIL(r, v, err, "control or format character in message");
	}
	/* a turned bit may make the secret part of another field */
	if (v->kind != MUTATION_BYTES && strstr(err->msg, HOSTILE_SECRET))
		FAIL(r, v, err, "message shows the secret");
}

/* @unpacked: the request came as far as the handler. */
static void judge(const struct run *r, const struct variant *v, bool unpacked, const struct error *err)
{
	const struct verdict verdict = verdict_on(r, v);
	unsigned code = err ? (unsigned)err->code : 0;

	if (v->kind == MUTATION_MALFORMED && (unpacked || code != ERR_INTERNAL))
		FAIL(r, v, err, "malformed requests must be so to the parser");
	if (unpacked && code == ERR_INTERNAL)
		FAIL(r, v, err, "no request can be the cause of this");
	if (!(verdict.codes & CODE(code)))
		FAIL(r, v, err, "codes allowed are %#x", verdict.codes);
	if (!err)
		return;
	judge_message(r, v, err);
	if (verdict.named && !strstr(err->msg, verdict.named))
		FAIL(r, v, err, "message does not name %s", verdict.named);
}

static int call(const struct run *r, struct span bytes, struct arena *arena, bool *ret_unpacked,
	void **ret_reply, struct error **err)
{
	struct grpc_call call = {.arena = arena, .deadline_ns = DEADLINE_NONE};
	ProtobufCMessage *request, *reply;
	struct span packed;

	*ret_unpacked = false;
	if (grpc_protobuf_unpack(r->method->request, bytes, arena, &request, err) < 0)
		return -1;
	*ret_unpacked = true;
	reply = arena_alloc(arena, r->method->reply->sizeof_message);
	protobuf_c_message_init(r->method->reply, reply);
	if (r->method->handle(r->rpc->service->self, &call, request, reply, err) < 0)
		return -1;
	*ret_reply = reply;
	return grpc_protobuf_pack(reply, arena, &packed, err);
}

static void judge_state(const struct run *r, const struct variant *v, const struct error *err)
{
	char *after = r->rpc->look();

	if (!str_eq(r->before, after))
		FAIL(r, v, err, "it has changed something:\n%s\nbefore that:\n%s\nanswer", after, r->before);
	if (strstr(after, HOSTILE_SECRET))
		FAIL(r, v, err, "the secret is recorded");
	free(after);
}

static void try_variant(struct run *r, const struct variant *v)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	CLEANUP(error_freep) struct error *err = NULL;
	bool unpacked;
	void *reply = NULL;

	int rc = call(r, v->bytes, arena, &unpacked, &reply, &err);
	judge(r, v, unpacked, err);
	r->answered[err ? (unsigned)err->code : 0]++;
	r->n++;
	if (rc == 0 && r->rpc->undo)
		r->rpc->undo(reply);
	judge_state(r, v, err);
}

static void try_valid(struct run *r)
{
	const struct variant v = {
		.kind = MUTATION_SAME, .path = "", .field = "", .what = "valid request", .bytes = r->valid};

	try_variant(r, &v);
}

static void on_variant(void *user, const struct variant *v)
{
	struct run *r = user;

	if (r->rpc->skip && r->rpc->skip(v))
		return;
	try_variant(r, v);
	if (r->n % VALID_EVERY == 0)
		try_valid(r);
}

static void find_method(struct run *r)
{
	for (r->method = r->rpc->service->methods; r->method->path; r->method++) {
		if (str_eq(r->method->path, r->rpc->path))
			break;
	}
	ck_assert_msg(r->method->path, "%s is not served", r->rpc->path);
	r->name = strrchr(r->rpc->path, '/') + 1;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!str_eq(schemes[i].method, r->name))
			continue;
		r->scheme = schemes[i].codes;
		return;
	}
	ck_abort_msg("no error scheme of %s", r->name);
}

static void report(const struct run *r)
{
	printf("%s: %zu variants:", r->name, r->n);
	for (unsigned i = 0; i < N_CODES; i++) {
		if (r->answered[i] > 0)
			printf(" %zu %s", r->answered[i], i ? err_code_name((enum err_code)i) : "OK");
	}
	printf("\n");
	fflush(stdout);
	ck_assert_uint_ge(r->n, r->rpc->min);
}

void hostile_run(const struct hostile_rpc *rpc)
{
	uint8_t bytes[REQUEST_MAX];
	size_t n = protobuf_c_message_get_packed_size(rpc->valid);
	struct run r = {.rpc = rpc, .valid = {bytes, n}};

	ck_assert_uint_le(n, sizeof(bytes));
	protobuf_c_message_pack(rpc->valid, bytes);
	find_method(&r);
	r.before = rpc->look();
	try_valid(&r);
	mutate_fields(r.method->request, r.valid, rpc->texts, on_variant, &r);
	if (rpc->bytes)
		mutate_bytes(r.valid, on_variant, &r);
	try_valid(&r);
	free(r.before);
	report(&r);
}
