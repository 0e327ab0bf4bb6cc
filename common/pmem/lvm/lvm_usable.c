/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_usable.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* The other words of the longest command are its options. */
#define WORDS_MAX      48
#define WORD_MAX_BYTES 256
#define RANGE_MAX      48 /* bytes of ":PE-PE" */

/* The usable space of a group, as far as it is found. */
struct search {
	struct lvm_vg *vg;
	char word[WORD_MAX_BYTES]; /* that is being made; "": none */
	uint64_t found_bytes;
};

static void end_word(struct search *s)
{
	if (*s->word)
		strv_add(&s->vg->usable, s->word);
	*s->word = '\0';
}

/* Return: whether the command can name it. */
static bool add_text(struct search *s, const char *pv, const char *range)
{
	size_t used = strlen(s->word);

	if (used > 0 && used + strlen(range) < sizeof(s->word)) {
		snprintf(s->word + used, sizeof(s->word) - used, "%s", range);
		return true;
	}
	end_word(s);
	if (strv_len(s->vg->usable) == WORDS_MAX || strlen(pv) + strlen(range) >= sizeof(s->word))
		return false;
	snprintf(s->word, sizeof(s->word), "%s%s", pv, range);
	return true;
}

static void add_range(struct search *s, const char *pv, uint64_t first, uint64_t end)
{
	char range[RANGE_MAX];

	if (first == end)
		return;
	snprintf(range, sizeof(range), ":%ju-%ju", (uintmax_t)first, (uintmax_t)(end - 1));
	if (add_text(s, pv, range))
		s->found_bytes += (end - first) * s->vg->extent_bytes;
}

/* The first extents from @from on that have a bad block, up to @end. */
static void find_bad(const struct search *s, const struct lvm_free *f, const struct bad_ranges *bad,
	uint64_t from, uint64_t end, uint64_t *ret_first, uint64_t *ret_end)
{
	uint64_t extent = s->vg->extent_bytes;

	*ret_first = *ret_end = end;
	for (size_t i = 0; i < bad->n; i++) {
		const struct media_error *e = &bad->list[i];
		bool is_last = bad->is_cut && i + 1 == bad->n;
		uint64_t at = e->offset_bytes > f->start_bytes ? e->offset_bytes - f->start_bytes : 0;
		uint64_t to = e->offset_bytes + e->length_bytes;
		uint64_t first_bad = at / extent;
		uint64_t end_bad = to > f->start_bytes ? (to - f->start_bytes + extent - 1) / extent : 0;

		if (is_last)
			end_bad = end;
		if (end_bad > from && first_bad < *ret_first) {
			*ret_first = first_bad < from ? from : first_bad;
			*ret_end = end_bad < end ? end_bad : end;
		}
	}
}

static void add_good(struct search *s, const struct lvm_free *f, const struct bad_ranges *bad)
{
	uint64_t end = f->first + f->n;

	for (uint64_t at = f->first; at < end;) {
		uint64_t first_bad, end_bad;

		find_bad(s, f, bad, at, end, &first_bad, &end_bad);
		s->vg->is_limited = s->vg->is_limited || first_bad < end;
		add_range(s, f->pv_path, at, first_bad);
		at = end_bad;
	}
}

/* @i: number of the PV */
static void add_pv(struct search *s, const struct lvm_report *r, size_t i, const struct bad_ranges *bad)
{
	for (size_t k = 0; k < r->n_free; k++) {
		if (str_eq(r->free[k].pv_path, r->pvs[i].path))
			add_good(s, &r->free[k], bad);
	}
	end_word(s);
}

void lvm_usable_find(const struct lvm_report *r, const struct bad_ranges *bad, struct lvm_vg *vg)
{
	struct search s = {.vg = vg};

	for (size_t i = 0; vg->extent_bytes > 0 && i < r->n_pvs; i++) {
		if (!str_eq(r->pvs[i].vg_uuid, vg->uuid))
			continue;
		add_pv(&s, r, i, &bad[i]);
	}
	if (!vg->is_limited) {
		strv_free(TAKE_PTR(vg->usable));
		return;
	}
	vg->bad_bytes = s.found_bytes < vg->free_bytes ? vg->free_bytes - s.found_bytes : 0;
	vg->free_bytes -= vg->bad_bytes;
}

int lvm_usable_add(const struct lvm_vg *vg, const char *argv[], struct error **err)
{
	size_t words = strv_len(vg->usable);
	size_t n = 0;

	if (!vg->is_limited)
		return 0;
	while (argv[n])
		n++;
	if (words == 0)
		return err_set(
			err, ERR_EXHAUSTED, "all free space of volume group %s has media errors", vg->name);
	if (n + words > LVM_WORDS_MAX)
		return err_set(
			err, ERR_INTERNAL, "%zu words of free space are too many for one command", words);
	memcpy(&argv[n], vg->usable, words * sizeof(*argv));
	return 0;
}
