/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_host.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/spawn.h"

#define SETTINGS_TIMEOUT_MS 10000
#define SETTINGS_MAX_BYTES  (1U << 20)

void lvm_host_done(struct lvm_host *h)
{
	strv_free(TAKE_PTR(h->global_filter));
	strv_free(TAKE_PTR(h->filter));
}

/* The quoted texts in @value: "a", or ["a","b"]. */
static void take_patterns(const char *value, char ***patterns)
{
	const char *end;

	for (const char *at = strchr(value, '"'); at && (end = strchr(at + 1, '"'));
		at = strchr(end + 1, '"')) {
		CLEANUP(free_charp) char *pattern = x_strndup(at + 1, (size_t)(end - at - 1));

		strv_add(patterns, pattern);
	}
}

static void take_line(const char *line, struct lvm_host *h)
{
	line += strspn(line, " \t");
	if (str_starts(line, "global_filter="))
		take_patterns(line, &h->global_filter);
	else if (str_starts(line, "filter="))
		take_patterns(line, &h->filter);
	else if (str_starts(line, "use_devicesfile="))
		h->uses_devices_file = str_eq(line, "use_devicesfile=1");
}

void lvm_host_parse(struct span text, struct lvm_host *ret)
{
	const char *at = (const char *)text.p, *end = at + text.n;

	*ret = (struct lvm_host){0};
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = newline ? (size_t)(newline - at) : (size_t)(end - at);
		CLEANUP(free_charp) char *line = x_strndup(at, n);

		take_line(line, ret);
		at += n + 1;
	}
}

static bool exists(const char *root, const char *path)
{
	CLEANUP(free_charp) char *full = x_asprintf("%s%s", root, path);

	return access(full, F_OK) == 0;
}

int lvm_host_read(const char *root, struct lvm_host *ret, struct error **err)
{
	static const char *const argv[] = {"lvm", "lvmconfig", "--typeconfig", "full",
		"devices/global_filter", "devices/filter", "devices/use_devicesfile", NULL};
	CLEANUP(free_charp) char *folder = x_asprintf("LVM_SYSTEM_DIR=%s/etc/lvm", root);
	const char *const env[] = {folder, NULL};
	CLEANUP(buf_done) struct buf out = BUF_INIT(SETTINGS_MAX_BYTES);
	CLEANUP(buf_done) struct buf diag = BUF_INIT(SETTINGS_MAX_BYTES);
	int status;

	if (!exists(root, "/usr/sbin/lvm") && !exists(root, "/sbin/lvm") && !exists(root, "/usr/bin/lvm")) {
		*ret = (struct lvm_host){.is_absent = true};
		return 0;
	}
	/* LVM would make the folder */
	if (!exists(root, "/etc/lvm/lvm.conf"))
		return err_set(err, ERR_PRECONDITION, "%s/etc/lvm/lvm.conf does not exist", root);
	if (spawn_run(argv, env, &out, &diag, SETTINGS_TIMEOUT_MS, &status, err) < 0)
		return -1;
	if (status != 0) {
		CLEANUP(free_charp) char *said = spawn_said(buf_str(&diag));

		return err_set(err, ERR_INTERNAL, "lvm lvmconfig (status %d): %s", status, said);
	}
	lvm_host_parse(span_of(buf_str(&out)), ret);
	/* LVM creates none: without the file it looks at all devices */
	ret->uses_devices_file = ret->uses_devices_file && exists(root, "/etc/lvm/devices/system.devices");
	return 0;
}

/* @pattern: "a|EXPRESSION|" or "r|EXPRESSION|", in which another character may stand for "|". */
static bool matches(const char *pattern, const char *path)
{
	regex_t expression;

	if (strlen(pattern) < 3)
		return false;
	CLEANUP(free_charp) char *text = x_strndup(pattern + 2, strlen(pattern) - 3);
	if (regcomp(&expression, text, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	bool found = regexec(&expression, path, 0, NULL, 0) == 0;
	regfree(&expression);
	return found;
}

static bool rejects(char *const *filter, const char *path)
{
	for (; filter && *filter; filter++) {
		if (matches(*filter, path))
			return **filter == 'r';
	}
	return false;
}

bool lvm_host_scans(const struct lvm_host *h, const char *path)
{
	return !h->is_absent && !h->uses_devices_file && !rejects(h->global_filter, path) &&
	       !rejects(h->filter, path);
}
