/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - what the bytes of a volume's device are.
 */
#pragma once

#include <stddef.h>

#include "pmem/device/device.h"

#define CONTENT_BLOCK 4096

/** content_fill() - write @value over all of @d. */
void content_fill(const struct device *d, char value);

/** content_count() - how many blocks of @d hold nothing but @value. */
size_t content_count(const struct device *d, char value);
