/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the log sink: one line per event on stderr, text or JSON, key=value pairs in the order given.
 *
 * Library code logs nothing above debug; an error is logged once, where it is handled. Secrets and request
 * maps are never logged. Values are escaped, so that one event is one line, whatever a peer sent. Threads:
 * safe, lines are whole. The sink is one of the two global states of the project; log_init() is called once
 * before threads start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
	const char *key;
	enum { LOG_FIELD_STR, LOG_FIELD_U64, LOG_FIELD_ERR } type;
	union {
		const char *str;
		uint64_t u64;
		const struct error *err;
	};
};

#define F_STR(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_STR, .str = (v)})
#define F_U64(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_U64, .u64 = (v)})
/** an error: its message under "error" and its code name under "code" */
#define F_ERR(e) ((struct log_field){.key = "error", .type = LOG_FIELD_ERR, .err = (e)})

/**
 * log_init() - configure the sink.
 * @program:   name shown in each line, borrowed for ever
 * @format:    text (level time program: message key=value) or one JSON object per line
 * @verbosity: klog's -v: errors, warnings and info are always shown, debug from 5 on
 *
 * Before the first call: text, info, no program name.
 */
void log_init(const char *program, enum log_format format, unsigned verbosity);

/** log_enabled() - whether events of @level are shown; to skip costly arguments. */
bool log_enabled(enum log_level level);

/** log_event() - write one event. @fields ends with an entry whose key is NULL. Use the macros below. */
void log_event(enum log_level level, const char *msg, const struct log_field *fields);

#define LOG_AT(level, msg, ...)                                                                              \
	log_event((level), (msg), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
