/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reply_splitter.h"

#include "base/mem.h"
#include "unit/unit.h"

static struct buf got;
static unsigned n_pieces;
static unsigned stop_after;

static bool note(void *user, struct span piece)
{
	(void)user;
	buf_add(&got, piece.p, piece.n);
	buf_addc(&got, '|');
	return ++n_pieces != stop_after;
}

static void begin(void)
{
	got = BUF_INIT(16u << 20);
	n_pieces = 0;
	stop_after = 0;
}

/* Feeds @text in pieces of every size, since the result must not depend on where the network cuts it. */
static void lines_are(const char *text, const char *lines)
{
	for (size_t size = 1; size <= strlen(text); size++) {
		struct kube_watch_splitter l = KUBE_WATCH_SPLITTER;

		begin();
		for (size_t at = 0; at < strlen(text); at += size) {
			size_t left = strlen(text) - at;
			struct span piece = {(const uint8_t *)text + at, left < size ? left : size};

			ck_assert(kube_watch_splitter_feed(&l, piece, note, NULL));
		}
		ck_assert_str_eq(buf_str(&got), lines);
		kube_watch_splitter_done(&l);
		buf_done(&got);
	}
}

static void items_are(const char *text, const char *items, const char *envelope)
{
	for (size_t size = 1; size <= strlen(text); size++) {
		struct kube_list_splitter i = KUBE_LIST_SPLITTER;

		begin();
		for (size_t at = 0; at < strlen(text); at += size) {
			size_t left = strlen(text) - at;
			struct span piece = {(const uint8_t *)text + at, left < size ? left : size};

			ck_assert(kube_list_splitter_feed(&i, piece, note, NULL));
		}
		ck_assert_str_eq(buf_str(&got), items);
		ck_assert_str_eq(buf_str(&i.envelope), envelope);
		kube_list_splitter_done(&i);
		buf_done(&got);
	}
}

START_TEST(lines_come_whole_wherever_they_are_cut)
{
	lines_are("one\ntwo\n\nthree\n", "one|two|three|");
	lines_are("one\nnot complete", "one|");
}
END_TEST

START_TEST(items_come_whole_and_the_rest_stays)
{
	items_are("{\"kind\":\"L\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1}, "
		  "{\"b\":{\"c\":[{}]}}]}\n",
		"{\"a\":1}|{\"b\":{\"c\":[{}]}}|",
		"{\"kind\":\"L\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}\n");
	items_are("{\"items\":[],\"x\":1}", "", "{\"items\":[],\"x\":1}");
	items_are("{\"items\":null}", "", "{\"items\":null}");
}
END_TEST

START_TEST(brackets_in_strings_are_no_brackets)
{
	items_are("{\"items\":[{\"a\":\"}]{\\\"}\"},{\"b\\\\\":\"[\"}]}",
		"{\"a\":\"}]{\\\"}\"}|{\"b\\\\\":\"[\"}|", "{\"items\":[]}");
	items_are("{\"x]\":\"{\",\"items\":[{}]}", "{}|", "{\"x]\":\"{\",\"items\":[]}");
}
END_TEST

START_TEST(only_the_outermost_items_count)
{
	items_are("{\"a\":{\"items\":[{\"x\":1}]},\"b\":\"items\",\"c\":[{}],\"items\":[{\"items\":[{}]}]}",
		"{\"items\":[{}]}|",
		"{\"a\":{\"items\":[{\"x\":1}]},\"b\":\"items\",\"c\":[{}],\"items\":[]}");
}
END_TEST

START_TEST(what_is_no_object_stays_for_whoever_reads_the_rest)
{
	items_are("{\"items\":[17,{\"a\":1}]}", "{\"a\":1}|", "{\"items\":[17]}");
}
END_TEST

