/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_tokens.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "base/str.h"
#include "kube/token_review.h"
#include "pacing/wait_log.h"

#define SCHEME "Bearer "
/* kubelet's have about 1 KiB. */
#define TOKEN_MAX 4096
/* Source: RFC 6750 section 2.1, b64token. JSON does not escape any of it. */
#define TOKEN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="
/* of the request with the token */
#define REVIEW_MAX_BYTES (16u << 10)

struct token_waiter {
	struct token_waiter *next;
	char *node_id;
	char *endpoint;
	char *instance;
	bool has_lease;
	node_token_fn fn;
	void *user;
};

/* The result of the last check of one token. */
struct token {
	struct name_link link; /* by hash */
	struct token *next;
	struct node_tokens *all;
	char hash[SHA256_HEX_LEN + 1];
	uint64_t expiry_s;    /* as the token says; 0: it does not */
	char *node_name;      /* the node that it belongs to; NULL: it was not found genuine */
	struct error *reason; /* of a refusal; NULL if none */
	uint64_t until_ns;    /* how long the verdict counts without a doubt */
	uint64_t again_ns;    /* before that the API server is not asked about it again */
	uint64_t used_ns;
	char *endpoint; /* for which it was used last, with success */
	char *instance;
	struct kube_request *request; /* NULL: it is not being asked about */
	bool has_lease;               /* how that request is counted */
	struct token_waiter *waiters;
};

struct node_tokens {
	struct node_tokens_config config;
	char *audience;
	char *user_name;
	struct name_index index;
	struct token *tokens;
	size_t n_tokens;
	unsigned n_asking[2];   /* without and with a lease */
	struct wait_log silent; /* the API server gives no answer */
};

static uint64_t now_ns(const struct node_tokens *t)
{
	return t->config.now_ns ? t->config.now_ns(t->config.user) : clock_ns();
}

static uint64_t wall_s(const struct node_tokens *t)
{
	return t->config.wall_s ? t->config.wall_s(t->config.user) : (uint64_t)time(NULL);
}

struct node_tokens *node_tokens_new(const struct node_tokens_config *config)
{
	struct node_tokens *t = x_calloc(1, sizeof(*t));

	t->config = *config;
	t->audience = x_strdup(config->audience);
	t->user_name = x_strdup(config->user_name);
	name_index_init(&t->index);
	return t;
}

static void token_free(struct token *k)
{
	name_index_remove(&k->all->index, &k->link);
	k->all->n_tokens--;
	free(k->node_name);
	error_free(k->reason);
	free(k->endpoint);
	free(k->instance);
	free(k);
}

static void waiter_end(struct token_waiter *w, const struct error *error)
{
	w->fn(w->user, error);
	free(w->node_id);
	free(w->endpoint);
	free(w->instance);
	free(w);
}

static void end_asking(struct token *k)
{
	k->request = NULL;
	k->all->n_asking[k->has_lease]--;
}

void node_tokens_free(struct node_tokens *t)
{
	CLEANUP(error_freep) struct error *gone = NULL;

	if (!t)
		return;
	(void)err_set(&gone, ERR_CANCELLED, "the controller is shutting down");
	while (t->tokens) {
		struct token *k = t->tokens;
		struct token_waiter *w;

		t->tokens = k->next;
		kube_request_cancel(k->request);
		while ((w = k->waiters)) {
			k->waiters = w->next;
			waiter_end(w, gone);
		}
		token_free(k);
	}
	name_index_done(&t->index);
	wait_log_over(&t->silent);
	free(t->audience);
	free(t->user_name);
	free(t);
}

/* @ret_token: borrowed from the claim. */
static int read_header(
	const struct node_tokens *t, const char *authorization, const char **ret_token, struct error **err)
{
	size_t n;

	if (str_empty(authorization) || !str_starts(authorization, SCHEME))
		return err_set(err, ERR_UNAUTHENTICATED,
			"the call has no token: the node's driver needs -registryTokenFile, with a ServiceAccount "
			"token for \"%s\", or a certificate for node-<its ID>",
			t->audience);
	*ret_token = authorization + strlen(SCHEME);
	n = strlen(*ret_token);
	/* Nothing else is worth a question to the API server. */
	if (n == 0 || n > TOKEN_MAX || strspn(*ret_token, TOKEN_CHARACTERS) < n || !strchr(*ret_token, '.'))
		return err_set(err, ERR_UNAUTHENTICATED,
			"the token is not a JSON web token of at most %d bytes", TOKEN_MAX);
	return 0;
}

/* Whether a good verdict on @k is about the node that @node_id names. */
static int check_node(const struct token *k, const char *node_id, struct error **err)
{
	if (str_eq(k->node_name, node_id))
		return 0;
	return err_set(err, ERR_PERMISSION, "the token belongs to node \"%s\", not to \"%s\"", k->node_name,
		node_id);
}

