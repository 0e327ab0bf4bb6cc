/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "pmem/lvm/lvm.h"

/* One row of a report: what LVM prints are strings only. A field that the report lacks is "". */
enum field {
	PV_NAME,
	PV_SIZE,
	PV_MISSING,
	PV_UUID,
	PV_ALLOCATABLE,
	PV_FREE,
	VG_NAME,
	VG_UUID,
	VG_SEQNO,
	VG_MDA_SIZE,
	VG_MDA_FREE,
	VG_SIZE,
	VG_FREE,
	VG_EXTENT_SIZE,
	VG_MISSING_PV_COUNT,
	VG_EXPORTED,
	VG_SYSTEMID,
	MAX_LV,
	LV_COUNT,
	PE_START,
	PVSEG_START,
	PVSEG_SIZE,
	LV_NAME,
	LV_UUID,
	LV_PATH,
	LV_TAGS,
	LV_SIZE,
	LV_ACTIVE,
	SEG_PE_RANGES,
	LOG_TYPE,
	LOG_MESSAGE,
	LOG_RET_CODE,
	N_FIELDS,
};

static const char *const field_names[N_FIELDS] = {
	[PV_NAME] = "pv_name",
	[PV_SIZE] = "pv_size",
	[PV_MISSING] = "pv_missing",
	[PV_UUID] = "pv_uuid",
	[PV_ALLOCATABLE] = "pv_allocatable",
	[PV_FREE] = "pv_free",
	[VG_NAME] = "vg_name",
	[VG_UUID] = "vg_uuid",
	[VG_SEQNO] = "vg_seqno",
	[VG_MDA_SIZE] = "vg_mda_size",
	[VG_MDA_FREE] = "vg_mda_free",
	[VG_SIZE] = "vg_size",
	[VG_FREE] = "vg_free",
	[VG_EXTENT_SIZE] = "vg_extent_size",
	[VG_MISSING_PV_COUNT] = "vg_missing_pv_count",
	[VG_EXPORTED] = "vg_exported",
	[VG_SYSTEMID] = "vg_systemid",
	[MAX_LV] = "max_lv",
	[LV_COUNT] = "lv_count",
	[PE_START] = "pe_start",
	[PVSEG_START] = "pvseg_start",
	[PVSEG_SIZE] = "pvseg_size",
	[LV_NAME] = "lv_name",
	[LV_UUID] = "lv_uuid",
	[LV_PATH] = "lv_path",
	[LV_TAGS] = "lv_tags",
	[LV_SIZE] = "lv_size",
	[LV_ACTIVE] = "lv_active",
	[SEG_PE_RANGES] = "seg_pe_ranges",
	[LOG_TYPE] = "log_type",
	[LOG_MESSAGE] = "log_message",
	[LOG_RET_CODE] = "log_ret_code",
};

struct row {
	char *values[N_FIELDS];
};

static void row_done(struct row *row)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		free(row->values[i]);
}

static const char *get(const struct row *row, enum field field)
{
	return row->values[field] ? row->values[field] : "";
}

/* A report without the field leaves @ret as it is. */
static int get_u64(const struct row *row, enum field field, uint64_t *ret, struct error **err)
{
	if (!row->values[field])
		return 0;
	if (parse_u64(get(row, field), ret, err) < 0)
		return err_wrap(err, "%s", field_names[field]);
	return 0;
}

static void keep_value(struct row *row, const char *key, const char *value)
{
	for (size_t i = 0; i < N_FIELDS; i++)
		if (str_eq(key, field_names[i]) && !row->values[i])
			row->values[i] = x_strdup(value);
}

/* Reads from behind the '{' on. */
static int read_row(struct json_reader *j, struct row *row, struct error **err)
{
	struct json_event e;

	for (;;) {
		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_OBJECT_END)
			return 0;

		CLEANUP(free_charp) char *key = x_strdup(e.text);
		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_STRING)
			keep_value(row, key, e.text);
		else if (json_skip(j, &e, err) < 0)
			return -1;
	}
}

typedef int (*row_fn)(void *user, const struct row *row, struct error **err);

/* An array of rows, from behind its key on. */
static int read_rows(struct json_reader *j, row_fn fn, void *user, struct error **err)
{
	struct json_event e;

	if (json_expect(j, JSON_ARRAY, &e, err) < 0)
		return -1;
	for (;;) {
		CLEANUP(row_done) struct row row = {0};

		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_ARRAY_END)
			return 0;
		if (e.type != JSON_OBJECT)
			return err_set(err, ERR_INVALID_ARGUMENT, "a row of the report is not an object");
		if (read_row(j, &row, err) < 0)
			return -1;
		if (fn(user, &row, err) < 0)
			return -1;
	}
}

