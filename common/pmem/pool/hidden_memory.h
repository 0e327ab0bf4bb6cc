/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hidden_memory.h - finds persistent memory that firmware and buses show, but that no driver of the kernel
 * has taken, so that there is no region of it.
 *
 * Only sysfs is read. Threads: safe. Blocks: sysfs. Sources: Documentation/driver-api/nvdimm/nvdimm.rst;
 * arch/x86/kernel/pmem.c ("e820_pmem"); include/uapi/linux/virtio_ids.h (VIRTIO_ID_PMEM); CXL 3.0, 8.1.12.1
 * (the class of memory devices); drivers/cxl/acpi.c ("ACPI0017").
 */
#pragma once

#include <stddef.h>

struct hidden_memory {
	char *name;       /* what shows it: "NFIT", "0000:0d:00.0, 0000:0e:00.0" */
	const char *what; /* static: "NVDIMMs that the firmware describes" */
	char *state;      /* "is not used: the kernel module nfit is not loaded" */
	char *command;    /* that loads the module, or shows the kernel's log */
};

struct hidden_memories {
	struct hidden_memory *list;
	size_t n;
};

/** hidden_memories_find() - look for such memory. Memory whose sysfs files cannot be read counts as absent.
 * @root: "", or the folder that takes the place of / in tests. @ret: hidden_memories_done() */
void hidden_memories_find(const char *root, struct hidden_memories *ret);

/** hidden_memories_done() - release what @m owns; safe on a zeroed one. */
void hidden_memories_done(struct hidden_memories *m);
