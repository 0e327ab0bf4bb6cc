/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/health/dirty_shutdowns.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/boot_id.h"
#include "os/file.h"

#define FILE_NAME   "dirty-shutdowns"
#define FILE_MODE   0600
#define FILE_MAX    (256U << 10)
#define MODULES_MAX 1024 /* also those that were removed; the file stays readable */

struct module {
	char *id;
	uint64_t before; /* in the boot before */
	uint64_t now;    /* in the boot of the file */
};

struct counts {
	char *boot_id;
	struct module *list;
	size_t n;
};

static void counts_done(struct counts *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->list[i].id);
	free(c->list);
	free(c->boot_id);
	*c = (struct counts){0};
}

/* --- the file */

static int read_module_member(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct module *m = user;

	if (str_eq(key, "id"))
		return json_read_str(j, &m->id, err);
	if (str_eq(key, "before"))
		return json_read_u64(j, &m->before, err);
	if (str_eq(key, "now"))
		return json_read_u64(j, &m->now, err);
	return json_skip_value(j, err);
}

/* Reads the members of the object of a module; the start of the object was read before. */
static int read_module(struct json_reader *j, struct module *m, struct error **err)
{
	if (json_read_members(j, read_module_member, m, err) < 0)
		return -1;
	return str_empty(m->id) ? err_set(err, ERR_INVALID_ARGUMENT, "a module has no ID") : 0;
}

static int read_modules(struct json_reader *j, struct counts *c, struct error **err)
{
	struct json_event e;

	if (json_expect(j, JSON_ARRAY, &e, err) < 0)
		return -1;
	for (;;) {
		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_ARRAY_END)
			return 0;
		if (e.type != JSON_OBJECT || c->n == MODULES_MAX)
			return err_set(err, ERR_INVALID_ARGUMENT, "\"modules\" is no list of modules");
		c->list = x_realloc(c->list, c->n + 1, sizeof(*c->list));
		c->list[c->n] = (struct module){0};
		if (read_module(j, &c->list[c->n++], err) < 0)
			return -1;
	}
}

static int read_member(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct counts *c = user;

	if (str_eq(key, "bootID"))
		return json_read_str(j, &c->boot_id, err);
	return str_eq(key, "modules") ? read_modules(j, c, err) : json_skip_value(j, err);
}

static int parse(struct span text, struct counts *c, struct error **err)
{
	if (json_read_document(text, read_member, c, err) < 0)
		return -1;
	return c->boot_id ? 0 : err_set(err, ERR_INVALID_ARGUMENT, "it names no boot");
}

static int read_counts(int dir_fd, struct counts *c, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	CLEANUP(error_freep) struct error *damage = NULL;

	if (file_read(dir_fd, FILE_NAME, &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
		return 0;
	}
	if (parse(buf_span(&text), c, &damage) < 0) {
		counts_done(c);
		log_warn("counts of dirty shutdowns cannot be read, beginning without them",
			F_STR("file", FILE_NAME), F_ERR(damage));
	}
	return 0;
}

static int write_counts(int dir_fd, const struct counts *c, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct json_writer w = JSON_WRITER(&text);

	json_object(&w);
	json_key_str(&w, "bootID", c->boot_id);
	json_key(&w, "modules");
	json_array(&w);
	for (size_t i = 0; i < c->n; i++) {
		json_object(&w);
		json_key_str(&w, "id", c->list[i].id);
		json_key_u64(&w, "before", c->list[i].before);
		json_key_u64(&w, "now", c->list[i].now);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(&text, '\n');
	if (buf_check(&text, FILE_NAME, err) < 0)
		return -1;
	return file_write_atomic(dir_fd, FILE_NAME, buf_span(&text), FILE_MODE, err);
}

/* --- the comparison */

static struct module *find(struct counts *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++) {
		if (str_eq(c->list[i].id, id))
			return &c->list[i];
	}
	return NULL;
}

/* If the node has booted, the counts of the present boot become those of the previous one. Modules that are
 * gone keep their counts. */
static bool begin_boot(struct counts *c, const char *boot_id)
{
	if (str_eq(c->boot_id, boot_id))
		return false;
	free(c->boot_id);
	c->boot_id = x_strdup(boot_id);
	for (size_t i = 0; i < c->n; i++)
		c->list[i].before = c->list[i].now;
	return true;
}

/* Return: whether there is something to write. */
static bool take(struct counts *c, struct dimm *d)
{
	struct module *m = find(c, d->id);
	bool changed = !m || m->now != d->dirty_shutdowns;

	if (!m && c->n == MODULES_MAX)
		return false;
	if (!m) {
		c->list = x_realloc(c->list, c->n + 1, sizeof(*c->list));
		m = &c->list[c->n++];
		*m = (struct module){.id = x_strdup(d->id), .before = d->dirty_shutdowns};
	}
	m->now = d->dirty_shutdowns;
	d->rose_by = m->now > m->before ? m->now - m->before : 0;
	return changed;
}

static bool any_counts(const struct dimms *d)
{
	for (size_t i = 0; i < d->n; i++) {
		if (d->list[i].counts && *d->list[i].id)
			return true;
	}
	return false;
}

int dirty_shutdowns_compare(const char *folder, bool record, struct dimms *d, struct error **err)
{
	CLEANUP(counts_done) struct counts c = {0};
	CLEANUP(free_charp) char *boot_id = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;

	if (!any_counts(d))
		return 0;
	if (boot_id_read(&boot_id, err) < 0 ||
		dir_open(folder, /* create= */ false, /* mode= */ 0, &dir_fd, err) < 0 ||
		read_counts(dir_fd, &c, err) < 0)
		return err_wrap(err, "counts of dirty shutdowns");
	bool changed = begin_boot(&c, boot_id);
	for (size_t i = 0; i < d->n; i++) {
		if (d->list[i].counts && *d->list[i].id)
			changed = take(&c, &d->list[i]) || changed;
	}
	if (record && changed && write_counts(dir_fd, &c, err) < 0)
		return err_wrap(err, "counts of dirty shutdowns");
	return 0;
}