/* The reports that a command printed: arrays of rows under the kind of their rows. */
static int read_reports(struct json_reader *j, row_fn fn, void *user, struct error **err)
{
	struct json_event e;

	if (json_expect(j, JSON_ARRAY, &e, err) < 0)
		return -1;
	for (;;) {
		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_ARRAY_END)
			return 0;
		if (e.type == JSON_OBJECT || e.type == JSON_OBJECT_END)
			continue;
		if (e.type != JSON_KEY)
			return err_set(err, ERR_INVALID_ARGUMENT, "the report has no rows");
		if (read_rows(j, fn, user, err) < 0)
			return -1;
	}
}

/* Reads an answer of LVM, which is a JSON object with the member "report" and, if LVM runs as a shell,
 * "log". */
static int read_answer(struct span json, bool log, row_fn fn, void *user, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *j = json_reader_new(json);
	struct json_event e;

	if (json_expect(j, JSON_OBJECT, &e, err) < 0)
		return -1;
	for (;;) {
		int rc = 0;

		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_OBJECT_END)
			return json_expect(j, JSON_END, &e, err);
		if (str_eq(e.text, "report") && !log)
			rc = read_reports(j, fn, user, err);
		else if (str_eq(e.text, "log") && log)
			rc = read_rows(j, fn, user, err);
		else if (json_next(j, &e, err) < 0 || json_skip(j, &e, err) < 0)
			rc = -1;
		if (rc < 0)
			return -1;
	}
}

/* LVM's own parts of other volumes have names, too, in brackets. */
static int add_free(struct lvm_report *r, const struct row *row, struct error **err)
{
	struct lvm_free f = {0};

	if (get_u64(row, PE_START, &f.start_bytes, err) < 0 || get_u64(row, PVSEG_START, &f.first, err) < 0 ||
		get_u64(row, PVSEG_SIZE, &f.n, err) < 0)
		return -1;
	if (f.n == 0 || *get(row, LV_NAME))
		return 0;
	f.pv_path = x_strdup(get(row, PV_NAME));
	r->free = x_realloc(r->free, r->n_free + 1, sizeof(*r->free));
	r->free[r->n_free++] = f;
	return 0;
}

static int add_pv(struct lvm_report *r, const struct row *row, struct error **err)
{
	uint64_t size = 0;
	uint64_t free_bytes = 0;

	if (!*get(row, PV_NAME))
		return 0;
	if (get_u64(row, PV_SIZE, &size, err) < 0 || get_u64(row, PV_FREE, &free_bytes, err) < 0)
		return -1;
	bool allocatable = !row->values[PV_ALLOCATABLE] || *get(row, PV_ALLOCATABLE);
	r->pvs = x_realloc(r->pvs, r->n_pvs + 1, sizeof(*r->pvs));
	r->pvs[r->n_pvs++] = (struct lvm_pv){
		.path = x_strdup(get(row, PV_NAME)),
		.uuid = x_strdup(get(row, PV_UUID)),
		.vg_name = x_strdup(get(row, VG_NAME)),
		.vg_uuid = x_strdup(get(row, VG_UUID)),
		.size_bytes = size,
		.withheld_bytes = allocatable ? 0 : free_bytes,
		.missing = *get(row, PV_MISSING),
	};
	return allocatable ? add_free(r, row, err) : 0;
}

static int add_vg(struct lvm_report *r, const struct row *row, struct error **err)
{
	struct lvm_vg vg = {0};
	uint64_t missing = 0;
	uint64_t n_lvs = 0;

	if (!*get(row, VG_NAME))
		return 0;
	if (get_u64(row, VG_SIZE, &vg.size_bytes, err) < 0)
		return -1;
	if (get_u64(row, VG_FREE, &vg.free_bytes, err) < 0)
		return -1;
	if (get_u64(row, VG_EXTENT_SIZE, &vg.extent_bytes, err) < 0)
		return -1;
	if (get_u64(row, VG_MISSING_PV_COUNT, &missing, err) < 0)
		return -1;
	if (get_u64(row, VG_SEQNO, &vg.seqno, err) < 0)
		return -1;
	if (get_u64(row, VG_MDA_SIZE, &vg.mda_bytes, err) < 0)
		return -1;
	if (get_u64(row, VG_MDA_FREE, &vg.mda_free_bytes, err) < 0)
		return -1;
	if (get_u64(row, MAX_LV, &vg.max_lvs, err) < 0)
		return -1;
	if (get_u64(row, LV_COUNT, &n_lvs, err) < 0)
		return -1;
	vg.more_lvs = n_lvs < vg.max_lvs ? vg.max_lvs - n_lvs : 0;
	vg.missing_pvs = (unsigned)missing;
	vg.exported = *get(row, VG_EXPORTED);
	vg.name = x_strdup(get(row, VG_NAME));
	vg.uuid = x_strdup(get(row, VG_UUID));
	vg.system_id = x_strdup(get(row, VG_SYSTEMID));
	r->vgs = x_realloc(r->vgs, r->n_vgs + 1, sizeof(*r->vgs));
	r->vgs[r->n_vgs++] = vg;
	return 0;
}

