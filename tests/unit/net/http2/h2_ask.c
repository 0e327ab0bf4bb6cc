/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_ask.h"

#include "base/mem.h"

#define LOG_MAX_BYTES (1u << 20)

static void on_headers(void *user, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct ask *a = user;

	ck_assert_ptr_nonnull(a->request);
	buf_adds(&a->log, is_trailer ? "trailers" : "headers");
	for (size_t i = 0; i < n; i++) {
		buf_addc(&a->log, ' ');
		buf_add(&a->log, headers[i].name.p, headers[i].name.n);
		buf_addc(&a->log, '=');
		buf_add(&a->log, headers[i].value.p, headers[i].value.n);
	}
	buf_addc(&a->log, '\n');
}

static bool on_data(void *user, struct span data)
{
	struct ask *a = user;

	ck_assert_ptr_nonnull(a->request);
	buf_adds(&a->log, "data ");
	buf_add(&a->log, data.p, data.n);
	buf_addc(&a->log, '\n');
	if (a->cancel_in_data)
		h2_request_cancel(a->request, ERR_ABORTED, "changed its mind");
	return !a->unwanted;
}

static void on_end(void *user, const struct error *error)
{
	struct ask *a = user;
	struct rig *again = TAKE_PTR(a->ask_again_on);

	ck_assert_ptr_nonnull(a->request);
	a->request = NULL;
	a->ended++;
	a->code = error ? error->code : 0;
	free(a->text);
	a->text = x_strdup(error ? error->msg : "");
	if (again)
		ask(again, "/again", "", a);
	if (a->cancel_in_end)
		h2_request_cancel(a->cancel_in_end->request, ERR_CANCELLED, "by another one");
	if (a->free_in_end)
		h2_channel_free(TAKE_PTR(a->free_in_end->channel));
}

static const struct h2_request_events events = {on_headers, on_data, on_end};

void rig_open(struct rig *r, struct h2_channel_config config,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(loop_new(&r->loop, &err));
	r->handshakes = handshakes_new(r->loop);
	h2_peer_open(&r->peer, r->loop, config.endpoint, react);
	r->peer.handshakes = r->handshakes;
	config.loop = r->loop;
	config.handshakes = r->handshakes;
	config.endpoint = r->peer.endpoint;
	ASSERT_OK(h2_channel_new(&config, &r->channel, &err));
}

void rig_close(struct rig *r)
{
	h2_channel_free(r->channel);
	h2_peer_close(&r->peer);
	/* handshakes whose clients have gone */
	loop_run(r->loop);
	handshakes_free(r->handshakes);
	loop_free(r->loop);
}

void ask(struct rig *r, const char *path, const char *body, struct ask *a)
{
	const struct h2_header headers[] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", r->peer.tls ? "https" : "http"),
		H2_HEADER(":path", path),
		H2_HEADER(":authority", h2_channel_authority(r->channel)),
	};
	unsigned before = a->ended;

	a->rig = r;
	if (a->log.max == 0)
		a->log = BUF_INIT(LOG_MAX_BYTES);
	a->request = h2_channel_request(r->channel, headers, ARRAY_SIZE(headers), span_of(body), &events, a);
	ck_assert_ptr_nonnull(a->request);
	ck_assert_uint_eq(a->ended, before);
}

void ask_done(struct ask *a)
{
	buf_done(&a->log);
	free(a->text);
	*a = (struct ask){0};
}

struct wanted {
	struct ask *ask;
	const char *text;
};

static bool is_noted(void *user)
{
	const struct wanted *w = user;
	const char *log = buf_str(&w->ask->log);

	ck_assert_msg(!w->ask->ended || strstr(log, w->text), "ended (%s) with \"%s\" instead of \"%s\"",
		w->ask->text, log, w->text);
	return strstr(log, w->text);
}

void ask_until_noted(struct ask *a, const char *text)
{
	h2_peer_until(&a->rig->peer, is_noted, &(struct wanted){a, text});
}

static bool has_ended(void *user)
{
	const struct ask *a = user;

	return a->ended > 0;
}

void ask_ended(struct ask *a, enum err_code code, const char *text)
{
	ck_assert_uint_eq(a->ended, 1);
	ck_assert_msg(a->code == code, "%u: %s", a->code, a->text);
	ck_assert_msg(strstr(a->text, text), "\"%s\" lacks \"%s\"", a->text, text);
	ask_done(a);
}

void ask_ends(struct ask *a, enum err_code code, const char *text)
{
	h2_peer_until(&a->rig->peer, has_ended, a);
	ask_ended(a, code, text);
}

void ask_fails(struct rig *r, enum err_code code, const char *text)
{
	struct ask a = {0};

	ask(r, "/", "", &a);
	ask_ends(&a, code, text);
}

void ask_answered(struct rig *r)
{
	ask_fails(r, 0, "");
}