START_TEST(the_user_may_stop)
{
	struct kube_watch_splitter l = KUBE_WATCH_SPLITTER;
	struct kube_list_splitter i = KUBE_LIST_SPLITTER;

	begin();
	stop_after = 1;
	ck_assert(!kube_watch_splitter_feed(&l, span_of("a\nb\n"), note, NULL));
	n_pieces = 0;
	ck_assert(!kube_list_splitter_feed(&i, span_of("{\"items\":[{},{}]}"), note, NULL));
	ck_assert_str_eq(buf_str(&got), "a|{}|");
	kube_watch_splitter_done(&l);
	kube_list_splitter_done(&i);
	buf_done(&got);
}
END_TEST

/* Feed @head, and then blanks, until it is refused. Return: blanks that were taken. */
static size_t feed_blanks(bool (*feed)(void *state, struct span data), void *state, const char *head)
{
	static const uint8_t blanks[64 << 10] = {0};
	size_t n = 0;

	ck_assert(feed(state, span_of(head)));
	while (feed(state, (struct span){blanks, sizeof(blanks)})) {
		n += sizeof(blanks);
		ck_assert_uint_le(n, 16u << 20);
	}
	return n;
}

static bool feed_line(void *state, struct span data)
{
	return kube_watch_splitter_feed(state, data, note, NULL);
}

static bool feed_item(void *state, struct span data)
{
	return kube_list_splitter_feed(state, data, note, NULL);
}

static void feed_more_than_the_limit(bool (*feed)(void *state, struct span data), void *state)
{
	static const uint8_t blanks[64 << 10] = {0};

	for (size_t n = 0; n <= KUBE_MAX_OBJECT_BYTES; n += sizeof(blanks))
		ck_assert(feed(state, (struct span){blanks, sizeof(blanks)}));
}

/* The piece behind it comes whole. */
START_TEST(of_a_piece_beyond_the_limit_its_beginning_is_given)
{
	struct kube_watch_splitter l = KUBE_WATCH_SPLITTER;
	struct kube_list_splitter i = KUBE_LIST_SPLITTER;

	begin();
	ck_assert(feed_line(&l, span_of("{\"a\":\"")));
	feed_more_than_the_limit(feed_line, &l);
	ck_assert_uint_le(l.line.cap, KUBE_MAX_OBJECT_BYTES + 1);
	ck_assert(feed_line(&l, span_of("\"}\nnext\n")));
	ck_assert_uint_eq(got.len, KUBE_NAMES_BYTES + strlen("|next|"));
	ck_assert_int_eq(memcmp(got.data, "{\"a\":\"", 6), 0);
	kube_watch_splitter_done(&l);
	buf_done(&got);
	begin();
	ck_assert(feed_item(&i, span_of("{\"items\":[{\"a\":\"")));
	feed_more_than_the_limit(feed_item, &i);
	ck_assert(feed_item(&i, span_of("\"},{}]}")));
	ck_assert_uint_eq(got.len, KUBE_NAMES_BYTES + strlen("|{}|"));
	kube_list_splitter_done(&i);
	buf_done(&got);
}
END_TEST

START_TEST(what_has_no_end_is_refused_at_the_limit)
{
	struct kube_list_splitter e = KUBE_LIST_SPLITTER;

	begin();
	ck_assert_uint_lt(feed_blanks(feed_item, &e, "{\""), KUBE_MAX_ENVELOPE_BYTES);
	ck_assert_uint_eq(n_pieces, 0);
	kube_list_splitter_done(&e);
	buf_done(&got);
}
END_TEST

UNIT_MAIN("kube/reply_splitter", lines_come_whole_wherever_they_are_cut, items_come_whole_and_the_rest_stays,
	brackets_in_strings_are_no_brackets, only_the_outermost_items_count,
	what_is_no_object_stays_for_whoever_reads_the_rest, the_user_may_stop,
	of_a_piece_beyond_the_limit_its_beginning_is_given, what_has_no_end_is_refused_at_the_limit)
