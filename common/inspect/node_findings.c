/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/node_findings.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

void node_findings_add(struct node_findings *f, const char *name, enum node_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = x_vasprintf(fmt, ap);
	va_end(ap);
	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n++] = (struct node_finding){.name = name, .level = level, .text = text};
	f->n_problems += level == NODE_PROBLEM;
	f->n_unknown += level == NODE_UNKNOWN;
}

const char *node_level_name(enum node_level level)
{
	static const char *const names[] = {[NODE_OK] = "ok",
		[NODE_NOTE] = "note",
		[NODE_UNKNOWN] = "unknown",
		[NODE_PROBLEM] = "problem"};

	return names[level];
}

void node_findings_done(struct node_findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].text);
	free(f->list);
	*f = (struct node_findings){0};
}
