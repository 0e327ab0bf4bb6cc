/* SPDX-License-Identifier: Apache-2.0 */
#include "open_tls.h"

#include "base/str.h"

int open_tls(const struct options *o, enum tls_role role, const char *const *peer_names,
	struct tls_context **ret, struct error **err)
{
	bool own = role == TLS_SERVER || str_empty(o->client_cert_file);
	const struct tls_config config = {
		.role = role,
		.ca_file = o->ca_file,
		.cert_file = own ? o->cert_file : o->client_cert_file,
		.key_file = own ? o->key_file : o->client_key_file,
		.alpn = "h2",
		.peer_names = peer_names,
		.strict_keys = o->strict_keys,
	};

	if (str_empty(o->ca_file)) {
		*ret = NULL;
		return 0;
	}
	return tls_context_new(&config, ret, err);
}

struct cert_expiry *watch_certificates(const struct options *o, struct loop *loop, struct workers *workers)
{
	const char *const certs[] = {o->cert_file, o->client_cert_file, NULL};
	const char *const authorities[] = {o->ca_file, NULL};
	const struct cert_expiry_config config = {
		.loop = loop, .workers = workers, .cert_files = certs, .ca_files = authorities};

	return cert_expiry_new(&config);
}
