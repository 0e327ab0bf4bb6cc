/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which kubelet finds the driver: it is created, removed, and created again. */
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pluginregistration.pb-c.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/kubelet_registration.h"
#include "net/grpc/grpc_client.h"
#include "unit/net/core/tmpdir.h"

#define ROUND_MS 2

static struct loop *loop;
static struct workers *workers;
static struct kubelet_registration *sock;
static struct error *err;
static char *path;
static const char *boot_id;
static bool drained;
static unsigned lost;
static uint64_t lost_ms;
static bool registers; /* what kubelet comes to */
static uint64_t silence_ms;
static FILE *log_file;
static int old_stderr;

static void on_lost(void *user, const struct error *e)
{
	ck_assert_ptr_eq(user, &lost);
	ck_assert_ptr_nonnull(e->msg);
	lost++;
}

static int begin(void)
{
	const struct kubelet_registration_config config = {.loop = loop,
		.workers = workers,
		.folder = tmpdir,
		.boot_id = boot_id,
		.driver_name = "driver.example",
		.endpoint = "/csi.sock",
		.on_lost = on_lost,
		.user = &lost,
		.check_ms = ROUND_MS,
		.silence_ms = silence_ms,
		.again_ms = ROUND_MS,
		.lost_ms = lost_ms};

	return kubelet_registration_new(&config, &sock, &err);
}

static void open_all(void)
{
	ASSERT_OK(loop_new(&loop, &err));
	workers = workers_new(1);
	boot_id = "0af5c8de-0000-4000-8000-000000000000";
	path = x_asprintf("%s/driver.example-0af5.sock", tmpdir);
	registers = true;
	lost = 0;
	lost_ms = 0;
	silence_ms = 0;
	log_file = tmpfile();
	old_stderr = dup(STDERR_FILENO);
	ck_assert_int_ge(dup2(fileno(log_file), STDERR_FILENO), 0);
}

/* Return: how many lines with @text were logged. */
static unsigned logged(const char *text)
{
	char line[1024];
	unsigned n = 0;

	rewind(log_file);
	while (fgets(line, sizeof(line), log_file))
		n += strstr(line, text) != NULL;
	return n;
}

static bool kubelet_is_missed(void)
{
	return logged("kubelet has not registered the driver yet") > 0;
}

struct until {
	bool (*done)(void);
};

static void on_round(void *user)
{
	const struct until *u = user;

	if (u->done())
		loop_stop(loop);
}

static void until(bool (*done)(void))
{
	struct until u = {done};
	struct loop_timer *tick = loop_timer_new(loop, on_round, &u);

	loop_timer_set(tick, 0, ROUND_MS);
	loop_run(loop);
	loop_timer_close(tick);
}

static bool is_there(void)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static bool a_round(void)
{
	return true;
}

static void on_drained(void *user)
{
	ck_assert_ptr_eq(user, &drained);
	drained = true;
}

static bool is_drained(void)
{
	return drained;
}

static void close_rest(void)
{
	workers_free(workers);
	loop_free(loop);
	free(path);
	dup2(old_stderr, STDERR_FILENO);
	close(old_stderr);
	fclose(log_file);
}

static void close_all(void)
{
	kubelet_registration_drain(sock, on_drained, &drained);
	ck_assert(!is_there());
	until(is_drained);
	kubelet_registration_free(sock);
	close_rest();
}

/* Makes the calls of kubelet: GetInfo, which newer versions call twice, and then NotifyRegistrationStatus. */
static void visit(void)
{
	Pluginregistration__InfoRequest q;
	pluginregistration__info_request__init(&q);
	Pluginregistration__RegistrationStatus status;
	pluginregistration__registration_status__init(&status);
	const struct h2_channel_config config = {.loop = loop, .endpoint = path};
	char no[] = "no";
	ProtobufCMessage *reply;
	struct grpc_client *c;

	ASSERT_OK(grpc_client_new(&config, &c, &err));
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(grpc_client_call_sync(c, "/pluginregistration.Registration/GetInfo", &q.base,
			&pluginregistration__plugin_info__descriptor, 10000, &reply, &err));
		const Pluginregistration__PluginInfo *info = (const Pluginregistration__PluginInfo *)reply;
		ck_assert_str_eq(info->type, "CSIPlugin");
		ck_assert_str_eq(info->name, "driver.example");
		ck_assert_str_eq(info->endpoint, "/csi.sock");
		ck_assert_uint_eq(info->n_supported_versions, 1);
		ck_assert_str_eq(info->supported_versions[0], "1.0.0");
		protobuf_c_message_free_unpacked(reply, NULL);
	}
	if (registers)
		status.plugin_registered = true;
	else
		status.error = no;
	ASSERT_OK(grpc_client_call_sync(c, "/pluginregistration.Registration/NotifyRegistrationStatus",
		&status.base, &pluginregistration__registration_status_response__descriptor, 10000, &reply,
		&err));
	protobuf_c_message_free_unpacked(reply, NULL);
	ck_assert(kubelet_registration_is_registered(sock) == registers);
	grpc_client_free(c);
}

