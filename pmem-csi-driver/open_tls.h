/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_tls.h - the certificates that the driver's flags name. Threads: any.
 */
#pragma once

#include "net/core/cert_expiry.h"
#include "net/tls/tls.h"
#include "options.h"

/** open_tls() - load the certificates that -caFile and the flags beside it name. @role: servers present
 * -certFile, clients -clientCertFile where that is given. @peer_names: as in tls.h. Blocks on files. Return:
 * 0, or -1 with an error that names the file and what is wrong with it. @ret: tls_context_unref(); NULL
 * without -caFile. */
int open_tls(const struct options *o, enum tls_role role, const char *const *peer_names,
	struct tls_context **ret, struct error **err) MUST_CHECK;

/** watch_certificates() - log warnings and keep metrics about the expiry of these files. Return: never NULL;
 * cert_expiry_free(). */
struct cert_expiry *watch_certificates(const struct options *o, struct loop *loop, struct workers *workers);
