/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/inspect/checked.h"

#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"

static struct check_findings found;

void checked_look(void)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *fake = fixture_path("fake");
	CLEANUP(check_view_done) struct check_view v = {0};
	const struct check_config config = {.devices = &fx.devices, .state_path = state, .fake_path = fake};
	struct error *err = NULL;

	checked_done();
	ASSERT_OK(check_view_read(&config, &v, &err));
	check_compare(&v, &found);
}

size_t checked_n(void)
{
	return found.n_mismatches;
}

const struct check_finding *checked_find(enum check_kind kind, const char *id)
{
	for (size_t i = 0; i < found.n; i++) {
		if (found.list[i].kind == kind && str_eq(found.list[i].id, id))
			return &found.list[i];
	}
	return NULL;
}

void checked_only(enum check_kind kind, const char *id)
{
	const struct check_finding *f = checked_find(kind, id);

	for (size_t i = 0; i < found.n && (!f || found.n > 1); i++)
		fprintf(stderr, "%s %s: %s\n", check_kind_name(found.list[i].kind), found.list[i].id,
			found.list[i].text);
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(found.n, 1);
	ck_assert(!f->is_note);
	ck_assert(*f->text && *f->remedy);
}

void checked_done(void)
{
	check_findings_done(&found);
}

void checked_write(const char *id, const char *suffix, const char *identity, size_t pool, uint64_t size_bytes)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s%s", id, suffix);
	CLEANUP(free_charp)
	char *bearing = identity ? x_asprintf("\"identity\":\"%s\",", identity) : x_strdup("");
	CLEANUP(free_charp)
	char *text = x_asprintf("{\"id\":\"%s\",\"size\":%ju,\"parameters\":{\"name\":\"n-%s\","
				"\"deviceMode\":\"fake\"},%s\"pool\":\"%s\"}\n",
		id, (uintmax_t)size_bytes, id, bearing, fx.pools[pool]);

	fixture_write(file, text);
}
