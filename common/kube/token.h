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

/** kube_token_init() - both are copied; the file, if given, counts. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (a fixed one that cannot be a token). */
int kube_token_init(struct kube_token *t, const char *token, const char *file, struct error **err) MUST_CHECK;

/** kube_token_copy() - the same token in @t. */
void kube_token_copy(struct kube_token *t, const struct kube_token *from);

/** kube_token_done() - release @t and leave nothing of it in memory. */
void kube_token_done(struct kube_token *t);

/** kube_token_refused() - the server did not take it: read the file next time. Return: whether there is one.
 */
bool kube_token_refused(struct kube_token *t);

/** kube_token_get() - value of the header "authorization", borrowed until the next call; NULL without a
 * token. The file is read when that was a minute ago; if it cannot be, the last content stays. Return: 0, or
 * -1 with ERR_UNAUTHENTICATED (no content yet, or not one of a token). */
int kube_token_get(
	struct kube_token *t, uint64_t now_ns, const char **ret_value, struct error **err) MUST_CHECK;
