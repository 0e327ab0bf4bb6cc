/* SPDX-License-Identifier: Apache-2.0 */
/*
 * That a volume costs the same beside many others. The tests count comparisons and copies of names, which
 * code makes per volume when it goes through all volumes. Time is not looked at.
 */
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/fixture.h"

#define SIZE MIB(8)
#define FEW  64
#define MANY 640

static atomic_bool counting;
static atomic_size_t work; /* comparisons, and pieces of memory of PIECE bytes */

#define PIECE 64

void *__real_x_malloc(size_t n);
void *__wrap_x_malloc(size_t n);
void *__real_x_calloc(size_t n, size_t size);
void *__wrap_x_calloc(size_t n, size_t size);
char *__real_x_strdup(const char *s);
char *__wrap_x_strdup(const char *s);
int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);

static void count(size_t n)
{
	if (counting)
		work += n;
}

void *__wrap_x_malloc(size_t n)
{
	count(1 + n / PIECE);
	return __real_x_malloc(n);
}

void *__wrap_x_calloc(size_t n, size_t size)
{
	count(1 + n * size / PIECE);
	return __real_x_calloc(n, size);
}

char *__wrap_x_strdup(const char *s)
{
	count(1);
	return __real_x_strdup(s);
}

int __wrap_strcmp(const char *a, const char *b)
{
	count(1);
	return __real_strcmp(a, b);
}

static void make_up_to(unsigned *n_made, unsigned n)
{
	for (; *n_made < n; ++*n_made) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%u", *n_made);
		fixture_make(name, SIZE);
	}
}

struct cost {
	size_t creation;
	size_t deletion;
};

static struct cost measure(void)
{
	struct error *err = NULL;
	struct cost cost;

	work = 0;
	counting = true;
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("measured", SIZE);
	cost.creation = work;
	work = 0;
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	cost.deletion = work;
	counting = false;
	ck_assert_uint_gt(cost.creation, 0);
	ck_assert_uint_gt(cost.deletion, 0);
	return cost;
}

/* A binary search takes some comparisons more. */
START_TEST(volume_is_made_and_deleted_with_the_same_work_beside_many)
{
	unsigned n_made = 0;

	make_up_to(&n_made, FEW);
	struct cost beside_few = measure();
	make_up_to(&n_made, MANY);
	struct cost beside_many = measure();
	ck_assert_uint_lt(beside_many.creation, beside_few.creation + (MANY - FEW) / 2);
	ck_assert_uint_lt(beside_many.deletion, beside_few.deletion + (MANY - FEW) / 2);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {volume_is_made_and_deleted_with_the_same_work_beside_many};

	fixture_in_memory();
	return fixture_run("volumes_growth", fixture_memory, tests, ARRAY_SIZE(tests));
}
