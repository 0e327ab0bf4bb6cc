/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_model.h - an LVM that remembers: one PV, at most one group on it, and volumes whose nodes are all of
 * one block device. Each command can be made to fail (unit/inject).
 *
 * A command that it does not know fails the test.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "pmem/lvm/lvm.h"

#define LVM_MODEL_EXTENT_BYTES ((uint64_t)4 << 20)
#define LVM_MODEL_EXTENTS      25
#define LVM_MODEL_MAX          4

struct lvm_model_lv {
	char name[64];
	char tag[64];
	uint64_t size_bytes;
	bool active;
};

struct lvm_model {
	const char *pv;
	bool prepared;  /* it is a physical volume; what is on the device is the test's to write */
	char group[64]; /* "": there is none; its folder in /dev is the test's to make */
	dev_t disk;     /* behind every node */
	struct lvm_model_lv lvs[LVM_MODEL_MAX];
	size_t n_lvs;
};

/** lvm_open_model() - @model lives on in the caller. Return: lvm_close(). */
struct lvm *lvm_open_model(struct lvm_model *model);

/** lvm_model_node() - path of the node of @lv. Return: caller frees. */
char *lvm_model_node(const struct lvm_model *model, const struct lvm_model_lv *lv);
