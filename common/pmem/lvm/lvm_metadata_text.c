/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_metadata_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define SECTOR_BYTES 512U
#define DEPTH_MAX    8U
/* LVM's names and our values are shorter; descriptions, which quote a whole command, are cut. */
#define WORD_MAX 255U

enum token { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_MARK, TOKEN_BAD };

struct reader {
	const char *at, *end;
	enum token type;
	char mark; /* of TOKEN_MARK: one of { } [ ] = , */
	char word[WORD_MAX + 1];

	char sections[DEPTH_MAX][WORD_MAX + 1];
	size_t depth;
	struct lvm_text *text;
	uint64_t extent_sectors, n_extents, device_sectors, start_sectors; /* of the section so far */
	char *pv_uuid;
	char **pv_names; /* in the text, where segments refer to them: strv */
	bool visible, on_device;
	uint64_t lv_extents; /* of all segments of the volume so far */
	char **tags;         /* of that volume: strv */
};

static void skip_blanks(struct reader *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#') {
			while (r->at + 1 < r->end && *r->at != '\n')
				r->at++;
		} else if (!isspace((unsigned char)*r->at)) {
			return;
		}
	}
}

static void read_string(struct reader *r)
{
	size_t n = 0;

	r->type = TOKEN_BAD;
	for (r->at++; r->at < r->end; r->at++) {
		if (*r->at == '"') {
			r->at++;
			r->type = TOKEN_STRING;
			break;
		}
		if (*r->at == '\\' && r->at + 1 < r->end)
			r->at++;
		if (n < WORD_MAX)
			r->word[n++] = *r->at;
	}
	r->word[n] = '\0';
}

static bool is_word(char c)
{
	return isgraph((unsigned char)c) && !strchr("{}[]=,\"#", c);
}

static void read_token(struct reader *r)
{
	size_t n = 0;

	skip_blanks(r);
	r->word[0] = '\0';
	if (r->at == r->end) {
		r->type = TOKEN_END;
	} else if (*r->at == '"') {
		read_string(r);
	} else if (*r->at && strchr("{}[]=,", *r->at)) {
		r->type = TOKEN_MARK;
		r->mark = *r->at++;
	} else if (is_word(*r->at)) {
		r->type = TOKEN_WORD;
		for (; r->at < r->end && is_word(*r->at); r->at++)
			if (n < WORD_MAX)
				r->word[n++] = *r->at;
		r->word[n] = '\0';
	} else {
		r->type = TOKEN_BAD;
	}
}

static bool is_mark(const struct reader *r, char mark)
{
	return r->type == TOKEN_MARK && r->mark == mark;
}

static int malformed(const struct reader *r, struct error **err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "the text of LVM's metadata is %s",
		r->type == TOKEN_END ? "truncated" : "malformed");
}

static bool is_in(const struct reader *r, const char *part)
{
	return r->depth == 3 && str_eq(r->sections[1], part);
}

static int set_number(const struct reader *r, uint64_t *ret, struct error **err)
{
	return parse_u64(r->word, ret, err);
}

static void set_text(const struct reader *r, char **ret)
{
	free(*ret);
	*ret = x_strdup(r->word);
}

static int add_extents(struct reader *r, struct error **err)
{
	uint64_t n = 0;

	if (set_number(r, &n, err) < 0)
		return -1;
	if (__builtin_add_overflow(r->lv_extents, n, &r->lv_extents))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "LVM's metadata describes a volume of no possible size");
	return 0;
}

static int take_lv_value(struct reader *r, const char *key, struct error **err)
{
	if (r->depth == 3 && str_eq(key, "status"))
		r->visible |= str_eq(r->word, "VISIBLE");
	if (r->depth == 3 && str_eq(key, "tags"))
		strv_add(&r->tags, r->word);
	if (r->depth == 4 && str_eq(key, "stripes"))
		r->on_device |= strv_contains(r->pv_names, r->word);
	return r->depth == 4 && str_eq(key, "extent_count") ? add_extents(r, err) : 0;
}

/* Takes one value, or one element of an array. */
static int take_value(struct reader *r, const char *key, struct error **err)
{
	struct lvm_text *t = r->text;

	if (r->depth == 0 && str_eq(key, "creation_time"))
		return set_number(r, &t->written_s, err);
	if (r->depth == 1 && str_eq(key, "id"))
		set_text(r, &t->group_uuid);
	if (r->depth == 1 && str_eq(key, "seqno"))
		return set_number(r, &t->seqno, err);
	if (r->depth == 1 && str_eq(key, "extent_size"))
		return set_number(r, &r->extent_sectors, err);
	if (r->depth > 2 && str_eq(r->sections[1], "logical_volumes"))
		return take_lv_value(r, key, err);
	if (!is_in(r, "physical_volumes"))
		return 0;
	if (str_eq(key, "id"))
		set_text(r, &r->pv_uuid);
	if (str_eq(key, "dev_size"))
		return set_number(r, &r->device_sectors, err);
	if (str_eq(key, "pe_start"))
		return set_number(r, &r->start_sectors, err);
	if (str_eq(key, "pe_count"))
		return set_number(r, &r->n_extents, err);
	return 0;
}

static bool is_value(const struct reader *r)
{
	return r->type == TOKEN_WORD || r->type == TOKEN_STRING;
}

