/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/health/health.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define DIMMS_TEXT_MAX 256 /* names of modules in a message; more are not named */

#define TEXT_MAX (HEALTH_STATUSES_MAX * (HEALTH_MESSAGE_MAX + HEALTH_REASON_MAX + 4))

/* Texts that are the same on all nodes; the log of the node has the details. */
static const struct {
	const char *reason;
	const char *text;
} reasons[HEALTH_REASONS + 1] = {
	{HEALTH_MEDIA_ERROR, "part of its memory cannot be read"},
	{HEALTH_DEVICE_MISSING, "its device is not available, or its pool is absent or incomplete"},
	{HEALTH_STATE_DAMAGED, "its state file cannot be read"},
	{HEALTH_FS_READONLY,
		"its file system has become read-only after an error, until it is mounted again"},
	{HEALTH_FS_FULL, "its file system has no space or no inodes left"},
	{HEALTH_FS_ERROR, "ext4 has found errors in its metadata"},
	{HEALTH_FS_SHUT_DOWN, "its file system was shut down after an error, until it is mounted again"},
	{HEALTH_FS_HANGS, "its file system does not answer"},
	{HEALTH_DIMM_LOST_DATA, "memory modules have lost content, which may be anywhere in the volume"},
	{HEALTH_DIRTY_SHUTDOWN,
		"memory modules lost power before everything was saved: what was written last may be missing anywhere in the volume"},
	{HEALTH_DIMM_DEGRADED, "memory modules report trouble"},
	{HEALTH_OTHER,
		"its driver, which is of a later release, reports trouble that the controller does not know"},
};

const char *health_reason_at(size_t i)
{
	return reasons[i].reason;
}

static size_t find_reason(const char *reason)
{
	size_t i = 0;

	while (i < HEALTH_REASONS && !str_eq(reasons[i].reason, reason))
		i++;
	return i;
}

const char *health_reason_known(const char *reason)
{
	return reasons[find_reason(reason)].reason;
}

const char *health_reason_text(const char *reason)
{
	return reasons[find_reason(reason)].text;
}

void health_add(
	struct volume_health *h, enum health_severity severity, const char *reason, const char *fmt, ...)
{
	va_list ap;

	if (h->n == HEALTH_STATUSES_MAX)
		return;
	h->list = x_realloc(h->list, h->n + 1, sizeof(*h->list));
	va_start(ap, fmt);
	h->list[h->n++] = (struct health_status){
		.severity = severity, .reason = x_strdup(reason), .message = x_vasprintf(fmt, ap)};
	va_end(ap);
}

void health_add_media_errors(struct volume_health *h, const struct media_errors *e)
{
	const struct media_error *first = &e->list[0];

	if (e->n == 0)
		return;
	CLEANUP(free_charp)
	char *more = e->bytes > first->length_bytes
			     ? x_asprintf(", and further ones, %ju bytes in all", (uintmax_t)e->bytes)
			     : x_strdup("");
	const char *cut = e->is_cut ? ", and there may be more than the kernel lists" : "";
	health_add(h, HEALTH_DATA_LOSS, HEALTH_MEDIA_ERROR,
		"its memory cannot be read: %ju bytes at offset %ju of the device%s%s",
		(uintmax_t)first->length_bytes, (uintmax_t)first->offset_bytes, more, cut);
}

static void name_dimm(struct buf *text, const struct dimm *d, const char *what)
{
	CLEANUP(free_charp)
	char *one = x_asprintf("%s%s%s%s%s%s%s", text->len > 0 ? ", " : "", d->name, *d->id ? " (" : "",
		d->id, *d->id ? ")" : "", *what ? ": " : "", what);

	if (text->len + strlen(one) < DIMMS_TEXT_MAX)
		buf_adds(text, one);
}

/* Return: the modules that have one of the problems of @mask, with these. Caller frees. */
static char *name_failed(const struct dimms *d, const bool *below, unsigned mask)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DIMMS_TEXT_MAX);

	for (size_t i = 0; i < d->n; i++) {
		CLEANUP(free_charp) char *problems = dimm_problems_text(d->list[i].problems & mask);

		if (below[i] && *problems)
			name_dimm(&text, &d->list[i], problems);
	}
	return x_strdup(buf_str(&text));
}

