/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl_label_area.h - whether the label area of a device describes any namespace. Pure. Source: struct
 * nd_namespace_index of the kernel's drivers/nvdimm/label.h.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

/** cxl_label_area_is_empty() - whether @area, the whole label area, is blank (zeros or ones), or has valid
 * indices of which none knows a label. Anything else is taken for content. */
bool cxl_label_area_is_empty(struct span area);
