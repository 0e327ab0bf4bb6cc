/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_rig.h - an informer of "things" on a scripted API server, and the changes that it reported: lines
 * "+KEY VERSION",
 * "*KEY VERSION", "-KEY", "synced".
 */
#pragma once

#include "fake_api.h"
#include "kube/informer.h"
#include "kube/request_counts.h"

struct thing {
	struct kube_meta meta;
};

struct watch_rig {
	struct fake_api api;
	struct informer *informer;
	struct kube_request_counts *counts;
	struct buf reported;
};

extern const struct kube_kind watch_rig_kind;

/** watch_rig_open() - begin. @kind: NULL: watch_rig_kind. watch_rig_close(): end. */
void watch_rig_open(struct watch_rig *w, const struct kube_kind *kind,
	void (*serve)(struct fake_api *api, const struct fake_request *r));
void watch_rig_close(struct watch_rig *w);

/** watch_rig_until() - run the loop until @text was reported. */
void watch_rig_until(struct watch_rig *w, const char *text);

/** watch_rig_send() - more of the reply to a request for a watch, kept by the script. */
void watch_rig_send(const struct fake_request *r, const char *text);

/** thing() - an object as the API writes it. THING_EVENT(): an event of a watch, with its line end. */
#define THING(name, version)             "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define THING_EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" THING(name, version) "}\n"
#define THING_LIST(version, token, items)                                                                    \
	"{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token    \
	"\"},\"items\":[" items "]}"
