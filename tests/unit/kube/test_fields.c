/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "kube/object.h"
#include "unit/unit.h"

struct part {
	char *name;
	char **tags;
	struct kube_pairs pairs;
	bool has_pairs;
};

struct whole {
	char *text;
	struct part *parts;
	size_t n_parts;
	char *found; /* by take_part() */
	char *same;  /* of each of the objects "each" */
	uint64_t bytes;
	bool has_bytes;
	bool has_inner;
	bool flag;
	bool is_yes;
	bool is_there;
};

static const struct kube_field part_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct part, name),
	KUBE_FIELD("tags", KUBE_TEXTS, struct part, tags),
	KUBE_FIELD("pairs", KUBE_PAIRS, struct part, pairs, .extent = offsetof(struct part, has_pairs)),
	KUBE_FIELDS_END,
};

static bool take_part(void *object, void *item)
{
	struct whole *w = object;
	struct part *p = item;

	if (!str_eq(p->name, "found"))
		return !str_eq(p->name, "left out");
	free(w->found);
	w->found = TAKE_PTR(p->name);
	return false;
}

static const struct kube_field each_fields[] = {
	KUBE_FIELD("same", KUBE_TEXT, struct whole, same),
	KUBE_FIELDS_END,
};

static const struct kube_field inner_fields[] = {
	KUBE_FIELD("flag", KUBE_FLAG, struct whole, flag),
	KUBE_FIELD("says", KUBE_SAYS, struct whole, is_yes, .says = "yes"),
	KUBE_FIELD("there", KUBE_NOT_NULL, struct whole, is_there),
	KUBE_FIELD("size", KUBE_QUANTITY, struct whole, bytes, .extent = offsetof(struct whole, has_bytes)),
	{.name = "each", .type = KUBE_EACH, .fields = each_fields},
	KUBE_FIELDS_END,
};

static const struct kube_field whole_fields[] = {
	KUBE_FIELD("text", KUBE_TEXT, struct whole, text),
	KUBE_FIELD("parts", KUBE_ARRAY, struct whole, parts, .extent = offsetof(struct whole, n_parts),
		.fields = part_fields, .item_size = sizeof(struct part), .takes = take_part),
	{.name = "inner",
		.type = KUBE_MEMBERS,
		.extent = offsetof(struct whole, has_inner),
		.fields = inner_fields},
	KUBE_FIELD("", KUBE_TEXT, struct whole, found),
	KUBE_FIELDS_END,
};

static int read_whole(const char *text, struct whole *w, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(text));

	*w = (struct whole){0};
	return kube_fields_read(r, whole_fields, w, err);
}

START_TEST(each_member_goes_where_the_table_says)
{
	struct error *err = NULL;
	struct whole w;

	ASSERT_OK(read_whole(
		"{\"text\":\"t\",\"\":\"not read\",\"other\":[{}],\"parts\":[{\"name\":\"a\","
		"\"tags\":[\"x\",\"y\"],\"pairs\":{}},{\"name\":\"left out\"},{\"name\":\"found\"},"
		"{\"pairs\":{\"k\":\"v\"}}],\"inner\":{\"flag\":true,\"says\":\"yes\",\"there\":0,"
		"\"size\":\"1Ki\",\"each\":[{\"same\":\"1\"},{\"same\":\"2\"}]}}",
		&w, &err));
	ck_assert_str_eq(w.text, "t");
	ck_assert_uint_eq(w.n_parts, 2);
	ck_assert_str_eq(w.parts[0].name, "a");
	ck_assert_str_eq(w.parts[0].tags[1], "y");
	ck_assert(w.parts[0].has_pairs && !w.parts[0].pairs.block);
	ck_assert_str_eq(kube_pairs_get(&w.parts[1].pairs, "k"), "v");
	ck_assert_str_eq(w.found, "found");
	ck_assert(w.has_inner && w.flag && w.is_yes && w.is_there && w.has_bytes);
	ck_assert_uint_eq(w.bytes, 1024);
	ck_assert_str_eq(w.same, "2");
	kube_fields_done(whole_fields, &w);
	ck_assert(!w.text && !w.parts && !w.n_parts && !w.found && !w.same);
}
END_TEST

static bool is_within(const void *p, const struct whole *packed, size_t size)
{
	return (const char *)p > (const char *)packed && (const char *)p < (const char *)packed + size;
}

