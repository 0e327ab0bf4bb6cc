/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/cxl/cxl_record.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define STATE_MODE       0750 /* as state.c makes it */
#define FOLDER_MODE      0700
#define RECORD_MODE      0600
#define RECORD_MAX_BYTES 8192
#define RECORDS_MAX      64
#define SUFFIX           ".json"

static char *folder_of(const char *state_path)
{
	return x_asprintf("%s/lvm/cxl", state_path);
}

char *cxl_record_path(const char *state_path, const char *uuid)
{
	return x_asprintf("%s/lvm/cxl/%s" SUFFIX, state_path, uuid);
}

void cxl_records_done(struct cxl_records *r)
{
	free(r->list);
	strv_free(r->damaged);
	*r = (struct cxl_records){0};
}

void cxl_records_add(struct cxl_records *r, const struct cxl_layout *l)
{
	r->list = x_realloc(r->list, r->n + 1, sizeof(*r->list));
	r->list[r->n++] = *l;
}

/* --- what a record must have */

static bool is_uuid(const char *text)
{
	bool nonzero = false;

	if (strlen(text) != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
		nonzero = nonzero || (!dash && text[i] != '0');
	}
	return nonzero;
}

static int check_places(const struct cxl_layout *l, struct error **err)
{
	for (unsigned i = 0; i < l->ways; i++) {
		if (l->places[i].serial == 0)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"the device at position %u has serial number 0, which identifies no device",
				i);
		for (unsigned k = 0; k < i; k++)
			if (l->places[k].serial == l->places[i].serial)
				return err_set(err, ERR_INVALID_ARGUMENT,
					"two devices have the serial number 0x%jx",
					(uintmax_t)l->places[i].serial);
	}
	return 0;
}

int cxl_layout_check(const struct cxl_layout *l, struct error **err)
{
	if (!is_uuid(l->uuid))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is no UUID of a region", l->uuid);
	if (l->ways == 0 || l->ways > CXL_WAYS_MAX || l->window.ways == 0 || l->window.ways > CXL_WAYS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the number of devices or host bridges is not 1 to %d", CXL_WAYS_MAX);
	if (l->size_bytes == 0 || l->size_bytes % l->ways != 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes cannot be divided among %u devices",
			(uintmax_t)l->size_bytes, l->ways);
	if (l->granularity_bytes == 0 || l->granularity_bytes > UINT32_MAX)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "%ju is no granularity", (uintmax_t)l->granularity_bytes);
	return check_places(l, err);
}

uint64_t cxl_layout_cookie(const struct cxl_layout *l)
{
	uint32_t low = 0;
	uint32_t high = 0;

	for (unsigned i = 0; i < l->ways; i++) {
		const uint64_t parts[] = {l->places[i].start_bytes, l->places[i].serial};
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
			low += (uint32_t)parts[k];
			high += low;
			low += (uint32_t)(parts[k] >> 32);
			high += low;
		}
	}
	return (uint64_t)high << 32 | low;
}

/* --- reading */

static int read_place(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct cxl_place *t = user;

	if (str_eq(key, "serial"))
		return json_read_u64(j, &t->serial, err);
	if (str_eq(key, "startBytes"))
		return json_read_u64(j, &t->start_bytes, err);
	return json_skip_value(j, err);
}

static int read_devices(struct json_reader *j, struct cxl_layout *l, struct error **err)
{
	struct json_event e;

	if (l->ways > 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "it lists its devices twice");
	if (json_expect(j, JSON_ARRAY, &e, err) < 0)
		return -1;
	for (;;) {
		if (json_next(j, &e, err) < 0)
			return -1;
		if (e.type == JSON_ARRAY_END)
			return 0;
		if (e.type != JSON_OBJECT || l->ways == CXL_WAYS_MAX)
			return err_set(err, ERR_INVALID_ARGUMENT, "\"devices\" is no list of 1 to %d devices",
				CXL_WAYS_MAX);
		if (json_read_members(j, read_place, &l->places[l->ways++], err) < 0)
			return -1;
	}
}

static int read_bridges(struct json_reader *j, struct cxl_window *w, struct error **err)
{
	CLEANUP(strv_freep) char **texts = NULL;

	if (json_read_strv(j, &texts, err) < 0)
		return -1;
	if (w->ways > 0 || strv_len(texts) > CXL_WAYS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"bridges\" is no list of 1 to %d host bridges",
			CXL_WAYS_MAX);
	for (char **text = texts; text && *text; text++)
		if (parse_u64(*text, &w->bridges[w->ways++], err) < 0)
			return -1;
	return 0;
}

static int read_window(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct cxl_window *w = user;

	if (str_eq(key, "startBytes"))
		return json_read_u64(j, &w->start_bytes, err);
	if (str_eq(key, "sizeBytes"))
		return json_read_u64(j, &w->size_bytes, err);
	if (str_eq(key, "granularityBytes"))
		return json_read_u64(j, &w->granularity_bytes, err);
	if (str_eq(key, "bridges"))
		return read_bridges(j, w, err);
	return json_skip_value(j, err);
}

static int read_uuid(struct json_reader *j, struct cxl_layout *l, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (json_read_str(j, &text, err) < 0)
		return -1;
	if (!is_uuid(text))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"uuid\" is no UUID");
	memcpy(l->uuid, text, sizeof(l->uuid));
	return 0;
}

