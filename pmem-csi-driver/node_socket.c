/* SPDX-License-Identifier: Apache-2.0 */
#include "node_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "os/unix_socket.h"

int node_socket_note(struct node_socket *s, const char *endpoint, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};
	struct stat st = {0};

	node_socket_done(s);
	if (addr_parse(endpoint, &a, err) < 0)
		return -1;
	if (!a.is_unix)
		return 0;
	if (lstat(a.path, &st) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat \"%s\"", a.path);
	*s = (struct node_socket){.path = x_strdup(a.path), .dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

/* A file system that fails for a time says nothing about the owner of the socket. */
static bool is_replaced(const struct node_socket *s)
{
	struct stat st;

	if (lstat(s->path, &st) < 0)
		return errno == ENOENT;
	return st.st_dev != s->dev || st.st_ino != s->ino;
}

int node_socket_check(const struct node_socket *s, struct error **err)
{
	if (!s->path || !is_replaced(s))
		return 0;
	if (unix_socket_refuse_live(s->path, err) == 0)
		return err_set(err, ERR_PRECONDITION, "the CSI socket \"%s\" was removed by another program",
			s->path);
	if ((*err)->code == ERR_UNAVAILABLE)
		return err_wrap(err, "another driver has taken the CSI socket, and a node can have only one");
	return err_wrap(err, "the CSI socket was replaced by another program");
}

void node_socket_done(struct node_socket *s)
{
	free(s->path);
	*s = (struct node_socket){0};
}
