/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/cxl/cxl_regions.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/cxl/cxl_match.h"
#include "pmem/cxl/cxl_record.h"

/* One run of cxl_regions_settle(). */
struct settling {
	const struct cxl *cxl;
	const char *state_path;
	enum cxl_rule rule;
	struct cxl_records records;
	struct cxl_topology t;
	struct cxl_findings *f;
	bool changed; /* @t is out of date */
};

static bool is_problem(enum cxl_finding_kind kind)
{
	return kind == CXL_MISSING || kind == CXL_PROBLEM;
}

__attribute__((format(printf, 3, 4))) static void add(
	struct cxl_findings *f, enum cxl_finding_kind kind, const char *fmt, ...)
{
	va_list ap;

	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	va_start(ap, fmt);
	f->list[f->n++] = (struct cxl_finding){kind, x_vasprintf(fmt, ap)};
	va_end(ap);
	f->n_problems += is_problem(kind);
}

/* A finding about the region @l, which is named by its devices. */
static void add_about(
	struct cxl_findings *f, enum cxl_finding_kind kind, const struct cxl_layout *l, const char *text)
{
	CLEANUP(free_charp) char *serials = cxl_serials(l);

	add(f, kind, "CXL region %s of devices %s %s", l->uuid, serials, text);
}

static void add_failure(
	struct cxl_findings *f, const struct cxl_layout *l, const char *what, const struct error *why)
{
	CLEANUP(free_charp) char *text = x_asprintf("%s: %s", what, why->msg);

	add_about(f, CXL_PROBLEM, l, text);
}

/* --- recorded regions */

static void make_again(struct settling *s, const struct cxl_layout *record)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (s->rule == CXL_LOOK) {
		add_about(s->f, CXL_MISSING, record,
			"is recorded and missing; pmem-ns-init create makes it again");
		return;
	}
	s->changed = true;
	if (cxl_make(s->cxl, record, &err) < 0)
		add_failure(s->f, record, "could not be made again", err);
	else
		add_about(s->f, CXL_MADE_AGAIN, record, "was made again");
}

static void settle_record(struct settling *s, const struct cxl_layout *record)
{
	CLEANUP(free_charp) char *why = NULL;

	switch (cxl_match(record, &s->t, &why)) {
	case CXL_THERE:
		add_about(s->f, CXL_AS_RECORDED, record, "is as it was recorded");
		break;
	case CXL_TO_MAKE:
		make_again(s, record);
		break;
	case CXL_REFUSED: {
		CLEANUP(free_charp) char *path = cxl_record_path(s->state_path, record->uuid);
		CLEANUP(free_charp)
		char *text = x_asprintf("is not as it was recorded: %s (record: %s)", why, path);
		add_about(s->f, CXL_PROBLEM, record, text);
		break;
	}
	}
}

/* --- regions without a record */

static bool is_claimed(const struct settling *s, const struct cxl_set *set)
{
	for (size_t i = 0; i < s->records.n; i++)
		if (cxl_set_touches(set, &s->records.list[i]))
			return true;
	return false;
}

static void settle_set(struct settling *s, const struct cxl_set *set)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct cxl_layout l = set->layout;

	if (!set->committed || !set->enabled || is_claimed(s, set))
		return;
	if (cxl_layout_check(&l, &err) < 0) {
		add(s->f, CXL_PROBLEM,
			"CXL region %s cannot be recorded, and has to be made by hand after each boot: %s",
			set->name, err->msg);
		return;
	}
	/* The damaged record may be that of the same devices in another order. */
	if (s->records.damaged) {
		add_about(s->f, CXL_PROBLEM, &l, "is not recorded as long as a record cannot be used");
		return;
	}
	if (s->rule == CXL_LOOK) {
		add_about(s->f, CXL_NOT_RECORDED, &l, "is not recorded yet; pmem-ns-init create records it");
		return;
	}
	if (cxl_record_write(s->state_path, &l, &err) < 0) {
		add_failure(s->f, &l, "could not be recorded, and is not made again after a boot", err);
		return;
	}
	cxl_records_add(&s->records, &l);
	add_about(s->f, CXL_NOW_RECORDED, &l, "is now recorded");
}

/* --- new regions */

static int check_labels(const struct settling *s, const struct cxl_layout *l, struct error **err)
{
	for (size_t i = 0; i < s->t.n_devices; i++) {
		const struct cxl_device *d = &s->t.devices[i];
		bool mine = false;
		bool empty = false;

		for (unsigned k = 0; k < l->ways; k++)
			mine = mine || l->places[k].serial == d->serial;
		if (!mine)
			continue;
		if (cxl_labels_are_empty(s->cxl, d->name, &empty, err) < 0)
			return -1;
		if (!empty)
			return err_set(err, ERR_PRECONDITION,
				"the label area of %s (0x%jx) is not empty: make the region by hand, with the devices "
				"in the order in which they were (cxl create-region), or erase the labels (cxl "
				"zero-labels %s)",
				d->name, (uintmax_t)d->serial, d->name);
	}
	return 0;
}