/* Parts of 0 bytes are left out. */
static void split(const char *text, char separator, char ***to)
{
	const char separators[] = {separator, '\0'};

	while (*text) {
		size_t n = strcspn(text, separators);
		CLEANUP(free_charp) char *part = x_strndup(text, n);

		if (n > 0)
			strv_add(to, part);
		text += n + (text[n] == separator);
	}
}

static int add_lv(struct lvm_report *r, const struct row *row, struct error **err)
{
	const char *name = get(row, LV_NAME);
	char **tags = NULL;
	uint64_t size = 0;

	/* LVM's own parts of other volumes are shown in brackets (report/mark_hidden_devices). */
	if (!*name || *name == '[')
		return 0;
	if (get_u64(row, LV_SIZE, &size, err) < 0)
		return -1;
	split(get(row, LV_TAGS), ',', &tags);
	r->lvs = x_realloc(r->lvs, r->n_lvs + 1, sizeof(*r->lvs));
	r->lvs[r->n_lvs++] = (struct lvm_lv){
		.name = x_strdup(name),
		.uuid = x_strdup(get(row, LV_UUID)),
		.vg_uuid = x_strdup(get(row, VG_UUID)),
		.vg_name = x_strdup(get(row, VG_NAME)),
		.path = x_strdup(get(row, LV_PATH)),
		.tags = tags,
		.size_bytes = size,
		.active = str_eq(get(row, LV_ACTIVE), "active"),
	};
	return 0;
}

static int add_row(void *user, const struct row *row, struct error **err)
{
	struct lvm_report *r = user;

	if (add_pv(r, row, err) < 0)
		return -1;
	if (add_vg(r, row, err) < 0)
		return -1;
	return add_lv(r, row, err);
}

static void pv_done(void *p)
{
	struct lvm_pv *pv = p;

	free(pv->path);
	free(pv->uuid);
	free(pv->vg_name);
	free(pv->vg_uuid);
}

static void vg_done(void *p)
{
	struct lvm_vg *vg = p;

	free(vg->name);
	free(vg->uuid);
	free(vg->system_id);
	strv_free(vg->usable);
}

static void lv_done(void *p)
{
	struct lvm_lv *lv = p;

	free(lv->name);
	free(lv->uuid);
	free(lv->vg_uuid);
	free(lv->vg_name);
	free(lv->path);
	strv_free(lv->tags);
}

static int compare_pvs(const void *a, const void *b)
{
	const struct lvm_pv *x = a, *y = b;
	int by_path = strcmp(x->path, y->path);

	return by_path ? by_path : strcmp(x->vg_uuid, y->vg_uuid);
}

static int compare_vgs(const void *a, const void *b)
{
	const struct lvm_vg *x = a, *y = b;

	return strcmp(x->uuid, y->uuid);
}

static int compare_lvs(const void *a, const void *b)
{
	const struct lvm_lv *x = a, *y = b;
	int by_name = strcmp(x->name, y->name);

	return by_name ? by_name : strcmp(x->vg_uuid, y->vg_uuid);
}

/* A PV, VG or LV has a row for each of its segments. Return: how many remain. */
static size_t make_unique(
	void *items, size_t n, size_t size, int (*compare)(const void *, const void *), void (*done)(void *))
{
	char *base = items;
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(base, n, size, compare);
	for (size_t i = 1; i < n; i++) {
		if (compare(base + kept * size, base + i * size) == 0)
			done(base + i * size);
		else if (++kept != i)
			memcpy(base + kept * size, base + i * size, size);
	}
	return kept + 1;
}

/* LVM counts the free space of devices from which nothing is allocated (pvchange -xn) as free space of the
 * group. */
static void subtract_withheld(struct lvm_report *r)
{
	for (size_t i = 0; i < r->n_vgs; i++) {
		struct lvm_vg *vg = &r->vgs[i];
		uint64_t withheld = 0;

		for (size_t k = 0; k < r->n_pvs; k++) {
			if (str_eq(r->pvs[k].vg_uuid, vg->uuid))
				withheld += r->pvs[k].withheld_bytes;
		}
		vg->free_bytes -= withheld < vg->free_bytes ? withheld : vg->free_bytes;
	}
}

