/* SPDX-License-Identifier: Apache-2.0 */
#include "node_socket.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/addr.h"
#include "os/unix_socket.h"

void node_socket_note(struct node_socket *s, const char *endpoint)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(addr_done) struct addr a = {0};
	struct stat st = {0};

	node_socket_done(s);
	if (addr_parse(endpoint, &a, &err) < 0 || !a.is_unix)
		return;
	/* what is gone already is found by the first look */
	if (lstat(a.path, &st) < 0)
		st = (struct stat){0};
	*s = (struct node_socket){.path = x_strdup(a.path), .dev = st.st_dev, .ino = st.st_ino};
}

int node_socket_check(const struct node_socket *s, struct error **err)
{
	struct stat st;

	if (!s->path || (lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino))
		return 0;
	if (unix_socket_refuse_live(s->path, err) < 0)
		return err_wrap(err, "another driver has taken the CSI socket, and a node can have one only");
	return err_set(err, ERR_PRECONDITION, "somebody has removed the CSI socket \"%s\"", s->path);
}

void node_socket_done(struct node_socket *s)
{
	free(s->path);
	*s = (struct node_socket){0};
}
