/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list.h"

#include <stdlib.h>

#include "base/mem.h"
#include "kube/list_page.h"

struct kube_list {
	struct kube_client *client;
	const struct kube_kind *kind;
	const struct kube_list_events *events;
	void *user;
	struct kube_list_page page;
	struct kube_request *request;
	struct error *fault; /* why the reply was given up */
	char *token;         /* of the page that is requested; NULL: the first one */
};

static void request_page(struct kube_list *l);

/* Return: 0: the page is complete, -1 otherwise. */
static int end_page(struct kube_list *l, const struct error *error, struct error **err)
{
	CLEANUP(free_charp) char *version = NULL;
	char *next;

	if (l->fault)
		return err_set(err, l->fault->code, "kube: list %s: %s", l->kind->what, l->fault->msg);
	if (error)
		return err_set(err, error->code, "%s", error->msg);
	if (kube_list_page_end(&l->page, &version, &next, err) < 0)
		return err_wrap(err, "kube: list %s", l->kind->what);
	free(l->token);
	l->token = next;
	return 0;
}

static void page_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_list *l = user;

	(void)status;
	(void)body;
	l->request = NULL;
	if (end_page(l, error, &err) == 0 && l->token) {
		kube_list_page_reset(&l->page);
		request_page(l);
		return;
	}
	l->events->ended(l->user, err);
}

static void take_object(void *user, void *object)
{
	struct kube_list *l = user;

	if (l->kind->keeps && !l->kind->keeps(l->kind->keeps_user, object))
		kube_object_free(l->kind, object);
	else
		l->events->take(l->user, object);
}

static bool take_data(void *user, struct span data)
{
	struct kube_list *l = user;

	return kube_list_page_feed(&l->page, data, &l->fault) == 0;
}

static void request_page(struct kube_list *l)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES);
	struct kube_call call = {.verb = "list",
		.what = l->kind->what,
		.method = "GET",
		.accept = kube_list_page_accept(l->kind),
		.timeout_ms = KUBE_PAGE_MS,
		.on_data = take_data};

	kube_list_page_path(l->kind, l->token, &path);
	call.path = buf_str(&path);
	l->request = kube_client_call(l->client, &call, page_ended, l);
}

struct kube_list *kube_list_new(struct kube_client *client, const struct kube_kind *kind,
	const struct kube_list_events *events, void *user)
{
	struct kube_list *l = x_calloc(1, sizeof(*l));

	*l = (struct kube_list){.client = client, .kind = kind, .events = events, .user = user};
	kube_list_page_init(&l->page, kind, take_object, l);
	request_page(l);
	return l;
}

void kube_list_free(struct kube_list *l)
{
	if (!l)
		return;
	kube_request_cancel(l->request);
	kube_list_page_reset(&l->page);
	error_free(l->fault);
	free(l->token);
	free(l);
}