static int read_value(struct reader *r, const char *key, struct error **err)
{
	read_token(r);
	if (is_value(r))
		return take_value(r, key, err);
	if (!is_mark(r, '['))
		return malformed(r, err);
	for (read_token(r); !is_mark(r, ']'); read_token(r)) {
		if (is_mark(r, ','))
			continue;
		if (!is_value(r))
			return malformed(r, err);
		if (take_value(r, key, err) < 0)
			return -1;
	}
	return 0;
}

static int open_section(struct reader *r, const char *name, struct error **err)
{
	if (r->depth == DEPTH_MAX || (r->depth == 0 && r->text->group))
		return malformed(r, err);
	memcpy(r->sections[r->depth++], name, strlen(name) + 1);
	if (r->depth == 1)
		r->text->group = x_strdup(name);
	if (r->depth == 3) {
		r->n_extents = r->device_sectors = r->start_sectors = 0;
		r->visible = r->on_device = false;
		r->lv_extents = 0;
		strv_free(TAKE_PTR(r->tags));
	}
	return 0;
}

static int add_pv(struct reader *r, struct error **err)
{
	struct lvm_text_pv pv = {0};
	uint64_t data_sectors = 0;

	if (str_empty(r->pv_uuid) || __builtin_mul_overflow(r->extent_sectors, r->n_extents, &data_sectors) ||
		__builtin_add_overflow(r->start_sectors, data_sectors, &data_sectors) ||
		__builtin_mul_overflow(data_sectors, SECTOR_BYTES, &pv.data_end_bytes) ||
		__builtin_mul_overflow(r->start_sectors, SECTOR_BYTES, &pv.data_offset_bytes) ||
		__builtin_mul_overflow(r->device_sectors, SECTOR_BYTES, &pv.device_bytes))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"LVM's metadata describes a physical volume without a UUID or a possible size");
	pv.uuid = TAKE_PTR(r->pv_uuid);
	r->text->pvs = x_realloc(r->text->pvs, r->text->n_pvs + 1, sizeof(*r->text->pvs));
	r->text->pvs[r->text->n_pvs++] = pv;
	strv_add(&r->pv_names, r->sections[2]);
	return 0;
}

static int add_volume(struct reader *r, struct error **err)
{
	struct lvm_text *t = r->text;
	struct lvm_text_volume lv = {0};
	uint64_t sectors;

	if (!r->visible || !r->on_device)
		return 0;
	if (__builtin_mul_overflow(r->extent_sectors, r->lv_extents, &sectors) ||
		__builtin_mul_overflow(sectors, SECTOR_BYTES, &lv.size_bytes))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "LVM's metadata describes a volume of no possible size");
	lv.name = x_strdup(r->sections[2]);
	lv.tags = TAKE_PTR(r->tags);
	t->volumes = x_realloc(t->volumes, t->n_volumes + 1, sizeof(*t->volumes));
	t->volumes[t->n_volumes++] = lv;
	return 0;
}

static int close_section(struct reader *r, struct error **err)
{
	if (r->depth == 0)
		return malformed(r, err);
	if (is_in(r, "physical_volumes") && add_pv(r, err) < 0)
		return -1;
	if (is_in(r, "logical_volumes") && add_volume(r, err) < 0)
		return -1;
	r->depth--;
	return 0;
}

static int read_all(struct reader *r, struct error **err)
{
	for (read_token(r); r->type != TOKEN_END; read_token(r)) {
		if (is_mark(r, '}')) {
			if (close_section(r, err) < 0)
				return -1;
			continue;
		}
		if (!is_value(r))
			return malformed(r, err);
		CLEANUP(free_charp) char *name = x_strdup(r->word);
		read_token(r);
		if (is_mark(r, '{')) {
			if (open_section(r, name, err) < 0)
				return -1;
		} else if (!is_mark(r, '=')) {
			return malformed(r, err);
		} else if (read_value(r, name, err) < 0) {
			return -1;
		}
	}
	return r->depth > 0 ? malformed(r, err) : 0;
}

int lvm_text_parse(struct span text, struct lvm_text *ret, struct error **err)
{
	CLEANUP(lvm_text_done) struct lvm_text t = {0};
	struct reader r = {.at = (const char *)text.p, .end = (const char *)text.p + text.n, .text = &t};

	int rc = read_all(&r, err);
	free(r.pv_uuid);
	strv_free(r.pv_names);
	strv_free(r.tags);
	if (rc < 0)
		return -1;
	if (!t.group || str_empty(t.group_uuid) || t.seqno == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "LVM's metadata describes no volume group");
	*ret = t;
	t = (struct lvm_text){0};
	return 0;
}

void lvm_text_done(struct lvm_text *t)
{
	for (size_t i = 0; i < t->n_pvs; i++)
		free(t->pvs[i].uuid);
	free(t->pvs);
	free(t->group);
	free(t->group_uuid);
	for (size_t i = 0; i < t->n_volumes; i++) {
		free(t->volumes[i].name);
		strv_free(t->volumes[i].tags);
	}
	free(t->volumes);
	*t = (struct lvm_text){0};
}

const struct lvm_text_pv *lvm_text_pv(const struct lvm_text *t, const char *uuid)
{
	for (size_t i = 0; i < t->n_pvs; i++)
		if (str_eq(t->pvs[i].uuid, uuid))
			return &t->pvs[i];
	return NULL;
}

const struct lvm_text_volume *lvm_text_volume(const struct lvm_text *t, const char *name)
{
	for (size_t i = 0; i < t->n_volumes; i++)
		if (str_eq(t->volumes[i].name, name))
			return &t->volumes[i];
	return NULL;
}
