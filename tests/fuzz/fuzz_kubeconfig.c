/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig files, and the YAML that they are. */
#include "fuzz/fuzz.h"
#include "kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(kube_config_freep) struct kube_config *c = NULL;
	struct error *err = NULL;

	if (kube_config_parse((struct span){data, size}, "/folder", &c, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	assert(*c->host && c->port > 0 && c->ca_file && c->namespace && c->tls_name);
	assert(!c->cert_file == !c->key_file);
	return 0;
}
