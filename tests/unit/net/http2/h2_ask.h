/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_ask.h - a channel to a scripted server, and requests over it that record what is reported to them.
 *
 * A request notes its callbacks as lines: "headers NAME=VALUE ...\n", "trailers ...\n", "data BYTES\n".
 */
#pragma once

#include "net/core/handshakes.h"
#include "net/http2/h2_channel.h"

#include "h2_peer.h"

struct rig {
	struct loop *loop;
	struct handshakes *handshakes;
	struct h2_peer peer;
	struct h2_channel *channel; /* NULL when a test has freed it */
};

struct ask {
	struct h2_request *request;
	struct buf log;
	unsigned ended;
	enum err_code code; /* what it ended with; 0: in order */
	char *text;
	bool unwanted;             /* on_data() refuses */
	bool cancel_in_data;       /* on_data() cancels */
	struct rig *free_in_end;   /* on_end() frees the channel */
	struct ask *cancel_in_end; /* on_end() cancels that one */
	struct rig *ask_again_on;  /* on_end() makes the request once more */
	struct rig *rig;
};

/** rig_open() - server and channel. @config: loop and handshakes are set here, and the endpoint unless it is
 * given. rig_close(): free all of them. */
void rig_open(struct rig *r, struct h2_channel_config config,
	void (*react)(struct h2_side *side, enum h2_event event, int32_t stream));
void rig_close(struct rig *r);

/** ask() - begin POST @path with @body, which may be empty. ask_done(): forget what was noted. */
void ask(struct rig *r, const char *path, const char *body, struct ask *ret);
void ask_done(struct ask *a);

/** ask_until_noted() - run the loop until @text stands in the log. */
void ask_until_noted(struct ask *a, const char *text);

/** ask_ends() - run the loop until the request has ended, with @code (0: in order) and a text that contains
 * @text; then ask_done(). ask_ended(): without running the loop. */
void ask_ends(struct ask *a, enum err_code code, const char *text);
void ask_ended(struct ask *a, enum err_code code, const char *text);

/** ask_fails() - ask(), and ask_ends(). */
void ask_fails(struct rig *r, enum err_code code, const char *text);

/** ask_answered() - ask(), which ends in order. */
void ask_answered(struct rig *r);
