/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup.h - scope-bound ownership.
 *
 * A variable marked CLEANUP(fn) owns its value until the scope ends or TAKE_PTR()/TAKE_FD() moves it away.
 * Destructors take NULL and half-built objects and cannot fail; DEFINE_CLEANUP(type, fn) makes fnp() of fn().
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define MUST_CHECK  __attribute__((warn_unused_result))

#define DEFINE_CLEANUP(type, fn)                                                                             \
	static inline void fn##p(type *p)                                                                    \
	{                                                                                                    \
		fn(*p);                                                                                      \
	}                                                                                                    \
	struct fn##_cleanup_needs_semicolon

#define TAKE_PTR(p)                                                                                          \
	({                                                                                                   \
		__typeof__(p) take_ = (p);                                                                   \
		(p) = NULL;                                                                                  \
		take_;                                                                                       \
	})

#define TAKE_FD(fd)                                                                                          \
	({                                                                                                   \
		int take_ = (fd);                                                                            \
		(fd) = -1;                                                                                   \
		take_;                                                                                       \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void free_charp(char **p)
{
	free(*p);
}

static inline void fd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void file_closep(FILE **file)
{
	if (*file)
		fclose(*file);
}
