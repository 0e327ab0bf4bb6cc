/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_terms.h - the labels of nodes on which the driver runs, as the flag -nodeSelector has them: one set of
 * labels, or a list of sets, of which a node has to fulfil one.
 *
 * Source: the flag -nodeSelector of the Go driver, which is one JSON object of strings; the list corresponds
 * to nodeSelectorTerms of a pod's node affinity. Threads: one owner at a time.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strmap.h"
#include "kube/object.h"

struct node_term {
	struct strmap labels; /* the node has all of them, with these values */
	char **without;       /* strv; the node has none of them */
};

struct node_terms {
	struct node_term *terms;
	size_t n; /* 0: no node is selected */
};

/**
 * node_terms_parse() - read {"LABEL":"VALUE",...} or a list of such objects. A value null stands for a label
 * that the node must not have.
 * @ret: node_terms_done()
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. Does not block.
 */
int node_terms_parse(const char *json, struct node_terms *ret, struct error **err) MUST_CHECK;

/** node_terms_match() - whether the object of @meta, a node, fulfils one of the terms. A term without any
 * label fulfils nothing. */
bool node_terms_match(const struct node_terms *t, const struct kube_meta *meta);

/** node_term_selector() - @term as a label selector of Kubernetes: storage=pmem,!other. Return: caller frees;
 * "" for a term without any label. */
char *node_term_selector(const struct node_term *term);

/** node_terms_done() - release what @t owns; it is empty afterwards. */
void node_terms_done(struct node_terms *t);
