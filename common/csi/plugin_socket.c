/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/plugin_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/grpc_server.h"
#include "os/file.h"
#include "os/unix_socket.h"

#define CHECK_MS   10000
#define SILENCE_MS 30000
#define LOST_MS    100 /* how often to look whether the lost server has drained */

/* As many as leave room for a driver name of 63 characters in kubelet's usual folder. */
#define BOOT_DIGITS 4

struct plugin_socket {
	struct plugin_socket_config config;
	struct plugin_registration registration; /* that of the config, listened to */
	struct grpc_service services[2];
	char *path;
	struct stat made; /* what bind() made there */
	struct grpc_server *server;
	struct grpc_server *lost; /* whose socket was removed; NULL: none */
	bool lost_is_drained;
	struct loop_timer *check;
	struct loop_timer *silence; /* runs until kubelet has registered the driver */
	struct loop_timer *again;   /* runs from a refusal until the socket is made again */
	bool registered;
	bool refused; /* since kubelet has registered the driver last */
	unsigned draining;
	bool failed; /* the last try to listen */
	loop_fn on_drained;
	void *user;
};

static int listen_at(struct plugin_socket *s, struct error **err)
{
	const struct grpc_server_config config = {.name = s->config.registration.driver_name,
		.loop = s->config.loop,
		.workers = s->config.workers,
		.services = s->services};
	struct grpc_server *server = grpc_server_new(&config);

	if (grpc_server_listen(server, s->path, /* tls= */ NULL, err) < 0) {
		grpc_server_free(server);
		return -1;
	}
	if (lstat(s->path, &s->made) < 0)
		s->made = (struct stat){0};
	s->server = server;
	s->registered = false;
	loop_timer_set(
		s->silence, s->config.silence_ms ? s->config.silence_ms : SILENCE_MS, /* repeat_ms= */ 0);
	return 0;
}

static void on_silence(void *user)
{
	const struct plugin_socket *s = user;

	log_warn("kubelet has not registered the driver yet: without that no pod gets a volume here; "
		 "-pluginRegistrationPath has to be the folder plugins_registry below kubelet's --root-dir, "
		 "mounted from the host",
		F_STR("folder", s->config.folder));
}

static void on_registered(void *user, bool registered, const char *reason)
{
	struct plugin_socket *s = user;
	bool first_refusal = !registered && !s->refused;

	s->registered = registered;
	s->refused = !registered;
	loop_timer_stop(s->silence);
	if (first_refusal) {
		log_warn("kubelet refused to register the driver, which is offered once more",
			F_STR("reason", reason));
		/* after kubelet has been answered */
		loop_timer_set(s->again, /* delay_ms= */ 0, /* repeat_ms= */ 0);
		return;
	}
	s->config.registration.on_registered(s->config.registration.user, registered, reason);
}

static bool is_there(const struct plugin_socket *s)
{
	struct stat st;

	return s->server && lstat(s->path, &st) == 0 && st.st_dev == s->made.st_dev &&
	       st.st_ino == s->made.st_ino;
}

static void server_drained(void *user)
{
	struct plugin_socket *s = user;

	if (--s->draining == 0)
		s->on_drained(s->user);
}

static void lost_drained(void *user)
{
	struct plugin_socket *s = user;

	s->lost_is_drained = true;
	if (s->draining > 0)
		server_drained(s);
}

/* The old server goes first: its descriptor is what tells its file from the new one. */
static void make_again(struct plugin_socket *s)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (s->server) {
		s->lost = TAKE_PTR(s->server);
		s->lost_is_drained = false;
		grpc_server_drain(s->lost, lost_drained, s);
	}
	if (listen_at(s, &err) == 0) {
		s->failed = false;
		return;
	}
	if (!s->failed)
		log_error("kubelet's registration socket cannot be made, will be tried again", F_ERR(err));
	s->failed = true;
}

static void free_lost(struct plugin_socket *s)
{
	if (s->lost && s->lost_is_drained)
		grpc_server_free(TAKE_PTR(s->lost));
}

static void on_check(void *user)
{
	struct plugin_socket *s = user;

	free_lost(s);
	if (s->lost || is_there(s))
		return;
	if (s->server)
		log_warn("kubelet's registration socket was removed by somebody else, making it again",
			F_STR("path", s->path));
	make_again(s);
}

