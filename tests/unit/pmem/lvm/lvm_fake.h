/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_fake.h - an LVM that expects commands in a given order and answers from a table.
 *
 * A command that is not the next of the table fails the test, and so does closing before all were run.
 */
#pragma once

#include "pmem/lvm/lvm.h"

struct lvm_fake_step {
	const char *command; /* its words, joined by blanks */
	const char *report;  /* JSON answer; NULL: none */
	enum err_code code;  /* 0: success */
};

/** The list command of lvm_list(). */
#define LVM_FAKE_LIST                                                                                                  \
	"pvs --foreign -o pv_name,pv_size,pv_missing,pv_uuid,pv_allocatable,pv_free,vg_name,vg_uuid,vg_size,vg_free,"  \
	"vg_extent_size,vg_missing_pv_count,vg_exported,vg_systemid,vg_seqno,vg_mda_size,vg_mda_free,max_lv,lv_count," \
	"pe_start,pvseg_start,pvseg_size,lv_name,lv_uuid,lv_path,lv_tags,lv_size,lv_active"

struct lvm_fake {
	const struct lvm_fake_step *steps; /* the last has no command */
	char *config;                      /* of the last command; lvm_fake_done() */
};

#define LVM_FAKE(...)                                                                                        \
	((struct lvm_fake){.steps = (const struct lvm_fake_step[]){__VA_ARGS__ __VA_OPT__(, ){0}}})

/** lvm_open_fake() - @fake lives on in the caller and moves on with each command. Return: lvm_close(). */
struct lvm *lvm_open_fake(struct lvm_fake *fake);
void lvm_fake_done(struct lvm_fake *fake);
