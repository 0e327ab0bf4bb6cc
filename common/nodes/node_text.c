/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_text.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"

char *node_text(const char *text, struct arena *arena)
{
	CLEANUP(free_charp) char *beginning = x_strndup(text, NODE_TEXT_MAX);

	str_clean(beginning);
	return arena_strdup(arena, beginning);
}
