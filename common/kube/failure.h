/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - what a refusal of the API server means.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

/** kube_failure() - an error for HTTP status @status, which is no success, with the message of the Status
 * object in @body, or the beginning of @body where it is not one. Codes as in client.h. Return: -1. */
int kube_failure(const char *verb, const char *what, unsigned status, struct span body, struct error **err);
