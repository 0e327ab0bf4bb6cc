/* SPDX-License-Identifier: Apache-2.0 */
#include "pacing/fair_turns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/name_index.h"
#include "base/slab.h"

/* A key that waits, or has its turn. */
struct turn {
	struct name_link link; /* by key */
	TAILQ_ENTRY(turn) entry;
	struct party *party; /* NULL: it has its turn */
	uint64_t given_ns;   /* when it got that */
	char key[];
};

TAILQ_HEAD(turns, turn);

/* Parties that are not idle; the one that had its turn longest ago comes first. */
struct party {
	struct name_link link; /* by name */
	TAILQ_ENTRY(party) entry;
	struct bucket share;
	struct turns waiting;
	char name[];
};

TAILQ_HEAD(party_list, party);

struct fair_turns {
	struct fair_turns_config config;
	struct slabs *memory;
	struct name_index keys;
	struct name_index names;
	struct party_list parties;
	struct turns given; /* in this order */
	size_t n_waiting;
	bool is_short; /* the common bucket was empty while parties waited */
};

struct fair_turns *fair_turns_new(const struct fair_turns_config *config)
{
	struct fair_turns *t = x_calloc(1, sizeof(*t));

	t->config = *config;
	t->memory = slabs_new();
	name_index_init(&t->keys);
	name_index_init(&t->names);
	TAILQ_INIT(&t->parties);
	TAILQ_INIT(&t->given);
	return t;
}

/* It is in no list any more. */
static void turn_free(struct fair_turns *t, struct turn *turn)
{
	name_index_remove(&t->keys, &turn->link);
	slabs_release(t->memory, turn);
}

static void drop_all(struct fair_turns *t, struct turns *turns)
{
	struct turn *turn;

	while ((turn = TAILQ_FIRST(turns)) != NULL) {
		TAILQ_REMOVE(turns, turn, entry);
		turn_free(t, turn);
	}
}

static void party_free(struct fair_turns *t, struct party *p)
{
	drop_all(t, &p->waiting);
	TAILQ_REMOVE(&t->parties, p, entry);
	name_index_remove(&t->names, &p->link);
	slabs_release(t->memory, p);
}

void fair_turns_free(struct fair_turns *t)
{
	struct party *p;

	if (!t)
		return;
	while ((p = TAILQ_FIRST(&t->parties)) != NULL)
		party_free(t, p);
	drop_all(t, &t->given);
	name_index_done(&t->keys);
	name_index_done(&t->names);
	slabs_free(t->memory);
	free(t);
}

static struct party *find_party(const struct fair_turns *t, const char *name)
{
	struct name_link *link = name_index_first(&t->names, name);

	return link ? OWNER_OF(link, struct party, link) : NULL;
}

static struct party *note_party(struct fair_turns *t, const char *name)
{
	size_t n = strlen(name) + 1;
	struct party *p = find_party(t, name);

	if (p)
		return p;
	p = slabs_alloc(t->memory, sizeof(*p) + n);
	memcpy(p->name, name, n);
	bucket_init(&p->share, t->config.share_per_second, t->config.share_burst);
	TAILQ_INIT(&p->waiting);
	TAILQ_INSERT_TAIL(&t->parties, p, entry);
	name_index_add(&t->names, &p->link, p->name);
	return p;
}

static void wait_for_turn(struct fair_turns *t, struct party *p, const char *key)
{
	size_t n = strlen(key) + 1;
	struct turn *turn = slabs_alloc(t->memory, sizeof(*turn) + n);

	memcpy(turn->key, key, n);
	turn->party = p;
	TAILQ_INSERT_TAIL(&p->waiting, turn, entry);
	name_index_add(&t->keys, &turn->link, turn->key);
	t->n_waiting++;
}

/* A token of both buckets, or of none. */
static bool take_token(struct fair_turns *t, struct party *p, uint64_t now_ns)
{
	if (bucket_wait(&p->share, now_ns) > 0)
		return false;
	t->is_short = bucket_take(t->config.common, now_ns) > 0;
	if (!t->is_short)
		bucket_charge(&p->share, now_ns);
	return !t->is_short;
}

bool fair_turns_take(struct fair_turns *t, const char *party, const char *key, uint64_t now_ns)
{
	struct name_link *link = name_index_first(&t->keys, key);
	struct turn *turn = link ? OWNER_OF(link, struct turn, link) : NULL;
	struct party *p;

	if (turn && turn->party)
		return false;
	if (turn) {
		TAILQ_REMOVE(&t->given, turn, entry);
		turn_free(t, turn);
		return true;
	}
	p = note_party(t, party);
	if (!t->is_short && TAILQ_EMPTY(&p->waiting) && take_token(t, p, now_ns))
		return true;
	wait_for_turn(t, p, key);
	return false;
}

void fair_turns_forget(struct fair_turns *t, const char *key)
{
	struct name_link *link = name_index_first(&t->keys, key);
	struct turn *turn = link ? OWNER_OF(link, struct turn, link) : NULL;

	if (!turn)
		return;
	if (turn->party)
		t->n_waiting--;
	TAILQ_REMOVE(turn->party ? &turn->party->waiting : &t->given, turn, entry);
	turn_free(t, turn);
}

bool fair_turns_busier(const struct fair_turns *t, const char *a, const char *b, uint64_t now_ns)
{
	const struct party *x = find_party(t, a);
	const struct party *y = find_party(t, b);
	uint64_t x_ns = x ? x->share.full_ns : 0;
	uint64_t y_ns = y ? y->share.full_ns : 0;

	return x_ns > now_ns && x_ns > y_ns;
}

static void give_turn(struct fair_turns *t, struct party *p, uint64_t now_ns)
{
	struct turn *turn = TAILQ_FIRST(&p->waiting);

	TAILQ_REMOVE(&p->waiting, turn, entry);
	TAILQ_INSERT_TAIL(&t->given, turn, entry);
	turn->party = NULL;
	turn->given_ns = now_ns;
	t->n_waiting--;
	t->config.due(t->config.user, turn->key);
}

static void drop_unused(struct fair_turns *t, uint64_t now_ns)
{
	struct turn *turn;

	while ((turn = TAILQ_FIRST(&t->given)) != NULL && now_ns - turn->given_ns >= FAIR_TURNS_UNUSED_NS) {
		TAILQ_REMOVE(&t->given, turn, entry);
		turn_free(t, turn);
	}
}

/* One turn for each party at most. Return: whether any got one. */
static bool run_round(struct fair_turns *t, uint64_t now_ns)
{
	struct party *last = TAILQ_LAST(&t->parties, party_list);
	struct party *next;
	bool any = false;

	for (struct party *p = TAILQ_FIRST(&t->parties); p; p = next) {
		next = p == last ? NULL : TAILQ_NEXT(p, entry);
		if (TAILQ_EMPTY(&p->waiting)) {
			if (p->share.full_ns <= now_ns)
				party_free(t, p);
			continue;
		}
		if (bucket_wait(&p->share, now_ns) > 0)
			continue;
		if (!take_token(t, p, now_ns))
			return false;
		TAILQ_REMOVE(&t->parties, p, entry);
		TAILQ_INSERT_TAIL(&t->parties, p, entry);
		give_turn(t, p, now_ns);
		any = true;
	}
	return any;
}

void fair_turns_run(struct fair_turns *t, uint64_t now_ns)
{
	drop_unused(t, now_ns);
	t->is_short = false;
	while (run_round(t, now_ns))
		continue;
}

size_t fair_turns_waiting(const struct fair_turns *t)
{
	return t->n_waiting;
}
