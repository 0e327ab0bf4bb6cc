/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/kubelet_registration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pluginregistration.pb-c.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/grpc/grpc_server.h"
#include "os/file.h"
#include "os/unix_socket.h"
#include "pacing/backoff.h"

/* CSI versions that kubelet may speak with it, as node-driver-registrar says them for every driver of
 * CSI 1.x. */
#define SUPPORTED_VERSION "1.0.0"

#define CHECK_MS   10000
#define SILENCE_MS 30000
#define OLD_MS     100 /* how often to look whether the old server has drained */
/* Twice the period of kubelet's reconciler (kubernetes pkg/kubelet/pluginmanager/plugin_manager.go). */
#define SETTLE_MS 2000
#define LOST_MS   60000 /* so long the socket may be away before the driver is notified */

/* As many as leave room for a driver name of 63 characters in kubelet's usual folder. */
#define BOOT_DIGITS 4

struct kubelet_registration {
	struct kubelet_registration_config config;
	struct grpc_service services[2];
	char *path;
	struct stat made; /* what bind() made there */
	struct grpc_server *server;
	struct grpc_server *old; /* whose socket was removed or is to be another one; NULL: none */
	bool old_is_drained;
	struct loop_timer *check;
	struct loop_timer *silence; /* runs until kubelet has registered the driver */
	struct loop_timer *again;   /* runs until the socket is made again */
	bool again_is_due;
	struct backoff refusals;
	bool registered;
	char *refusal; /* why kubelet has refused the last time; NULL: it has not */
	char *failure; /* why the socket cannot be made; NULL: it can */
	uint64_t failing_since_ns;
	bool lost; /* and the driver was notified of that */
	unsigned draining;
	loop_fn on_drained;
	void *user;
};

static void replace(char **text, const char *with)
{
	char *copy = with ? x_strdup(with) : NULL;

	free(*text);
	*text = copy;
}

