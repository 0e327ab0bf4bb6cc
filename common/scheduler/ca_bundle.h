/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ca_bundle.h - compares a webhook's caBundle with the authorities that it should have. Threads:
 * none; nothing blocks.
 *
 * A caBundle is base64 of PEM text. Certificates are compared, whatever their order and the text between
 * them.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum ca_bundle {
	CA_BUNDLE_GOOD,  /* has ours and no others */
	CA_BUNDLE_MORE,  /* has ours, and others */
	CA_BUNDLE_LACKS, /* lacks one of ours, or cannot be read */
};

/** ca_bundle_compare() - compare a caBundle with the authorities that it should have. @ours: strv of
 * tls_bundle.h, not empty; @bundle: base64, or NULL where the webhook has none. */
enum ca_bundle ca_bundle_compare(char *const *ours, const char *bundle);

/** ca_bundle_write() - append a caBundle with @ours to @out. @keep_others: also with the other
 * authorities of @bundle, unless it is unreadable or the result would be too large. */
void ca_bundle_write(char *const *ours, const char *bundle, bool keep_others, struct buf *out);