int lvm_report_parse(struct span json, struct lvm_report *r, struct error **err)
{
	int rc = read_answer(json, /* log= */ false, add_row, r, err);

	r->n_pvs = make_unique(r->pvs, r->n_pvs, sizeof(*r->pvs), compare_pvs, pv_done);
	r->n_vgs = make_unique(r->vgs, r->n_vgs, sizeof(*r->vgs), compare_vgs, vg_done);
	r->n_lvs = make_unique(r->lvs, r->n_lvs, sizeof(*r->lvs), compare_lvs, lv_done);
	subtract_withheld(r);
	return rc;
}

/* A segment that is striped or mirrored has several, with blanks between them. */
static int add_ranges(void *user, const struct row *row, struct error **err)
{
	char ***ranges = user;

	(void)err;
	split(get(row, SEG_PE_RANGES), ' ', ranges);
	return 0;
}

int lvm_ranges_parse(struct span json, char ***ret, struct error **err)
{
	CLEANUP(strv_freep) char **ranges = NULL;

	if (read_answer(json, /* log= */ false, add_ranges, &ranges, err) < 0)
		return -1;
	*ret = TAKE_PTR(ranges);
	return 0;
}

void lvm_report_free(struct lvm_report *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_pvs; i++)
		pv_done(&r->pvs[i]);
	for (size_t i = 0; i < r->n_vgs; i++)
		vg_done(&r->vgs[i]);
	for (size_t i = 0; i < r->n_lvs; i++)
		lv_done(&r->lvs[i]);
	for (size_t i = 0; i < r->n_free; i++)
		free(r->free[i].pv_path);
	free(r->free);
	free(r->pvs);
	free(r->vgs);
	free(r->lvs);
	free(r);
}

#define MESSAGES_MAX_BYTES 2048
#define RET_CODE_SUCCESS   "1" /* ECMD_PROCESSED of LVM's lib/commands/errors.h */

struct verdict {
	bool ended, succeeded;
	struct buf messages;
};

static int judge_row(void *user, const struct row *row, struct error **err)
{
	struct verdict *v = user;

	(void)err;
	if (str_eq(get(row, LOG_TYPE), "status")) {
		v->ended = true;
		v->succeeded = str_eq(get(row, LOG_RET_CODE), RET_CODE_SUCCESS);
	} else if (str_eq(get(row, LOG_TYPE), "error")) {
		buf_addf(&v->messages, "%s%s", v->messages.len > 0 ? "; " : "", get(row, LOG_MESSAGE));
	}
	return 0;
}

static void verdict_done(struct verdict *v)
{
	buf_done(&v->messages);
}

const struct lvm_pv *lvm_report_pv(const struct lvm_report *r, const char *path)
{
	for (size_t i = 0; i < r->n_pvs; i++)
		if (str_eq(r->pvs[i].path, path))
			return &r->pvs[i];
	return NULL;
}

bool lvm_vg_is_withheld(const struct lvm_vg *vg)
{
	return vg->exported || !str_empty(vg->system_id);
}

/* The characters that lvmsystemid(7) allows need no quoting in a shell. */
static char *describe_owner(const struct lvm_vg *vg)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";

	if (vg->system_id[strspn(vg->system_id, allowed)])
		return x_asprintf(
			"volume group %s has a malformed LVM system ID, so LVM does not use it", vg->name);
	return x_asprintf(
		"volume group %s has the LVM system ID \"%s\" of another machine, so LVM does not use "
		"it here; if no other machine has these devices, take it over, with its volumes: lvm "
		"vgchange -y --config \"global/system_id_source=lvmlocal local/system_id=%s\" "
		"--systemid '' %s",
		vg->name, vg->system_id, vg->system_id, vg->name);
}

char *lvm_vg_obstacle(const struct lvm_vg *vg)
{
	if (!str_empty(vg->system_id))
		return describe_owner(vg);
	if (vg->exported)
		return x_asprintf(
			"volume group %s is exported, so LVM does not use it; import it with \"vgimport %s\"",
			vg->name, vg->name);
	if (vg->missing_pvs > 0)
		return x_asprintf("volume group %s is incomplete: %u of its devices are missing", vg->name,
			vg->missing_pvs);
	return NULL;
}

int lvm_answer_check(struct span answer, struct error **err)
{
	CLEANUP(verdict_done) struct verdict v = {.messages = BUF_INIT(MESSAGES_MAX_BYTES)};

	if (read_answer(answer, /* log= */ true, judge_row, &v, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "answer of LVM's shell");
	}
	if (!v.ended)
		return err_set(err, ERR_UNAVAILABLE, "LVM's shell does not say how the command ended");
	if (!v.succeeded)
		return err_set(
			err, ERR_INTERNAL, "%s", v.messages.len > 0 ? buf_str(&v.messages) : "no message");
	return 0;
}
