/* SPDX-License-Identifier: Apache-2.0 */
#include "os/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/json/json.h"

#define MAX_DEPTH 64

struct level {
	bool is_map;
	bool wants_value; /* of a map: its key was read */
};

struct converter {
	struct json_writer out;
	struct level levels[MAX_DEPTH];
	size_t depth;
	unsigned documents;
	bool has_value;
};

static int refuse(const yaml_event_t *ev, const char *what, struct error **err)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "YAML line %zu: %s", (size_t)ev->start_mark.line + 1, what);
}

static bool is_null(const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;

	return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

/* Return: whether a scalar that comes now is a key. */
static bool at_key(const struct converter *c)
{
	return c->depth > 0 && c->levels[c->depth - 1].is_map && !c->levels[c->depth - 1].wants_value;
}

static void value_done(struct converter *c)
{
	if (c->depth > 0)
		c->levels[c->depth - 1].wants_value = false;
	c->has_value = true;
}

static int add_scalar(struct converter *c, const yaml_event_t *ev, struct error **err)
{
	const char *text = (const char *)ev->data.scalar.value;

	if (strlen(text) != ev->data.scalar.length)
		return refuse(ev, "a NUL", err);
	if (at_key(c)) {
		json_key(&c->out, text);
		c->levels[c->depth - 1].wants_value = true;
		return 0;
	}
	if (is_null(ev))
		json_raw(&c->out, "null");
	else
		json_str(&c->out, text);
	value_done(c);
	return 0;
}

static int open_level(struct converter *c, const yaml_event_t *ev, bool is_map, struct error **err)
{
	if (at_key(c))
		return refuse(ev, "a key that is not a scalar", err);
	if (c->depth == MAX_DEPTH)
		return refuse(ev, "more than 64 levels", err);
	c->levels[c->depth++] = (struct level){.is_map = is_map};
	if (is_map)
		json_object(&c->out);
	else
		json_array(&c->out);
	return 0;
}

static void close_level(struct converter *c, bool is_map)
{
	c->depth--;
	if (is_map)
		json_object_end(&c->out);
	else
		json_array_end(&c->out);
	value_done(c);
}

static const yaml_char_t *anchor_of(const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return ev->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return ev->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return ev->data.mapping_start.anchor;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
	case YAML_ALIAS_EVENT:
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		break;
	}
	return NULL;
}

static int take_event(struct converter *c, const yaml_event_t *ev, struct error **err)
{
	if (anchor_of(ev))
		return refuse(ev, "an anchor", err);
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		return refuse(ev, "an alias", err);
	case YAML_DOCUMENT_START_EVENT:
		return c->documents++ == 0 ? 0 : refuse(ev, "a second document", err);
	case YAML_SCALAR_EVENT:
		return add_scalar(c, ev, err);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(c, ev, false, err);
	case YAML_MAPPING_START_EVENT:
		return open_level(c, ev, true, err);
	case YAML_SEQUENCE_END_EVENT:
		close_level(c, false);
		return 0;
	case YAML_MAPPING_END_EVENT:
		close_level(c, true);
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return 0;
}

static int convert(yaml_parser_t *parser, struct converter *c, struct error **err)
{
	yaml_event_t ev;
	bool ended = false;
	int rv = 0;

	while (!ended && rv == 0) {
		if (!yaml_parser_parse(parser, &ev))
			return err_set(err, ERR_INVALID_ARGUMENT, "YAML line %zu: %s",
				(size_t)parser->problem_mark.line + 1,
				parser->problem ? parser->problem : "malformed");
		ended = ev.type == YAML_STREAM_END_EVENT;
		rv = take_event(c, &ev, err);
		yaml_event_delete(&ev);
	}
	return rv;
}

int yaml_to_json(struct span yaml, struct buf *out, struct error **err)
{
	struct converter c = {.out = JSON_WRITER(out)};
	yaml_parser_t parser;
	int rv;

	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, yaml.p, yaml.n);
	rv = convert(&parser, &c, err);
	yaml_parser_delete(&parser);
	if (rv == 0 && !c.has_value)
		buf_adds(out, "null");
	return rv == 0 ? buf_check(out, "YAML as JSON", err) : -1;
}