static int listen_at(struct kubelet_registration *s, struct error **err)
{
	const struct grpc_server_config config = {.name = s->config.driver_name,
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
	loop_timer_set(
		s->silence, s->config.silence_ms ? s->config.silence_ms : SILENCE_MS, /* repeat_ms= */ 0);
	return 0;
}

static void on_silence(void *user)
{
	const struct kubelet_registration *s = user;

	log_warn(
		"kubelet has not registered the driver yet: until it does, pods on this node get no volumes; "
		"-pluginRegistrationPath must be the folder plugins_registry below kubelet's --root-dir, "
		"mounted from the host",
		F_STR("folder", s->config.folder));
}

static void note_refusal(struct kubelet_registration *s, const char *reason)
{
	uint64_t now_ns = clock_ns();

	if (!s->refusal || !str_eq(s->refusal, reason))
		log_error(
			"kubelet refused to register the driver, will try again; until it does, pods on this "
			"node get no volumes",
			F_STR("reason", reason));
	replace(&s->refusal, reason);
	backoff_fail(&s->refusals, now_ns);
	s->again_is_due = true;
	loop_timer_set(s->again, (s->refusals.until_ns - now_ns) / NS_PER_MS, /* repeat_ms= */ 0);
}

/* Newer kubelets call both methods again at any time. Source: k8s.io/kubelet, pluginregistration/v1. */
static int get_info(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const struct kubelet_registration *s = self;
	Pluginregistration__PluginInfo *info = reply;

	(void)request;
	(void)err;
	info->type = arena_strdup(call->arena, "CSIPlugin");
	info->name = arena_strdup(call->arena, s->config.driver_name);
	info->endpoint = arena_strdup(call->arena, s->config.endpoint);
	info->supported_versions = arena_alloc(call->arena, sizeof(*info->supported_versions));
	info->supported_versions[info->n_supported_versions++] = arena_strdup(call->arena, SUPPORTED_VERSION);
	return 0;
}

static int notify(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	struct kubelet_registration *s = self;
	const Pluginregistration__RegistrationStatus *status = request;

	(void)call;
	(void)reply;
	(void)err;
	s->registered = status->plugin_registered;
	loop_timer_stop(s->silence);
	if (!s->registered) {
		note_refusal(s, status->error);
		return 0;
	}
	replace(&s->refusal, NULL);
	backoff_reset(&s->refusals);
	log_info("registered with kubelet");
	return 0;
}

static const struct grpc_method methods[] = {
	{
		.path = "/pluginregistration.Registration/GetInfo",
		.kind = GRPC_INLINE,
		.request = &pluginregistration__info_request__descriptor,
		.reply = &pluginregistration__plugin_info__descriptor,
		.handle = get_info,
	},
	{
		.path = "/pluginregistration.Registration/NotifyRegistrationStatus",
		.kind = GRPC_INLINE,
		.request = &pluginregistration__registration_status__descriptor,
		.reply = &pluginregistration__registration_status_response__descriptor,
		.handle = notify,
	},
	{0},
};

/* A look that fails for another reason, such as an error of the disk, says nothing about the socket. */
static bool is_there(const struct kubelet_registration *s)
{
	struct stat st;

	if (!s->server)
		return false;
	if (lstat(s->path, &st) < 0)
		return errno != ENOENT && errno != ENOTDIR;
	return st.st_dev == s->made.st_dev && st.st_ino == s->made.st_ino;
}

static void server_drained(void *user)
{
	struct kubelet_registration *s = user;

	if (--s->draining == 0)
		s->on_drained(s->user);
}

static void old_drained(void *user)
{
	struct kubelet_registration *s = user;

	s->old_is_drained = true;
	if (s->draining > 0)
		server_drained(s);
}

/* If the registration folder is removed and made again on the host, the container still has the removed one
 * mounted: only a new container gets the new folder. */
static void note_failure(struct kubelet_registration *s, const struct error *err)
{
	uint64_t lost_ms = s->config.lost_ms ? s->config.lost_ms : LOST_MS;

	if (!s->failure) {
		log_error("kubelet's registration socket cannot be created, will try again", F_ERR(err));
		s->failing_since_ns = clock_ns();
	}
	replace(&s->failure, err->msg);
	if (!s->lost && clock_ns() - s->failing_since_ns >= lost_ms * NS_PER_MS) {
		s->lost = true;
		s->config.on_lost(s->config.user, err);
	}
}

/* The old server goes first: its descriptor distinguishes its file from the new one. */
static void make_again(struct kubelet_registration *s)
{
	CLEANUP(error_freep) struct error *err = NULL;

	s->registered = false;
	if (s->server) {
		s->old = TAKE_PTR(s->server);
		s->old_is_drained = false;
		grpc_server_drain(s->old, old_drained, s);
	}
	if (listen_at(s, &err) < 0)
		note_failure(s, err);
	else
		replace(&s->failure, NULL);
}

static void free_old(struct kubelet_registration *s)
{
	if (s->old && s->old_is_drained)
		grpc_server_free(TAKE_PTR(s->old));
}

static void on_check(void *user)
{
	struct kubelet_registration *s = user;

	free_old(s);
	if (s->old || s->again_is_due || is_there(s))
		return;
	if (s->server)
		log_warn("another program removed kubelet's registration socket, creating it again",
			F_STR("path", s->path));
	make_again(s);
}

static void on_again(void *user)
{
	struct kubelet_registration *s = user;

	free_old(s);
	if (s->old) {
		loop_timer_set(s->again, OLD_MS, /* repeat_ms= */ 0);
		return;
	}
	s->again_is_due = false;
	make_again(s);
}

/* Whether node-driver-registrar makes sockets of that name (its main.go). */
static bool is_of_registrar(const char *driver_name, const char *file)
{
	size_t n = strlen(driver_name);

	return strncmp(file, driver_name, n) == 0 && str_eq(file + n, "-reg.sock");
}

static bool is_of_boot(const char *driver_name, const char *file)
{
	size_t n = strlen(driver_name);

	if (strncmp(file, driver_name, n) != 0 || file[n] != '-')
		return false;
	file += n + 1;
	return strspn(file, "0123456789abcdef") == BOOT_DIGITS && str_eq(file + BOOT_DIGITS, ".sock");
}

/* A file that cannot be removed does no harm. Return: whether there was one. */
static bool remove_stale(const char *path)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool removed = false;

	if (unix_socket_remove_stale(path, &removed, &err) < 0)
		log_warn("a registration socket with this driver's name is left in place", F_ERR(err));
	else if (removed)
		log_info("removed a stale registration socket", F_STR("path", path));
	return removed;
}