/* The record comes first, so that a region that holds something is always known. */
static int create(struct settling *s, const struct cxl_layout *l, struct error **err)
{
	CLEANUP(error_freep) struct error *second = NULL;

	if (check_labels(s, l, err) < 0 || cxl_record_write(s->state_path, l, err) < 0)
		return -1;
	s->changed = true;
	if (cxl_make(s->cxl, l, err) == 0) {
		cxl_records_add(&s->records, l);
		return 0;
	}
	/* After this failure the region is complete, so its record stays. */
	if ((*err)->code == ERR_UNAVAILABLE)
		return -1;
	if (cxl_record_remove(s->state_path, l->uuid, &second) < 0)
		return err_wrap(err, "its record cannot be removed (%s)", second->msg);
	return -1;
}

static void create_below(struct settling *s, size_t root)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct cxl_layout l;

	if (cxl_plan_new(&s->t, &s->records, root, &l, &err) < 0) {
		add(s->f, CXL_PROBLEM, "%s", err->msg);
		return;
	}
	if (l.ways == 0)
		return;
	uuid_generate_text(l.uuid);
	if (create(s, &l, &err) < 0)
		add_failure(s->f, &l, "could not be made", err);
	else
		add_about(s->f, CXL_MADE_NEW, &l, "was made");
}

/* --- all of them */

static int look_again(struct settling *s, struct error **err)
{
	if (!s->changed)
		return 0;
	cxl_topology_done(&s->t);
	s->changed = false;
	return cxl_read(s->cxl, &s->t, err);
}

static int settle(struct settling *s, struct error **err)
{
	if (cxl_read(s->cxl, &s->t, err) < 0 || cxl_records_read(s->state_path, &s->records, err) < 0)
		return -1;
	for (char **text = s->records.damaged; text && *text; text++)
		add(s->f, CXL_PROBLEM, "the record of a CXL region cannot be used: %s", *text);
	for (char **name = s->t.unreadable; name && *name; name++) {
		CLEANUP(free_charp) char *why = cxl_unreadable_why(*name);
		add(s->f, CXL_PROBLEM,
			"CXL memory device %s cannot be read: %s; in a container mount the host's /dev",
			*name, why);
	}
	for (size_t i = 0; i < s->records.n; i++)
		settle_record(s, &s->records.list[i]);
	if (look_again(s, err) < 0)
		return -1;
	for (size_t i = 0; i < s->t.n_sets; i++)
		settle_set(s, &s->t.sets[i]);
	/* Devices of a record that cannot be read look unused, and one that cannot be read would be left out.
	 */
	if (s->rule != CXL_CREATE || s->records.damaged || s->t.unreadable)
		return 0;
	for (size_t i = 0; i < s->t.n_roots; i++) {
		create_below(s, i);
		if (look_again(s, err) < 0)
			return -1;
	}
	return 0;
}

int cxl_regions_settle(const struct cxl *cxl, const char *state_path, enum cxl_rule rule,
	struct cxl_findings *ret, struct error **err)
{
	struct settling s = {.cxl = cxl, .state_path = state_path, .rule = rule, .f = ret};

	*ret = (struct cxl_findings){0};
	int rc = settle(&s, err);
	cxl_topology_done(&s.t);
	cxl_records_done(&s.records);
	return rc < 0 ? err_wrap(err, "CXL regions") : 0;
}

int cxl_rule_parse(const char *text, enum cxl_rule *ret, struct error **err)
{
	if (str_eq(text, "off"))
		*ret = CXL_OFF;
	else if (str_eq(text, "keep"))
		*ret = CXL_KEEP;
	else if (str_eq(text, "create"))
		*ret = CXL_CREATE;
	else
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not keep, create or off", text);
	return 0;
}

int cxl_regions_look(const char *state_path, struct cxl_findings *ret, struct error **err)
{
	const struct cxl *cxl = cxl_real();

	*ret = (struct cxl_findings){0};
	return cxl ? cxl_regions_settle(cxl, state_path, CXL_LOOK, ret, err) : 0;
}

bool cxl_regions_start(const char *state_path, enum cxl_rule rule)
{
	CLEANUP(cxl_findings_done) struct cxl_findings f = {0};
	CLEANUP(error_freep) struct error *err = NULL;
	const struct cxl *cxl = cxl_real();

	if (rule == CXL_OFF || !cxl)
		return true;
	int rc = cxl_regions_settle(cxl, state_path, rule, &f, &err);
	for (size_t i = 0; i < f.n; i++)
		LOG_AT(is_problem(f.list[i].kind) ? LOG_WARN : LOG_INFO, f.list[i].text);
	if (rc < 0)
		log_warn("CXL regions could not be made again", F_ERR(err));
	return rc == 0 && f.n_problems == 0;
}

void cxl_findings_done(struct cxl_findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].text);
	free(f->list);
	*f = (struct cxl_findings){0};
}