static void set_text(char **text, const char *value)
{
	if (str_eq(*text, value))
		return;
	free(*text);
	*text = x_strdup(value);
}

static enum node_verdict answer(
	struct token *k, const char *node_id, const char *endpoint, const char *instance, struct error **err)
{
	if (k->reason) {
		(void)err_set(err, k->reason->code, "%s", k->reason->msg);
		return NODE_REFUSED;
	}
	if (check_node(k, node_id, err) < 0)
		return NODE_REFUSED;
	set_text(&k->endpoint, endpoint);
	set_text(&k->instance, instance);
	return NODE_GENUINE;
}

/* The API server does not answer about @k (NULL: not known): whether the caller is the one that was accepted
 * before. If there was no verdict on this token, the lease decides: kubelet may have replaced the token just
 * before. */
static bool may_stay(const struct token *k, const char *node_id, const char *endpoint, const char *instance,
	bool has_lease)
{
	if (!k || (!k->node_name && !k->reason))
		return has_lease;
	return str_eq(k->node_name, node_id) && str_eq(k->endpoint, endpoint) && !str_empty(instance) &&
	       str_eq(k->instance, instance);
}

static int judge_user(const struct node_tokens *t, const struct token_review *r, struct error **err)
{
	if (!r->authenticated)
		return err_set(err, ERR_UNAUTHENTICATED, "the API server does not accept the token: %s",
			r->error ? r->error : "it is not authenticated");
	if (!r->audiences || !strv_contains(r->audiences, t->audience))
		return err_set(
			err, ERR_UNAUTHENTICATED, "the token is not for the audience \"%s\"", t->audience);
	if (!str_eq(r->user_name, t->user_name))
		return err_set(err, ERR_PERMISSION,
			"the token belongs to \"%s\", not to \"%s\", the account of the nodes' drivers "
			"(-nodeAccount)",
			r->user_name ? r->user_name : "", t->user_name);
	if (str_empty(r->node_name))
		return err_set(err, ERR_PERMISSION,
			"the API server does not say which node the token is bound to, which requires "
			"Kubernetes 1.30 or later; with an older version, each node needs a certificate for "
			"node-<its "
			"ID>, and the controller needs -nodeAuthentication=certificate");
	return 0;
}

/* How long a verdict is valid: a clock here that is ahead makes that shorter, one that is behind does not
 * make it longer than NODE_TOKENS_KEEP_NS. */
static uint64_t good_for_ns(const struct token *k)
{
	uint64_t now_s = wall_s(k->all);

	if (k->expiry_s == 0)
		return NODE_TOKENS_KEEP_NS;
	if (k->expiry_s <= now_s)
		return 0;
	if (k->expiry_s - now_s >= NODE_TOKENS_KEEP_NS / NS_PER_S)
		return NODE_TOKENS_KEEP_NS;
	return (k->expiry_s - now_s) * NS_PER_S;
}

static void note_verdict(struct token *k, const struct token_review *r)
{
	uint64_t now = now_ns(k->all);

	error_free(TAKE_PTR(k->reason));
	free(TAKE_PTR(k->node_name));
	if (judge_user(k->all, r, &k->reason) < 0) {
		k->until_ns = now + NODE_TOKENS_REFUSED_NS;
		return;
	}
	k->node_name = x_strdup(r->node_name);
	k->until_ns = now + good_for_ns(k);
}

/* @why: NULL: there is a verdict. */
static void answer_waiters(struct token *k, const struct error *why)
{
	struct token_waiter *list = TAKE_PTR(k->waiters);

	while (list) {
		CLEANUP(error_freep) struct error *err = NULL;
		struct token_waiter *w = list;

		list = w->next;
		if (!why)
			(void)answer(k, w->node_id, w->endpoint, w->instance, &err);
		else if (!may_stay(k, w->node_id, w->endpoint, w->instance, w->has_lease))
			(void)err_set(&err, ERR_UNAVAILABLE, "the token cannot be checked: %s", why->msg);
		waiter_end(w, err);
	}
}

static void log_silence(struct node_tokens *t, const struct error *why)
{
	if (!why) {
		wait_log_over(&t->silent);
		return;
	}
	if (wait_log_due(&t->silent, why->msg, clock_ns()))
		log_warn("tokens of nodes cannot be checked: existing leases are renewed, new nodes have to "
			 "wait",
			F_ERR(why));
}

static void on_reviewed(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(token_review_done) struct token_review review = {0};
	CLEANUP(error_freep) struct error *odd = NULL;
	struct token *k = user;
	struct node_tokens *t = k->all;

	(void)status;
	end_asking(k);
	if (!error && token_review_read(body, &review, &odd) < 0)
		error = odd;
	log_silence(t, error);
	if (error)
		k->again_ns = now_ns(t) + NODE_TOKENS_AGAIN_NS;
	else
		note_verdict(k, &review);
	answer_waiters(k, error);
}

