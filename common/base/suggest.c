/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define NAME_MAX_LEN     63
#define SHORT_NAME_LEN   5
#define SUGGEST_DISTANCE 3

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Return: a large number if one of them is too long to be one of our names. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	unsigned row[NAME_MAX_LEN + 1];

	if (n_a > NAME_MAX_LEN || n_b > NAME_MAX_LEN)
		return UINT_MAX;
	for (size_t k = 0; k <= n_b; k++)
		row[k] = (unsigned)k;
	for (size_t i = 0; i < n_a; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i + 1;
		for (size_t k = 0; k < n_b; k++) {
			bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[k]);
			unsigned above = row[k + 1];

			row[k + 1] = smallest(diagonal + !same, above + 1, row[k] + 1);
			diagonal = above;
		}
	}
	return row[n_b];
}

struct suggestion suggest_begin(const char *typed, size_t len)
{
	return (struct suggestion){
		.typed = typed, .len = len, .distance = len < SHORT_NAME_LEN ? 1 : SUGGEST_DISTANCE};
}

void suggest_consider(struct suggestion *s, const char *name)
{
	unsigned d = distance(s->typed, s->len, name, strlen(name));

	if (s->len < 2 || d > s->distance || (s->name && d == s->distance))
		return;
	s->distance = d;
	s->name = name;
}
