/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_kind.h - decides what kind of memory a region is made of, by what the kernel shows of it and by the
 * label areas of its modules. Private to the real nd.h.
 *
 * Threads: safe. Blocks: sysfs; the label areas of a region without labels are read. Source: the providers of
 * drivers/acpi/nfit/core.c ("ACPI.NFIT"), drivers/nvdimm/e820.c ("e820"), drivers/nvdimm/virtio_pmem.c
 * ("virtio-pmem") and drivers/cxl/pmem.c ("CXL"); nd_region_to_nstype() of drivers/nvdimm/region_devs.c.
 */
#pragma once

#include "pmem/nd/nd.h"

/** nd_kind_read() - the memory of the region @name ("region0"). Return: 0, or -1 with ERR_NOT_FOUND,
 * ERR_INTERNAL (sysfs cannot be read). A label area that cannot be read is no error: ND_MEMORY_ODD. @ret:
 * nd_memory_done(). */
int nd_kind_read(const char *name, struct nd_memory *ret, struct error **err) MUST_CHECK;
