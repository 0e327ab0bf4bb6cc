/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - names that go through Kubernetes, checked before anything depends on them. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define NAME_OBJECT_MAX    253 /* bytes of an object's name in Kubernetes, and of a namespace's */
#define NAME_NAMESPACE_MAX 63

/** name_check_driver() - that @name, given by -drivername, can be the name of a CSI driver: at most 63 bytes,
 * parts of letters, digits and "-" that begin and end with a letter or digit, with dots between. Source: CSI
 * specification, GetPluginInfoResponse.name; ValidateCSIDriverName() of Kubernetes. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int name_check_driver(const char *name, struct error **err) MUST_CHECK;

/** name_check_node() - that @id, given by -nodeid, can be the identity of a node: as the value of a topology
 * label it has at most 63 bytes, begins and ends with a letter or digit, and has nothing but "-", "_" and "."
 * between besides. Source: CSI specification, Topology. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int name_check_node(const char *id, struct error **err) MUST_CHECK;

/** name_is_object() - whether @name can be that of an object in Kubernetes: a domain name of at most
 * @max_bytes bytes. Source: the DNS subdomain names of Kubernetes' "Object Names and IDs". */
bool name_is_object(const char *name, size_t max_bytes);

/** name_topology_key() - the key of the topology segment whose value is a node's identity, "<driver>/node":
 * kubelet makes it a label of the Node object. @driver_name: as of name_check_driver(). Return: caller frees.
 */
char *name_topology_key(const char *driver_name);
