/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/ca_bundle.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/limits.h"
#include "net/tls/tls_bundle.h"

/* Return: strv, strv_free(); NULL where nothing can be read. */
static char **read_bundle(const char *bundle)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(error_freep) struct error *odd = NULL;
	char **found = NULL;

	if (str_empty(bundle) || base64_decode(bundle, &pem, &odd) < 0 ||
		buf_check(&pem, "caBundle", &odd) < 0 || tls_bundle_parse(buf_span(&pem), &found, &odd) < 0)
		return NULL;
	return found;
}

enum ca_bundle ca_bundle_compare(char *const *ours, const char *bundle)
{
	CLEANUP(strv_freep) char **theirs = read_bundle(bundle);

	for (char *const *one = ours; *one; one++) {
		if (!theirs || !strv_contains(theirs, *one))
			return CA_BUNDLE_LACKS;
	}
	return strv_len(theirs) > strv_len(ours) ? CA_BUNDLE_MORE : CA_BUNDLE_GOOD;
}

void ca_bundle_write(char *const *ours, const char *bundle, bool keep_others, struct buf *out)
{
	CLEANUP(strv_freep) char **theirs = keep_others ? read_bundle(bundle) : NULL;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(2 * LIMIT_PEM_BYTES);
	size_t own_bytes;

	for (char *const *one = ours; *one; one++)
		buf_adds(&pem, *one);
	own_bytes = pem.len;
	for (char *const *one = theirs; one && *one; one++) {
		if (!strv_contains(ours, *one))
			buf_adds(&pem, *one);
	}
	/* More than what is read back would never be good. */
	base64_encode((struct span){pem.data, pem.len > LIMIT_PEM_BYTES ? own_bytes : pem.len}, out);
}