/* Return: whether one was removed that kubelet may have registered. */
static bool remove_others(const struct kubelet_registration *s)
{
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	bool registered = false;

	if (dir_open(s->config.folder, /* create= */ false, 0, &dir_fd, &err) < 0 ||
		dir_list(dir_fd, &names, &err) < 0) {
		log_warn("stale registration sockets cannot be searched for", F_ERR(err));
		return false;
	}
	for (size_t i = 0; names[i]; i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/%s", s->config.folder, names[i]);
		bool of_registrar = is_of_registrar(s->config.driver_name, names[i]);

		if (str_eq(path, s->path) || (!of_registrar && !is_of_boot(s->config.driver_name, names[i])))
			continue;
		if (remove_stale(path) && of_registrar)
			registered = true;
	}
	return registered;
}

static struct kubelet_registration *new_socket(const struct kubelet_registration_config *config)
{
	struct kubelet_registration *s = x_calloc(1, sizeof(*s));

	s->config = *config;
	s->path = x_asprintf(
		"%s/%s-%.*s.sock", config->folder, config->driver_name, BOOT_DIGITS, config->boot_id);
	s->services[0] = (struct grpc_service){.methods = methods, .self = s};
	backoff_init(&s->refusals, config->again_ms);
	s->silence = loop_timer_new(config->loop, on_silence, s);
	s->again = loop_timer_new(config->loop, on_again, s);
	s->check = loop_timer_new(config->loop, on_check, s);
	return s;
}

int kubelet_registration_new(const struct kubelet_registration_config *config,
	struct kubelet_registration **ret, struct error **err)
{
	struct kubelet_registration *s = new_socket(config);
	uint64_t check_ms = config->check_ms ? config->check_ms : CHECK_MS;
	bool folder_is_missing = access(config->folder, F_OK) < 0 && errno == ENOENT;

	/* kubelet removes and makes registrations of two paths at the same time, and the last operation
	 * decides. */
	if (!folder_is_missing && remove_others(s)) {
		s->again_is_due = true;
		loop_timer_set(s->again, SETTLE_MS, /* repeat_ms= */ 0);
	} else if (listen_at(s, err) < 0) {
		kubelet_registration_free(s);
		return folder_is_missing ? err_wrap(err, "\"%s\" does not exist", config->folder) : -1;
	}
	if (folder_is_missing)
		log_warn("the folder in which kubelet looks for drivers did not exist, and was created; "
			 "kubelet normally creates it when it starts",
			F_STR("folder", config->folder));
	loop_timer_set(s->check, check_ms, check_ms);
	*ret = s;
	return 0;
}

bool kubelet_registration_is_registered(const struct kubelet_registration *s)
{
	return s->registered;
}

int kubelet_registration_require_accepted(const struct kubelet_registration *s, struct error **err)
{
	if (s->failure)
		return err_set(err, ERR_UNAVAILABLE, "kubelet's registration socket cannot be created: %s",
			s->failure);
	if (s->refusal)
		return err_set(
			err, ERR_UNAVAILABLE, "kubelet refuses to register the driver: %s", s->refusal);
	return 0;
}

void kubelet_registration_drain(struct kubelet_registration *s, loop_fn on_drained, void *user)
{
	s->on_drained = on_drained;
	s->user = user;
	s->draining = 1 + (s->old && !s->old_is_drained);
	loop_timer_stop(s->check);
	loop_timer_stop(s->silence);
	loop_timer_stop(s->again);
	if (s->server)
		grpc_server_drain(s->server, server_drained, s);
	else
		loop_post(s->config.loop, server_drained, s);
}

void kubelet_registration_free(struct kubelet_registration *s)
{
	if (!s)
		return;
	grpc_server_free(s->server);
	grpc_server_free(s->old);
	loop_timer_close(s->check);
	loop_timer_close(s->silence);
	loop_timer_close(s->again);
	free(s->refusal);
	free(s->failure);
	free(s->path);
	free(s);
}
