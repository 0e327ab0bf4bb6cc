/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_review.h - the messages of TokenReview, by which the API server says to which account a
 * ServiceAccount token belongs.
 *
 * Threads: safe. Nothing blocks. Source: Kubernetes API reference 1.34, authentication.k8s.io/v1 TokenReview.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/span.h"

#define TOKEN_REVIEW_PATH "/apis/authentication.k8s.io/v1/tokenreviews"

/* The reply of the server. */
struct token_review {
	bool authenticated;
	char *user_name;   /* NULL: not given */
	char **node_names; /* strv: names of the node to which the token is bound, directly or by its pod */
	char *node_name;   /* the only element of node_names; NULL: no element, or more than one */
	char **audiences;  /* strv: audiences of the request for which the token is valid */
	char *error;       /* why it is not authenticated; NULL: not given */
};

/** token_review_write() - append to @out the request to check @token for @audience. */
void token_review_write(const char *token, const char *audience, struct buf *out);

/** token_review_read() - parse the server's reply. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret:
 * token_review_done(), also after a failure. */
int token_review_read(struct span json, struct token_review *ret, struct error **err) MUST_CHECK;
void token_review_done(struct token_review *t);

/** token_expiry() - read from @token when it expires, in seconds since the epoch; its signature is not
 * checked. Return: 0 if @token is not a JSON web token, or has no expiry. Source: RFC 7519 sections 3
 * and 4.1.4.
 */
uint64_t token_expiry(const char *token);
