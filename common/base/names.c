/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define NAME_MAX_BYTES 63
#define QUOTED_MAX     100

#define ALPHANUMERIC "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static bool is_alphanumeric(char c)
{
	return c != '\0' && strchr(ALPHANUMERIC, c) != NULL;
}

/* @n bytes, all of letters, digits and @others, the first and the last of them no others. */
static bool is_word(const char *text, size_t n, const char *others)
{
	if (n == 0 || !is_alphanumeric(text[0]) || !is_alphanumeric(text[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alphanumeric(text[i]) && !strchr(others, text[i]))
			return false;
	return true;
}

static bool is_domain(const char *name)
{
	for (;;) {
		size_t n = strcspn(name, ".");

		if (!is_word(name, n, "-"))
			return false;
		if (name[n] == '\0')
			return true;
		name += n + 1;
	}
}

int name_check_driver(const char *name, struct error **err)
{
	if (strlen(name) <= NAME_MAX_BYTES && is_domain(name))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT,
		"-drivername \"%.*s\" is not a valid name for a CSI driver: "
		"it must be a domain name of at most %d bytes, such as pmem-csi.intel.com",
		QUOTED_MAX, name, NAME_MAX_BYTES);
}

int name_check_node(const char *id, struct error **err)
{
	if (str_empty(id))
		return err_set(err, ERR_INVALID_ARGUMENT, "-nodeid is needed: the name of this node");
	if (strlen(id) <= NAME_MAX_BYTES && is_word(id, strlen(id), "-_."))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT,
		"-nodeid \"%.*s\" cannot be the value of a node's label: it must have at most %d letters, "
		"digits, \"-\", \"_\" and \".\", and begin and end with a letter or digit",
		QUOTED_MAX, id, NAME_MAX_BYTES);
}

bool name_is_object(const char *name, size_t max_bytes)
{
	return strnlen(name, max_bytes + 1) <= max_bytes && is_domain(name);
}

char *name_topology_key(const char *driver_name)
{
	return x_asprintf("%s/node", driver_name);
}
