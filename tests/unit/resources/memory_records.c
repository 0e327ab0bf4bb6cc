/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/parse.h"
#include "base/str.h"
#include "unit/resources/memory_records.h"

struct entry {
	struct name_link link; /* by the object's name */
	LIST_ENTRY(entry) all;
	struct pmem_volume *record;
};

struct memory_records {
	const char *driver_name;
	struct name_index index;
	LIST_HEAD(, entry) entries;
	uint64_t version; /* of the last write */
};

static struct entry *find(const struct memory_records *m, const char *name)
{
	return (struct entry *)name_index_first(&m->index, name);
}

static void entry_free(struct memory_records *m, struct entry *e)
{
	name_index_remove(&m->index, &e->link);
	LIST_REMOVE(e, all);
	pmem_volume_free(e->record);
	free(e);
}

static void end_read(const struct entry *e, volume_record_fn fn, void *user)
{
	fn(user, e ? pmem_volume_dup(e->record) : NULL, NULL);
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	struct memory_records *m = self;
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key, m->driver_name);

	end_read(find(m, name), fn, user);
}

static void set_version(struct memory_records *m, struct entry *e)
{
	free(e->record->meta.resource_version);
	e->record->meta.resource_version = x_asprintf("%llu", (unsigned long long)++m->version);
}

/* Whether @v may be written over @e; NULL: there is no such record. */
static int check(
	const struct entry *e, enum volume_record_write what, const struct pmem_volume *v, struct error **err)
{
	if (!e && (what == RECORD_CREATE || what == RECORD_RELEASE))
		return 0;
	if (!e)
		return err_set(err, ERR_NOT_FOUND, "the record %s has gone", v->meta.name);
	if (what == RECORD_CREATE)
		return err_set(err, ERR_EXISTS, "there is a record %s already", v->meta.name);
	if (!str_eq(e->record->meta.resource_version, v->meta.resource_version))
		return err_set(err, ERR_ABORTED, "the record %s has been changed", v->meta.name);
	return 0;
}

static struct entry *add(struct memory_records *m, const struct pmem_volume *v)
{
	struct entry *e = x_calloc(1, sizeof(*e));

	e->record = pmem_volume_dup(v);
	LIST_INSERT_HEAD(&m->entries, e, all);
	name_index_add(&m->index, &e->link, e->record->meta.name);
	return e;
}

static void replace(struct entry *e, struct name_index *index, const struct pmem_volume *v)
{
	struct pmem_volume *old = e->record;

	name_index_remove(index, &e->link);
	e->record = pmem_volume_dup(v);
	name_index_add(index, &e->link, e->record->meta.name);
	pmem_volume_free(old);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *v,
	volume_record_fn fn, void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct memory_records *m = self;
	struct entry *e = find(m, v->meta.name);

	if (check(e, what, v, &err) < 0) {
		fn(user, NULL, err);
		return;
	}
	if (e && what == RECORD_RELEASE)
		entry_free(m, TAKE_PTR(e));
	else if (e)
		replace(e, &m->index, v);
	else if (what == RECORD_CREATE)
		e = add(m, v);
	if (e)
		set_version(m, e);
	end_read(e, fn, user);
}

struct memory_records *memory_records_new(const char *driver_name)
{
	struct memory_records *m = x_calloc(1, sizeof(*m));

	m->driver_name = driver_name;
	name_index_init(&m->index);
	LIST_INIT(&m->entries);
	return m;
}

void memory_records_free(struct memory_records *m)
{
	if (!m)
		return;
	for (struct entry *e = LIST_FIRST(&m->entries), *next; e; e = next) {
		next = LIST_NEXT(e, all);
		entry_free(m, e);
	}
	name_index_done(&m->index);
	free(m);
}

struct volume_records memory_records_interface(struct memory_records *m)
{
	return (struct volume_records){.read = read_record, .write = write_record, .self = m};
}
