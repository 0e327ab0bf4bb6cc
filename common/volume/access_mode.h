/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access_mode.h - CSI access modes, and which of them a volume on a node can have.
 *
 * No volume is shared between nodes: modes that span nodes are for cache volumes, of which each node has a
 * copy of its own. On a node, a volume may have several targets, except with SINGLE_NODE_SINGLE_WRITER.
 * Threads: safe.
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

/** access_mode_spans_nodes() - whether @mode is one of MULTI_NODE_*. */
bool access_mode_spans_nodes(enum access_mode mode);

/** access_mode_is_reader() - whether @mode is one of *_READER_ONLY, with which a volume is published
 * read-only even if the request does not set readonly. */
bool access_mode_is_reader(enum access_mode mode);

/** access_check() - refuse access modes that span nodes, except for cache volumes. @is_cache:
 * persistencyModel=cache. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int access_check(bool spans_nodes, bool is_cache, struct error **err) MUST_CHECK;
