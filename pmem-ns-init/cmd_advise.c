/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "base/parse.h"
#include "commands.h"
#include "pmem/pool/memory_advice.h"

static void write_text(const struct memory_advice *a, struct buf *out)
{
	char size[24];

	buf_adds(out, a->name);
	if (a->region)
		buf_addf(out, ", %s", format_bytes(a->region->size_bytes, size));
	buf_addf(out, ": %s\n  It %s.\n", a->what, a->state);
	if (a->condition)
		buf_addf(out, "  Before you change this: %s.\n", a->condition);
	for (char **command = a->commands; command && *command; command++)
		buf_addf(out, "      %s\n", *command);
}

static void json_words(struct json_writer *w, const char *key, char *const *words)
{
	json_key(w, key);
	json_array(w);
	for (; words && *words; words++)
		json_str(w, *words);
	json_array_end(w);
}

static void write_json(const struct memory_advice *a, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "name", a->name);
	if (a->region) {
		json_key_str(w, "bus", a->region->bus);
		json_key_str(w, "region", a->region->name);
		json_key_u64(w, "sizeBytes", a->region->size_bytes);
		json_key_str(w, "kind", memory_kind_name(a->kind));
	}
	json_key_str(w, "what", a->what);
	json_key_str(w, "state", a->state);
	json_key_str(w, "action", memory_action_name(a->action));
	if (a->condition)
		json_key_str(w, "condition", a->condition);
	json_words(w, "commands", a->commands);
	json_object_end(w);
}

int cmd_advise(struct nd *nd, const char *folder, const struct nd_inventory *inv,
	const struct memory_devices *devices, bool json, struct buf *out, struct error **err)
{
	CLEANUP(memory_advices_done) struct memory_advices advice = {0};
	struct json_writer w = JSON_WRITER(out);

	if (memory_advise(nd, folder, inv, devices, &advice, err) < 0)
		return -1;
	if (!json) {
		for (size_t i = 0; i < advice.n; i++)
			write_text(&advice.list[i], out);
		if (advice.n == 0)
			buf_adds(out, "the kernel shows no persistent memory\n");
		return 0;
	}
	json_document(&w);
	json_key(&w, "memory");
	json_array(&w);
	for (size_t i = 0; i < advice.n; i++)
		write_json(&advice.list[i], &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
	return 0;
}
