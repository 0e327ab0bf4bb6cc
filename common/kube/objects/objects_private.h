/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects_private.h - what the decoders of objects.h share.
 */
#pragma once

#include "kube/objects/objects.h"

/** kube_decode() - one whole document of @kind. Return: the object, or NULL with ERR_INVALID_ARGUMENT. */
void *kube_decode(const struct kube_kind *kind, struct span json, struct error **err) MUST_CHECK;
