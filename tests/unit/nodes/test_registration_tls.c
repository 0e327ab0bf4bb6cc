/* SPDX-License-Identifier: Apache-2.0 */
/* A node registers only with a controller that proves its name, and waits until there is one. */
#include "base/mem.h"
#include "base/str.h"
#include "nodes/registration.h"
#include "unit/net/tls/certs.h"
#include "unit/nodes/fake_registry.h"

static struct registry_side side;
static struct registration *registration;
static struct error *err;

static void fill(void *user, Registry__V0__RegisterControllerRequest *q, struct arena *arena)
{
	(void)user;
	q->endpoint = arena_strdup(arena, "tcp://node.example:10001");
}

static void begin(struct tls_context *tls, struct handshakes *handshakes)
{
	const struct registration_config config = {.loop = rig.loop,
		.endpoint = "tcp://registry.example:10000",
		.node_id = "node-1",
		.tls = tls,
		.handshakes = handshakes,
		.fill = fill};

	rig.found[0] = side.endpoint;
	ASSERT_OK(registration_new(&config, &registration, &err));
}

static struct tls_context *node_context(void)
{
	return certs_context(&(struct certs_choice){
		.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"});
}

static struct tls_context *server_context(const char *ca, const char *leaf)
{
	static const char *const nodes[] = {"pmem-node-controller", NULL};

	return certs_context(&(struct certs_choice){
		.role = TLS_SERVER, .ca = ca, .leaf = leaf, .alpn = "h2", .peers = nodes});
}

static bool has_failed(void *user)
{
	struct registration_peer *peers;
	size_t n = registration_peers(registration, &peers);
	CLEANUP(free_charp) char *list = (char *)peers;

	(void)list;
	if (n == 0 || !peers[0].last_error)
		return false;
	ck_assert_msg(strstr(peers[0].last_error, user) != NULL, "%s", peers[0].last_error);
	ck_assert(!peers[0].registered);
	return true;
}

/* Refused: the server @leaf of @ca; what is said of it has @text. Then the right one at the same address. */
static void try_with(const char *ca, const char *leaf, const char *text)
{
	CLEANUP(tls_context_unrefp) struct tls_context *node = node_context();
	CLEANUP(tls_context_unrefp) struct tls_context *wrong = server_context(ca, leaf);
	CLEANUP(tls_context_unrefp) struct tls_context *right = server_context("own", "own/pmem-registry");
	CLEANUP(free_charp) char *wanted = x_strdup(text);
	struct handshakes *handshakes;

	rig_open();
	handshakes = handshakes_new(rig.loop);
	registry_serve(&side, wrong, handshakes);
	begin(node, handshakes);
	rig_until(has_failed, wanted);
	ck_assert_uint_eq(side.registered, 0);
	registry_end(&side);
	registry_serve(&side, right, handshakes);
	rig_until_number(&side.registered, 1);
	registration_free(registration);
	registry_end(&side);
	registry_forget(&side);
	handshakes_free(handshakes);
	rig_close();
}

START_TEST(a_server_of_another_name_is_told_nothing)
{
	try_with("own", "own/pmem-evil", "pmem-registry");
}
END_TEST

START_TEST(a_node_is_no_registry)
{
	try_with("own", "own/pmem-node-controller", "pmem-registry");
}
END_TEST

START_TEST(a_server_of_another_authority_is_told_nothing)
{
	try_with("own", "other/pmem-registry", "certificate");
}
END_TEST

CERTS_MAIN("nodes/registration_tls", a_server_of_another_name_is_told_nothing, a_node_is_no_registry,
	a_server_of_another_authority_is_told_nothing)
