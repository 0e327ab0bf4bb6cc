/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_records.h - records of volumes in memory, as the API server would keep them.
 */
#pragma once

#include "resources/volume_records.h"

struct memory_records;

/** memory_records_new() - no records yet. Return: never NULL; memory_records_free(). */
struct memory_records *memory_records_new(const char *driver_name);
void memory_records_free(struct memory_records *m);

/** memory_records_interface() - valid as long as @m. */
struct volume_records memory_records_interface(struct memory_records *m);
