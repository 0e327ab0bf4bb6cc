/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2_scan.h"

/* RFC 9113 section 3.4 */
#define PREFACE_BYTES 24

#define FRAME_GOAWAY 7
#define NUMBER_BYTES 4

void h2_scan_init(struct h2_scan *s)
{
	*s = (struct h2_scan){.skip = PREFACE_BYTES};
}

/* The head of a frame is complete. */
static void begin_payload(struct h2_scan *s)
{
	size_t length = (size_t)s->head[0] << 16 | (size_t)s->head[1] << 8 | s->head[2];

	s->have = 0;
	s->at_number = s->head[3] == FRAME_GOAWAY && length >= NUMBER_BYTES;
	s->skip = s->at_number ? NUMBER_BYTES : length;
	s->after = length - s->skip;
}

/* Return: bytes taken; all of them may belong to heads and payloads of no interest. */
static size_t take_others(struct h2_scan *s, struct span bytes)
{
	size_t n = 0;

	while (n < bytes.n && !s->at_number) {
		size_t left = bytes.n - n;

		if (s->skip > 0) {
			size_t step = s->skip < left ? s->skip : left;

			s->skip -= step;
			n += step;
			continue;
		}
		s->head[s->have++] = bytes.p[n++];
		if (s->have == sizeof(s->head))
			begin_payload(s);
	}
	return n;
}

size_t h2_scan_next(struct h2_scan *s, struct span bytes, bool *ret_is_number)
{
	size_t n;

	*ret_is_number = s->at_number;
	if (!s->at_number)
		return take_others(s, bytes);
	n = s->skip < bytes.n ? s->skip : bytes.n;
	s->skip -= n;
	if (s->skip == 0) {
		s->at_number = false;
		s->skip = s->after;
	}
	return n;
}
