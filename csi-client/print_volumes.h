/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_volumes.h - a page of ListVolumes as a table for people.
 */
#pragma once

#include "csi.pb-c.h"

#include "base/buf.h"

/** list_text() - append a row per volume, and how to get the next page. */
void list_text(const Csi__V1__ListVolumesResponse *page, struct buf *out);
