/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/lvm/lvm_config.h"

struct lvm {
	pthread_mutex_t mutex;
	const struct lvm_ops *ops;
	void *self;
	char **devices;
	char *backup_dir; /* NULL: no copies are kept */
	char *config;     /* NULL: the devices do not fit into one */
	int timeout_ms;
	pthread_mutex_t activity_mutex; /* for what follows; held for moments, also while a command runs */
	struct lvm_activity activity;
};

struct lvm *lvm_open_with(const struct lvm_ops *ops, void *self)
{
	struct lvm *l = x_calloc(1, sizeof(*l));

	pthread_mutex_init(&l->mutex, NULL);
	pthread_mutex_init(&l->activity_mutex, NULL);
	l->ops = ops;
	l->self = self;
	l->config = lvm_config_text(NULL, NULL);
	l->timeout_ms = LVM_TIMEOUT_MS;
	return l;
}

void lvm_close(struct lvm *l)
{
	if (!l)
		return;
	l->ops->close(l->self);
	pthread_mutex_destroy(&l->mutex);
	pthread_mutex_destroy(&l->activity_mutex);
	strv_free(l->devices);
	free(l->backup_dir);
	free(l->config);
	free(l);
}

void lvm_idle(struct lvm *l)
{
	if (!l->ops->idle || pthread_mutex_trylock(&l->mutex) != 0)
		return;
	l->ops->idle(l->self);
	pthread_mutex_unlock(&l->mutex);
}

static void configure(struct lvm *l)
{
	free(l->config);
	l->config = lvm_config_text(l->devices, l->backup_dir);
}

void lvm_set_devices(struct lvm *l, const char *const *paths, size_t n)
{
	char **devices = NULL;

	for (size_t i = 0; i < n; i++)
		strv_add(&devices, paths[i]);

	pthread_mutex_lock(&l->mutex);
	strv_free(l->devices);
	l->devices = devices;
	configure(l);
	pthread_mutex_unlock(&l->mutex);
}

void lvm_set_backup_dir(struct lvm *l, const char *dir)
{
	pthread_mutex_lock(&l->mutex);
	free(l->backup_dir);
	l->backup_dir = dir ? x_strdup(dir) : NULL;
	configure(l);
	pthread_mutex_unlock(&l->mutex);
}

void lvm_set_timeout(struct lvm *l, int timeout_ms)
{
	l->timeout_ms = timeout_ms;
}

void lvm_activity(struct lvm *l, struct lvm_activity *ret)
{
	pthread_mutex_lock(&l->activity_mutex);
	*ret = l->activity;
	pthread_mutex_unlock(&l->activity_mutex);
	if (l->ops->restarts)
		ret->restarts = l->ops->restarts(l->self);
}

/* @command: "": none runs any more */
static void set_activity(struct lvm *l, const char *command)
{
	const char *lvm = *command ? "lvm " : "";

	pthread_mutex_lock(&l->activity_mutex);
	snprintf(l->activity.command, sizeof(l->activity.command), "%s%s", lvm, command);
	l->activity.since_ns = clock_ns();
	pthread_mutex_unlock(&l->activity_mutex);
}

/* Whether @arg arrives as one argument, unchanged, through the shell's splitting (lvm_split() in LVM's
 * tools/lvmcmdline.c: blanks, quotes and '#' mean something there). */
static bool is_one_word(const char *arg)
{
	if (!*arg || strlen(arg) > 1024)
		return false;
	for (const char *c = arg; *c; c++)
		if (!isgraph((unsigned char)*c) || strchr("'\"\\#", *c))
			return false;
	return true;
}

static int check_arguments(const char *const argv[], struct error **err)
{
	size_t n = 0;

	for (; argv[n]; n++)
		if (!is_one_word(argv[n]))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"not possible as an argument of LVM: \"%s\"", argv[n]);
	if (n == 0 || n > LVM_WORDS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "LVM command of %zu words", n);
	return 0;
}

static int run_locked(
	struct lvm *l, const char *const argv[], const char *config, struct buf *report, struct error **err)
{
	CLEANUP(buf_done) struct buf dropped = BUF_INIT(LVM_ANSWER_MAX_BYTES);
	struct buf *to = report ? report : &dropped;
	const char *all[LVM_WORDS_MAX + 2] = {argv[0], "--nohints"};

