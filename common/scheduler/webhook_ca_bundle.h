/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_ca_bundle.h - a webhook's caBundle beside the authorities that it should have. Threads: none;
 * nothing blocks.
 *
 * A caBundle is base64 of PEM text. Certificates are compared, whatever their order and the text between
 * them.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

enum webhook_ca_bundle {
	WEBHOOK_CA_BUNDLE_GOOD,  /* has ours and no others */
	WEBHOOK_CA_BUNDLE_MORE,  /* has ours, and others */
	WEBHOOK_CA_BUNDLE_LACKS, /* lacks one of ours, or cannot be read */
};

/** webhook_ca_bundle_compare() - compare a caBundle with the authorities that it should have. @ours: strv of
 * tls_bundle.h, not empty; @bundle: base64, or NULL where the webhook has none. */
enum webhook_ca_bundle webhook_ca_bundle_compare(char *const *ours, const char *bundle);

/** webhook_ca_bundle_write() - append a caBundle with @ours to @out. @keep_others: and with what @bundle has
 * besides, unless that is unreadable, or too much with ours. */
void webhook_ca_bundle_write(char *const *ours, const char *bundle, bool keep_others, struct buf *out);