/* Return: what is bound to @where. */
static int bind_at(const char *where)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", where);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static void leave_stale_socket(const char *where)
{
	close(bind_at(where));
}

static void leave_stale_socket_named(const char *name)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/%s", tmpdir, name);

	leave_stale_socket(file);
}

static bool exists_in_folder(const char *name)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/%s", tmpdir, name);

	return access(file, F_OK) == 0;
}

START_TEST(a_stale_socket_is_replaced)
{
	open_all();
	leave_stale_socket(path);
	ASSERT_OK(begin());
	visit();
	close_all();
}
END_TEST

START_TEST(the_name_is_another_one_after_a_boot_and_the_old_ones_go)
{
	static const char *const others[] = {"driver.example-12345.sock", "driver.example-123g.sock",
		"driver.example2-1234.sock", "driver.example-x-1234.sock", "driver.example-1234",
		"driver.example2-reg.sock", "1234.sock"};

	open_all();
	leave_stale_socket_named("driver.example-1234.sock");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		leave_stale_socket_named(others[i]);
	ASSERT_OK(begin());
	visit();
	ck_assert(!exists_in_folder("driver.example-1234.sock"));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ck_assert_msg(exists_in_folder(others[i]), "%s", others[i]);
	close_all();
}
END_TEST

START_TEST(what_a_registrar_left_goes_some_time_before_the_socket_comes)
{
	open_all();
	leave_stale_socket_named("driver.example-reg.sock");
	ASSERT_OK(begin());
	ck_assert(!exists_in_folder("driver.example-reg.sock"));
	for (int i = 0; i < 20; i++) {
		until(a_round);
		ck_assert(!is_there());
	}
	until(is_there);
	visit();
	close_all();
}
END_TEST

START_TEST(a_registration_that_another_one_serves_is_left_alone)
{
	CLEANUP(free_charp) char *registrar = x_asprintf("%s/driver.example-reg.sock", tmpdir);
	CLEANUP(fd_closep) int fd = -1;

	open_all();
	fd = bind_at(registrar);
	ck_assert_int_eq(listen(fd, 1), 0);
	ASSERT_OK(begin());
	ck_assert_uint_eq(logged("is in use by another server"), 1);
	ck_assert_uint_eq(logged(registrar), 1);
	ck_assert(exists_in_folder("driver.example-reg.sock"));
	close_all();
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
	CLEANUP(file_closep) FILE *f = NULL;

	open_all();
	f = fopen(path, "w");
	ASSERT_FAILS(begin(), ERR_PRECONDITION, path);
	ck_assert_int_eq(access(path, F_OK), 0);
	close_rest();
}
END_TEST

START_TEST(a_socket_that_was_removed_is_made_again)
{
	open_all();
	ASSERT_OK(begin());
	for (int i = 0; i < 3; i++) {
		visit();
		ck_assert_int_eq(unlink(path), 0);
		until(is_there);
	}
	visit();
	close_all();
}
END_TEST

START_TEST(a_folder_that_was_removed_is_made_again_and_what_is_in_the_way_is_waited_for)
{
	open_all();
	ASSERT_OK(begin());
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(tmpdir), 0);
	until(is_there);
	visit();
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (int i = 0; i < 20; i++)
		until(a_round);
	ck_assert_int_eq(rmdir(path), 0);
	until(is_there);
	visit();
	close_all();
}
END_TEST

START_TEST(a_kubelet_that_does_not_come_is_missed_once_for_each_socket)
{
	open_all();
	silence_ms = 2 * ROUND_MS;
	ASSERT_OK(begin());
	until(kubelet_is_missed);
	for (int i = 0; i < 20; i++)
		until(a_round);
	ck_assert_uint_eq(logged("-pluginRegistrationPath"), 1);
	ck_assert_uint_eq(logged(tmpdir), 1);
	ck_assert(!kubelet_registration_is_registered(sock));
	ck_assert_int_eq(unlink(path), 0);
	while (logged("-pluginRegistrationPath") < 2)
		until(a_round);
	close_all();
}
END_TEST

static uint64_t silence_ends_ns;

static bool silence_is_over(void)
{
	return clock_ns() > silence_ends_ns;
}

