/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube_json.h - Kubernetes objects as the API server writes them, as far as the duties look at them.
 */
#pragma once

#include <stdbool.h>

/** kube_json_class() - a StorageClass. @parameters: JSON object. Return: caller frees; so for all. */
char *kube_json_class(const char *name, const char *provisioner, const char *parameters);

/** kube_json_claim() - a PVC of 4 GiB in the namespace "ns" with uid "uid-<name>" and resourceVersion "5".
 * @node: selected; NULL: none. @volume: bound to it; NULL: not bound */
char *kube_json_claim(const char *name, const char *class_name, const char *node, const char *volume);

/** kube_json_clone() - the same, not bound, with the claim @source of the same namespace as its data source.
 */
char *kube_json_clone(const char *name, const char *class_name, const char *source);

/** kube_json_node() - a Node with one label. */
char *kube_json_node(const char *name, const char *label, const char *value);

/** kube_json_csi_node() - a CSINode with one driver; NULL: none. */
char *kube_json_csi_node(const char *name, const char *driver);

/** kube_json_volume() - a PV of @driver that one node can use. */
char *kube_json_volume(const char *name, const char *driver, const char *handle, const char *node);
