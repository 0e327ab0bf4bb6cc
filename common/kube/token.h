/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.h - the bearer token: fixed, or in a file that is replaced before the token expires. Threads: one
 * owner at a time. Blocks on the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kube_token {
	char *file;          /* NULL: fixed */
	char *authorization; /* value of the header; NULL: no token */
	uint64_t read_ns;
	bool read;
};

/** kube_token_init() - use the token in @file or, if that is NULL, @token; both are copied. Return: 0, or -1
 * with ERR_INVALID_ARGUMENT (@token cannot be a token). */
int kube_token_init(struct kube_token *t, const char *token, const char *file, struct error **err) MUST_CHECK;

/** kube_token_copy() - make @t use the same token as @from. */
void kube_token_copy(struct kube_token *t, const struct kube_token *from);

/** kube_token_done() - release @t and overwrite the token in memory. */
void kube_token_done(struct kube_token *t);

/** kube_token_refused() - record that the server has refused the token, so that the file is read next time.
 * Return: whether there is a file. */
bool kube_token_refused(struct kube_token *t);

/** kube_token_get() - get the value of the header "authorization", borrowed until the next call; NULL without
 * a token. The file is read again after a minute; if that fails, the last content is used. Return: 0, or -1
 * with ERR_UNAUTHENTICATED (the file could not be read yet, or does not contain a token). */
int kube_token_get(
	struct kube_token *t, uint64_t now_ns, const char **ret_value, struct error **err) MUST_CHECK;