static void on_again(void *user)
{
	struct plugin_socket *s = user;

	free_lost(s);
	if (s->lost)
		loop_timer_set(s->again, LOST_MS, /* repeat_ms= */ 0);
	else
		make_again(s);
}

/* Whether drivers of that name make, or node-driver-registrar makes, sockets named @file. */
static bool is_registration_of(const char *driver_name, const char *file)
{
	size_t n = strlen(driver_name);

	if (strncmp(file, driver_name, n) != 0 || file[n] != '-')
		return false;
	file += n + 1;
	return str_eq(file, "reg.sock") ||
	       (strspn(file, "0123456789abcdef") == BOOT_DIGITS && str_eq(file + BOOT_DIGITS, ".sock"));
}

/* What cannot be removed is in nobody's way. */
static void remove_others(const struct plugin_socket *s)
{
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (dir_open(s->config.folder, /* create= */ false, 0, &dir_fd, &err) < 0 ||
		dir_list(dir_fd, &names, &err) < 0) {
		log_warn("stale registration sockets are not looked for", F_ERR(err));
		return;
	}
	for (size_t i = 0; names[i]; i++) {
		CLEANUP(error_freep) struct error *refused = NULL;
		CLEANUP(free_charp) char *path = x_asprintf("%s/%s", s->config.folder, names[i]);
		bool removed = false;

		if (!is_registration_of(s->config.registration.driver_name, names[i]) ||
			str_eq(path, s->path))
			continue;
		if (unix_socket_remove_stale(path, &removed, &refused) < 0)
			log_warn("a registration socket of this driver's name is left alone", F_ERR(refused));
		else if (removed)
			log_info("removed a stale registration socket", F_STR("path", path));
	}
}

int plugin_socket_new(
	const struct plugin_socket_config *config, struct plugin_socket **ret, struct error **err)
{
	struct plugin_socket *s = x_calloc(1, sizeof(*s));
	uint64_t check_ms = config->check_ms ? config->check_ms : CHECK_MS;
	bool folder_is_missing = access(config->folder, F_OK) < 0 && errno == ENOENT;

	s->config = *config;
	s->registration = config->registration;
	s->registration.on_registered = on_registered;
	s->registration.user = s;
	s->path = x_asprintf("%s/%s-%.*s.sock", config->folder, config->registration.driver_name, BOOT_DIGITS,
		config->boot_id);
	s->services[0] = plugin_registration_service(&s->registration);
	s->silence = loop_timer_new(config->loop, on_silence, s);
	s->again = loop_timer_new(config->loop, on_again, s);
	if (!folder_is_missing)
		remove_others(s);
	if (listen_at(s, err) < 0) {
		plugin_socket_free(s);
		return folder_is_missing ? err_wrap(err, "\"%s\" does not exist", config->folder) : -1;
	}
	if (folder_is_missing)
		log_warn("the folder in which kubelet looks for drivers did not exist, and was made: kubelet "
			 "makes "
			 "it when it starts",
			F_STR("folder", config->folder));
	s->check = loop_timer_new(config->loop, on_check, s);
	loop_timer_set(s->check, check_ms, check_ms);
	*ret = s;
	return 0;
}

bool plugin_socket_is_registered(const struct plugin_socket *s)
{
	return s->registered;
}

void plugin_socket_drain(struct plugin_socket *s, loop_fn on_drained, void *user)
{
	s->on_drained = on_drained;
	s->user = user;
	s->draining = 1 + (s->lost && !s->lost_is_drained);
	loop_timer_stop(s->check);
	loop_timer_stop(s->silence);
	loop_timer_stop(s->again);
	if (s->server)
		grpc_server_drain(s->server, server_drained, s);
	else
		loop_post(s->config.loop, server_drained, s);
}

void plugin_socket_free(struct plugin_socket *s)
{
	if (!s)
		return;
	grpc_server_free(s->server);
	grpc_server_free(s->lost);
	loop_timer_close(s->check);
	loop_timer_close(s->silence);
	loop_timer_close(s->again);
	free(s->path);
	free(s);
}
