/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/hidden_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"

#define ATTRIBUTE_MAX_BYTES 4096
#define NAMES_MAX_BYTES     4096

/* Devices, and how a driver that has taken them is recognised: by a bus of @provider, by @path, or else by
 * the link to its driver that each of them has then. */
struct kind {
	const char *what;
	const char *module;
	const char *folder;
	const char *prefix;    /* of the devices' names */
	const char *attribute; /* that begins with @value; NULL: the name is enough */
	const char *value;
	const char *provider;
	const char *path;
};

static const struct kind kinds[] = {
	{.what = "NVDIMMs that the firmware describes",
		.module = "nfit",
		.folder = "/sys/firmware/acpi/tables",
		.prefix = "NFIT",
		.provider = "ACPI.NFIT"},
	{.what = "legacy memory of the e820 table (memmap=)",
		.module = "nd_e820",
		.folder = "/sys/bus/platform/devices",
		.prefix = "e820_pmem"},
	{.what = "virtio-pmem",
		.module = "virtio_pmem",
		.folder = "/sys/bus/virtio/devices",
		.prefix = "virtio",
		.attribute = "device",
		.value = "0x001b"},
	{.what = "regions whose namespaces have no block devices",
		.module = "nd_pmem",
		.folder = "/sys/bus/nd/devices",
		.prefix = "region",
		.path = "/sys/bus/nd/drivers/nd_pmem"},
	{.what = "CXL memory devices",
		.module = "cxl_pci",
		.folder = "/sys/bus/pci/devices",
		.prefix = "",
		.attribute = "class",
		.value = "0x0502"},
	{.what = "the addresses of CXL memory",
		.module = "cxl_acpi",
		.folder = "/sys/bus/acpi/devices",
		.prefix = "ACPI0017",
		.path = "/sys/bus/cxl/devices/root0"},
	{.what = "CXL memory devices",
		.module = "cxl_mem",
		.folder = "/sys/bus/cxl/devices",
		.prefix = "mem",
		.path = "/sys/bus/cxl/drivers/cxl_mem"},
};

/* Return: the names in a folder, none if it cannot be read; strv_free(). */
static char **list(const char *root, const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s%s", root, folder);
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int fd = -1;
	char **names = NULL;

	if (dir_open(path, /* create= */ false, 0, &fd, &ignored) < 0 || dir_list(fd, &names, &ignored) < 0)
		return NULL;
	return names;
}

static bool exists(const char *root, const char *folder, const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s%s/%s", root, folder, name);

	return access(path, F_OK) == 0;
}

static bool attribute_begins(
	const char *root, const char *folder, const char *device, const char *attribute, const char *value)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s%s/%s/%s", root, folder, device, attribute);
	CLEANUP(buf_done) struct buf text = BUF_INIT(ATTRIBUTE_MAX_BYTES);
	CLEANUP(error_freep) struct error *ignored = NULL;

	return file_read(AT_FDCWD, path, &text, &ignored) == 0 && str_starts(buf_str(&text), value);
}

static bool has_bus(const char *root, const char *provider)
{
	static const char devices[] = "/sys/bus/nd/devices";
	CLEANUP(strv_freep) char **names = list(root, devices);

	for (char **name = names; name && *name; name++)
		if (str_starts(*name, "ndbus") &&
			attribute_begins(root, devices, *name, "provider", provider))
			return true;
	return false;
}

static bool is_taken(const char *root, const struct kind *k, const char *device)
{
	CLEANUP(free_charp) char *driver = x_asprintf("%s/driver", device);

	if (k->provider)
		return has_bus(root, k->provider);
	return k->path ? exists(root, k->path, "") : exists(root, k->folder, driver);
}

/* Return: the names of devices that no driver has taken, "" if there are none; caller frees. */
static char *find_devices(const char *root, const struct kind *k)
{
	CLEANUP(strv_freep) char **names = list(root, k->folder);
	CLEANUP(buf_done) struct buf text = BUF_INIT(NAMES_MAX_BYTES);

	for (char **name = names; name && *name; name++) {
		if (!str_starts(*name, k->prefix) || is_taken(root, k, *name))
			continue;
		if (k->attribute && !attribute_begins(root, k->folder, *name, k->attribute, k->value))
			continue;
		buf_addf(&text, "%s%s", text.len ? ", " : "", *name);
	}
	return x_strdup(buf_str(&text));
}

void hidden_memories_find(const char *root, struct hidden_memories *ret)
{
	struct hidden_memories m = {.list = x_calloc(ARRAY_SIZE(kinds), sizeof(*m.list))};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct kind *k = &kinds[i];
		CLEANUP(free_charp) char *name = find_devices(root, k);
		if (str_empty(name))
			continue;
		bool loaded = exists(root, "/sys/module", k->module);
		m.list[m.n++] = (struct hidden_memory){.name = TAKE_PTR(name),
			.what = k->what,
			.state = x_asprintf(
				loaded ? "is not used: the kernel module %s is loaded, but has not "
					 "taken it; the kernel's log says why"
				       : "is not used: the kernel module %s is not loaded",
				k->module),
			.command = loaded ? x_strdup("dmesg") : x_asprintf("modprobe %s", k->module)};
	}
	*ret = m;
}

void hidden_memories_done(struct hidden_memories *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->list[i].name);
		free(m->list[i].state);
		free(m->list[i].command);
	}
	free(m->list);
	*m = (struct hidden_memories){0};
}
