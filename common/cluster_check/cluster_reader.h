/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_reader.h - reads the objects that are compared from the API server: by GET and LIST, nothing else.
 * Threads: the loop's, which runs meanwhile.
 */
#pragma once

#include "base/error.h"
#include "cluster_check/cluster_lists.h"
#include "kube/client.h"

/**
 * cluster_read() - read all lists, one after the other. CSINodes are read one by one, of those Nodes only
 * that have the label of the driver and no PmemNode, as kubelet leaves that label when the driver goes.
 * @client: its loop must not run
 * @scope:  copied into the lists; its texts are borrowed
 * @ret:    cluster_lists_done()
 *
 * Blocks until all is read; each page and each object has a minute. Return: 0, or -1 with an error that says
 * what to do: ERR_PRECONDITION (the custom resources are not served), ERR_PERMISSION, or as of kube/client.h.
 */
int cluster_read(struct kube_client *client, const struct cluster_scope *scope, struct cluster_lists *ret,
	struct error **err) MUST_CHECK;
