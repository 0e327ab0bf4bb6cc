/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_members.h - reads JSON of which only some members matter. A member of another type than expected reads
 * as absent, as does a string with a NUL or invalid UTF-8, which users may write into labels and the like:
 * one object must not hide all others. A reader that is strict (json_reader_be_strict()) refuses both, unless
 * it is null, and the error names the member. The value of a key with a NUL or invalid UTF-8 is skipped.
 * Otherwise only malformed JSON is an error. Threads: one owner at a time.
 */
#pragma once

#include "base/error.h"
#include "base/json/json.h"

/** Called after each key; reads the whole value (json_skip_value() if it is not needed). @key: valid until
 * the next call of the reader. Return: 0 or -1. */
typedef int kube_member_fn(void *user, const char *key, struct json_reader *r, struct error **err);

/** kube_read_members() - the members of an object whose "{" was read. Return: 0 or -1. */
int kube_read_members(
	struct json_reader *r, kube_member_fn *member, void *user, struct error **err) MUST_CHECK;

/** kube_read_object() - the value that comes next, if it is an object. Return: 0 or -1. */
int kube_read_object(
	struct json_reader *r, kube_member_fn *member, void *user, struct error **err) MUST_CHECK;

/** kube_read_array() - the value that comes next, if it is an array: @item is called for each object in it,
 * after its "{", and reads on to its end. Return: 0 or -1. */
int kube_read_array(struct json_reader *r, int (*item)(void *user, struct json_reader *r, struct error **err),
	void *user, struct error **err) MUST_CHECK;

/** kube_read_text() - the value that comes next into *@ret, which it replaces and frees, if it is a string or
 * a number. Return: 0 or -1. */
int kube_read_text(struct json_reader *r, char **ret, struct error **err) MUST_CHECK;

/** kube_read_flag() - the value that comes next, if it is a boolean. Return: 0 or -1. */
int kube_read_flag(struct json_reader *r, bool *ret, struct error **err) MUST_CHECK;

/** kube_add_text() - strv_add() without effect from KUBE_MAX_TEXTS strings on: the longest list that is kept
 * has the nodes of a cluster, of which Kubernetes supports 5,000, and longer ones would take long to read. */
#define KUBE_MAX_TEXTS 8192
void kube_add_text(char ***v, const char *text);

/** kube_read_texts() - strings of an array, by kube_add_text(). Return: 0 or -1. */
int kube_read_texts(struct json_reader *r, char ***ret, struct error **err) MUST_CHECK;

/** kube_read_quantity() - a quantity in bytes; @ret_has: whether it was one. Return: 0 or -1. */
int kube_read_quantity(
	struct json_reader *r, uint64_t *ret_bytes, bool *ret_has, struct error **err) MUST_CHECK;
