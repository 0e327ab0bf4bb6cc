/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - YAML documents as JSON, over libyaml's events, so that one reader serves both.
 *
 * Every scalar becomes a string, whatever it looks like, except that a plain empty one, "~" and "null" become
 * null. One document; anchors, aliases and keys that are not scalars are refused, so that a small text cannot
 * expand to a large one. Threads: safe.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/** yaml_to_json() - append the JSON of @yaml to @out; an empty text gives null. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (malformed, with the line; refused; more than 64 levels) or ERR_EXHAUSTED (limit of
 * @out). */
int yaml_to_json(struct span yaml, struct buf *out, struct error **err) MUST_CHECK;
