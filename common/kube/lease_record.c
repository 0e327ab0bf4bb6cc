/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease_record.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "kube/object.h"

void lease_record_done(struct lease_record *l)
{
	free(l->version);
	free(l->holder);
	free(l->acquired);
	buf_done(&l->metadata);
	*l = LEASE_RECORD;
}

static int read_number(struct json_reader *r, uint32_t *ret, struct error **err)
{
	CLEANUP(error_freep) struct error *odd = NULL;
	CLEANUP(free_charp) char *text = NULL;

	if (kube_read_text(r, &text, err) < 0)
		return -1;
	if (text && parse_u32(text, ret, &odd) < 0)
		*ret = 0;
	return 0;
}

static int read_spec(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct lease_record *l = user;

	if (str_eq(key, "holderIdentity"))
		return kube_read_text(r, &l->holder, err);
	if (str_eq(key, "acquireTime"))
		return kube_read_text(r, &l->acquired, err);
	if (str_eq(key, "leaseDurationSeconds"))
		return read_number(r, &l->duration_s, err);
	if (str_eq(key, "leaseTransitions"))
		return read_number(r, &l->transitions, err);
	return json_skip_value(r, err);
}

static int read_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct lease_record *l = user;
	struct json_writer w = JSON_WRITER(&l->metadata);
	struct json_event ev;

	if (str_eq(key, "spec"))
		return kube_read_object(r, read_spec, l, err);
	if (!str_eq(key, "metadata"))
		return json_skip_value(r, err);
	buf_reset(&l->metadata);
	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	return json_copy(r, &ev, &w, err);
}

static int read_version(struct lease_record *l, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(buf_span(&l->metadata));
	struct kube_meta m = {0};
	int rv = kube_fields_read(r, kube_meta_names, &m, err);

	l->version = TAKE_PTR(m.resource_version);
	kube_fields_done(kube_meta_names, &m);
	return rv;
}

int lease_record_read(struct lease_record *l, struct span json, uint64_t now_ns, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	CLEANUP(lease_record_done) struct lease_record new = LEASE_RECORD;
	struct json_event ev;

	json_reader_be_strict(r);
	if (json_expect(r, JSON_OBJECT, &ev, err) < 0 || kube_read_members(r, read_member, &new, err) < 0 ||
		json_expect(r, JSON_END, &ev, err) < 0 || buf_check(&new.metadata, "lease", err) < 0 ||
		read_version(&new, err) < 0)
		return -1;
	if (str_empty(new.version))
		return err_set(err, ERR_INVALID_ARGUMENT, "the Lease has no resourceVersion");
	if (!new.holder)
		new.holder = x_strdup("");
	new.observed_ns = str_eq(l->version, new.version) ? l->observed_ns : now_ns;
	lease_record_done(l);
	*l = new;
	new = LEASE_RECORD;
	return 0;
}

bool lease_record_may_take(const struct lease_record *l, const char *identity, uint64_t now_ns)
{
	return *l->holder == '\0' || str_eq(l->holder, identity) ||
	       now_ns - l->observed_ns >= l->duration_s * NS_PER_S;
}

void lease_record_write(const struct lease_record *l, const char *namespace, const char *name,
	const char *identity, uint32_t duration_s, const char *now, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	bool stays = l && str_eq(l->holder, identity);
	bool is_released = *identity == '\0';

	json_object(&w);
	json_key_str(&w, "apiVersion", "coordination.k8s.io/v1");
	json_key_str(&w, "kind", "Lease");
	json_key(&w, "metadata");
	if (l) {
		json_raw(&w, buf_str(&l->metadata));
	} else {
		json_object(&w);
		json_key_str(&w, "namespace", namespace);
		json_key_str(&w, "name", name);
		json_object_end(&w);
	}
	json_key(&w, "spec");
	json_object(&w);
	json_key_str(&w, "holderIdentity", identity);
	json_key_u64(&w, "leaseDurationSeconds", is_released ? 1 : duration_s);
	json_key_str(&w, "acquireTime", stays && l->acquired ? l->acquired : now);
	json_key_str(&w, "renewTime", now);
	/* client-go counts changes of the holder; the first holder is not one. */
	json_key_u64(&w, "leaseTransitions", l ? l->transitions + !(stays || is_released) : 0);
	json_object_end(&w);
	json_object_end(&w);
}
