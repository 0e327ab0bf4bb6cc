/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_kube.h - an API server without network or time, in place of kube/client.h and kube/informer.h: the
 * test sees each request and answers it, and says what informers learn.
 */
#pragma once

#include "kube/client.h"
#include "kube/informer.h"

struct fake_request {
	char *verb;
	char *method;
	char *path;
	char *content_type; /* "" when not given */
	char *body;
};

/* The namespace that kube_client_namespace() returns. */
#define FAKE_KUBE_NAMESPACE "pmem-csi"

/** fake_kube_new() - @loop: what kube_client_loop() returns. Return: kube_client_free(). */
struct kube_client *fake_kube_new(struct loop *loop);

/** fake_kube_next() - the oldest request that is not answered, borrowed; NULL: there is none. */
const struct fake_request *fake_kube_next(const struct kube_client *c);

/** fake_kube_count() - how many are not answered. */
size_t fake_kube_count(const struct kube_client *c);

/** fake_kube_answer() - end the oldest request. @status: of HTTP; 0: the connection is lost. @body: of a
 * success */
void fake_kube_answer(struct kube_client *c, unsigned status, const char *body);

/** fake_kube_cancel() - end all requests with ERR_CANCELLED, as the real kube_client_free() does; that of
 * this one insists that there are none. */
void fake_kube_cancel(struct kube_client *c);

/** fake_kube_informer() - the informer of the kind that is called @what, or NULL. */
struct informer *fake_kube_informer(const struct kube_client *c, const char *what);

/** fake_informer_put() - the object @json was added or changed. */
void fake_informer_put(struct informer *i, const char *json);

/** fake_informer_remove() - the object with @key is gone. */
void fake_informer_remove(struct informer *i, const char *key);

/** fake_informer_visits() - how many objects informer_each() has visited so far. */
size_t fake_informer_visits(const struct informer *i);

/** fake_informer_sync() - the first list is complete. */
void fake_informer_sync(struct informer *i);

/** fake_informer_fail() - what informer_failing_ns() says from now on. */
void fake_informer_fail(struct informer *i, uint64_t failing_ns);

/** fake_informer_kind() - what it was made for. */
const struct kube_kind *fake_informer_kind(const struct informer *i);