static int read_member(void *user, const char *key, struct json_reader *j, struct error **err)
{
	struct cxl_layout *l = user;

	if (str_eq(key, "uuid"))
		return read_uuid(j, l, err);
	if (str_eq(key, "sizeBytes"))
		return json_read_u64(j, &l->size_bytes, err);
	if (str_eq(key, "granularityBytes"))
		return json_read_u64(j, &l->granularity_bytes, err);
	if (str_eq(key, "devices"))
		return read_devices(j, l, err);
	if (str_eq(key, "window"))
		return json_read_object(j, read_window, &l->window, err);
	return json_skip_value(j, err);
}

static int parse(struct span text, struct cxl_layout *l, struct error **err)
{
	return json_read_document(text, read_member, l, err) < 0 ? -1 : cxl_layout_check(l, err);
}

static int read_record(int dir_fd, const char *name, struct cxl_layout *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
	CLEANUP(free_charp) char *own_name = NULL;

	*ret = (struct cxl_layout){0};
	if (file_read(dir_fd, name, &text, err) < 0 || parse(buf_span(&text), ret, err) < 0)
		return -1;
	own_name = x_asprintf("%s" SUFFIX, ret->uuid);
	if (!str_eq(own_name, name))
		return err_set(err, ERR_INVALID_ARGUMENT, "it is the record of region %s", ret->uuid);
	return 0;
}

static void read_or_note(int dir_fd, const char *folder, const char *name, struct cxl_records *r)
{
	CLEANUP(error_freep) struct error *why = NULL;
	struct cxl_layout l;

	if (r->n == RECORDS_MAX)
		(void)!err_set(&why, ERR_EXHAUSTED, "there are more than %d records", RECORDS_MAX);
	else if (read_record(dir_fd, name, &l, &why) == 0) {
		cxl_records_add(r, &l);
		return;
	}
	CLEANUP(free_charp) char *text = x_asprintf("%s/%s: %s", folder, name, why->msg);
	strv_add(&r->damaged, text);
}

/* The kernel gives a device's parts away from the beginning. */
static int compare_starts(const void *a, const void *b)
{
	const struct cxl_layout *x = a;
	const struct cxl_layout *y = b;

	return x->places[0].start_bytes < y->places[0].start_bytes
		       ? -1
		       : x->places[0].start_bytes > y->places[0].start_bytes;
}

int cxl_records_read(const char *state_path, struct cxl_records *ret, struct error **err)
{
	CLEANUP(free_charp) char *folder = folder_of(state_path);
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct cxl_records r = {0};

	*ret = r;
	if (dir_open(folder, /* create= */ false, 0, &fd, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
		return 0;
	}
	if (dir_list(fd, &names, err) < 0)
		return err_wrap(err, "%s", folder);
	for (char **name = names; *name; name++)
		if (**name != '.' && str_ends(*name, SUFFIX))
			read_or_note(fd, folder, *name, &r);
	if (r.n > 0)
		qsort(r.list, r.n, sizeof(*r.list), compare_starts);
	*ret = r;
	return 0;
}

/* --- writing */

static void write_window(struct json_writer *w, const struct cxl_window *window)
{
	json_key(w, "window");
	json_object(w);
	json_key_u64(w, "startBytes", window->start_bytes);
	json_key_u64(w, "sizeBytes", window->size_bytes);
	json_key_u64(w, "granularityBytes", window->granularity_bytes);
	json_key(w, "bridges");
	json_array(w);
	for (unsigned i = 0; i < window->ways; i++) {
		CLEANUP(free_charp) char *text = x_asprintf("%ju", (uintmax_t)window->bridges[i]);
		json_str(w, text);
	}
	json_array_end(w);
	json_object_end(w);
}

static void write_layout(struct json_writer *w, const struct cxl_layout *l)
{
	json_object(w);
	json_key_str(w, "uuid", l->uuid);
	json_key_u64(w, "sizeBytes", l->size_bytes);
	json_key_u64(w, "granularityBytes", l->granularity_bytes);
	json_key(w, "devices");
	json_array(w);
	for (unsigned i = 0; i < l->ways; i++) {
		json_object(w);
		json_key_u64(w, "serial", l->places[i].serial);
		json_key_u64(w, "startBytes", l->places[i].start_bytes);
		json_object_end(w);
	}
	json_array_end(w);
	write_window(w, &l->window);
	json_object_end(w);
}

static int open_folder(const char *state_path, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *above = x_asprintf("%s/lvm", state_path);
	CLEANUP(free_charp) char *folder = folder_of(state_path);
	CLEANUP(fd_closep) int state_fd = -1;
	CLEANUP(fd_closep) int above_fd = -1;

	if (dir_open(state_path, /* create= */ true, STATE_MODE, &state_fd, err) < 0 ||
		dir_open(above, /* create= */ true, FOLDER_MODE, &above_fd, err) < 0)
		return -1;
	return dir_open(folder, /* create= */ true, FOLDER_MODE, ret_fd, err);
}

int cxl_record_write(const char *state_path, const struct cxl_layout *l, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s" SUFFIX, l->uuid);
	CLEANUP(buf_done) struct buf text = BUF_INIT(RECORD_MAX_BYTES);
	struct json_writer w = JSON_WRITER(&text);
	CLEANUP(fd_closep) int fd = -1;

	write_layout(&w, l);
	buf_addc(&text, '\n');
	if (buf_check(&text, name, err) < 0 || open_folder(state_path, &fd, err) < 0)
		return -1;
	return file_write_atomic(fd, name, buf_span(&text), RECORD_MODE, err);
}

int cxl_record_remove(const char *state_path, const char *uuid, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s" SUFFIX, uuid);
	CLEANUP(free_charp) char *folder = folder_of(state_path);
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(folder, /* create= */ false, 0, &fd, err) < 0)
		return -1;
	return file_unlink_durable(fd, name, err);
}
