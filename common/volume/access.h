/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - CSI access modes, as one node sees them.
 *
 * Between nodes nothing is shared: a mode that spans nodes is for cache volumes, of which each node has one
 * of its own. On a node, only SINGLE_NODE_SINGLE_WRITER keeps further targets away. Threads: safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum access_mode {
	ACCESS_SINGLE_WRITER,
	ACCESS_SINGLE_NODE_READER,
	ACCESS_SINGLE_NODE_SINGLE_WRITER,
	ACCESS_SINGLE_NODE_MULTI_WRITER,
	ACCESS_MULTI_NODE_READER,
	ACCESS_MULTI_NODE_WRITER /* MULTI_NODE_SINGLE_WRITER and MULTI_NODE_MULTI_WRITER */
};

/** access_mode_spans_nodes() - MULTI_NODE_*. */
bool access_mode_spans_nodes(enum access_mode mode);

/** access_mode_is_reader() - *_READER_ONLY: published read-only, whatever else is said. */
bool access_mode_is_reader(enum access_mode mode);

/** access_check() - whether a volume may be used so. @is_cache: persistencyModel=cache. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int access_check(bool spans_nodes, bool is_cache, struct error **err) MUST_CHECK;
