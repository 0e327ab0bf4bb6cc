/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/nd/nd_sys.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "unit/os/scratch.h"

void nd_sys_folder(const char *path)
{
	CLEANUP(free_charp) char *parents = x_strdup(path);

	for (char *p = strchr(parents + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(parents, 0755);
		*p = '/';
	}
	ck_assert_msg(mkdir(path, 0755) == 0, "%s", path);
}

void nd_sys_file(const char *folder, const char *name, const char *content)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);
	CLEANUP(file_closep) FILE *f = fopen(path, "w");

	ck_assert_msg(f, "%s", path);
	ck_assert_int_ge(fprintf(f, "%s\n", content), 0);
}

void nd_sys_files(const char *folder, ...)
{
	const char *name;
	va_list ap;

	va_start(ap, folder);
	while ((name = va_arg(ap, const char *)))
		nd_sys_file(folder, name, va_arg(ap, const char *));
	va_end(ap);
}

void nd_sys_link(const char *folder, const char *name, const char *target)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);

	unlink(path);
	ck_assert_msg(symlink(target, path) == 0, "%s", path);
}

void nd_sys_device(const char *parent, const char *name)
{
	CLEANUP(free_charp) char *folder = x_asprintf("%s/%s", parent, name);

	nd_sys_folder(folder);
	nd_sys_link(ND_SYSFS_DEVICES, name, folder);
}

void nd_sys_bind(const char *folder)
{
	nd_sys_link(folder, "driver", ND_SYS_DRIVER);
}

void nd_sys_block(const char *folder, const char *name, const char *sectors)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/block/%s", folder, name);

	nd_sys_folder(path);
	nd_sys_file(path, "size", sectors);
}

void nd_sys_bus(void)
{
	ck_assert_int_eq(mount("sys", "/sys", "tmpfs", 0, NULL), 0);
	nd_sys_folder(ND_SYSFS_DEVICES);
	nd_sys_folder(ND_SYS_DRIVER);
	nd_sys_files(ND_SYS_DRIVER, "bind", "", "unbind", "", NULL);
	nd_sys_folder("/sys/devices");
	nd_sys_device("/sys/devices", "ndbus0");
	nd_sys_files(ND_SYS_BUS, "provider", "ACPI.NFIT", "wait_probe", "1", NULL);
}

void nd_sys_region(const char *name, const char *nstype)
{
	CLEANUP(free_charp) char *folder = x_asprintf(ND_SYS_BUS "/%s", name);

	nd_sys_device(ND_SYS_BUS, name);
	nd_sys_bind(folder);
	nd_sys_files(folder, "size", "2147483648", "nstype", nstype, "mappings", "1", "mapping0",
		"nmem0,0,2147483648,0", "available_size", "1811939328", "max_available_extent", "1744830464",
		"align", "0x1000000", "set_cookie", "0x2468ac00123456", "numa_node", "1", "read_only", "0",
		"resource", "0x100000000", "pfn_seed", "pfn0.1", NULL);
}

void nd_sys_enter(void)
{
	nd_sys_bus();
	nd_sys_region("region0", "5");
	nd_sys_device(ND_SYS_REGION, "pfn0.1");
	nd_sys_file(ND_SYS_REGION "/pfn0.1", "supported_alignments", "4096 2097152 1073741824 ");
	nd_sys_device(ND_SYS_BUS, "nmem0");
	nd_sys_file(ND_SYS_BUS "/nmem0", "available_slots", "16347");
}

void nd_sys_namespace(const char *name, const char *size, const char *class)
{
	CLEANUP(free_charp) char *folder = x_asprintf(ND_SYS_REGION "/%s", name);

	nd_sys_device(ND_SYS_REGION, name);
	nd_sys_files(folder, "size", size, "holder", "", "holder_class", class, "mode", "raw", "alt_name",
		ND_SYS_NAME, "uuid", ND_SYS_UUID, "resource", "0x108000000", NULL);
}

bool nd_sys_begins(const char *folder, const char *name, const char *text)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, name);
	CLEANUP(file_closep) FILE *f = fopen(path, "r");
	char found[128] = "";

	ck_assert_msg(f, "%s", path);
	ck_assert_msg(fread(found, 1, sizeof(found) - 1, f) > 0, "%s", path);
	return strncmp(found, text, strlen(text)) == 0;
}
