/* SPDX-License-Identifier: Apache-2.0 */
#include "mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define HUGE_PAGE_BYTES (2UL << 20)
#define PAGE_BYTES      4096
#define LINE_BYTES      64

static int reserve(size_t size_bytes, struct mapping *m, struct error **err)
{
	m->reserved_bytes = size_bytes + HUGE_PAGE_BYTES;
	m->reserved = mmap(NULL, m->reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->reserved == MAP_FAILED) {
		m->reserved = NULL;
		return err_set_errno(err, ERR_INTERNAL, errno, "reserve address space");
	}
	uintptr_t start = (uintptr_t)m->reserved;
	size_t gap = -start & (HUGE_PAGE_BYTES - 1);
	m->data = (char *)m->reserved + gap;
	m->size_bytes = size_bytes;
	return 0;
}

int mapping_open(int fd, size_t size_bytes, struct mapping *ret, struct error **err)
{
	struct mapping m = {0};

	if (reserve(size_bytes, &m, err) < 0)
		return -1;
	if (mmap(m.data, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC | MAP_FIXED, fd,
		    0) == MAP_FAILED) {
		enum err_code code = errno == EOPNOTSUPP ? ERR_UNIMPLEMENTED : ERR_INTERNAL;

		err_set_errno(err, code, errno, "mmap with MAP_SYNC");
		mapping_close(&m);
		return -1;
	}
	*ret = m;
	return 0;
}

void mapping_close(struct mapping *m)
{
	if (m->reserved)
		munmap(m->reserved, m->reserved_bytes);
	*m = (struct mapping){0};
}

int mapping_flush(const struct mapping *m, const char **ret_how, struct error **err)
{
#ifdef __x86_64__
	/* CLFLUSH is in every x86-64 and durable on NVDIMM with ADR (Intel SDM 2A; libpmem falls back on it
	 * too) */
	(void)err;
	for (size_t i = 0; i < m->size_bytes; i += LINE_BYTES)
		__builtin_ia32_clflush(m->data + i);
	__builtin_ia32_sfence();
	*ret_how = "clflush";
#else
	if (msync(m->data, m->size_bytes, MS_SYNC) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "msync");
	*ret_how = "msync";
#endif
	return 0;
}

static unsigned long count_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (unsigned long)usage.ru_minflt + (unsigned long)usage.ru_majflt;
}

unsigned long mapping_touch(const struct mapping *m)
{
	/* smaps does not show it: FilePmdMapped leaves DAX out (Linux fs/proc/task_mmu.c, smaps_pmd_entry) */
	unsigned long before = count_faults();

	for (size_t i = 0; i < m->size_bytes; i += PAGE_BYTES)
		(void)*(volatile const char *)(m->data + i);
	return count_faults() - before;
}

int mapping_store_lines(const struct mapping *m, uint64_t value, struct error **err)
{
#ifdef __x86_64__
	(void)err;
	for (size_t i = 0; i < m->size_bytes; i += LINE_BYTES) {
		*(volatile uint64_t *)(m->data + i) = value;
		__builtin_ia32_clflush(m->data + i);
		__builtin_ia32_sfence();
	}
	return 0;
#else
	(void)m;
	(void)value;
	return err_set(err, ERR_UNIMPLEMENTED, "how a cache line is flushed here is not known");
#endif
}
