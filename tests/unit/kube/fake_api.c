/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_api.h"

#include "base/mem.h"

/* Return: the value of @name in @line, "" without one; caller frees. No value here holds a blank but that of
 * authorization, which comes last in what the client sends, or before content-type. */
static char *header_of(const char *line, const char *name)
{
	CLEANUP(free_charp) char *key = x_asprintf(" %s=", name);
	const char *at = strstr(line, key);
	const char *end;

	if (!at)
		return x_strdup("");
	at += strlen(key);
	end = strcmp(name, "authorization") == 0 ? strstr(at, " content-type=") : strchr(at, ' ');
	return x_strndup(at, end ? (size_t)(end - at) : strlen(at));
}

/* Return: the line of @stream in the log, without its end; caller frees. */
static char *line_of(const struct h2_side *side, int32_t stream)
{
	CLEANUP(free_charp) char *head = x_asprintf("headers %d ", stream);
	const char *at = strstr(buf_str(&side->log), head);

	ck_assert_ptr_nonnull(at);
	return x_strndup(at, strcspn(at, "\n"));
}

static struct fake_api *api_of(struct h2_side *side)
{
	struct h2_peer_conn *c = (struct h2_peer_conn *)side;

	return (struct fake_api *)((char *)c->peer - offsetof(struct fake_api, peer));
}

static void react(struct h2_side *side, enum h2_event event, int32_t stream)
{
	CLEANUP(free_charp) char *line = NULL;
	struct fake_api *api = api_of(side);
	struct fake_request r = {.api = api, .side = side, .stream = stream};

	if (event != H2_ON_END)
		return;
	line = line_of(side, stream);
	r.method = header_of(line, ":method");
	r.path = header_of(line, ":path");
	r.accept = header_of(line, "accept");
	r.authorization = header_of(line, "authorization");
	r.content_type = header_of(line, "content-type");
	r.body = buf_str(&side->body);
	buf_addf(&api->log, "%s %s\n", r.method, r.path);
	api->n++;
	api->serve(api, &r);
	buf_reset(&side->body);
	free(r.method);
	free(r.path);
	free(r.accept);
	free(r.authorization);
	free(r.content_type);
}

void fake_api_open(struct fake_api *api, void (*serve)(struct fake_api *api, const struct fake_request *r),
	struct kube_client_config config)
{
	CLEANUP(error_freep) struct error *err = NULL;

	*api = (struct fake_api){.serve = serve, .log = BUF_INIT(4u << 20)};
	ASSERT_OK(loop_new(&api->loop, &err));
	h2_peer_open(&api->peer, api->loop, "tcp://127.0.0.1:0", react);
	api->config.host = x_strdup("127.0.0.1");
	api->config.port = api->peer.addr.port;
	api->config.namespace = x_strdup("ns");
	config.loop = api->loop;
	config.kube = &api->config;
	config.reconnect_backoff_ms = 1;
	ASSERT_OK(kube_client_new(&config, &api->client, &err));
}

void fake_api_close(struct fake_api *api)
{
	kube_client_free(api->client);
	h2_peer_close(&api->peer);
	loop_free(api->loop);
	free(api->config.host);
	free(api->config.namespace);
	buf_done(&api->log);
}

static void head(const struct fake_request *r, const char *status, const char *seconds, bool end)
{
	const struct h2_header headers[] = {
		H2_HEADER(":status", status),
		H2_HEADER("content-type", "application/json"),
		H2_HEADER("retry-after", seconds ? seconds : ""),
	};

	h2_respond(r->side->h2, r->stream, headers, seconds ? 3 : 2, end);
}

void fake_answer(const struct fake_request *r, const char *status, const char *body)
{
	head(r, status, NULL, false);
	fake_say(r, body);
	fake_end(r);
}

void fake_answer_later(const struct fake_request *r, const char *status, const char *seconds)
{
	head(r, status, seconds, true);
}

void fake_begin(const struct fake_request *r)
{
	head(r, "200", NULL, false);
}

void fake_say(const struct fake_request *r, const char *text)
{
	h2_write(r->side->h2, r->stream, span_of(text));
}

void fake_end(const struct fake_request *r)
{
	h2_finish(r->side->h2, r->stream, NULL, 0);
}

void fake_until(struct fake_api *api, bool (*done)(void *user), void *user)
{
	h2_peer_until(&api->peer, done, user);
}

struct asked {
	const struct fake_api *api;
	unsigned n;
};

static bool is_asked(void *user)
{
	const struct asked *a = user;

	return a->api->n >= a->n;
}

void fake_until_asked(struct fake_api *api, unsigned n)
{
	struct asked a = {api, n};

	fake_until(api, is_asked, &a);
}

void fake_note(void *user, unsigned status, struct span body, const struct error *error)
{
	struct fake_reply *r = user;

	r->n++;
	r->status = status;
	r->code = error ? error->code : 0;
	free(r->text);
	r->text = error ? x_strdup(error->msg) : x_strndup(body.n > 0 ? (const char *)body.p : "", body.n);
}

static bool is_noted(void *user)
{
	const struct fake_reply *r = user;

	return r->n > 0;
}

void fake_reply_wait(struct fake_api *api, struct fake_reply *r)
{
	fake_until(api, is_noted, r);
}

void fake_reply_done(struct fake_reply *r)
{
	free(r->text);
	*r = (struct fake_reply){0};
}

struct kube_request *fake_get(
	struct fake_api *api, const char *path, uint64_t timeout_ms, struct fake_reply *ret)
{
	const struct kube_call call = {
		.verb = "get", .what = "things x", .method = "GET", .path = path, .timeout_ms = timeout_ms};

	*ret = (struct fake_reply){0};
	return kube_client_call(api->client, &call, fake_note, ret);
}