static void ask(struct token *k, const char *token, bool has_lease)
{
	struct buf body = BUF_INIT(REVIEW_MAX_BYTES);

	token_review_write(token, k->all->audience, &body);
	const struct kube_call call = {.verb = "create",
		.what = "tokenreviews",
		.method = "POST",
		.path = TOKEN_REVIEW_PATH,
		.body = buf_span(&body),
		.timeout_ms = NODE_TOKENS_REVIEW_MS};
	k->has_lease = has_lease;
	k->all->n_asking[has_lease]++;
	k->request = kube_client_call(k->all->config.client, &call, on_reviewed, k);
	explicit_bzero(body.data, body.len);
	buf_done(&body);
}

static void add_waiter(struct token *k, const struct node_claim *claim, node_token_fn fn, void *user)
{
	struct token_waiter **end = &k->waiters;
	struct token_waiter *w = x_malloc(sizeof(*w));

	*w = (struct token_waiter){.node_id = x_strdup(claim->node_id),
		.endpoint = x_strdup(claim->endpoint),
		.instance = x_strdup(claim->instance),
		.has_lease = claim->has_lease,
		.fn = fn,
		.user = user};
	/* in order: a driver registers before it unregisters */
	while (*end)
		end = &(*end)->next;
	*end = w;
}

static struct token *token_find(struct node_tokens *t, const char *token)
{
	char hash[SHA256_HEX_LEN + 1];
	struct name_link *link;

	sha256_hex(token, strlen(token), hash);
	link = name_index_first(&t->index, hash);
	return link ? OWNER_OF(link, struct token, link) : NULL;
}

static struct token *token_add(struct node_tokens *t, const char *token)
{
	struct token *k = x_calloc(1, sizeof(*k));

	k->all = t;
	sha256_hex(token, strlen(token), k->hash);
	k->expiry_s = token_expiry(token);
	name_index_add(&t->index, &k->link, k->hash);
	k->next = t->tokens;
	t->tokens = k;
	t->n_tokens++;
	return k;
}

/* The verdict if the API server cannot be asked about the token: a node that was found genuine before may
 * stay. */
static enum node_verdict without_asking(
	const struct token *k, const struct node_claim *claim, const char *why, struct error **err)
{
	if (may_stay(k, claim->node_id, claim->endpoint, claim->instance, claim->has_lease))
		return NODE_GENUINE;
	(void)err_set(err, ERR_UNAVAILABLE, "the token cannot be checked: %s", why);
	return NODE_REFUSED;
}

static enum node_verdict begin_asking(struct node_tokens *t, struct token *k, const char *token,
	const struct node_claim *claim, struct error **err)
{
	bool known = claim->has_lease || (k && k->node_name);

	if (k && now_ns(t) < k->again_ns)
		return without_asking(k, claim, "the API server did not answer a moment ago", err);
	if (t->n_asking[known] >= NODE_TOKENS_ASKING_MAX || (!k && t->n_tokens >= NODE_TOKENS_MAX))
		return without_asking(k, claim, "too many tokens are being checked at the moment", err);
	ask(k ? k : token_add(t, token), token, known);
	return NODE_ASKING;
}

enum node_verdict node_tokens_check(struct node_tokens *t, const struct node_claim *claim, node_token_fn fn,
	void *user, struct error **err)
{
	enum node_verdict verdict;
	const char *token = NULL;
	struct token *k;

	if (read_header(t, claim->authorization, &token, err) < 0)
		return NODE_REFUSED;
	k = token_find(t, token);
	if (k)
		k->used_ns = now_ns(t);
	if (k && (k->node_name || k->reason) && now_ns(t) < k->until_ns)
		return answer(k, claim->node_id, claim->endpoint, claim->instance, err);
	if (!k || !k->request) {
		verdict = begin_asking(t, k, token, claim, err);
		if (verdict != NODE_ASKING)
			return verdict;
	}
	k = token_find(t, token);
	k->used_ns = now_ns(t);
	add_waiter(k, claim, fn, user);
	return NODE_ASKING;
}

static bool is_over(const struct token *k, uint64_t now)
{
	if (k->request)
		return false;
	return k->node_name ? now - k->used_ns >= NODE_TOKENS_UNUSED_NS
			    : now >= k->until_ns && now >= k->again_ns;
}

void node_tokens_tick(struct node_tokens *t)
{
	uint64_t now = now_ns(t);

	for (struct token **at = &t->tokens, *k; (k = *at) != NULL;) {
		if (!is_over(k, now)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		token_free(k);
	}
}
