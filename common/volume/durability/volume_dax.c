/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/volume_dax.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "volume/attachment/attachment_dax.h"
#include "volume/params.h"
#include "volume/state.h"

static bool is_mounted(const struct volume_record *r)
{
	if (r->phase != PHASE_READY || r->snapshot || r->direct || r->staged_block)
		return false;
	return r->staging_path || (volume_record_is_inline(r) && strv_len(r->targets) > 0);
}

/* The usage with which the volume was mounted counts, also if the parameter was changed since. */
static enum volume_usage usage_of(const struct volume_record *r)
{
	enum volume_usage usage = USAGE_APP_DIRECT;

	if (!volume_usage_parse(r->staged_usage, &usage))
		(void)volume_usage_parse(strmap_get(&r->parameters, PARAMS_USAGE), &usage);
	return usage;
}

static enum volume_dax in_force(enum durability durability)
{
	switch (durability) {
	case DURABILITY_SYNCHRONOUS:
		return VOLUME_DAX_SYNCHRONOUS;
	case DURABILITY_FSYNC:
		return VOLUME_DAX_FSYNC;
	case DURABILITY_UNKNOWN:
		break;
	}
	return VOLUME_DAX_UNTRIED;
}

enum volume_dax volume_dax_of(const struct volume_record *r, const char *mode, enum durability durability)
{
	if (!is_mounted(r))
		return VOLUME_DAX_UNKNOWN;
	switch (attachment_dax_choose(mode, usage_of(r), r->staged_flags)) {
	case DAX_REQUIRED:
		return in_force(durability);
	case DAX_IF_THERE:
		return VOLUME_DAX_UNKNOWN;
	case DAX_AS_IT_IS:
		break;
	}
	if (!attachment_dax_has_flag(r->staged_flags) || strv_contains(r->staged_flags, "dax=never"))
		return VOLUME_DAX_NONE;
	return VOLUME_DAX_UNKNOWN;
}

bool volume_dax_lacks_sync(const struct volume_record *r, const char *mode, enum volume_dax dax)
{
	enum volume_usage usage = USAGE_APP_DIRECT;

	(void)volume_usage_parse(strmap_get(&r->parameters, PARAMS_USAGE), &usage);
	return usage == USAGE_APP_DIRECT && !r->fsync_suffices && !str_eq(mode, "fake") &&
	       (dax == VOLUME_DAX_NONE || dax == VOLUME_DAX_FSYNC);
}

const char *volume_dax_name(enum volume_dax dax)
{
	static const char *const names[] = {[VOLUME_DAX_NONE] = "no",
		[VOLUME_DAX_UNTRIED] = "yes",
		[VOLUME_DAX_SYNCHRONOUS] = "synchronous",
		[VOLUME_DAX_FSYNC] = "fsync"};

	return names[dax];
}