START_TEST(a_kubelet_that_has_come_is_not_missed)
{
	open_all();
	silence_ms = 1000;
	ASSERT_OK(begin());
	visit();
	silence_ends_ns = clock_ns() + (silence_ms + 20 * ROUND_MS) * 1000000;
	until(silence_is_over);
	ck_assert(!kubelet_is_missed());
	ck_assert(kubelet_registration_is_registered(sock));
	close_all();
}
END_TEST

static struct timespec refused_at;

static bool is_another_socket(void)
{
	struct stat st;

	return is_there() && lstat(path, &st) == 0 &&
	       (st.st_ctim.tv_sec != refused_at.tv_sec || st.st_ctim.tv_nsec != refused_at.tv_nsec);
}

static void visit_and_refuse(void)
{
	struct stat st;

	ck_assert_int_eq(lstat(path, &st), 0);
	refused_at = st.st_ctim;
	registers = false;
	visit();
	registers = true;
}

START_TEST(a_driver_that_is_refused_is_offered_again_and_again)
{
	open_all();
	ASSERT_OK(begin());
	for (int i = 0; i < 3; i++) {
		visit_and_refuse();
		ASSERT_FAILS(kubelet_registration_require_accepted(sock, &err), ERR_UNAVAILABLE,
			"refuses to register the driver: no");
		until(is_another_socket);
	}
	ck_assert_uint_eq(logged("refused to register the driver, will try again"), 1);
	ck_assert_uint_eq(logged("another program removed"), 0);
	visit();
	ASSERT_OK(kubelet_registration_require_accepted(sock, &err));
	ck_assert_uint_eq(lost, 0);
	close_all();
}
END_TEST

START_TEST(an_end_between_a_refusal_and_the_next_offer)
{
	open_all();
	ASSERT_OK(begin());
	visit_and_refuse();
	close_all();
}
END_TEST

START_TEST(a_socket_that_cannot_be_made_for_long_is_lost)
{
	open_all();
	lost_ms = 5 * ROUND_MS;
	ASSERT_OK(begin());
	visit();
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	while (lost == 0)
		until(a_round);
	ck_assert(!kubelet_registration_is_registered(sock));
	ASSERT_FAILS(kubelet_registration_require_accepted(sock, &err), ERR_UNAVAILABLE, path);
	for (int i = 0; i < 10; i++)
		until(a_round);
	ck_assert_uint_eq(lost, 1);
	ck_assert_int_eq(rmdir(path), 0);
	until(is_there);
	ASSERT_OK(kubelet_registration_require_accepted(sock, &err));
	close_all();
}
END_TEST

START_TEST(an_end_without_a_socket)
{
	open_all();
	ASSERT_OK(begin());
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	while (logged("cannot be created") == 0)
		until(a_round);
	kubelet_registration_drain(sock, on_drained, &drained);
	until(is_drained);
	kubelet_registration_free(sock);
	close_rest();
}
END_TEST

START_TEST(a_folder_that_did_not_exist_is_made_and_warned_of)
{
	open_all();
	ck_assert_int_eq(rmdir(tmpdir), 0);
	ASSERT_OK(begin());
	ck_assert_uint_eq(logged("did not exist, and was created"), 1);
	visit();
	close_all();
}
END_TEST

START_TEST(a_folder_without_parent_is_refused)
{
	CLEANUP(free_charp) char *folder = x_asprintf("%s/none/registry", tmpdir);
	struct kubelet_registration_config config = {.folder = folder,
		.boot_id = "0af5",
		.driver_name = "driver.example",
		.endpoint = "/csi.sock"};

	open_all();
	config.loop = loop;
	ASSERT_FAILS(kubelet_registration_new(&config, &sock, &err), ERR_INTERNAL,
		"/none/registry\" does not exist");
	close_rest();
}
END_TEST

TMPDIR_MAIN("csi/kubelet_registration", a_stale_socket_is_replaced,
	the_name_is_another_one_after_a_boot_and_the_old_ones_go,
	what_a_registrar_left_goes_some_time_before_the_socket_comes,
	a_registration_that_another_one_serves_is_left_alone, a_file_that_is_no_socket_is_left_alone,
	a_socket_that_was_removed_is_made_again,
	a_folder_that_was_removed_is_made_again_and_what_is_in_the_way_is_waited_for,
	a_kubelet_that_does_not_come_is_missed_once_for_each_socket, a_kubelet_that_has_come_is_not_missed,
	a_driver_that_is_refused_is_offered_again_and_again, an_end_between_a_refusal_and_the_next_offer,
	a_socket_that_cannot_be_made_for_long_is_lost, an_end_without_a_socket,
	a_folder_that_did_not_exist_is_made_and_warned_of, a_folder_without_parent_is_refused)
