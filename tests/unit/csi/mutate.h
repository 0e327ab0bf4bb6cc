/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.h - everything that can be wrong with one request, derived from its descriptor: each field of each
 * message in it missing, twice, empty, huge, in another wire type, with unexpected values; unknown
 * fields; broken encoding.
 *
 * A mutation changes one place of a valid request, so that what the answer must be is known from its kind.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

enum mutation {
	MUTATION_SAME,      /* other bytes of the same meaning */
	MUTATION_MISSING,   /* one field absent, or as if it were */
	MUTATION_LONG,      /* beyond a size limit of the specification */
	MUTATION_TEXT,      /* a string that is not UTF-8, or with U+0000 */
	MUTATION_CONTROL,   /* a string with a character that the specification bans in names */
	MUTATION_NEGATIVE,  /* a number below 0 */
	MUTATION_MALFORMED, /* not what the message type says */
	MUTATION_VALUE,     /* well-formed, with another meaning */
	MUTATION_BYTES,     /* cut off, or one bit turned: may be any of these */
	MUTATION_KINDS
};

struct variant {
	enum mutation kind;
	const char *path;  /* "volume_capability.mount.fs_type" */
	const char *field; /* as the specification names it; of a map's key or value, the map */
	const char *what;  /* for messages about failed tests */
	struct span bytes; /* the whole request */
};

/** mutate_sample() - append a message of @type in which every field has a value, to begin with where no
 * method says what is valid. */
void mutate_sample(const ProtobufCMessageDescriptor *type, struct buf *out);

typedef void (*variant_fn)(void *user, const struct variant *v);

/** mutate_fields() - call @fn with each variant of the request @valid but those of MUTATION_BYTES.
 * @texts: further values for every string; strv or NULL */
void mutate_fields(const ProtobufCMessageDescriptor *type, struct span valid, char *const *texts,
	variant_fn fn, void *user);

/** mutate_bytes() - call @fn with @valid cut off at each byte, and with each bit turned. */
void mutate_bytes(struct span valid, variant_fn fn, void *user);
