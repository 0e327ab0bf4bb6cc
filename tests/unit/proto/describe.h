/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - what the generated descriptors say, as lines of the form that lines_add_table() makes.
 *
 * Starts at services, since protobuf-c keeps no list of a file's messages: what no method reaches never goes
 * over the wire.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "lines.h"

/**
 * describe_services() appends the methods of @count services, and every message and enumeration that can
 * occur in one of them. Aborts the test where a descriptor has something that the lines cannot express.
 */
void describe_services(struct lines *lines, const ProtobufCServiceDescriptor *const *services, size_t count);
