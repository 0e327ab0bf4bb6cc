/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

#define FIRST_BUCKETS 16

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v2 = rotl(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

static uint64_t siphash(const uint64_t key[2], const char *p, size_t n)
{
	struct sip s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573};
	uint64_t last = (uint64_t)n << 56;
	size_t left = n;

	for (; left >= 8; left -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		sip_word(&s, word);
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)(unsigned char)p[i] << (8 * i);
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void name_index_init(struct name_index *x)
{
	*x = (struct name_index){.key = {random_u64(), random_u64()}};
}

void name_index_done(struct name_index *x)
{
	free(x->buckets);
}

static struct name_link **bucket_of(const struct name_index *x, uint64_t hash)
{
	return &x->buckets[hash & (x->n_buckets - 1)];
}

static void grow(struct name_index *x)
{
	struct name_link **old = x->buckets;
	size_t n_old = x->n_buckets;

	x->n_buckets = n_old > 0 ? n_old * 2 : FIRST_BUCKETS;
	x->buckets = x_calloc(x->n_buckets, sizeof(*x->buckets));
	for (size_t i = 0; i < n_old; i++) {
		for (struct name_link *l = old[i], *next; l; l = next) {
			struct name_link **to = bucket_of(x, l->hash);

			next = l->next;
			l->next = *to;
			*to = l;
		}
	}
	free(old);
}

void name_index_add(struct name_index *x, struct name_link *link, const char *name)
{
	struct name_link **to;

	if (x->n == x->n_buckets)
		grow(x);
	link->name = name;
	link->name_n = strlen(name);
	link->hash = siphash(x->key, name, link->name_n);
	to = bucket_of(x, link->hash);
	link->next = *to;
	*to = link;
	x->n++;
}

void name_index_remove(struct name_index *x, struct name_link *link)
{
	struct name_link **at = bucket_of(x, link->hash);

	while (*at && *at != link)
		at = &(*at)->next;
	assert(*at);
	*at = link->next;
	x->n--;
}

static bool bears(const struct name_link *l, struct span name)
{
	return l->name_n == name.n && memcmp(l->name, name.p, name.n) == 0;
}

static struct name_link *find(struct name_link *l, uint64_t hash, struct span name)
{
	while (l && (l->hash != hash || !bears(l, name)))
		l = l->next;
	return l;
}

struct name_link *name_index_find(const struct name_index *x, struct span name)
{
	uint64_t hash = siphash(x->key, (const char *)name.p, name.n);

	return x->n_buckets > 0 ? find(*bucket_of(x, hash), hash, name) : NULL;
}

void name_index_find_each(
	const struct name_index *x, const struct span *names, size_t n, struct name_link **ret)
{
	uint64_t hashes[NAME_INDEX_EACH_MAX];

	if (x->n_buckets == 0) {
		memset(ret, 0, n * sizeof(*ret));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		hashes[i] = siphash(x->key, (const char *)names[i].p, names[i].n);
		__builtin_prefetch(bucket_of(x, hashes[i]));
	}
	for (size_t i = 0; i < n; i++) {
		ret[i] = *bucket_of(x, hashes[i]);
		__builtin_prefetch(ret[i]);
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = find(ret[i], hashes[i], names[i]);
}

struct name_link *name_index_first(const struct name_index *x, const char *name)
{
	return name_index_find(x, span_of(name));
}

struct name_link *name_index_next(const struct name_link *link)
{
	return find(link->next, link->hash, (struct span){(const uint8_t *)link->name, link->name_n});
}
