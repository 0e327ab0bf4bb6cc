/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_pair.h"

#include "unit/unit.h"

#define LOG_MAX_BYTES  (1u << 20)
#define BODY_MAX_BYTES (16u << 20)
#define OUT_MAX_BYTES  (256u << 10)

static void on_headers(void *user, int32_t stream, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct h2_side *side = user;

	buf_addf(&side->log, "%s %d", is_trailer ? "trailers" : "headers", stream);
	for (size_t i = 0; i < n; i++) {
		buf_addc(&side->log, ' ');
		buf_add(&side->log, headers[i].name.p, headers[i].name.n);
		buf_addc(&side->log, '=');
		buf_add(&side->log, headers[i].value.p, headers[i].value.n);
	}
	buf_addc(&side->log, '\n');
	if (side->react)
		side->react(side, H2_ON_HEADERS, stream);
}

static void on_data(void *user, int32_t stream, struct span data)
{
	struct h2_side *side = user;

	buf_add(&side->body, data.p, data.n);
	if (side->react)
		side->react(side, H2_ON_DATA, stream);
}

static void on_end(void *user, int32_t stream)
{
	struct h2_side *side = user;

	buf_addf(&side->log, "end %d\n", stream);
	if (side->react)
		side->react(side, H2_ON_END, stream);
}

static void on_close(void *user, int32_t stream, uint32_t code)
{
	struct h2_side *side = user;

	buf_addf(&side->log, "close %d %u\n", stream, code);
	if (side->react)
		side->react(side, H2_ON_CLOSE, stream);
}

static void on_goaway(void *user, int32_t last_stream, uint32_t code)
{
	struct h2_side *side = user;

	buf_addf(&side->log, "goaway %d %u\n", last_stream, code);
}

const struct h2_events h2_events_of_sides = {on_headers, on_data, on_end, on_close, on_goaway};

void h2_side_init(struct h2_side *side)
{
	*side = (struct h2_side){
		.log = BUF_INIT(LOG_MAX_BYTES),
		.body = BUF_INIT(BODY_MAX_BYTES),
		.out = BUF_INIT(OUT_MAX_BYTES),
	};
}

void h2_side_done(struct h2_side *side)
{
	h2_free(side->h2);
	buf_done(&side->log);
	buf_done(&side->body);
	buf_done(&side->out);
}

void h2_pair_init(struct h2_pair *p, bool strict_authority,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream))
{
	h2_side_init(&p->server);
	h2_side_init(&p->client);
	p->server.h2 = h2_server_new(strict_authority, &h2_events_of_sides, &p->server);
	p->client.h2 = h2_client_new(&h2_events_of_sides, &p->client);
	p->server.react = react;
	p->chunk_bytes = SIZE_MAX;
}

void h2_pair_done(struct h2_pair *p)
{
	h2_side_done(&p->server);
	h2_side_done(&p->client);
}

void h2_side_collect(struct h2_side *side)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(h2_send(side->h2, &side->out, &err));
}

void h2_side_feed(struct h2_side *side, struct span bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(h2_recv(side->h2, bytes, &err));
}

/* Return: whether there was anything to deliver */
static bool deliver(struct h2_side *from, struct h2_side *to, size_t chunk_bytes)
{
	size_t done = 0;

	h2_side_collect(from);
	while (done < from->out.len) {
		size_t left = from->out.len - done;
		size_t n = left < chunk_bytes ? left : chunk_bytes;

		h2_side_feed(to, (struct span){from->out.data + done, n});
		done += n;
	}
	buf_reset(&from->out);
	return done > 0;
}

void h2_pair_run(struct h2_pair *p)
{
	bool to_server;
	bool to_client;

	do {
		to_server = deliver(&p->client, &p->server, p->chunk_bytes);
		to_client = deliver(&p->server, &p->client, p->chunk_bytes);
	} while (to_server || to_client);
}

int32_t h2_pair_post(struct h2_pair *p, const char *path, bool end)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct h2_header headers[] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", "http"),
		H2_HEADER(":path", path),
		H2_HEADER(":authority", "localhost"),
		H2_HEADER("te", "trailers"),
	};
	int32_t stream;

	ASSERT_OK(h2_request(p->client.h2, headers, ARRAY_SIZE(headers), end, &stream, &err));
	return stream;
}

void h2_reply(struct h2 *h, int32_t stream, struct span body)
{
	const struct h2_header headers[] = {H2_HEADER(":status", "200")};
	const struct h2_header trailers[] = {H2_HEADER("grpc-status", "0")};

	h2_respond(h, stream, headers, ARRAY_SIZE(headers), false);
	h2_write(h, stream, body);
	h2_finish(h, stream, trailers, ARRAY_SIZE(trailers));
}

void h2_react_echo(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, buf_span(&side->body));
}