START_TEST(a_packed_object_is_complete_and_in_one_block)
{
	struct error *err = NULL;
	struct whole *packed;
	struct whole w;
	size_t size;

	ASSERT_OK(read_whole("{\"text\":\"t\",\"parts\":[{\"name\":\"a\",\"tags\":[\"x\",\"yy\"],\"pairs\":"
			     "{}},{\"name\":\"found\"},{\"name\":\"odd\",\"tags\":[],\"pairs\":{\"k\":\"v\","
			     "\"key\":\"\"}}],\"inner\":{\"size\":\"1Ki\",\"each\":[{\"same\":\"2\"}]}}",
		&w, &err));
	packed = kube_fields_pack(whole_fields, &w, sizeof(w));
	kube_fields_done(whole_fields, &w);
	size = malloc_usable_size(packed);
	ck_assert_str_eq(packed->text, "t");
	ck_assert_uint_eq(packed->n_parts, 2);
	ck_assert_str_eq(packed->parts[0].name, "a");
	ck_assert_uint_eq(strv_len(packed->parts[0].tags), 2);
	ck_assert_str_eq(packed->parts[0].tags[1], "yy");
	ck_assert(packed->parts[0].has_pairs && !packed->parts[0].pairs.block);
	ck_assert_uint_eq(strv_len(packed->parts[1].tags), 0);
	ck_assert_str_eq(kube_pairs_get(&packed->parts[1].pairs, "k"), "v");
	ck_assert_str_eq(kube_pairs_get(&packed->parts[1].pairs, "key"), "");
	ck_assert_ptr_null(kube_pairs_get(&packed->parts[1].pairs, "other"));
	ck_assert_str_eq(packed->found, "found");
	ck_assert_str_eq(packed->same, "2");
	ck_assert(packed->has_inner && !packed->flag && packed->has_bytes && packed->bytes == 1024);
	ck_assert(is_within(packed->parts, packed, size) && is_within(packed->same, packed, size));
	ck_assert(is_within(packed->parts[0].tags[1], packed, size));
	ck_assert(is_within(packed->parts[1].pairs.block, packed, size));
	free(packed);
}
END_TEST

START_TEST(an_object_without_anything_is_packed)
{
	const struct whole w = {.bytes = 5};
	struct whole *packed = kube_fields_pack(whole_fields, &w, sizeof(w));

	ck_assert(!packed->text && !packed->parts && packed->bytes == 5);
	free(packed);
}
END_TEST

START_TEST(what_has_another_type_reads_as_absent)
{
	struct error *err = NULL;
	struct whole w;

	ASSERT_OK(read_whole("{\"text\":{\"text\":\"t\"},\"parts\":[5,[{\"name\":\"a\"}],null,{\"name\":[],"
			     "\"tags\":{},\"pairs\":[]}],\"inner\":{\"flag\":\"true\",\"says\":[\"yes\"],"
			     "\"there\":null,\"size\":\"much\",\"each\":{\"same\":\"1\"}}}",
		&w, &err));
	ck_assert(!w.text && !w.flag && !w.is_yes && !w.is_there && !w.has_bytes && !w.same);
	ck_assert_uint_eq(w.n_parts, 1);
	ck_assert(!w.parts[0].name && !w.parts[0].tags && !w.parts[0].has_pairs);
	kube_fields_done(whole_fields, &w);
	ASSERT_OK(read_whole("{\"inner\":[],\"parts\":{\"name\":\"a\"}}", &w, &err));
	ck_assert(!w.has_inner && !w.parts);
	kube_fields_done(whole_fields, &w);
	ASSERT_FAILS(read_whole("[]", &w, &err), ERR_INVALID_ARGUMENT, "expected an object");
}
END_TEST

/* One object after another replaces what it names, and no array becomes longer than is kept. */
START_TEST(what_comes_twice_or_too_often_leaks_nothing)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1u << 20);
	struct error *err = NULL;
	struct whole w;

	buf_adds(&text, "{\"text\":\"first\",\"text\":\"second\",\"parts\":[{\"name\":\"found\"}");
	for (unsigned i = 0; i < KUBE_MAX_ITEMS + 10; i++)
		buf_adds(&text, ",{\"name\":\"a\",\"name\":\"b\",\"pairs\":{\"k\":\"v\"},\"pairs\":{}}");
	buf_adds(&text, "],\"parts\":[{\"name\":\"found\"},{\"name\":\"late\"}]}");
	ASSERT_OK(read_whole(buf_str(&text), &w, &err));
	ck_assert_str_eq(w.text, "second");
	ck_assert_uint_eq(w.n_parts, KUBE_MAX_ITEMS);
	ck_assert_str_eq(w.parts[KUBE_MAX_ITEMS - 1].name, "b");
	ck_assert_ptr_null(w.parts[0].pairs.block);
	kube_fields_done(whole_fields, &w);
}
END_TEST

START_TEST(what_was_read_before_a_failure_is_released)
{
	static const char *const texts[] = {"", "{", "{\"text\":\"t\",",
		"{\"text\":\"t\",\"parts\":[{\"name\":\"a\"},", "{\"parts\":[{\"name\":\"a\",\"tags\":[\"x\"",
		"{\"parts\":[{\"pairs\":{\"k\":\"v\"}", "{\"inner\":{\"each\":[{\"same\":\"s\""};
	struct error *err = NULL;
	struct whole w;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		ASSERT_FAILS(read_whole(texts[i], &w, &err), ERR_INVALID_ARGUMENT, "JSON");
		kube_fields_done(whole_fields, &w);
	}
}
END_TEST

UNIT_MAIN("kube fields", each_member_goes_where_the_table_says, a_packed_object_is_complete_and_in_one_block,
	an_object_without_anything_is_packed, what_has_another_type_reads_as_absent,
	what_comes_twice_or_too_often_leaks_nothing, what_was_read_before_a_failure_is_released)
