/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_held.h"

void http1_held_done(struct http1_held *held)
{
	if (held->buffered_bytes)
		*held->buffered_bytes -= held->body.len;
	buf_done(&held->path);
	buf_done(&held->query);
	buf_done(&held->body);
}
