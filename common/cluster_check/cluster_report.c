/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_report.h"

#include "base/json/json.h"
#include "base/mem.h"
#include "os/table.h"

static void add_row(struct table *t, const struct cluster_finding *f)
{
	CLEANUP(free_charp) char *object = x_asprintf("%s/%s", f->kind, f->name);

	table_cell(t, cluster_reason_name(f->reason));
	table_cell(t, object);
	table_cell(t, f->handle);
	table_cell(t, f->node);
	table_cell(t, f->claim);
	table_cell(t, f->text);
}

static void write_table(const struct cluster_findings *f, struct buf *out)
{
	static const char *const titles[] = {"REASON", "OBJECT", "HANDLE", "NODE", "CLAIM", "WHAT"};
	CLEANUP(table_done) struct table t = {.n_columns = ARRAY_SIZE(titles)};

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		table_cell(&t, titles[i]);
	for (size_t i = 0; i < f->n; i++)
		add_row(&t, &f->list[i]);
	table_write(&t, out);
}

static void write_remedies(const struct cluster_findings *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		enum cluster_reason reason = f->list[i].reason;

		if (i == 0 || f->list[i - 1].reason != reason)
			buf_addf(out, "%s: %s\n", cluster_reason_name(reason), cluster_reason_remedy(reason));
	}
}

void cluster_report_text(const struct cluster_lists *l, const struct cluster_findings *f, struct buf *out)
{
	if (f->n > 0) {
		write_table(f, out);
		buf_addc(out, '\n');
		write_remedies(f, out);
		buf_addc(out, '\n');
	}
	buf_addf(out,
		"%zu PersistentVolumes, %zu PmemVolumes, %zu PmemNodes, %zu CSIStorageCapacities: ", l->pvs.n,
		l->pmem_volumes.n, l->pmem_nodes.n, l->capacities.n);
	if (f->n > 0)
		buf_addf(out, "%zu findings", f->n);
	else
		buf_adds(out, "consistent");
	if (f->n_creating > 0)
		buf_addf(out, ", %zu being created", f->n_creating);
	if (f->n_deleting > 0)
		buf_addf(out, ", %zu being deleted", f->n_deleting);
	buf_addc(out, '\n');
}

static void add_finding(struct json_writer *w, const struct cluster_finding *f)
{
	json_object(w);
	json_key_str(w, "reason", cluster_reason_name(f->reason));
	json_key_str(w, "kind", f->kind);
	json_key_str(w, "name", f->name);
	json_key_known(w, "volumeHandle", f->handle);
	json_key_known(w, "claim", f->claim);
	json_key_known(w, "node", f->node);
	json_key_str(w, "text", f->text);
	json_key_str(w, "remedy", cluster_reason_remedy(f->reason));
	json_object_end(w);
}

void cluster_report_json(const struct cluster_lists *l, const struct cluster_findings *f, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key_str(&w, "driver", l->scope.driver_name);
	json_key_bool(&w, "consistent", f->n == 0);
	json_key_u64(&w, "persistentVolumes", l->pvs.n);
	json_key_u64(&w, "pmemVolumes", l->pmem_volumes.n);
	json_key_u64(&w, "creating", f->n_creating);
	json_key_u64(&w, "deleting", f->n_deleting);
	json_key_u64(&w, "pmemNodes", l->pmem_nodes.n);
	json_key_u64(&w, "capacities", l->capacities.n);
	json_key(&w, "findings");
	json_array(&w);
	for (size_t i = 0; i < f->n; i++)
		add_finding(&w, &f->list[i]);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}
