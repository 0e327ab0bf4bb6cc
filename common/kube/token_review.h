/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_review.h - asking the API server whose a ServiceAccount token is: the messages of TokenReview.
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

/* What the server answers. */
struct token_review {
	bool authenticated;
	char *user_name;  /* NULL: not told */
	char *node_name;  /* of the node that the token is bound to, itself or by its pod; NULL: not told */
	char **audiences; /* strv: those of the request that the token is for */
	char *error;      /* why it is not authenticated; NULL: not told */
};

/** token_review_write() - append the object that asks about @token for @audience to @out. */
void token_review_write(const char *token, const char *audience, struct buf *out);

/** token_review_read() - the server's reply. Return: 0, or -1 with ERR_INVALID_ARGUMENT. @ret:
 * token_review_done(), also after a failure. */
int token_review_read(struct span json, struct token_review *ret, struct error **err) MUST_CHECK;
void token_review_done(struct token_review *t);

/** token_expiry() - when @token says that it expires, in seconds since the epoch; its signature is not
 * checked. Return: 0 if @token is no JSON web token, or does not say. Source: RFC 7519 sections 3 and 4.1.4.
 */
uint64_t token_expiry(const char *token);
