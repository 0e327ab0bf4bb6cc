/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - any protobuf message as text or JSON, by its descriptor.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/buf.h"

/** print_json() - append @m as one JSON object. Absent sub-messages are left out; 64-bit numbers are numbers.
 */
void print_json(const ProtobufCMessage *m, struct buf *out);

/** print_text() - append @m as lines "name: value", nested parts indented; empty values are left out. */
void print_text(const ProtobufCMessage *m, struct buf *out);
