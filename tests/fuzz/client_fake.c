/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/client_fake.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "net/core/addr.h"
#include "net/core/conn.h"
#include "net/limits.h"

struct conn {
	struct conn *next; /* an older one */
	struct conn_config config;
	struct error *why;
	bool over;
};

static struct conn *newest;
static unsigned made;

/* in the place of addr_connect(), by the linker's --wrap */
int __wrap_addr_connect(const struct addr *a, int *ret_fd, struct error **err);

int __wrap_addr_connect(const struct addr *a, int *ret_fd, struct error **err)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)a;
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, "open");
	*ret_fd = fd;
	return 0;
}

int conn_new(const struct conn_config *config, int fd, struct conn **ret, struct error **err)
{
	struct conn *c = x_calloc(1, sizeof(*c));

	(void)err;
	assert(!config->tls);
	close(fd);
	c->config = *config;
	c->next = newest;
	newest = c;
	made++;
	*ret = c;
	return 0;
}

void conn_free(struct conn *c)
{
	struct conn **link = &newest;

	if (!c)
		return;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	error_free(c->why);
	free(c);
}

static void drain(struct conn *c)
{
	size_t n;

	do {
		CLEANUP(buf_done) struct buf out = BUF_INIT(LIMIT_OUT_BYTES);

		c->over = c->over || c->config.protocol->send(c->config.self, &out, &c->why) < 0;
		n = out.len;
	} while (!c->over && n > 0);
	c->over = c->over || c->config.protocol->is_done(c->config.self);
}

bool conn_flush(struct conn *c)
{
	drain(c);
	return !c->over;
}

bool conn_is_open(const struct conn *c)
{
	(void)c;
	return true;
}

bool conn_has_unsent(const struct conn *c)
{
	(void)c;
	return false;
}

const struct error *conn_why(const struct conn *c)
{
	return c->why;
}

const struct tls *conn_tls(const struct conn *c)
{
	(void)c;
	return NULL;
}

bool fake_conn_exists(void)
{
	return newest;
}

unsigned fake_conn_made(void)
{
	return made;
}

void fake_conn_receive(struct span bytes)
{
	struct conn *c = newest;

	if (c->config.protocol->receive(c->config.self, bytes, &c->why) < 0)
		c->over = true;
	if (!c->over)
		drain(c);
	c->config.on_round(c->config.user, c->over);
}

void fake_conn_lose(void)
{
	struct conn *c = newest;

	c->over = true;
	if (!c->why)
		err_set(&c->why, ERR_UNAVAILABLE, "lost");
	c->config.on_round(c->config.user, /* over= */ true);
}
