/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/access_mode.h"

bool access_mode_spans_nodes(enum access_mode mode)
{
	return mode == ACCESS_MULTI_NODE_READER || mode == ACCESS_MULTI_NODE_WRITER;
}

bool access_mode_is_reader(enum access_mode mode)
{
	return mode == ACCESS_SINGLE_NODE_READER || mode == ACCESS_MULTI_NODE_READER;
}

int access_check(bool spans_nodes, bool is_cache, struct error **err)
{
	if (spans_nodes && !is_cache)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"access modes that span nodes are for volumes with persistencyModel=cache only");
	return 0;
}
