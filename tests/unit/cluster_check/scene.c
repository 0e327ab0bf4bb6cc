/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "base/buf.h"
#include "base/mem.h"
#include "controller/volume_key.h"
#include "unit/unit.h"
#include "volume/id.h"

static char *replace(char *text, const char *what, const char *by)
{
	struct buf out = BUF_INIT(1u << 16);
	const char *at = text;
	const char *hit;
	char *done;

	while ((hit = strstr(at, what)) != NULL) {
		buf_addf(&out, "%.*s%s", (int)(hit - at), at, by);
		at = hit + strlen(what);
	}
	buf_adds(&out, at);
	done = x_strdup(buf_str(&out));
	buf_done(&out);
	free(text);
	return done;
}

static char *expand(const char *json)
{
	struct volume_key key = volume_key_of_name(SCENE_VOLUME);
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key.hex, SCENE_DRIVER);
	char handle[VOLUME_ID_MAX + 1];
	char other[VOLUME_ID_MAX + 1];

	volume_id_mint(SCENE_VOLUME, "n1", handle);
	volume_id_mint(SCENE_VOLUME, "n2", other);
	return replace(replace(replace(x_strdup(json), "@H", handle), "@O", other), "@K", name);
}

static struct cluster_list *list_of(struct scene *s, unsigned part, const struct kube_kind **ret)
{
	const struct {
		unsigned part;
		const struct kube_kind *kind;
		struct cluster_list *list;
	} kinds[] = {
		{0, &kube_kind_csi_nodes, &s->lists.csi_nodes},
		{SCENE_PV, &kube_kind_volumes, &s->lists.pvs},
		{SCENE_CLAIM, &kube_kind_claims, &s->lists.claims},
		{SCENE_CLASS, &kube_kind_classes, &s->lists.classes},
		{SCENE_NODE, &kube_kind_nodes, &s->lists.nodes},
		{SCENE_PMEM_NODE, &kube_kind_pmem_nodes, &s->lists.pmem_nodes},
		{SCENE_RECORD, &kube_kind_pmem_volumes, &s->lists.pmem_volumes},
		{SCENE_CAPACITY, &kube_kind_capacities, &s->lists.capacities},
		{SCENE_CHOSEN, &kube_kind_nodes, &s->lists.chosen},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].part == part) {
			*ret = kinds[i].kind;
			return kinds[i].list;
		}
	}
	ck_abort_msg("no part %u", part);
	return NULL;
}

void scene_add(struct scene *s, unsigned part, const char *json)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *text = expand(json);
	const struct kube_kind *kind;
	struct cluster_list *list = list_of(s, part, &kind);
	void *object = kube_object_decode(kind, span_of(text), &err);

	ck_assert_msg(object != NULL, "%s: %s", text, err ? err->msg : "");
	cluster_list_add(list, object);
}

static const char * or (const char *text, const char *usual)
{
	return text ? text : usual;
}

static void add_text(struct buf *out, const char *key, const char *value)
{
	if (*value)
		buf_addf(out, ",\"%s\":\"%s\"", key, value);
}

void scene_add_record(struct scene *s, const struct scene_record *r)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1u << 16);

	buf_addf(&out, "{\"metadata\":{\"name\":\"%s\"%s},\"spec\":{\"driver\":\"pmem\",\"nodes\":%s",
		or (r->name, "@K"), or (r->metadata, ",\"finalizers\":[\"pmem-csi.intel.com/copies\"]"),
		or (r->nodes, "[\"n1\"]"));
	add_text(&out, "volumeName", or (r->volume_name, SCENE_VOLUME));
	buf_addf(&out, "%s},\"status\":{\"nodes\":%s", or (r->spec, ""),
		or (r->copies, "[{\"node\":\"n1\",\"phase\":\"Ready\"}]"));
	add_text(&out, "volumeHandle", or (r->handle, "@H"));
	add_text(&out, "phase", or (r->phase, "Ready"));
	buf_addf(&out, "%s}}", or (r->status, ""));
	scene_add(s, SCENE_RECORD, buf_str(&out));
}

static void add_unless(struct scene *s, unsigned without, unsigned part, const char *json)
{
	if (!(without & part))
		scene_add(s, part, json);
}

void scene_open(struct scene *s, unsigned without)
{
	static char storage[] = "storage=pmem";
	static char *const node_labels[] = {storage, NULL};

	*s = (struct scene){.lists = {.scope = {SCENE_DRIVER, "pmem-csi", node_labels, 0}}};
	add_unless(s, without, SCENE_PV,
		"{\"metadata\":{\"name\":\"pvc-uid-1\"},\"spec\":{\"csi\":{\"driver\":\"pmem\",\"volumeHandle\":\"@H\"},"
		"\"claimRef\":{\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"uid-1\"}},\"status\":{\"phase\":\"Bound\"}}");
	add_unless(s, without, SCENE_CLAIM,
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"uid-1\"}}");
	add_unless(s, without, SCENE_CLASS, "{\"metadata\":{\"name\":\"fast\"},\"provisioner\":\"pmem\"}");
	add_unless(
		s, without, SCENE_NODE, "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"pmem/node\":\"n1\"}}}");
	add_unless(s, without, SCENE_PMEM_NODE,
		"{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\",\"driver\":\"pmem\"},"
		"\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	if (!(without & SCENE_RECORD))
		scene_add_record(s, &(const struct scene_record){0});
	add_unless(s, without, SCENE_CAPACITY,
		"{\"metadata\":{\"name\":\"csisc-1\",\"namespace\":\"pmem-csi\"},\"storageClassName\":\"fast\","
		"\"nodeTopology\":{\"matchLabels\":{\"pmem/node\":\"n1\"}}}");
}

void scene_close(struct scene *s)
{
	cluster_findings_done(&s->findings);
	cluster_lists_done(&s->lists);
}

char *scene_compare(struct scene *s)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(1u << 16);

	cluster_findings_done(&s->findings);
	cluster_compare(&s->lists, &s->findings);
	for (size_t i = 0; i < s->findings.n; i++) {
		const struct cluster_finding *f = &s->findings.list[i];

		ck_assert(strlen(f->text) > 10 && strlen(cluster_reason_remedy(f->reason)) > 10);
		buf_addf(&out, "%s %s/%s %s %s\n", cluster_reason_name(f->reason), f->kind, f->name,
			f->node ? f->node : "-", f->claim ? f->claim : "-");
	}
	return x_strdup(buf_str(&out));
}
