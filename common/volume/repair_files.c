/* SPDX-License-Identifier: Apache-2.0 */
/* State files that do not count. */
#include "base/mem.h"
#include "base/step.h"
#include "base/str.h"
#include "volume/repair_private.h"

static void remove_file(struct repair *p, const char *file, const char *what)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (state_remove_file(p->v->state, file, &err) < 0)
		repair_leave(p, "%s", err->msg);
	else
		repair_did(p, "removed %s %s", what, file);
}

/* While its own device may exist, a file says what would be known by nobody else. */
static void remove_twin(struct repair *p, const struct state_problem *problem)
{
	CLEANUP(volume_record_freep) struct volume_record *winner = volumes_record(p->v, p->id);
	const struct volume_record *loser = problem->record;
	const struct device *d = NULL;

	if (loser->identity && winner && !str_eq(loser->identity, winner->identity)) {
		enum presence presence = presence_of(p->v->seen, loser, &d);

		if (presence == DEVICE_PRESENT || presence == DEVICE_MISSING) {
			repair_leave(p,
				"%s records identity %s, the file that counts another, and a device that "
				"bears "
				"it %s",
				problem->file, loser->identity,
				presence == DEVICE_PRESENT ? "exists" : "may exist");
			return;
		}
	}
	remove_file(p, problem->file, "the file that does not count,");
}

static bool set_aside(struct repair *p, const struct state_problem *problem)
{
	CLEANUP(volume_record_freep) struct volume_record *other = volumes_record(p->v, p->id);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *name = NULL;

	/* without the ready one, the other file would be undone or finished, and the device with it */
	if (other && other->phase != PHASE_READY && str_ends(problem->file, ".json")) {
		repair_leave(p,
			"%s is damaged, and another file says that the volume is half made or deleted: which "
			"of them holds cannot be known",
			problem->file);
		return false;
	}
	/* once it is aside, a device that cannot be adopted would have no state at all */
	if (!other && repair_has_device(p) && !repair_can_adopt(p))
		return false;
	if (state_set_aside(p->v->state, problem->file, &name, &err) < 0) {
		repair_leave(p, "%s", err->msg);
		return false;
	}
	STEP_POINT("repair-set-aside");
	repair_did(p, "set the damaged %s aside as %s", problem->file, name);
	return true;
}

/* ".<id>.json.tmp" and the like of ours, "<id>.json.tmp" of the Go driver */
static bool is_temporary_of(const char *file, const char *id)
{
	const char *name = file[0] == '.' ? file + 1 : file;

	return str_starts(name, id) && name[strlen(id)] == '.' &&
	       (str_eq(name + strlen(id), ".json.tmp") || str_eq(name + strlen(id), ".creating.tmp") ||
		       str_eq(name + strlen(id), ".erasing.tmp"));
}

bool repair_is_about(const struct repair *p, const struct state_problem *problem)
{
	switch (problem->kind) {
	case STATE_DAMAGED:
		return str_eq(problem->id, p->id);
	case STATE_TWIN:
		return str_eq(problem->record->id, p->id);
	case STATE_TEMPORARY:
		return is_temporary_of(problem->file, p->id);
	}
	return false;
}

static bool repair_file(struct repair *p, const struct state_problem *problem)
{
	if (!repair_is_about(p, problem))
		return true;
	switch (problem->kind) {
	case STATE_DAMAGED:
		return set_aside(p, problem);
	case STATE_TWIN:
		remove_twin(p, problem);
		return true;
	case STATE_TEMPORARY:
		remove_file(p, problem->file, "the temporary");
		return true;
	}
	return true;
}

bool repair_files(struct repair *p, const struct state_content *content)
{
	for (size_t i = 0; i < content->n_problems; i++) {
		if (!repair_file(p, &content->problems[i]))
			return false;
	}
	return true;
}
