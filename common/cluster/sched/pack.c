#include "cluster/sched/pack.h"

static uint64_t takes(const struct pack *p, size_t item, size_t bin)
{
	return p->takes[item * p->n_kinds + p->bins[bin].kind];
}

static bool fits(const struct pack *p, size_t item, size_t bin)
{
	return takes(p, item, bin) <= p->bins[bin].rest_bytes;
}

static void put(struct pack *p, size_t item, size_t bin)
{
	p->place[item] = bin;
	p->bins[bin].rest_bytes -= takes(p, item, bin);
}

static void take_back(struct pack *p, size_t item)
{
	p->bins[p->place[item]].rest_bytes += takes(p, item, p->place[item]);
}

/* Return: the number of bins: none holds it. */
static size_t best_bin(const struct pack *p, size_t item)
{
	size_t best = p->n_bins;
	uint64_t best_left = UINT64_MAX;

	for (size_t i = 0; i < p->n_bins; i++) {
		if (!fits(p, item, i) || p->bins[i].rest_bytes - takes(p, item, i) >= best_left)
			continue;
		best = i;
		best_left = p->bins[i].rest_bytes - takes(p, item, i);
	}
	return best;
}

static bool best_fit(struct pack *p)
{
	for (size_t item = 0; item < p->n_items; item++) {
		size_t bin = best_bin(p, item);

		if (bin < p->n_bins) {
			put(p, item, bin);
			continue;
		}
		while (item > 0)
			take_back(p, --item);
		return false;
	}
	return true;
}

/* What was tried in a bin would end the same way in one just like it. */
static bool has_twin_before(const struct pack *p, size_t bin)
{
	for (size_t i = 0; i < bin; i++) {
		if (p->bins[i].rest_bytes == p->bins[bin].rest_bytes && p->bins[i].kind == p->bins[bin].kind)
			return true;
	}
	return false;
}

/* Return: the next bin from @bin on that is worth a try, or their number. */
static size_t next_bin(const struct pack *p, size_t item, size_t bin)
{
	while (bin < p->n_bins && (!fits(p, item, bin) || has_twin_before(p, bin)))
		bin++;
	return bin;
}

static bool search(struct pack *p, size_t *budget)
{
	size_t cost = 1 + p->n_bins * p->n_bins / 4; /* of looking for a bin */
	size_t item = 0;
	size_t from = 0;

	while (item < p->n_items) {
		size_t bin = next_bin(p, item, from);

		if (*budget < cost)
			return false;
		*budget -= cost;
		if (bin < p->n_bins) {
			put(p, item++, bin);
			from = 0;
			continue;
		}
		if (item == 0)
			return false;
		take_back(p, --item);
		from = p->place[item] + 1;
	}
	return true;
}

bool pack_items(struct pack *p, size_t *budget)
{
	return best_fit(p) || search(p, budget);
}
