/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_api.h - a scripted API server on the loop of the test, without TLS, and a client of it.
 */
#pragma once

#include "kube/client.h"
#include "unit/net/http2/h2_peer.h"

struct fake_api;

struct fake_request {
	struct fake_api *api;
	struct h2_side *side;
	int32_t stream;
	char *method;
	char *path; /* with query */
	char *accept;
	char *authorization; /* "" when there was none */
	char *content_type;  /* so is this */
	const char *body;
};

struct fake_api {
	struct loop *loop;
	struct h2_peer peer;
	struct kube_config config;
	struct kube_client *client;
	/* called with each complete request; answers now, or keeps @r->side and @r->stream for later */
	void (*serve)(struct fake_api *api, const struct fake_request *r);
	struct buf log; /* "METHOD PATH\n" of each request */
	unsigned n;     /* requests */
};

/** fake_api_open() - listen on a port that is free, and make a client. @config: what matters of qps, burst,
 * observer; the rest is set here. fake_api_close(): end all of it. */
void fake_api_open(struct fake_api *api, void (*serve)(struct fake_api *api, const struct fake_request *r),
	struct kube_client_config config);
void fake_api_close(struct fake_api *api);

/** fake_answer() - the whole reply. fake_answer_later(): "retry-after: @seconds" with it. */
void fake_answer(const struct fake_request *r, const char *status, const char *body);
void fake_answer_later(const struct fake_request *r, const char *status, const char *seconds);

/** fake_begin() - status 200, more follows by fake_say(), until fake_end(). Outside of serve(),
 * h2_peer_flush() sends it. */
void fake_begin(const struct fake_request *r);
void fake_say(const struct fake_request *r, const char *text);
void fake_end(const struct fake_request *r);

/** fake_until() - run the loop until @done(@user). */
void fake_until(struct fake_api *api, bool (*done)(void *user), void *user);

/** fake_until_asked() - run the loop until @n requests have come. */
void fake_until_asked(struct fake_api *api, unsigned n);

struct fake_reply {
	unsigned n; /* calls of the function */
	unsigned status;
	enum err_code code; /* 0: no error */
	char *text;         /* of the error, or the body */
};

/** fake_note() - a kube_reply_fn that notes into a struct fake_reply. fake_reply_wait(): run the loop until
 * it was called. fake_reply_done(): forget. */
void fake_note(void *user, unsigned status, struct span body, const struct error *error);
void fake_reply_wait(struct fake_api *api, struct fake_reply *r);
void fake_reply_done(struct fake_reply *r);

/** fake_get() - begin GET @path as verb "get" of "things x". */
struct kube_request *fake_get(
	struct fake_api *api, const char *path, uint64_t timeout_ms, struct fake_reply *ret);
