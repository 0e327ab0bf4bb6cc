/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_private.h - what the webhook reads of an AdmissionReview.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/span.h"

struct webhook_container {
	bool has_resources;
	bool has_limits;
	bool has_requests;
	bool is_limited; /* the resource is among the limits */
	bool is_requested;
};

struct webhook_pod {
	bool is_there;
	bool is_ignored; /* by its label */
	bool has_volumes;
	bool has_inline;        /* a volume of our driver */
	bool has_default_class; /* a generic ephemeral volume that names no class */
	char *namespace;
	char *scheduler; /* NULL: the default one */
	char *node;      /* where it is put without a scheduler, or NULL */
	char **claims;   /* strv */
	char **classes;  /* of generic ephemeral volumes; strv */
	size_t n_containers;
	bool is_marked; /* a container, or one that initialises, has the resource */
	struct webhook_container first;
};

struct webhook_review {
	const char *driver_name;
	char *resource; /* "<driver name>/scheduler" */
	char *label;    /* "<driver name>/webhook" */
	char *version;
	char *kind;
	bool has_request;
	char *uid;
	char *namespace;
	char *operation;
	char *group; /* of the resource under review */
	char *plural;
	char *sub_resource;
	struct webhook_pod pod;
	char *odd; /* what has another type than it should, the first of it */
};

/** webhook_review_read() - fill in @v, of which only .driver_name is set. Also after a failure the caller's
 * to release. Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed, too deep). */
int webhook_review_read(struct webhook_review *v, struct span body, struct error **err) MUST_CHECK;

/** webhook_review_done() - release the content of @v. */
void webhook_review_done(struct webhook_review *v);
