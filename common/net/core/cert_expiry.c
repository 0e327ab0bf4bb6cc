/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/cert_expiry.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls.h"

#define LOOK_MS    60000
#define DAY_S      (24 * 60 * 60)
#define SOON_S     (14 * DAY_S)
#define SOON_PART  3 /* of a certificate's life, where that is shorter: issuers renew at about a third */
#define MAX_LABELS 4
#define METRIC     "pmem_certificate_expiry_timestamp_seconds"

struct watched {
	char *path;
	enum tls_expiry_kind kind;
	int64_t expires_s; /* 0: not known */
	int64_t soon_s;    /* how long before that it is warned of */
	int64_t warned_s;  /* when, and of which: */
	int64_t warned_of_s;
};

struct cert_expiry {
	struct workers *workers;
	struct loop_timer *timer;
	int64_t (*now_s)(void);
	pthread_mutex_t mutex; /* guards what follows, but for paths and kinds */
	bool looking;
	struct watched *files;
	size_t n_files;
};

static int64_t clock_now_s(void)
{
	return (int64_t)time(NULL);
}

static void warn(const struct watched *f, int64_t now_s)
{
	char when[sizeof("2026-01-01T00:00:00Z")] = "";
	time_t expires = (time_t)f->expires_s;
	struct tm tm;

	if (gmtime_r(&expires, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (f->expires_s <= now_s)
		log_warn("certificate has expired: TLS connections fail until the file is replaced",
			F_STR("file", f->path), F_STR("expired", when));
	else
		log_warn("certificate expires soon: replace the file, which is then loaded without a restart",
			F_STR("file", f->path), F_STR("expires", when),
			F_U64("days", (uint64_t)((f->expires_s - now_s) / DAY_S)));
}

/* A certificate may be valid for less than two weeks in all, which is no reason to warn all the time. */
static int64_t soon_s(const struct tls_validity *v)
{
	int64_t part_s = (v->expires_s - v->begins_s) / SOON_PART;

	return part_s < SOON_S ? part_s : SOON_S;
}

static bool is_warning_due(const struct watched *f, int64_t now_s)
{
	if (f->expires_s == 0 || (f->expires_s > now_s && f->expires_s - now_s >= f->soon_s))
		return false;
	if (f->warned_of_s != f->expires_s)
		return true;
	/* also after the clock was set back, and once more after the expiry */
	return now_s - f->warned_s >= DAY_S || now_s < f->warned_s ||
	       (f->expires_s <= now_s && f->warned_s < f->expires_s);
}

/* A file that cannot be read is logged by the connections that need it. */
static void check_file(struct cert_expiry *w, struct watched *f)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	int64_t now_s = w->now_s();
	struct tls_validity validity = {0};

	(void)!tls_expiry(f->path, f->kind, &validity, &ignored);
	pthread_mutex_lock(&w->mutex);
	f->expires_s = validity.expires_s;
	f->soon_s = soon_s(&validity);
	pthread_mutex_unlock(&w->mutex);
	if (!is_warning_due(f, now_s))
		return;
	f->warned_s = now_s;
	f->warned_of_s = validity.expires_s;
	warn(f, now_s);
}

void cert_expiry_look(struct cert_expiry *w)
{
	for (size_t i = 0; i < w->n_files; i++)
		check_file(w, &w->files[i]);
}

static void check_files(void *user)
{
	cert_expiry_look(user);
}

static void files_checked(void *user)
{
	struct cert_expiry *w = user;

	pthread_mutex_lock(&w->mutex);
	w->looking = false;
	pthread_mutex_unlock(&w->mutex);
}

static bool begin(struct cert_expiry *w)
{
	pthread_mutex_lock(&w->mutex);
	bool begins = !w->looking;
	w->looking = true;
	pthread_mutex_unlock(&w->mutex);
	return begins;
}

static void look_is_due(void *user)
{
	struct cert_expiry *w = user;

	if (begin(w) && !workers_run(w->workers, check_files, files_checked, w))
		files_checked(w);
}

static void watch(struct cert_expiry *w, const char *const *paths, enum tls_expiry_kind kind)
{
	for (; paths && *paths; paths++) {
		bool known = str_empty(*paths);

		for (size_t i = 0; i < w->n_files; i++)
			known = known || str_eq(w->files[i].path, *paths);
		if (known)
			continue;
		w->files = x_realloc(w->files, w->n_files + 1, sizeof(*w->files));
		w->files[w->n_files++] = (struct watched){.path = x_strdup(*paths), .kind = kind};
	}
}

struct cert_expiry *cert_expiry_new(const struct cert_expiry_config *config)
{
	struct cert_expiry *w = x_calloc(1, sizeof(*w));

	w->workers = config->workers;
	w->now_s = config->now_s ? config->now_s : clock_now_s;
	pthread_mutex_init(&w->mutex, NULL);
	watch(w, config->cert_files, TLS_EXPIRY_CHAIN);
	watch(w, config->ca_files, TLS_EXPIRY_AUTHORITIES);
	w->timer = loop_timer_new(config->loop, look_is_due, w);
	loop_timer_detach(w->timer);
	if (w->n_files > 0)
		loop_timer_set(w->timer, /* delay_ms= */ 0, LOOK_MS);
	return w;
}

void cert_expiry_free(struct cert_expiry *w)
{
	if (!w)
		return;
	loop_timer_close(w->timer);
	for (size_t i = 0; i < w->n_files; i++)
		free(w->files[i].path);
	free(w->files);
	pthread_mutex_destroy(&w->mutex);
	free(w);
}

static void add_sample(const struct watched *f, const struct prometheus_label *labels, struct buf *out)
{
	struct prometheus_label all[MAX_LABELS + 2] = {{0}};
	size_t n = 0;

	for (; labels && labels[n].name; n++) {
		assert(n < MAX_LABELS);
		all[n] = labels[n];
	}
	all[n] = (struct prometheus_label){"file", f->path};
	if (f->expires_s != 0)
		prometheus_sample(out, METRIC, all, (double)f->expires_s);
}

void cert_expiry_metrics(struct cert_expiry *w, const struct prometheus_label *labels, struct buf *out)
{
	if (w->n_files == 0)
		return;
	prometheus_family(out, METRIC, PROMETHEUS_GAUGE,
		"When the certificates in the file expire, in seconds since unix epoch.");
	pthread_mutex_lock(&w->mutex);
	for (size_t i = 0; i < w->n_files; i++)
		add_sample(&w->files[i], labels, out);
	pthread_mutex_unlock(&w->mutex);
}
