/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_text.h - texts that nodes have sent, as others may see them. Threads: safe; nothing blocks.
 */
#pragma once

#include "base/arena.h"

#define NODE_TEXT_MAX 1024

/** node_text() - make a copy of the first NODE_TEXT_MAX bytes of @text, which a node has sent, cleaned by
 * str_clean(). Return: in @arena, never NULL. */
char *node_text(const char *text, struct arena *arena);
