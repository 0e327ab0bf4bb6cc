/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook_ca_bundle.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "net/limits.h"
#include "net/tls/tls_bundle.h"
#include "pacing/backoff.h"
#include "scheduler/ca_bundle.h"

#define TICK_MS    5000
#define REQUEST_MS 10000
/* Between two writes, in case another client resets the object each time. */
#define WRITE_NS (1 * NS_PER_S)
/* etcd takes 1.5 MiB */
#define MAX_BODY_BYTES (1536u << 10)

/* The state of the object, as it was logged last. */
enum state { STATE_UNKNOWN, STATE_KEPT, STATE_ABSENT, STATE_INJECTED, STATE_NOT_OURS };

struct webhook_ca_bundle {
	struct webhook_ca_bundle_config config; /* its strings are those below */
	char *configuration;
	char *service;
	char *ca_file;
	char *cert_file;
	char *selector;
	struct kube_kind kind;
	struct informer *informer;
	struct loop_timer *timer;
	struct kube_request *request;
	struct backoff backoff;
	char **ours;        /* authorities of the file, strv; NULL: not read yet */
	uint64_t wrote_ns;  /* 0: never */
	uint64_t others_ns; /* since when the object is as below; 0: it has no others */
	char *others;       /* its caBundles then */
	enum state state;   /* that the log has */
	char *logged;       /* failure of a request that the log has */
	char *file_logged;  /* likewise of the file */
};

/* cert-manager pkg/controller/cainjector; apis/certmanager/v1/types.go. OpenShift:
 * github.com/openshift/service-ca-operator, pkg/controller/api/api.go */
static const char *const injectors[] = {"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle"};

static void correct_if_needed(struct webhook_ca_bundle *t, uint64_t now_ns);

static void changed(void *user, const char *key, const void *old, const void *new)
{
	(void)key;
	(void)old;
	/* A deleted object may be about to be replaced. */
	if (new)
		correct_if_needed(user, clock_ns());
}

static void synced(void *user)
{
	correct_if_needed(user, clock_ns());
}

static void timer_fires(void *user)
{
	webhook_ca_bundle_tick(user, clock_ns());
}

struct webhook_ca_bundle *webhook_ca_bundle_new(const struct webhook_ca_bundle_config *config)
{
	static const struct informer_events events = {.changed = changed, .synced = synced};
	struct webhook_ca_bundle *t = x_calloc(1, sizeof(*t));

	t->configuration = x_strdup(config->configuration);
	t->service = x_strdup(config->service);
	t->ca_file = x_strdup(config->ca_file);
	t->cert_file = x_strdup(config->cert_file);
	t->config = *config;
	t->selector = x_asprintf("metadata.name=%s", t->configuration);
	t->kind = kube_kind_webhooks;
	t->kind.field_selector = t->selector;
	backoff_init(&t->backoff, kube_client_reconnect_backoff_ms(config->client));
	t->informer = informer_new(config->client, &t->kind, &events, t);
	t->timer = loop_timer_new(kube_client_loop(config->client), timer_fires, t);
	loop_timer_set(t->timer, /* delay_ms= */ 0, TICK_MS);
	return t;
}

void webhook_ca_bundle_free(struct webhook_ca_bundle *t)
{
	if (!t)
		return;
	kube_request_cancel(t->request);
	loop_timer_close(t->timer);
	informer_free(t->informer);
	strv_free(t->ours);
	free(t->configuration);
	free(t->service);
	free(t->ca_file);
	free(t->cert_file);
	free(t->selector);
	free(t->others);
	free(t->logged);
	free(t->file_logged);
	free(t);
}

/* Return: whether @error differs from the message in *@logged, which it replaces then. */
static bool is_news(char **logged, const struct error *error)
{
	if (str_eq(*logged, error->msg))
		return false;
	free(*logged);
	*logged = x_strdup(error->msg);
	return true;
}

