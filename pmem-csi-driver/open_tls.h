/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_tls.h - the certificates that the driver's flags name. Threads: any.
 */
#pragma once

#include "net/core/cert_watch.h"
#include "net/tls/tls.h"
#include "options.h"

/** open_tls() - what -caFile and the flags beside it tell. @role: servers show -certFile, clients
 * -clientCertFile where that is given. @peer_names: as in tls.h. Blocks on files. Return: 0, or -1 with what
 * is wrong with a file. @ret: tls_context_unref(); NULL without -caFile. */
int open_tls(const struct options *o, enum tls_role role, const char *const *peer_names,
	struct tls_context **ret, struct error **err) MUST_CHECK;

/** watch_certificates() - when these files expire. Return: never NULL; cert_watch_free(). */
struct cert_watch *watch_certificates(const struct options *o, struct loop *loop, struct workers *workers);
