/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_text.h - texts that nodes have sent, as others may see them. Threads: safe; nothing blocks.
 */
#pragma once

#include "base/arena.h"

#define NODE_TEXT_MAX 1024

/** node_text() - make a copy of @text, which a node has sent: its first NODE_TEXT_MAX bytes, with "?" in the
 * place of control characters and of bytes that are not UTF-8. Return: in @arena, never NULL. */
char *node_text(const char *text, struct arena *arena);
