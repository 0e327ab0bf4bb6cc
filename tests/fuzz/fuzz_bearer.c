/* SPDX-License-Identifier: Apache-2.0 */
/* The header with a node's token, before the API server has checked it: the request that it gets has that
 * token and is well-formed. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "kube/token_review.h"
#include "nodes/node_tokens.h"
#include "unit/kube/fake_kube.h"

#define SCHEME "Bearer "

static void ignore(void *user, const struct error *error)
{
	(void)user;
	fuzz_check_error(error);
}

static void check_request(const struct fake_request *r, const char *token)
{
	CLEANUP(buf_done) struct buf usual = BUF_INIT(1 << 20);

	token_review_write(token, "audience", &usual);
	assert(str_eq(r->body, buf_str(&usual)) && str_eq(r->path, TOKEN_REVIEW_PATH));
	fuzz_check_json(buf_span(&usual));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free_charp) char *header = fuzz_text((struct span){data, size});
	struct kube_client *kube = fake_kube_new(/* loop= */ NULL);
	struct node_tokens *t = node_tokens_new(
		&(struct node_tokens_config){.client = kube, .audience = "audience", .user_name = "node"});
	const struct node_claim claim = {
		.authorization = header, .node_id = "a", .endpoint = "tcp://192.0.2.1:1", .instance = "run"};
	struct error *err = NULL;

	(void)token_expiry(header);
	if (node_tokens_check(t, &claim, ignore, NULL, &err) == NODE_ASKING)
		check_request(fake_kube_next(kube), header + strlen(SCHEME));
	else
		fuzz_error(err);
	node_tokens_free(t);
	kube_client_free(kube);
	return 0;
}
