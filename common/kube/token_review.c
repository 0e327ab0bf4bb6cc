/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/token_review.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/fields.h"
#include "kube/json_members.h"

/* Limit for the claims of a token; those that kubelet projects have about 1 KiB. */
#define CLAIMS_MAX_BYTES (16u << 10)

void token_review_write(const char *token, const char *audience, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "apiVersion", "authentication.k8s.io/v1");
	json_key_str(&w, "kind", "TokenReview");
	json_key(&w, "spec");
	json_object(&w);
	json_key_str(&w, "token", token);
	json_key(&w, "audiences");
	json_array(&w);
	json_str(&w, audience);
	json_array_end(&w);
	json_object_end(&w);
	json_object_end(&w);
}

static const struct kube_field extra_fields[] = {
	/* set by Kubernetes 1.30 and later. Source: apiserver pkg/authentication/serviceaccount/util.go */
	KUBE_FIELD("authentication.kubernetes.io/node-name", KUBE_TEXTS, struct token_review, node_names),
	KUBE_FIELDS_END,
};

static const struct kube_field user_fields[] = {
	KUBE_FIELD("username", KUBE_TEXT, struct token_review, user_name),
	KUBE_OBJECT("extra", extra_fields),
	KUBE_FIELDS_END,
};

static const struct kube_field status_fields[] = {
	KUBE_FIELD("authenticated", KUBE_FLAG, struct token_review, authenticated),
	KUBE_OBJECT("user", user_fields),
	KUBE_FIELD("audiences", KUBE_TEXTS, struct token_review, audiences),
	KUBE_FIELD("error", KUBE_TEXT, struct token_review, error),
	KUBE_FIELDS_END,
};

static const struct kube_field review_fields[] = {
	KUBE_OBJECT("status", status_fields),
	KUBE_FIELD("", KUBE_TEXT, struct token_review, node_name),
	KUBE_FIELDS_END,
};

int token_review_read(struct span json, struct token_review *ret, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	struct json_event end;

	*ret = (struct token_review){0};
	json_reader_be_strict(r);
	if (kube_fields_read(r, review_fields, ret, err) < 0)
		return -1;
	/* a token of two nodes is one of neither */
	if (strv_len(ret->node_names) == 1)
		ret->node_name = x_strdup(ret->node_names[0]);
	return json_expect(r, JSON_END, &end, err);
}

void token_review_done(struct token_review *t)
{
	kube_fields_done(review_fields, t);
}

/* The part between the two dots, from base64url to base64 with padding. Return: caller frees, or NULL. */
static char *claims_base64(const char *token)
{
	const char *from = strchr(token, '.');
	const char *to = from ? strchr(from + 1, '.') : NULL;
	struct buf text = BUF_INIT(CLAIMS_MAX_BYTES);
	char *copy;

	if (!to)
		return NULL;
	for (from++; from < to; from++)
		buf_addc(&text, *from == '-' ? '+' : *from == '_' ? '/' : *from);
	while (text.len % 4 != 0 && !text.overflowed)
		buf_addc(&text, '=');
	copy = text.overflowed ? NULL : x_strdup(buf_str(&text));
	buf_done(&text);
	return copy;
}

static int read_claim(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "exp"))
		return json_read_u64(r, user, err);
	return json_skip_value(r, err);
}

static int read_claims(const char *base64, uint64_t *ret_expiry, struct error **err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(CLAIMS_MAX_BYTES);
	CLEANUP(json_reader_freep) struct json_reader *r = NULL;
	struct json_event ev;

	if (base64_decode(base64, &json, err) < 0)
		return -1;
	r = json_reader_new(buf_span(&json));
	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	return kube_read_members(r, read_claim, ret_expiry, err);
}

uint64_t token_expiry(const char *token)
{
	CLEANUP(free_charp) char *base64 = claims_base64(token);
	CLEANUP(error_freep) struct error *none = NULL;
	uint64_t expiry = 0;

	return base64 && read_claims(base64, &expiry, &none) == 0 ? expiry : 0;
}
