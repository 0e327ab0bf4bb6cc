/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what fuzz targets share: the functions that libFuzzer or replay.c calls, and taking an input
 * apart.
 *
 * A target keeps nothing between inputs, so that each input alone does the same again. A target asserts the
 * properties that hold for every input: a wrong answer is a finding as a crash is. Threads: one.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

/** LLVMFuzzerTestOneInput() - run the target on one input. Return: 0 always. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** LLVMFuzzerInitialize() - called once before the first input; most targets have none. Return: 0. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/** fuzz_byte() - take one byte off @in; 0 when nothing is left. */
uint8_t fuzz_byte(struct span *in);

/** fuzz_bytes() - take @n bytes off @in, or what is left. */
struct span fuzz_bytes(struct span *in, size_t n);

/** fuzz_line() - take what is before the next newline, which is dropped. Return: a copy up to the first NUL,
 * caller frees; NULL when nothing is left. */
char *fuzz_line(struct span *in);

/** fuzz_text() - all that is left up to the first NUL. Return: caller frees. */
char *fuzz_text(struct span in);

/** fuzz_lines() - all lines that are left, as fuzz_line() gives them. Return: strv_free(); NULL when there
 * are none. */
char **fuzz_lines(struct span in);

/** fuzz_check_error() - @e is as every error must be: a known code, and one line of text without control
 * characters. */
void fuzz_check_error(const struct error *e);

/** fuzz_error() - fuzz_check_error(), and destroy @e. */
void fuzz_error(struct error *e);

/** fuzz_check_json() - @text is one JSON value and nothing else. */
void fuzz_check_json(struct span text);