/* The two files are replaced together, but may be read just before and after that. */
static int read_authorities(const struct webhook_ca_bundle *t, char ***ret, struct error **err)
{
	CLEANUP(strv_freep) char **found = NULL;

	if (tls_bundle_read(t->ca_file, &found, err) < 0)
		return -1;
	if (tls_bundle_check_signed(found, t->cert_file, err) < 0)
		return err_wrap(err, "%s", t->ca_file);
	*ret = TAKE_PTR(found);
	return 0;
}

static void read_file(struct webhook_ca_bundle *t)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **found = NULL;

	if (read_authorities(t, &found, &err) < 0) {
		if (is_news(&t->file_logged, err))
			log_warn("the webhook's certificate authority cannot be used: its caBundle is not "
				 "changed",
				F_ERR(err));
		return;
	}
	free(TAKE_PTR(t->file_logged));
	if (strv_eq(t->ours, found))
		return;
	strv_free(t->ours);
	t->ours = TAKE_PTR(found);
	/* Other replicas may still use a certificate of the authority that the file contained before, so it
	 * stays in caBundle for a while. */
	t->others_ns = 0;
}

static bool is_injected(const struct kube_webhooks *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(injectors); i++) {
		if (kube_meta_annotation(&object->meta, injectors[i]))
			return true;
	}
	return false;
}

static bool calls_us(const struct webhook_ca_bundle *t, const struct kube_webhook *h)
{
	return str_eq(h->service_name, t->service) &&
	       str_eq(h->service_namespace, kube_client_namespace(t->config.client));
}

static enum state find_state(const struct webhook_ca_bundle *t, const struct kube_webhooks *object)
{
	if (!object)
		return STATE_ABSENT;
	if (is_injected(object))
		return STATE_INJECTED;
	for (size_t i = 0; i < object->n; i++) {
		if (calls_us(t, &object->webhooks[i]))
			return STATE_KEPT;
	}
	return STATE_NOT_OURS;
}

static void log_state(struct webhook_ca_bundle *t, enum state state)
{
	if (state == t->state)
		return;
	t->state = state;
	switch (state) {
	case STATE_UNKNOWN:
		break;
	case STATE_KEPT:
		log_info("the webhook's caBundle is kept equal to its certificate authority",
			F_STR("configuration", t->configuration), F_STR("file", t->ca_file));
		break;
	case STATE_ABSENT:
		log_warn("the MutatingWebhookConfiguration does not exist: no pod is marked until it is "
			 "created",
			F_STR("configuration", t->configuration));
		break;
	case STATE_INJECTED:
		log_info("the webhook's caBundle is left to an injector, which an annotation of the object "
			 "names",
			F_STR("configuration", t->configuration));
		break;
	case STATE_NOT_OURS:
		log_warn("no webhook of the configuration calls this Service: its caBundle is not changed",
			F_STR("configuration", t->configuration), F_STR("service", t->service),
			F_STR("namespace", kube_client_namespace(t->config.client)));
		break;
	}
}

static void patched(void *user, unsigned status, struct span body, const struct error *error)
{
	struct webhook_ca_bundle *t = user;

	(void)body;
	t->request = NULL;
	t->wrote_ns = clock_ns();
	if (!error) {
		log_info("the webhook's caBundle was corrected", F_STR("configuration", t->configuration));
		backoff_reset(&t->backoff);
		free(TAKE_PTR(t->logged));
		return;
	}
	/* The watch is about to show what another client has written. */
	if (status == 409)
		return;
	backoff_fail(&t->backoff, t->wrote_ns);
	if (is_news(&t->logged, error))
		log_warn("the webhook's caBundle cannot be corrected; will try again", F_ERR(error));
}

/* A strategic merge patch finds webhooks by their names (admissionregistration/v1/types.go). */
static void write_patch(const struct webhook_ca_bundle *t, const struct kube_webhooks *object,
	bool keep_others, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "resourceVersion", object->meta.resource_version);
	json_object_end(&w);
	json_key(&w, "webhooks");
	json_array(&w);
	for (size_t i = 0; i < object->n; i++) {
		CLEANUP(buf_done) struct buf bundle = BUF_INIT(2 * LIMIT_PEM_BYTES);

		if (!calls_us(t, &object->webhooks[i]))
			continue;
		ca_bundle_write(t->ours, object->webhooks[i].ca_bundle, keep_others, &bundle);
		json_object(&w);
		json_key_str(&w, "name", object->webhooks[i].name);
		json_key(&w, "clientConfig");
		json_object(&w);
		json_key_str(&w, "caBundle", buf_str(&bundle));
		json_object_end(&w);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
}