	if (check_arguments(argv, err) < 0)
		return -1;
	if (!config)
		return err_set(err, ERR_INTERNAL, "the names of LVM's devices take more than %u bytes",
			LVM_CONFIG_MAX_BYTES);
	/* The hints are shared with the host's LVM. They were made with another filter and are of no use
	 * here, but our commands must mark them as outdated for the host, which this option does and
	 * devices/hints="none" does not. */
	for (size_t i = 1; argv[i]; i++)
		all[i + 1] = argv[i];
	set_activity(l, argv[0]);
	int rc = l->ops->run(l->self, all, config, to, l->timeout_ms, err);
	set_activity(l, "");
	if (rc == 0)
		rc = buf_check(to, "LVM's report", err);
	if (rc < 0)
		log_debug("LVM command failed", F_STR("command", argv[0]), F_ERR(*err));
	return rc;
}

int lvm_run(struct lvm *l, const char *const argv[], struct buf *report, struct error **err)
{
	pthread_mutex_lock(&l->mutex);
	int rc = run_locked(l, argv, l->config, report, err);
	pthread_mutex_unlock(&l->mutex);
	return rc;
}

/* The filter keeps the host's groups out, so its effect is verified. */
static int check_seen(char *const *admitted, const struct lvm_report *r, struct error **err)
{
	for (size_t i = 0; i < r->n_pvs; i++)
		if (!r->pvs[i].missing && !strv_contains(admitted, r->pvs[i].path))
			return err_set(
				err, ERR_INTERNAL, "lvm shows %s, which its filter excludes", r->pvs[i].path);
	return 0;
}

static int list_locked(struct lvm *l, struct lvm_report **ret, struct error **err)
{
	/* One row per segment of a PV, including free ones: this single command shows PVs without group and
	 * groups without LV. fullreport shows no more and takes half as long again. */
	static const char fields[] =
		"pv_name,pv_size,pv_missing,pv_uuid,pv_allocatable,pv_free,vg_name,vg_uuid,vg_size,vg_free,"
		"vg_extent_size,vg_missing_pv_count,vg_exported,vg_systemid,vg_seqno,vg_mda_size,vg_mda_free,max_lv,lv_count,"
		"pe_start,pvseg_start,pvseg_size,lv_name,lv_uuid,lv_path,lv_tags,lv_size,lv_active";
	static const char *const argv[] = {"pvs", "--foreign", "-o", fields, NULL};
	CLEANUP(buf_done) struct buf json = BUF_INIT(LVM_ANSWER_MAX_BYTES);
	CLEANUP(lvm_report_freep) struct lvm_report *r = x_calloc(1, sizeof(*r));

	if (l->devices) {
		if (run_locked(l, argv, l->config, &json, err) < 0)
			return -1;
		if (lvm_report_parse(buf_span(&json), r, err) < 0) {
			err_recode(err, ERR_UNAVAILABLE);
			return err_wrap(err, "LVM's report");
		}
		if (check_seen(l->devices, r, err) < 0)
			return -1;
	}
	*ret = TAKE_PTR(r);
	return 0;
}

int lvm_list(struct lvm *l, struct lvm_report **ret, struct error **err)
{
	pthread_mutex_lock(&l->mutex);
	int rc = list_locked(l, ret, err);
	pthread_mutex_unlock(&l->mutex);
	return rc;
}

int lvm_group_exists(struct lvm *l, const char *name, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *select = x_asprintf("vg_name=%s", name);
	CLEANUP(free_charp) char *config = lvm_config_text_open();
	const char *const argv[] = {"vgs", "--readonly", "-o", "vg_name,vg_uuid", "-S", select, NULL};
	CLEANUP(buf_done) struct buf json = BUF_INIT(LVM_ANSWER_MAX_BYTES);
	CLEANUP(lvm_report_freep) struct lvm_report *r = x_calloc(1, sizeof(*r));

	pthread_mutex_lock(&l->mutex);
	int rc = run_locked(l, argv, config, &json, err);
	pthread_mutex_unlock(&l->mutex);
	if (rc < 0)
		return err_wrap(err, "search for volume group %s", name);
	if (lvm_report_parse(buf_span(&json), r, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "search for volume group %s", name);
	}
	*ret = r->n_vgs > 0;
	return 0;
}

int lvm_activate(struct lvm *l, char *const *vg_names, struct error **err)
{
	const char *argv[LVM_WORDS_MAX + 1] = {"vgchange", LVM_ACTIVATE};
	size_t n = strv_len(vg_names);

	if (n == 0)
		return 0;
	if (n > LVM_WORDS_MAX - 2)
		return err_set(err, ERR_INTERNAL, "%zu volume groups are too many for one command", n);
	memcpy(&argv[2], vg_names, n * sizeof(*argv));
	return STEP("lvm-activate", lvm_run(l, argv, NULL, err));
}
