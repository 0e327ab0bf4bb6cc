/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd_doctor_files.h"

#include <stdint.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "devices.h"
#include "inspect/lost_files.h"

static void write_owner_text(const struct lost_volume *v, const struct fs_owner *o, struct buf *out)
{
	CLEANUP(free_charp) char *path = lost_file_path(o);
	CLEANUP(free_charp) char *remedy = lost_file_remedy(v, o);

	buf_addf(out, "  %s: %ju bytes at offset %ju of the device", fs_owner_kind_name(o->kind),
		(uintmax_t)o->length_bytes, (uintmax_t)o->at_bytes);
	if (o->kind == FS_OWNER_INODE)
		buf_addf(out, ", of inode %ju", (uintmax_t)o->inode);
	if (o->kind == FS_OWNER_FILE)
		buf_addf(out, ", at %ju of", (uintmax_t)o->file_offset);
	else if (path)
		buf_adds(out, ", of");
	if (path)
		buf_addf(out, " %s/%s", v->mount, path);
	buf_addf(out, "\n    %s\n", remedy);
}

static void write_volume_text(const struct lost_volume *v, struct buf *out)
{
	buf_addf(out, "%s: %ju bytes of %s cannot be read%s\n", v->record->id, (uintmax_t)v->media->bytes,
		v->device->path ? v->device->path : "its device",
		v->media->is_cut ? ", and maybe more than the kernel lists" : "");
	if (v->why_not) {
		for (size_t i = 0; i < v->media->n; i++)
			buf_addf(out, "  %ju bytes at offset %ju of the device\n",
				(uintmax_t)v->media->list[i].length_bytes,
				(uintmax_t)v->media->list[i].offset_bytes);
		buf_addf(out, "  files were not looked for: %s\n", v->why_not);
	}
	for (size_t i = 0; i < v->owners.n; i++)
		write_owner_text(v, &v->owners.list[i], out);
	if (v->owners.is_cut)
		buf_adds(out, "  and others, which are not shown\n");
}

static void write_text(const struct lost_files *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++)
		write_volume_text(&f->list[i], out);
	buf_addf(out, "%zu volumes whose memory cannot be read everywhere\n", f->n);
	if (f->n_unknown > 0)
		buf_addf(out, "%zu volumes could not be checked completely\n", f->n_unknown);
}

static void json_media(const struct media_errors *e, struct json_writer *w)
{
	json_key_u64(w, "lostBytes", e->bytes);
	json_key_bool(w, "mayBeMore", e->is_cut);
	json_key(w, "ranges");
	json_array(w);
	for (size_t i = 0; i < e->n; i++) {
		json_object(w);
		json_key_u64(w, "offsetBytes", e->list[i].offset_bytes);
		json_key_u64(w, "lengthBytes", e->list[i].length_bytes);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_owner(const struct lost_volume *v, const struct fs_owner *o, struct json_writer *w)
{
	CLEANUP(free_charp) char *path = lost_file_path(o);
	CLEANUP(free_charp) char *remedy = lost_file_remedy(v, o);

	json_object(w);
	json_key_str(w, "kind", fs_owner_kind_name(o->kind));
	json_key_u64(w, "offsetBytes", o->at_bytes);
	json_key_u64(w, "lengthBytes", o->length_bytes);
	if (path)
		json_key_str(w, "path", path);
	if (o->kind == FS_OWNER_FILE) {
		json_key_u64(w, "fileOffsetBytes", o->file_offset);
		json_key_bool(w, "unwritten", o->unwritten);
	}
	if (o->kind == FS_OWNER_INODE)
		json_key_u64(w, "inode", o->inode);
	json_key_str(w, "remedy", remedy);
	json_object_end(w);
}

static void json_owners(const struct lost_volume *v, struct json_writer *w)
{
	json_key_u64(w, "filesLookedAt", v->owners.n_files);
	json_key_u64(w, "filesSkipped", v->owners.n_skipped);
	if (v->owners.bound)
		json_key_str(w, "boundReached", v->owners.bound);
	json_key_bool(w, "ownersCut", v->owners.is_cut);
	json_key(w, "owners");
	json_array(w);
	for (size_t i = 0; i < v->owners.n; i++)
		json_owner(v, &v->owners.list[i], w);
	json_array_end(w);
}

static void json_volume(const struct lost_volume *v, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "id", v->record->id);
	json_key_str(w, "device", v->device->path ? v->device->path : "");
	json_key_str(w, "mountedAt", v->mount ? v->mount : "");
	json_media(v->media, w);
	if (v->why_not)
		json_key_str(w, "filesNotLookedFor", v->why_not);
	else
		json_owners(v, w);
	json_object_end(w);
}

static void write_json(const struct lost_files *f, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key_u64(&w, "unknown", f->n_unknown);
	json_key(&w, "volumes");
	json_array(&w);
	for (size_t i = 0; i < f->n; i++)
		json_volume(&f->list[i], &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

int doctor_show_files(const struct command *c, const struct fs_owners_bound *bound, struct error **err)
{
	CLEANUP(device_closep) struct device_manager *devices = NULL;
	CLEANUP(check_view_done) struct check_view view = {0};
	CLEANUP(lost_files_done) struct lost_files f = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);

	if (command_look(c, &devices, &view, err) < 0)
		return COMMAND_BLIND;
	lost_files_find(&view, bound, &f);
	if (c->json)
		write_json(&f, &out);
	else
		write_text(&f, &out);
	int status = f.n_unknown > 0 ? COMMAND_BLIND : COMMAND_OK;
	return command_print("doctor", &out, f.n > 0 ? COMMAND_MISMATCH : status);
}
