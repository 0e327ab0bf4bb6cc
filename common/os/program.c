/* SPDX-License-Identifier: Apache-2.0 */
#include "os/program.h"

#include "base/log.h"
#include "base/str.h"

const char *program_about(const struct program_flags *f, const char *help)
{
	if (f->show_help)
		return help;
	return f->show_version ? PMEM_VERSION "\n" : NULL;
}

int program_check_format(const char *flag, const char *value, struct error **err)
{
	if (str_eq(value, "text") || str_eq(value, "json"))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s must be text or json, not \"%s\"", flag, value);
}

void program_start_log(const char *program, const struct program_flags *f, char *const *ignored)
{
	log_init(program, str_eq(f->logging_format, "json") ? LOG_JSON : LOG_TEXT, f->verbosity);
	for (size_t i = 0; ignored && ignored[i]; i++)
		log_warn("flag is accepted but has no effect here", F_STR("flag", ignored[i]));
}
