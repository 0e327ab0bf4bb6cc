/*
 * metrics_process.h - metrics of this process, under the names that Prometheus' own libraries give them.
 */
#pragma once

#include "base/buf.h"

/** metrics_process() - append all of them; what /proc does not tell is left out. @started: seconds since
 * 1970. Reads /proc, which does not wait. */
void metrics_process(struct buf *out, double started);
