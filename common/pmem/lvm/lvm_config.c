/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_config.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"

/*
 * No udev: it may not run where we do, and waiting for it hangs (lvm.conf(5) udev_sync). No devices file: it
 * is shared with the host's LVM, which may know other devices. No component detection: only our own
 * namespaces pass the filter. No warnings about unknown settings: older and newer versions of LVM know
 * different ones. No asynchronous I/O: each command would wait until the kernel has given up the context
 * (io_destroy(2)), and a few headers are read from memory anyway. LVM allocates and touches reserved_memory
 * (KiB) with each growth, 8 MiB by default; see the decision on the LVM shell.
 */
static const char head[] =
	"config { checks=0 }\n"
	"activation { udev_sync=0 udev_rules=0 monitoring=0 reserved_memory=1024 }\n"
	"global { use_aio=0 use_lvmpolld=0 use_lvmlockd=0 event_activation=0 notify_dbus=0 "
	"units=\"b\" suffix=0 }\n"
	"report { output_format=\"json\" compact_output=0 mark_hidden_devices=1 }\n"
	"shell { history_size=0 }\n"
	"devices {\n"
	"\tuse_devicesfile=0 scan_lvs=0\n"
	"\tobtain_device_list_from_udev=0 external_device_info_source=\"none\"\n"
	"\tmd_component_detection=0 fw_raid_component_detection=0\n"
	"\tmultipath_component_detection=0 multipath_wwids_file=\"\"\n"
	"\tfilter=[";
static const char tail[] = "]\n}\n";

static bool is_plain(char c)
{
	return isalnum((unsigned char)c) || strchr("/_-", c);
}

/* Characters that are literal inside brackets; libdm's expressions have no other quoting without
 * backslashes. */
static bool is_bracketed(char c)
{
	return strchr(".+:@,=%", c);
}

static bool can_be_admitted(const char *path)
{
	if (*path != '/')
		return false;
	for (const char *c = path; *c; c++)
		if (!is_plain(*c) && !is_bracketed(*c))
			return false;
	return true;
}

static void admit(struct buf *b, const char *path)
{
	buf_adds(b, "\"a|^");
	for (const char *c = path; *c; c++)
		buf_addf(b, is_plain(*c) ? "%c" : "[%c]", *c);
	buf_adds(b, "$|\",");
}

/* Older copies are kept by pool_backup.c: LVM would write one more file with each command. */
static void add_backup(struct buf *b, const char *dir)
{
	buf_addf(b, "backup { archive=0 backup=%d", dir != NULL);
	if (dir) {
		buf_adds(b, " backup_dir=\"");
		for (; *dir; dir++)
			buf_addf(b, *dir == '"' || *dir == '\\' ? "\\%c" : "%c", *dir);
		buf_addc(b, '"');
	}
	buf_adds(b, " }\n");
}

char *lvm_config_text(char *const *paths, const char *backup_dir)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LVM_CONFIG_MAX_BYTES);

	add_backup(&b, backup_dir);
	buf_adds(&b, head);
	for (; paths && *paths; paths++)
		if (can_be_admitted(*paths))
			admit(&b, *paths);
	buf_adds(&b, "\"r|.*|\"");
	buf_adds(&b, tail);
	return b.overflowed ? NULL : x_strdup(buf_str(&b));
}

char *lvm_config_text_open(void)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(LVM_CONFIG_MAX_BYTES);

	add_backup(&b, /* dir= */ NULL);
	buf_addf(&b, "%s\"a|.*|\"%s", head, tail);
	return x_strdup(buf_str(&b));
}
