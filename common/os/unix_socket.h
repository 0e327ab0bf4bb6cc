/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix_socket.h - handles the socket files of unix sockets, also those of servers that have ended. Threads:
 * safe. Blocks on the file system, and for at most 2 s while another program has the folder locked.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/** unix_socket_lock_folder() - lock the folder of @path, which is made with 0700 if it is missing: of two
 * servers that start at once, one must see the other's socket. @ret_fd: the caller closes, which unlocks.
 * Waits for 2 s at most. Return: 0, or -1 with ERR_INTERNAL, or ERR_UNAVAILABLE: another program has the
 * lock. */
int unix_socket_lock_folder(const char *path, int *ret_fd, struct error **err) MUST_CHECK;

/** unix_socket_refuse_live() - whether @path, absolute and below the limit of sun_path, is free, or a socket
 * on which no server listens. Return: 0, or -1 with ERR_UNAVAILABLE (a server listens), ERR_PRECONDITION
 * (not a socket), ERR_INTERNAL. */
int unix_socket_refuse_live(const char *path, struct error **err) MUST_CHECK;

/** unix_socket_remove_stale() - remove @path if it is a socket on which no server listens. @ret_removed:
 * whether there was one. Idempotent. Return: 0, or -1 as unix_socket_refuse_live(), or with
 * ERR_INVALID_ARGUMENT (@path is relative or too long). */
int unix_socket_remove_stale(const char *path, bool *ret_removed, struct error **err) MUST_CHECK;
