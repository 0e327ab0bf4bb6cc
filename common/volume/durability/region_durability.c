/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/region_durability.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"

#define FILE_NAME   "durability"
#define FILE_MODE   0600
#define FILE_MAX    (256U << 10)
#define REGIONS_MAX 1024 /* also those that are gone; the file stays readable */

static struct region_durability *find(const struct region_durabilities *r, const char *region)
{
	for (size_t i = 0; i < r->n; i++) {
		if (str_eq(r->list[i].region, region))
			return &r->list[i];
	}
	return NULL;
}

/* Beyond REGIONS_MAX, the region that was noted first is forgotten. */
static struct region_durability *find_or_add(struct region_durabilities *r, const char *region)
{
	struct region_durability *known = find(r, region);

	if (known)
		return known;
	if (r->n == REGIONS_MAX) {
		free(r->list[0].region);
		for (size_t i = 1; i < r->n; i++)
			r->list[i - 1] = r->list[i];
		r->n--;
	}
	r->list = x_realloc(r->list, r->n + 1, sizeof(*r->list));
	r->list[r->n] = (struct region_durability){.region = x_strdup(region)};
	return &r->list[r->n++];
}

/* The document has a member for each region, with the name of its durability. */
static int read_member(void *user, const char *region, struct json_reader *j, struct error **err)
{
	CLEANUP(free_charp) char *name = NULL;

	if (json_read_str(j, &name, err) < 0)
		return -1;
	if (durability_parse(name) != DURABILITY_UNKNOWN)
		find_or_add(user, region)->durability = durability_parse(name);
	return 0;
}

int region_durabilities_read(const char *folder, struct region_durabilities *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	CLEANUP(error_freep) struct error *damage = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;

	*ret = (struct region_durabilities){0};
	if (dir_open(folder, /* create= */ false, /* mode= */ 0, &dir_fd, err) < 0 ||
		file_read(dir_fd, FILE_NAME, &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return err_wrap(err, "durability of regions");
		error_clear(err);
		return 0;
	}
	if (json_read_document(buf_span(&text), read_member, ret, &damage) < 0) {
		region_durabilities_done(ret);
		log_warn(
			"what was found out about the durability of regions cannot be read, beginning without it",
			F_STR("file", FILE_NAME), F_ERR(damage));
	}
	return 0;
}

int region_durabilities_write(const char *folder, const struct region_durabilities *r, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	CLEANUP(fd_closep) int dir_fd = -1;
	struct json_writer w = JSON_WRITER(&text);

	json_object(&w);
	for (size_t i = 0; i < r->n; i++) {
		if (r->list[i].durability != DURABILITY_UNKNOWN)
			json_key_str(&w, r->list[i].region, durability_name(r->list[i].durability));
	}
	json_object_end(&w);
	buf_addc(&text, '\n');
	if (buf_check(&text, FILE_NAME, err) < 0 ||
		dir_open(folder, /* create= */ false, /* mode= */ 0, &dir_fd, err) < 0 ||
		file_write_atomic(dir_fd, FILE_NAME, buf_span(&text), FILE_MODE, err) < 0)
		return err_wrap(err, "durability of regions");
	return 0;
}

enum durability region_durabilities_of(const struct region_durabilities *r, const char *region)
{
	const struct region_durability *known = region ? find(r, region) : NULL;

	return known ? known->durability : DURABILITY_UNKNOWN;
}

bool region_durabilities_note(struct region_durabilities *r, const char *region, enum durability durability)
{
	struct region_durability *known = find_or_add(r, region);
	bool news = known->durability != durability;

	known->durability = durability;
	return news;
}

bool region_durabilities_begin(struct region_durabilities *r, const char *region)
{
	struct region_durability *known = find_or_add(r, region);
	bool first = !known->tried;

	known->tried = true;
	return first;
}

void region_durabilities_retry(struct region_durabilities *r, const char *region)
{
	find_or_add(r, region)->tried = false;
}

void region_durabilities_copy(const struct region_durabilities *r, struct region_durabilities *ret)
{
	*ret = (struct region_durabilities){.list = x_calloc(r->n, sizeof(*r->list)), .n = r->n};
	for (size_t i = 0; i < r->n; i++) {
		ret->list[i] = r->list[i];
		ret->list[i].region = x_strdup(r->list[i].region);
	}
}

void region_durabilities_done(struct region_durabilities *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->list[i].region);
	free(r->list);
	*r = (struct region_durabilities){0};
}
