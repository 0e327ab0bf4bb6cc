/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_report.h - the findings as a text for people, or as one JSON document. Threads: none.
 */
#pragma once

#include "base/buf.h"
#include "cluster_check/cluster_findings.h"

/** cluster_report_text() - append a table of the findings, what to do for each reason among them, and a line
 * with numbers. */
void cluster_report_text(const struct cluster_lists *l, const struct cluster_findings *f, struct buf *out);

/** cluster_report_json() - append a document with numbers, and an array of the findings. */
void cluster_report_json(const struct cluster_lists *l, const struct cluster_findings *f, struct buf *out);
