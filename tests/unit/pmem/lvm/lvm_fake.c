/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/lvm/lvm_fake.h"

#include <check.h>
#include <stdlib.h>

#include "base/mem.h"

/* Joins the arguments of a command, without the option that every command gets. */
static char *join(const char *const argv[])
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(64U << 10);

	buf_adds(&b, argv[0]);
	ck_assert_str_eq(argv[1], "--nohints");
	for (size_t i = 2; argv[i]; i++)
		buf_addf(&b, " %s", argv[i]);
	return x_strdup(buf_str(&b));
}

static int run(void *self, const char *const argv[], const char *config, struct buf *report, int timeout_ms,
	struct error **err)
{
	CLEANUP(free_charp) char *command = join(argv);
	struct lvm_fake *fake = self;
	const struct lvm_fake_step *step = fake->steps;

	ck_assert_int_eq(timeout_ms, LVM_TIMEOUT_MS);
	ck_assert_msg(step->command, "unexpected command: %s", command);
	ck_assert_str_eq(command, step->command);
	fake->steps++;
	free(fake->config);
	fake->config = x_strdup(config);
	if (step->code)
		return err_set(err, step->code, "lvm %s: as the table says", argv[0]);
	if (step->report)
		buf_adds(report, step->report);
	return 0;
}

static void close_fake(void *self)
{
	struct lvm_fake *fake = self;

	ck_assert_msg(!fake->steps->command, "not run: %s", fake->steps->command);
}

static const struct lvm_ops ops = {.run = run, .close = close_fake};

struct lvm *lvm_open_fake(struct lvm_fake *fake)
{
	return lvm_open_with(&ops, fake);
}

void lvm_fake_done(struct lvm_fake *fake)
{
	free(fake->config);
}