static void put_right(struct webhook_ca_bundle *t, const struct kube_webhooks *object, bool keep_others)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(MAX_BODY_BYTES);
	CLEANUP(error_freep) struct error *err = NULL;

	write_patch(t, object, keep_others, &body);
	if (buf_check(&body, "the patch of the caBundle", &err) < 0) {
		patched(t, /* status= */ 0, (struct span){0}, err);
		return;
	}
	const struct kube_object_call call = {.verb = KUBE_STRATEGIC_PATCH,
		.kind = &kube_kind_webhooks,
		.name = t->configuration,
		.body = buf_span(&body),
		.timeout_ms = REQUEST_MS};
	t->request = kube_object_call(t->config.client, &call, patched, t);
}

/* The worst of all webhooks that call us. */
static enum ca_bundle judge(const struct webhook_ca_bundle *t, const struct kube_webhooks *object)
{
	enum ca_bundle worst = CA_BUNDLE_GOOD;

	for (size_t i = 0; i < object->n; i++) {
		enum ca_bundle one = calls_us(t, &object->webhooks[i])
					     ? ca_bundle_compare(t->ours, object->webhooks[i].ca_bundle)
					     : CA_BUNDLE_GOOD;
		if (one > worst)
			worst = one;
	}
	return worst;
}

bool webhook_ca_bundle_is_complete(const struct webhook_ca_bundle *t)
{
	const struct kube_webhooks *object = informer_get(t->informer, t->configuration);
	enum state state = find_state(t, object);

	return (state == STATE_KEPT || state == STATE_INJECTED) && t->ours &&
	       judge(t, object) != CA_BUNDLE_LACKS;
}

static char *bundles_of(const struct webhook_ca_bundle *t, const struct kube_webhooks *object)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAX_BODY_BYTES);

	for (size_t i = 0; i < object->n; i++) {
		if (calls_us(t, &object->webhooks[i]) && object->webhooks[i].ca_bundle)
			buf_adds(&text, object->webhooks[i].ca_bundle);
	}
	return x_strdup(buf_str(&text));
}

/* Any change of the other authorities starts their time again: a replica may have added one of them just now.
 */
static void note_others(struct webhook_ca_bundle *t, const struct kube_webhooks *object, enum ca_bundle found,
	uint64_t now_ns)
{
	CLEANUP(free_charp) char *bundles = found == CA_BUNDLE_MORE ? bundles_of(t, object) : NULL;

	if (!bundles)
		t->others_ns = 0;
	else if (t->others_ns == 0 || !str_eq(t->others, bundles))
		t->others_ns = now_ns;
	free(t->others);
	t->others = TAKE_PTR(bundles);
}

static void correct_if_needed(struct webhook_ca_bundle *t, uint64_t now_ns)
{
	const struct kube_webhooks *object = informer_get(t->informer, t->configuration);

	if (!informer_is_synced(t->informer))
		return;
	log_state(t, find_state(t, object));
	if (t->state != STATE_KEPT || !t->ours || t->request || !backoff_is_over(&t->backoff, now_ns) ||
		(t->wrote_ns != 0 && now_ns - t->wrote_ns < WRITE_NS))
		return;
	enum ca_bundle found = judge(t, object);
	note_others(t, object, found, now_ns);
	bool drops = t->others_ns != 0 && now_ns - t->others_ns >= WEBHOOK_CA_BUNDLE_OTHERS_MS * NS_PER_MS;
	if (found == CA_BUNDLE_LACKS || drops)
		put_right(t, object, /* keep_others= */ !drops);
}

void webhook_ca_bundle_tick(struct webhook_ca_bundle *t, uint64_t now_ns)
{
	read_file(t);
	correct_if_needed(t, now_ns);
}
