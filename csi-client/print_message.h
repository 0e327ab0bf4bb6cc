/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_message.h - any protobuf message as text or JSON, by its descriptor.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/buf.h"

/** print_json() - append @m as one JSON document (base/json/json.h), its fields named as in the JSON of
 * protobuf, volume_id as volumeId. Absent sub-messages are left out; 64-bit numbers are numbers. */
void print_json(const ProtobufCMessage *m, struct buf *out);

struct print_part {
	const char *name;
	const ProtobufCMessage *message; /* NULL: left out */
};

/** print_parts() - append @n messages as members of one JSON document, or one below the other as text. */
void print_parts(const struct print_part *parts, size_t n, bool json, struct buf *out);

/** print_text() - append @m as lines "name: value", nested parts indented; empty values are left out. */
void print_text(const ProtobufCMessage *m, struct buf *out);
