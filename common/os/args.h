/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.h - command lines in Go's style: -flag=value, --flag value, -bool, -bool=false; one table per program
 * drives parsing and help. Threads: none. Never exits; the caller decides.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum opt_type {
	OPT_BOOL,     /* bool * */
	OPT_U32,      /* uint32_t * */
	OPT_PERCENT,  /* unsigned * */
	OPT_STR,      /* const char **: borrowed from argv */
	OPT_STRS,     /* char ***: repeatable, strv_add(); owned by the caller */
	OPT_SIZE,     /* uint64_t *: a Kubernetes quantity, bytes */
	OPT_DURATION, /* uint64_t *: a Go duration, milliseconds */
	OPT_IGNORED,  /* accepted without effect; target is unused; with arg it takes a value as others do */
};

struct opt {
	const char *name;
	enum opt_type type;
	void *target;
	const char *arg;  /* name of the value in help, such as "SIZE" */
	const char *help; /* one line; for OPT_IGNORED the reason why it has no effect */
};

struct args {
	char **rest;    /* operands, borrowed from argv, NULL-terminated */
	char **ignored; /* names of OPT_IGNORED flags that were given: strv, for one warning each */
};

/**
 * args_parse() - parse a command line.
 * @opts: ends with an entry whose name is NULL; OPT_BOOL, and OPT_IGNORED without arg, have a value only in
 * the -f=v form
 * @argc: as main got it
 * @argv: as main got it; operands may be between flags, "--" ends flags
 * @ret:  args_done()
 *
 * A flag given twice: the last one counts. -h is -help if the table has it. On failure some targets may be
 * set already. Return: 0, or -1 with ERR_INVALID_ARGUMENT that quotes the offending argument; of an unknown
 * flag it names the one that is likely to be meant.
 */
int args_parse(
	const struct opt *opts, int argc, char **argv, struct args *ret, struct error **err) MUST_CHECK;

/** args_refuse_command() - report that @word is not among @commands (NULL-terminated), and suggest the one
 * that is likely to be meant. Return: -1 with ERR_INVALID_ARGUMENT. */
int args_refuse_command(const char *word, const char *const *commands, struct error **err) MUST_CHECK;

/** args_done() - release @a; safe on a zeroed one and twice. */
void args_done(struct args *a);

/**
 * args_help() - make the usage text from the table, one line per flag, with its default.
 * @usage: first line, without a newline
 * @opts:  the table; its targets hold the defaults, so that this comes before args_parse(). A default in the
 * help of a flag, "(default: ...)", wins; after "(required...)" no default is shown.
 *
 * Return: caller frees.
 */
char *args_help(const char *usage, const struct opt *opts);
