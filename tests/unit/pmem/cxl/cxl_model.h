/* SPDX-License-Identifier: Apache-2.0 */
/* cxl_model.h - a host bridge with two devices of 512 MiB, and the region over both. */
#pragma once

#include "pmem/cxl/cxl.h"

#define UUID_A  "11111111-2222-4333-8444-555555555555"
#define UUID_B  "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
#define PART    (512ULL << 20)
#define SERIAL1 0x1001
#define SERIAL2 0x1002

#define MODEL_WINDOW                                                                                         \
	{                                                                                                    \
		.start_bytes = 4ULL << 32,                                                                   \
		.size_bytes = 4ULL << 30,                                                                    \
		.granularity_bytes = 256,                                                                    \
		.ways = 1,                                                                                   \
		.bridges = {12},                                                                             \
	}

#define MODEL_LAYOUT(id, serial_a, serial_b)                                                                 \
	{                                                                                                    \
		.uuid = id,                                                                                  \
		.size_bytes = 2 * PART,                                                                      \
		.granularity_bytes = 256,                                                                    \
		.ways = 2,                                                                                   \
		.places = {{serial_a, 0}, {serial_b, 0}},                                                    \
		.window = MODEL_WINDOW,                                                                      \
	}

#define MODEL_DEVICE(id, number) {.name = id, .serial = number, .pmem_bytes = PART, .n_roots = 1}
#define MODEL_ROOT               {.name = "decoder0.0", .free_bytes = 4ULL << 30, .window = MODEL_WINDOW}
