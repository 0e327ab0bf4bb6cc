/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_records.h - reads and writes the records of volumes (pmem_volume.h), which are PmemVolume objects,
 * and reads the PmemNode of a node (pmem_node.h). Tests have other implementations.
 *
 * Each write carries the version that was read, and fails when the record has changed since. If a write fails
 * for another reason, it is not known whether the record was changed. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"
#include "resources/pmem_volume.h"

enum volume_record_write {
	RECORD_CREATE, /* the whole spec, of a record that does not exist */
	RECORD_SPEC,
	RECORD_STATUS,
	RECORD_RELEASE, /* no node has a copy: the record goes, or only stays while finalizers of others keep
			   it */
};

/** @record: what there is now, taken by the callee; NULL with an error, when there is no such record, or
 * after RECORD_RELEASE. @error: borrowed; NULL: success. ERR_EXISTS: there is a record already; ERR_ABORTED:
 * it is another version; ERR_NOT_FOUND: it was written, but has gone; that is a success of RECORD_RELEASE. */
typedef void (*volume_record_fn)(void *user, struct pmem_volume *record, const struct error *error);

/** shown_node_fn - gets the result of read_node(). @node: taken over; NULL: the node has no PmemNode, or it
 * could not be read. */
typedef void (*shown_node_fn)(void *user, struct pmem_node *node);

struct volume_records {
	/* @key: of the volume, PMEM_VOLUME_KEY_LEN hex digits. @fn is called exactly once, perhaps before
	 * this returned. */
	void (*read)(void *self, const char *key, volume_record_fn fn, void *user);
	/* @record: borrowed for this call only. @fn: as of read() */
	void (*write)(void *self, enum volume_record_write what, const struct pmem_volume *record,
		volume_record_fn fn, void *user);
	/* Reads the PmemNode of @node_id, as the leader has written it last. @fn: as of read() */
	void (*read_node)(void *self, const char *node_id, shown_node_fn fn, void *user);
	void *self;
};

struct kube_records;

/** kube_records_new() - records as objects of the driver @driver_name (borrowed), read and written over
 * @client (borrowed), whose end ends what runs with ERR_CANCELLED. Return: never NULL; kube_records_free()
 * after kube_client_free(). */
struct kube_records *kube_records_new(struct kube_client *client, const char *driver_name);
void kube_records_free(struct kube_records *k);

/** kube_records_interface() - valid as long as @k. */
struct volume_records kube_records_interface(struct kube_records *k);