static char *name_dirty(const struct dimms *d, const bool *below)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(DIMMS_TEXT_MAX);

	for (size_t i = 0; i < d->n; i++) {
		if (below[i] && d->list[i].rose_by > 0)
			name_dimm(&text, &d->list[i], "");
	}
	return x_strdup(buf_str(&text));
}

void health_add_dimms(struct volume_health *h, const struct dimms *d, const bool *below)
{
	CLEANUP(free_charp) char *lost = name_failed(d, below, DIMM_LOSSES);
	CLEANUP(free_charp) char *dirty = name_dirty(d, below);
	CLEANUP(free_charp) char *others = name_failed(d, below, ~(unsigned)DIMM_LOSSES);

	if (*lost)
		health_add(h, HEALTH_DATA_LOSS, HEALTH_DIMM_LOST_DATA,
			"memory modules have lost content at the last shutdown or start, which may be "
			"anywhere in the volume: %s",
			lost);
	if (*dirty)
		health_add(h, HEALTH_DATA_LOSS, HEALTH_DIRTY_SHUTDOWN,
			"memory modules lost power before everything was saved: what was written last may be "
			"missing anywhere in the volume: %s",
			dirty);
	if (*others)
		health_add(h, HEALTH_DEGRADED, HEALTH_DIMM_DEGRADED, "memory modules report trouble: %s",
			others);
}

void health_add_phase(struct volume_health *h, enum volume_phase phase)
{
	if (phase == PHASE_MISSING)
		health_add(h, HEALTH_INACCESSIBLE, HEALTH_DEVICE_MISSING,
			"its device is not available, or its pool is absent or incomplete");
	else if (phase == PHASE_DAMAGED)
		health_add(h, HEALTH_DEGRADED, HEALTH_STATE_DAMAGED,
			"its state file cannot be read; pmem-csi-driver check on the node says what to do");
}

void health_copy(struct volume_health *to, const struct volume_health *from)
{
	for (size_t i = 0; i < from->n; i++)
		health_add(to, from->list[i].severity, from->list[i].reason, "%s", from->list[i].message);
}

void health_done(struct volume_health *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->list[i].reason);
		free(h->list[i].message);
	}
	free(h->list);
	*h = (struct volume_health){0};
}

bool health_equal(const struct volume_health *a, const struct volume_health *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (a->list[i].severity != b->list[i].severity ||
			!str_eq(a->list[i].reason, b->list[i].reason) ||
			!str_eq(a->list[i].message, b->list[i].message))
			return false;
	}
	return true;
}

const struct health_status *health_find(const struct volume_health *h, const char *reason)
{
	for (size_t i = 0; i < h->n; i++) {
		if (str_eq(h->list[i].reason, reason))
			return &h->list[i];
	}
	return NULL;
}

const struct health_status *health_worst(const struct volume_health *h)
{
	const struct health_status *worst = NULL;

	for (size_t i = 0; i < h->n; i++) {
		if (!worst || h->list[i].severity > worst->severity)
			worst = &h->list[i];
	}
	return worst;
}

char *health_text(const struct volume_health *h)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

	for (size_t i = 0; i < h->n; i++)
		buf_addf(&text, "%s%s: %s", i > 0 ? "; " : "", h->list[i].reason, h->list[i].message);
	return x_strdup(buf_str(&text));
}

const char *health_severity_name(enum health_severity severity)
{
	switch (severity) {
	case HEALTH_DEGRADED:
		return "degraded";
	case HEALTH_INACCESSIBLE:
		return "inaccessible";
	case HEALTH_DATA_LOSS:
		break;
	}
	return "data-loss";
}

void health_table_add(struct health_table *t, const char *id, struct volume_health *h)
{
	if (h->n == 0)
		return;
	t->list = x_realloc(t->list, t->n + 1, sizeof(*t->list));
	t->list[t->n++] = (struct health_entry){.id = x_strdup(id), .health = *h};
	*h = (struct volume_health){0};
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct health_entry *)a)->id, ((const struct health_entry *)b)->id);
}

void health_table_sort(struct health_table *t)
{
	if (t->n > 0)
		qsort(t->list, t->n, sizeof(*t->list), compare_entries);
}

void health_table_done(struct health_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->list[i].id);
		health_done(&t->list[i].health);
	}
	free(t->list);
	*t = (struct health_table){0};
}
